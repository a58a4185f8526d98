"""The cluster configs that a client gets."""

from __future__ import annotations

import json

import pytest

from triclinium_core.kv.wire.constants import HelloFeature
from triclinium_core.testing.fake_config import ConfigVersion, FakeConfig
from triclinium_core.testing.fake_options import IMPLEMENTED_FEATURES, FakeNodeOptions


def test_the_global_config_names_the_node() -> None:
    """Without a bucket a client learns of the node and its ports, not of vbuckets."""
    config = FakeConfig(FakeNodeOptions(host="10.0.0.5", port=12000, config_epoch=3, config_revision=7))

    assert {
        "rev": 7,
        "revEpoch": 3,
        "nodesExt": [{"services": {"kv": 12000}, "thisNode": True, "hostname": "10.0.0.5"}],
        "clusterCapabilitiesVer": [1, 0],
        "clusterCapabilities": {},
    } == json.loads(config.encode(None))


def test_the_config_of_a_bucket_maps_every_vbucket_to_the_node() -> None:
    """A bucket's config is the global one with the bucket's name, uuid, capabilities and vbuckets."""
    config = FakeConfig(FakeNodeOptions(host="10.0.0.5", port=12000, vbuckets=128))
    in_common = json.loads(config.encode(None))

    ours = json.loads(config.encode("travel"))

    assert in_common.items() <= ours.items()
    assert ("travel", "vbucket") == (ours["name"], ours["nodeLocator"])
    assert 32 == len(ours["uuid"])
    assert [{"hostname": "10.0.0.5:12000", "ports": {"direct": 12000}}] == ours["nodes"]
    assert {
        "hashAlgorithm": "CRC",
        "numReplicas": 0,
        "serverList": ["10.0.0.5:12000"],
        "vBucketMap": [[0]] * 128,
    } == ours["vBucketServerMap"]


def test_buckets_have_uuids_of_their_own() -> None:
    """Two buckets can be told apart by their uuid, the same one each time."""
    config = FakeConfig(FakeNodeOptions())

    assert json.loads(config.encode("a"))["uuid"] != json.loads(config.encode("b"))["uuid"]
    assert config.encode("a") == config.encode("a")


def test_leaves_the_host_to_the_client() -> None:
    """With the placeholder a client puts in the host that it connected to."""
    config = json.loads(FakeConfig(FakeNodeOptions(host="$HOST")).encode("default"))

    assert "hostname" not in config["nodesExt"][0]
    assert ["$HOST:11210"] == config["vBucketServerMap"]["serverList"]


def test_names_the_tls_port_where_there_is_one() -> None:
    """A port for TLS stands beside the other."""
    config = json.loads(FakeConfig(FakeNodeOptions(tls_port=11207)).encode(None))

    assert {"kv": 11210, "kvSSL": 11207} == config["nodesExt"][0]["services"]


@pytest.mark.parametrize("feature", [HelloFeature.COLLECTIONS, HelloFeature.PRESERVE_TTL])
def test_claims_no_more_than_it_grants(feature: HelloFeature) -> None:
    """A bucket's capabilities are those that the features of the node give it."""
    whole, lacking = (
        json.loads(FakeConfig(FakeNodeOptions(features=features)).encode("default"))["bucketCapabilities"]
        for features in (IMPLEMENTED_FEATURES, IMPLEMENTED_FEATURES - {feature})
    )

    assert 1 == len(set(whole) - set(lacking))


def test_orders_versions_by_epoch_first() -> None:
    """A higher epoch is newer, whatever the revision."""
    versions = [ConfigVersion(2, 1), ConfigVersion(1, 9), ConfigVersion(1, 2)]

    assert versions[::-1] == sorted(versions)
