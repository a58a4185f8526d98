"""Capabilities that the configs of a cluster and of its buckets list.

Source: the fields ``bucketCapabilities`` and ``clusterCapabilities`` of ns_server's cluster configs.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum, unique
from typing import TypeVar


@unique
class BucketCapability(StrEnum):
    """Capabilities of a bucket. Each value is the name in configs."""

    CBHELLO = "cbhello"
    CCCP = "cccp"
    COLLECTIONS = "collections"
    COUCHAPI = "couchapi"
    DCP = "dcp"
    DURABLE_WRITE = "durableWrite"
    NODES_EXT = "nodesExt"
    NON_DEDUPED_HISTORY = "nonDedupedHistory"
    PRESERVE_EXPIRY = "preserveExpiry"
    QUERY_SYSTEM_COLLECTION = "querySystemCollection"
    RANGE_SCAN = "rangeScan"
    SUBDOC_ACCESS_DELETED = "subdoc.AccessDeleted"
    SUBDOC_DOCUMENT_MACRO_SUPPORT = "subdoc.DocumentMacroSupport"
    SUBDOC_REPLACE_BODY_WITH_XATTR = "subdoc.ReplaceBodyWithXattr"
    SUBDOC_REPLICA_READ = "subdoc.ReplicaRead"
    SUBDOC_REVIVE_DOCUMENT = "subdoc.ReviveDocument"
    TOMBSTONED_USER_XATTRS = "tombstonedUserXAttrs"
    TOUCH = "touch"
    XATTR = "xattr"
    XDCR_CHECKPOINTING = "xdcrCheckpointing"


@unique
class ClusterCapability(StrEnum):
    """Capabilities of a service of the cluster. Each value is the name in configs."""

    COST_BASED_OPTIMIZER = "costBasedOptimizer"
    ENHANCED_PREPARED_STATEMENTS = "enhancedPreparedStatements"
    INDEX_ADVISOR = "indexAdvisor"
    INLINE_FUNCTIONS = "inlineFunctions"
    JAVASCRIPT_FUNCTIONS = "javaScriptFunctions"
    READ_FROM_REPLICA = "readFromReplica"
    SCOPED_SEARCH_INDEX = "scopedSearchIndex"
    VECTOR_SEARCH = "vectorSearch"


Capability = TypeVar("Capability", BucketCapability, ClusterCapability)


def known_capabilities(kind: type[Capability], names: Iterable[str]) -> frozenset[Capability]:
    """Return the capabilities with these names. Ignore unknown names."""
    values = {member.value for member in kind}
    return frozenset(kind(name) for name in names if name in values)
