"""Cluster configs that a fake node sends to clients."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.rows import rows
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.options import FakeNodeOptions
from triclinium_core.testing.fakes.store.buckets import FakeBucket, with_defaults
from triclinium_core.testing.fakes.store.cluster_map import NO_NODE, ConfigVersion, FakeMap
from triclinium_core.testing.fakes.store.collections import FakeCollections
from triclinium_core.testing.fakes.store.config import encode_config


def config_of(options: FakeNodeOptions, bucket: str | None = "default") -> Mapping[str, Any]:
    """Return the config of a lone node."""
    version = ConfigVersion(options.config_epoch, options.config_revision)
    return decoded([options], FakeMap(version, (0,), (0,) * options.vbuckets), 0, bucket)


def decoded(
    nodes: Sequence[FakeNodeOptions], known: FakeMap, this_node: int, bucket: str | None = "default"
) -> Mapping[str, Any]:
    """Return the decoded config."""
    settings = with_defaults({"replicaNumber": str(len(known.replicas))})
    described = None if bucket is None else FakeBucket(bucket, settings, FakeCollections({}))
    config = json.loads(encode_config(known, nodes, this_node, described))
    assert isinstance(config, dict)
    return config


def test_global_config_lists_the_node() -> None:
    """The global config lists the node and its ports, without vbuckets."""
    services = frozenset({Service.KV})
    options = FakeNodeOptions(host="10.0.0.5", port=12000, config_epoch=3, config_revision=7, services=services)

    assert {
        "rev": 7,
        "revEpoch": 3,
        "nodesExt": [{"services": {"kv": 12000}, "thisNode": True, "hostname": "10.0.0.5"}],
        "clusterCapabilitiesVer": [1, 0],
        "clusterCapabilities": {},
    } == config_of(options, bucket=None)


def test_bucket_config_maps_every_vbucket() -> None:
    """A bucket's config adds its name, uuid, storage, capabilities and vbuckets to the global config."""
    options = FakeNodeOptions(host="10.0.0.5", port=12000, vbuckets=128)
    in_common = config_of(options, bucket=None)
    ours = config_of(options, bucket="travel")

    assert in_common.items() <= ours.items()
    assert ("travel", "vbucket") == (ours["name"], ours["nodeLocator"])
    assert ("membase", "couchstore", 128) == (ours["bucketType"], ours["storageBackend"], ours["numVBuckets"])
    assert 32 == len(ours["uuid"])
    assert ours["uuid"] != config_of(options, bucket="other")["uuid"]
    assert [{"hostname": "10.0.0.5:12000", "ports": {"direct": 12000}}] == ours["nodes"]
    assert {
        "hashAlgorithm": "CRC",
        "numReplicas": 0,
        "serverList": ["10.0.0.5:12000"],
        "vBucketMap": [[0]] * 128,
    } == ours["vBucketServerMap"]


def test_host_placeholder() -> None:
    """With the placeholder the config has no hostname, so clients use the host to which they connected."""
    config = config_of(FakeNodeOptions(host="$HOST"))

    assert "hostname" not in config["nodesExt"][0]
    assert ["$HOST:11210"] == config["vBucketServerMap"]["serverList"]


def test_services() -> None:
    """Each service has its name and port, and its TLS port if the node has TLS; a missing service is not listed."""
    plain, secure = (config_of(FakeNodeOptions(tls_port=port))["nodesExt"][0]["services"] for port in (None, 11207))
    ports = {"kv": 11210, "mgmt": 8091, "capi": 8092, "n1ql": 8093, "fts": 8094, "cbas": 8095}
    tls_ports = {f"{name}SSL": port + 10_000 for name, port in ports.items() if name != "kv"} | {"kvSSL": 11207}
    lacking = config_of(FakeNodeOptions(services=frozenset({Service.KV})))

    assert [ports, ports | tls_ports] == [plain, secure]
    assert {"kv": 11210} == lacking["nodesExt"][0]["services"]
    assert {} == lacking["clusterCapabilities"]
    assert ["n1ql", "search"] == list(config_of(FakeNodeOptions())["clusterCapabilities"])


NODES = [FakeNodeOptions(host=host, port=12000 + index) for index, host in enumerate(("a.test", "b.test", "::1"))]


@rows(
    ("members", "this_node", "owners", "replicas", "listed"),
    [
        ((0, 1, 2), 1, (0, 1, 2, 0), (), [[0], [1], [2], [0]]),
        # Indexes skip a removed node, and -1 stands for a missing node or replica.
        ((1, 2), 0, (NO_NODE, 1, 2, 1), (), [[-1], [0], [1], [0]]),
        ((1, 2), 1, (2, 1, NO_NODE), ((1, NO_NODE, 1), (NO_NODE, NO_NODE, 2)), [[1, 0, -1], [0, -1, -1], [-1, 0, 1]]),
    ],
)
def test_all_member_nodes_are_listed(
    members: tuple[int, ...],
    this_node: int,
    owners: tuple[int, ...],
    replicas: tuple[tuple[int, ...], ...],
    listed: list[list[int]],
) -> None:
    """All lists have the members in one order, with the sending node marked; vbuckets have nodes and replicas by index."""
    config = decoded(NODES, FakeMap(ConfigVersion(1, 2), members, owners, replicas), this_node)
    map_ = config["vBucketServerMap"]

    assert [NODES[member].host for member in members] == [node["hostname"] for node in config["nodesExt"]]
    assert [True if member == this_node else None for member in members] == [
        node.get("thisNode") for node in config["nodesExt"]
    ]
    assert ["a.test:12000", "b.test:12001", "[::1]:12002"][3 - len(members) :] == map_["serverList"]
    assert map_["serverList"] == [node["hostname"] for node in config["nodes"]]
    assert (len(replicas), listed) == (map_["numReplicas"], map_["vBucketMap"])


def test_alternate_addresses() -> None:
    """Alternate addresses are listed by network, with the node's services; only KV has another port there."""
    options = FakeNodeOptions(
        tls_port=11207,
        alternate_addresses={"external": ("ext.example", 31210)},
        services=frozenset({Service.KV, Service.QUERY}),
    )
    (node,) = config_of(options)["nodesExt"]

    ports = {"kv": 31210, "kvSSL": 31210, "n1ql": 8093, "n1qlSSL": 18093}
    assert {"external": {"hostname": "ext.example", "ports": ports}} == node["alternateAddresses"]
    assert "alternateAddresses" not in config_of(FakeNodeOptions())["nodesExt"][0]


def test_forward_map() -> None:
    """The forward map is listed only while a rebalance is announced, by index in the config."""
    version = ConfigVersion(1, 2)
    nodes = [FakeNodeOptions(), FakeNodeOptions(port=2), FakeNodeOptions(port=4)]
    config = decoded(nodes, FakeMap(version, (0, 2), (0, 2), forward=(2, 2)), 0)

    assert [[1], [1]] == config["vBucketServerMap"]["vBucketMapForward"]
    assert "vBucketMapForward" not in decoded(nodes, FakeMap(version, (0, 2), (0, 2)), 0)["vBucketServerMap"]
