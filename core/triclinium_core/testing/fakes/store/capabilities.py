"""Capabilities that the nodes of a fake cluster announce, in configs and in responses of the cluster manager.

The tables have the capabilities of servers 7.2, 7.6 and 8.0 that the fake supports. It has no DCP, no XDCR and no
``_system`` scope, so it announces none of their capabilities.

Source: ns_server of versions 7.2, 7.6 and 8.0, "bucket_info_cache" and "cluster_compat_mode".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from triclinium_core.kv.wire.constants import HelloFeature
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.options import FakeNodeOptions
from triclinium_core.testing.fakes.store.buckets import STORAGE_BACKENDS, StorageMode

_DOCUMENTS = frozenset(StorageMode) - {StorageMode.MEMCACHED}


class _Row(NamedTuple):
    """Condition of a capability of a bucket."""

    modes: Collection[StorageMode]
    """Storage of the buckets that have the capability."""
    feature: HelloFeature | None = None
    """Feature that the node must implement; None if the capability needs none."""
    is_announced: Callable[[FakeNodeOptions], bool] = lambda options: True
    """Function that returns whether a node with this feature announces the capability."""


_BUCKET_CAPABILITIES: Mapping[str, _Row] = {
    "collections": _Row(_DOCUMENTS, HelloFeature.COLLECTIONS),
    "durableWrite": _Row(_DOCUMENTS, HelloFeature.SYNC_REPLICATION),
    "tombstonedUserXAttrs": _Row(_DOCUMENTS, HelloFeature.SUBDOC_CREATE_AS_DELETED),
    "couchapi": _Row({StorageMode.COUCHSTORE}),
    "subdoc.ReplaceBodyWithXattr": _Row(_DOCUMENTS, HelloFeature.REPLACE_BODY_WITH_XATTR),
    # Clients read this in transactions: with it, a mutation can revive a removed document. Version 7.0 has the flag
    # (MB-41550), but not the capability, which came with 7.1 (MB-49036).
    "subdoc.ReviveDocument": _Row(
        _DOCUMENTS, HelloFeature.REPLACE_BODY_WITH_XATTR, lambda options: options.announces_revival
    ),
    "nonDedupedHistory": _Row({StorageMode.MAGMA}),
    "preserveExpiry": _Row(_DOCUMENTS, HelloFeature.PRESERVE_TTL),
    "subdoc.ReplicaRead": _Row(_DOCUMENTS, HelloFeature.SUBDOC_REPLICA_READ),
    "subdoc.AccessDeleted": _Row(_DOCUMENTS, HelloFeature.XATTR),
    "rangeScan": _Row(STORAGE_BACKENDS, HelloFeature.JSON),
    "cbhello": _Row(frozenset(StorageMode)),
    "touch": _Row(_DOCUMENTS),
    "cccp": _Row(_DOCUMENTS),
    "nodesExt": _Row(frozenset(StorageMode)),
    "xattr": _Row(_DOCUMENTS, HelloFeature.XATTR),
}

_CLUSTER_CAPABILITIES: Mapping[Service, Sequence[str]] = {
    Service.QUERY: (
        "costBasedOptimizer",
        "indexAdvisor",
        "javaScriptFunctions",
        "inlineFunctions",
        "enhancedPreparedStatements",
        "readFromReplica",
    ),
    Service.SEARCH: ("vectorSearch", "scopedSearchIndex"),
}
"""Capabilities of services. The query service answers any scripted statement, even one that optimizes, advises
or defines functions."""

_NAMES: Mapping[Service, str] = {Service.QUERY: "n1ql", Service.SEARCH: "search"}
"""Names of the services in the list of capabilities. Search has another name in the list of ports."""


def bucket_capabilities(mode: StorageMode, node: FakeNodeOptions) -> list[str]:
    """Return the capabilities of a bucket on a node."""
    return [
        name
        for name, row in _BUCKET_CAPABILITIES.items()
        if mode in row.modes and (row.feature is None or row.feature in node.features) and row.is_announced(node)
    ]


def cluster_capabilities(nodes: Sequence[FakeNodeOptions]) -> dict[str, list[str]]:
    """Return the capabilities of a cluster of these nodes, by service."""
    offered = {service for options in nodes for service in options.services}
    # The cluster has the capabilities of the query service only if all its nodes have them.
    is_old = not all(options.enhanced_prepared_statements for options in nodes)
    return {
        _NAMES[service]: list(names)
        for service, names in _CLUSTER_CAPABILITIES.items()
        if service in offered and not (is_old and service is Service.QUERY)
    }
