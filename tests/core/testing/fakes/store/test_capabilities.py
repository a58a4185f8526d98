"""Capabilities that fake nodes announce, in configs and in descriptions of buckets."""

from __future__ import annotations

import json

from tests.core.testing.fakes.services.management.manager import BUCKETS, Manager
from tests.core.testing.node_client import ready_client
from tests.rows import rows
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import FakeNode, FakeNodeOptions
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES
from triclinium_core.testing.fakes.store.buckets import StorageMode
from triclinium_core.testing.fakes.store.capabilities import bucket_capabilities, cluster_capabilities

IN_ALL = {
    "collections",
    "durableWrite",
    "tombstonedUserXAttrs",
    "subdoc.ReplaceBodyWithXattr",
    "subdoc.ReviveDocument",
    "preserveExpiry",
    "subdoc.ReplicaRead",
    "subdoc.AccessDeleted",
    "cbhello",
    "touch",
    "cccp",
    "nodesExt",
    "xattr",
}


@rows(
    ("mode", "expected"),
    [
        (StorageMode.COUCHSTORE, {*IN_ALL, "couchapi", "rangeScan"}),
        (StorageMode.MAGMA, {*IN_ALL, "nonDedupedHistory", "rangeScan"}),
        (StorageMode.EPHEMERAL, IN_ALL),
        (StorageMode.MEMCACHED, {"cbhello", "nodesExt"}),
    ],
)
def test_capabilities_depend_on_the_storage(mode: StorageMode, expected: set[str]) -> None:
    """A bucket has the capabilities of its storage."""
    assert expected == set(bucket_capabilities(mode, FakeNodeOptions()))


@rows(
    ("feature", "lost"),
    [
        (HelloFeature.COLLECTIONS, {"collections"}),
        (HelloFeature.PRESERVE_TTL, {"preserveExpiry"}),
        (HelloFeature.SYNC_REPLICATION, {"durableWrite"}),
        (HelloFeature.SUBDOC_CREATE_AS_DELETED, {"tombstonedUserXAttrs"}),
        (HelloFeature.SUBDOC_REPLICA_READ, {"subdoc.ReplicaRead"}),
        (HelloFeature.REPLACE_BODY_WITH_XATTR, {"subdoc.ReplaceBodyWithXattr", "subdoc.ReviveDocument"}),
        (HelloFeature.XATTR, {"xattr", "subdoc.AccessDeleted"}),
    ],
)
def test_capabilities_depend_on_the_features(feature: HelloFeature, lost: set[str]) -> None:
    """A node without a feature does not announce the capabilities that need it."""
    whole, lacking = (
        set(bucket_capabilities(StorageMode.COUCHSTORE, FakeNodeOptions(features=features)))
        for features in (IMPLEMENTED_FEATURES, IMPLEMENTED_FEATURES - {feature})
    )

    assert lost == whole - lacking


def test_nodes_before_7_1_announce_no_revival() -> None:
    """A node of version 7.0 announces no revival of removed documents, but replaces bodies with attributes."""
    new, old = (
        set(bucket_capabilities(StorageMode.COUCHSTORE, FakeNodeOptions(announces_revival=announces)))
        for announces in (True, False)
    )

    assert {"subdoc.ReviveDocument"} == new - old
    assert "subdoc.ReplaceBodyWithXattr" in old


def test_capabilities_are_the_same_everywhere() -> None:
    """Both configs and the description of a bucket list the same capabilities, which depend on the node's features."""
    manager = Manager(FakeNode(FakeNodeOptions(features=IMPLEMENTED_FEATURES - {HelloFeature.PRESERVE_TTL})))
    manager.submit("POST", BUCKETS, name="magma", ramQuotaMB=1024, storageBackend="magma")
    on_kv = json.loads(ready_client(manager.node, bucket=b"magma").ask(Opcode.GET_CLUSTER_CONFIG).value)
    config, described = (manager.ask("GET", f"/pools/default/{path}/magma").document for path in ("b", "buckets"))

    assert "nonDedupedHistory" in on_kv["bucketCapabilities"]
    assert "preserveExpiry" not in on_kv["bucketCapabilities"]
    assert on_kv["bucketCapabilities"] == config["bucketCapabilities"] == described["bucketCapabilities"]


def test_cluster_capabilities() -> None:
    """A cluster has the capabilities of its services, if all its nodes have them."""
    new, old = FakeNodeOptions(), FakeNodeOptions(enhanced_prepared_statements=False)
    search = {"search": ["vectorSearch", "scopedSearchIndex"]}

    whole = cluster_capabilities([new, new])

    assert search.items() <= whole.items()
    assert {"enhancedPreparedStatements", "readFromReplica", "indexAdvisor"} <= set(whole["n1ql"])
    assert search == cluster_capabilities([new, old])
    assert {} == cluster_capabilities([FakeNodeOptions(services=frozenset({Service.KV}))])
