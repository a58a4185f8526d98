"""Capabilities of a bucket and of services, as a config lists them."""

from __future__ import annotations

import json

from triclinium_core.kv.topology.capabilities import BucketCapability, ClusterCapability
from triclinium_core.kv.topology.cluster_config import parse_cluster_config


def test_known_capabilities_are_typed() -> None:
    """The parser converts known capabilities to enum members, ignores unknown names, and accepts none."""
    document = {
        "rev": 1,
        "bucketCapabilities": ["collections", "durableWrite", "subdoc.ReplicaRead", "timeTravel"],
        "clusterCapabilities": {"n1ql": ["readFromReplica", "mindReading"], "search": ["vectorSearch"]},
    }
    config = parse_cluster_config(json.dumps(document).encode(), host="h")

    assert {
        BucketCapability.COLLECTIONS,
        BucketCapability.DURABLE_WRITE,
        BucketCapability.SUBDOC_REPLICA_READ,
    } == config.can
    assert {ClusterCapability.READ_FROM_REPLICA} == config.service_can("n1ql")
    assert {ClusterCapability.VECTOR_SEARCH} == config.service_can("search")
    assert frozenset() == config.service_can("cbas")
    without = parse_cluster_config(b'{"rev":1}', host="h")
    assert (frozenset(), frozenset()) == (without.can, without.service_can("n1ql"))
