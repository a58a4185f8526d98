"""The cluster configs that a client gets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from triclinium_core.kv.wire.constants import HelloFeature
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES, FakeNodeOptions
from triclinium_core.testing.fakes.store.cluster_map import NO_NODE, ConfigVersion, FakeMap
from triclinium_core.testing.fakes.store.config import encode_config


def config_of(options: FakeNodeOptions, bucket: str | None = "default") -> Mapping[str, Any]:
    """Return the config of a lone node."""
    version = ConfigVersion(options.config_epoch, options.config_revision)
    return decoded([options], FakeMap(version, (0,), (0,) * options.vbuckets), 0, bucket)


def decoded(
    nodes: Sequence[FakeNodeOptions], known: FakeMap, this_node: int, bucket: str | None = "default"
) -> Mapping[str, Any]:
    """Return the config as a client reads it."""
    config = json.loads(encode_config(known, nodes, this_node, bucket))
    assert isinstance(config, dict)
    return config


def test_the_global_config_names_the_node() -> None:
    """Without a bucket a client learns of the node and its ports, not of vbuckets."""
    services = frozenset({Service.KV})
    options = FakeNodeOptions(host="10.0.0.5", port=12000, config_epoch=3, config_revision=7, services=services)

    assert {
        "rev": 7,
        "revEpoch": 3,
        "nodesExt": [{"services": {"kv": 12000}, "thisNode": True, "hostname": "10.0.0.5"}],
        "clusterCapabilitiesVer": [1, 0],
        "clusterCapabilities": {},
    } == config_of(options, bucket=None)


def test_the_config_of_a_bucket_maps_every_vbucket_to_the_node() -> None:
    """A bucket's config is the global one with the bucket's name, uuid, capabilities and vbuckets."""
    options = FakeNodeOptions(host="10.0.0.5", port=12000, vbuckets=128)
    in_common = config_of(options, bucket=None)
    ours = config_of(options, bucket="travel")

    assert in_common.items() <= ours.items()
    assert ("travel", "vbucket") == (ours["name"], ours["nodeLocator"])
    assert 32 == len(ours["uuid"])
    assert ours["uuid"] != config_of(options, bucket="other")["uuid"]
    assert [{"hostname": "10.0.0.5:12000", "ports": {"direct": 12000}}] == ours["nodes"]
    assert {
        "hashAlgorithm": "CRC",
        "numReplicas": 0,
        "serverList": ["10.0.0.5:12000"],
        "vBucketMap": [[0]] * 128,
    } == ours["vBucketServerMap"]


def test_leaves_the_host_to_the_client() -> None:
    """With the placeholder a client puts in the host that it connected to."""
    config = config_of(FakeNodeOptions(host="$HOST"))

    assert "hostname" not in config["nodesExt"][0]
    assert ["$HOST:11210"] == config["vBucketServerMap"]["serverList"]


def test_services() -> None:
    """Each under the name and the port that clients look for, over TLS too where the node speaks it, as far as it has them."""
    plain, secure = (config_of(FakeNodeOptions(tls_port=port))["nodesExt"][0]["services"] for port in (None, 11207))
    ports = {"kv": 11210, "mgmt": 8091, "capi": 8092, "n1ql": 8093, "fts": 8094, "cbas": 8095}
    tls_ports = {f"{name}SSL": port + 10_000 for name, port in ports.items() if name != "kv"} | {"kvSSL": 11207}
    lacking = config_of(FakeNodeOptions(services=frozenset({Service.KV})))

    assert [ports, ports | tls_ports] == [plain, secure]
    assert {"kv": 11210} == lacking["nodesExt"][0]["services"]
    assert {} == lacking["clusterCapabilities"]
    assert ["n1ql", "search"] == list(config_of(FakeNodeOptions())["clusterCapabilities"])


@pytest.mark.parametrize("feature", [HelloFeature.COLLECTIONS, HelloFeature.PRESERVE_TTL])
def test_claims_no_more_than_it_grants(feature: HelloFeature) -> None:
    """A bucket's capabilities are those that the features of the node give it."""
    whole, lacking = (
        config_of(FakeNodeOptions(features=features))["bucketCapabilities"]
        for features in (IMPLEMENTED_FEATURES, IMPLEMENTED_FEATURES - {feature})
    )

    assert 1 == len(set(whole) - set(lacking))


NODES = [FakeNodeOptions(host=host, port=12000 + index) for index, host in enumerate(("a.test", "b.test", "::1"))]


def test_every_node_that_is_in_is_named() -> None:
    """In one order everywhere; the answering node says which one it is."""
    known = FakeMap(ConfigVersion(1, 1), (0, 1, 2), (0, 1, 2, 0))
    config = decoded(NODES, known, 1)

    assert ["a.test", "b.test", "::1"] == [node["hostname"] for node in config["nodesExt"]]
    assert [None, True, None] == [node.get("thisNode") for node in config["nodesExt"]]
    assert ["a.test:12000", "b.test:12001", "[::1]:12002"] == config["vBucketServerMap"]["serverList"]
    assert config["vBucketServerMap"]["serverList"] == [node["hostname"] for node in config["nodes"]]
    assert [[0], [1], [2], [0]] == config["vBucketServerMap"]["vBucketMap"]


def test_replicas_stand_behind_their_vbucket() -> None:
    """By the places of their nodes in the list of servers, none where there is none; the number says how many."""
    known = FakeMap(ConfigVersion(1, 2), (1, 2), (2, 1, NO_NODE), ((1, NO_NODE, 1), (NO_NODE, NO_NODE, 2)))
    config = decoded(NODES, known, 1)

    assert 2 == config["vBucketServerMap"]["numReplicas"]
    assert [[1, 0, -1], [0, -1, -1], [-1, 0, 1]] == config["vBucketServerMap"]["vBucketMap"]


def test_who_is_out_is_not_named() -> None:
    """The places of the others close up; a vbucket without a node has none, and the one that is out is not among them."""
    known = FakeMap(ConfigVersion(1, 2), (1, 2), (NO_NODE, 1, 2, 1))
    config = decoded(NODES, known, 0)

    assert ["b.test", "::1"] == [node["hostname"] for node in config["nodesExt"]]
    assert not any("thisNode" in node for node in config["nodesExt"])
    assert [[-1], [0], [1], [0]] == config["vBucketServerMap"]["vBucketMap"]


def test_alternate_addresses() -> None:
    """Under the name of their network, with the services that the node has; all but KV have the same ports there."""
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
    """There only while a rebalance is announced, by the positions of the nodes in the config."""
    version = ConfigVersion(1, 2)
    nodes = [FakeNodeOptions(), FakeNodeOptions(port=2), FakeNodeOptions(port=4)]
    config = decoded(nodes, FakeMap(version, (0, 2), (0, 2), forward=(2, 2)), 0)

    assert [[1], [1]] == config["vBucketServerMap"]["vBucketMapForward"]
    assert "vBucketMapForward" not in decoded(nodes, FakeMap(version, (0, 2), (0, 2)), 0)["vBucketServerMap"]
