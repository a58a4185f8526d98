"""Commands that locate data: config, manifest and collection ids."""

from __future__ import annotations

import struct

import pytest

from tests.core.testing.node_client import USUAL_FEATURES, as_json, ready_client, ready_clients, status_of, with_options
from triclinium_core.kv.wire.compression import inflate
from triclinium_core.kv.wire.constants import Datatype, HelloFeature, Opcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES


def test_config_of_the_bucket_or_global_config() -> None:
    """A connection gets the config of its bucket; without a bucket, the global config, which has no vbuckets."""
    client = ready_client(bucket=None)
    without = as_json(client.ask(Opcode.GET_CLUSTER_CONFIG).value)
    client.ask(Opcode.SELECT_BUCKET, key=b"default")
    reply = client.ask(Opcode.GET_CLUSTER_CONFIG)

    assert "vBucketServerMap" not in without
    assert "default" == as_json(reply.value)["name"]
    assert Datatype.JSON == reply.datatype


def test_old_nodes_refuse_a_known_version() -> None:
    """A node of version 7.2 sends configs, but refuses a request that contains the version of the client's config."""
    feature = HelloFeature.GET_CLUSTER_CONFIG_WITH_KNOWN_VERSION
    new, old = (
        ready_client(with_options(features=each)) for each in (IMPLEMENTED_FEATURES, IMPLEMENTED_FEATURES - {feature})
    )
    extras = struct.pack(">qq", 1, 0)

    assert Status.INVALID_ARGUMENTS == status_of(old.ask(Opcode.GET_CLUSTER_CONFIG, extras=extras))
    assert Status.SUCCESS == status_of(old.ask(Opcode.GET_CLUSTER_CONFIG))
    assert Status.SUCCESS == status_of(new.ask(Opcode.GET_CLUSTER_CONFIG, extras=extras))


def test_has_no_config_of_a_memcached_bucket() -> None:
    """A Memcached bucket can be selected but has no config."""
    client = ready_client(with_options(memcached_buckets=("memd",)), bucket=None)

    assert Status.SUCCESS == status_of(client.ask(Opcode.SELECT_BUCKET, key=b"memd"))
    assert Status.KEY_NOT_FOUND == status_of(client.ask(Opcode.GET_CLUSTER_CONFIG))


def test_json_datatype_only_if_granted() -> None:
    """Without the feature, the config has the raw datatype, and is still JSON."""
    reply = ready_client(without=[HelloFeature.JSON]).ask(Opcode.GET_CLUSTER_CONFIG)

    assert Datatype.RAW == reply.datatype
    assert 1 == as_json(reply.value)["rev"]


def test_deflates_the_config_if_granted() -> None:
    """A node deflates the config if compression was granted for all values, and not if only for documents."""
    everywhere = ready_client(features=[*USUAL_FEATURES, HelloFeature.SNAPPY_EVERYWHERE])
    documents = ready_client(features=[*USUAL_FEATURES, HelloFeature.SNAPPY])
    reply = everywhere.ask(Opcode.GET_CLUSTER_CONFIG)

    assert Datatype.JSON | Datatype.SNAPPY == reply.datatype
    assert documents.ask(Opcode.GET_CLUSTER_CONFIG).value == inflate(reply.value)


@pytest.mark.parametrize(
    ("epoch", "revision", "is_sent"),
    [(2, 4, True), (2, 5, False), (2, 6, False), (1, 99, True), (3, 1, False), (-1, 1, True)],
)
def test_sends_only_a_newer_config(epoch: int, revision: int, is_sent: bool) -> None:
    """A client that sends its version gets only a newer config; the epoch counts first."""
    client = ready_client(with_options(config_epoch=2, config_revision=5))

    reply = client.ask(Opcode.GET_CLUSTER_CONFIG, extras=struct.pack(">qq", epoch, revision))

    assert Status.SUCCESS == status_of(reply)
    assert is_sent == bool(reply.value)


@pytest.mark.parametrize("size", [1, 8, 15, 17])
def test_refuses_half_a_version(size: int) -> None:
    """A version whose size is not 16 bytes is refused."""
    assert Status.INVALID_ARGUMENTS == status_of(ready_client().ask(Opcode.GET_CLUSTER_CONFIG, extras=bytes(size)))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (b"_default._default", 0),
        (b".", 0),
        (b"._default", 0),
        (b"_default.", 0),
        (b"inventory.people", 9),
        (b"nowhere.people", Status.UNKNOWN_SCOPE),
        (b"_default.people", Status.UNKNOWN_COLLECTION),
        (b"\xff.\xff", Status.UNKNOWN_SCOPE),
        (b"people", Status.INVALID_ARGUMENTS),
        (b"a.b.c", Status.INVALID_ARGUMENTS),
    ],
)
def test_answers_collection_ids(path: bytes, expected: int | Status) -> None:
    """A known or omitted name gives an id, an unknown one its status, both with the manifest's uid; others are invalid."""
    node = with_options(collections={"_default": {"_default": 0}, "inventory": {"people": 9}})
    reply = ready_client(node).ask(Opcode.GET_COLLECTION_ID, value=path)

    if isinstance(expected, Status):
        assert expected == status_of(reply)
        assert (expected != Status.INVALID_ARGUMENTS) == (as_json(reply.value).get("manifest_uid") == "1")
    else:
        assert (1, expected) == struct.unpack(">QI", reply.extras)
        assert b"" == reply.value


def test_documents_lie_in_their_collection() -> None:
    """Each collection has its own documents; a dropped collection is unknown, and its successor is empty."""
    client = ready_client()
    collections = client.node.collections
    people = collections.create("_default", "people")
    client.ask_of(Opcode.SET, "ada", collection_id=people, extras=bytes(8), value=b"1")
    assert Status.KEY_NOT_FOUND == status_of(client.ask_of(Opcode.GET, "ada"))
    assert b"1" == client.ask_of(Opcode.GET, "ada", collection_id=people).value
    client.ask_of(Opcode.SET, "ada", extras=bytes(8), value=b"2")

    collections.drop("_default", "people")

    unknown = client.ask_of(Opcode.GET, "ada", collection_id=people)
    assert (Status.UNKNOWN_COLLECTION, "3") == (status_of(unknown), as_json(unknown.value)["manifest_uid"])
    people = collections.create("_default", "people")
    assert Status.KEY_NOT_FOUND == status_of(client.ask_of(Opcode.GET, "ada", collection_id=people))
    assert b"2" == client.ask_of(Opcode.GET, "ada").value
    manifest = client.ask(Opcode.GET_COLLECTIONS_MANIFEST)
    assert (Datatype.JSON, collections.encode()) == (manifest.datatype, manifest.value)


def test_node_that_learns_late_of_a_collection() -> None:
    """A late node uses the old manifest until the delay is over, while the other node uses the new manifest."""
    nodes = FakeNodes(nodes=2)
    early, late = ready_clients(nodes)
    nodes.learn_late(1, 5.0)
    former = nodes.collections.encode()
    people = nodes.collections.create("_default", "people")
    key = next(str(number) for number in range(10) if nodes.owner_of(str(number)) == 1)

    assert nodes.collections.encode() == early.ask(Opcode.GET_COLLECTIONS_MANIFEST).value
    assert former == late.ask(Opcode.GET_COLLECTIONS_MANIFEST).value
    assert Status.UNKNOWN_COLLECTION == status_of(late.ask(Opcode.GET_COLLECTION_ID, value=b"_default.people"))
    unknown = late.ask_of(Opcode.GET, key, collection_id=people)
    assert (Status.UNKNOWN_COLLECTION, "1") == (status_of(unknown), as_json(unknown.value)["manifest_uid"])

    late.now += 5.0
    assert nodes.collections.encode() == late.ask(Opcode.GET_COLLECTIONS_MANIFEST).value
    assert Status.KEY_NOT_FOUND == status_of(late.ask_of(Opcode.GET, key, collection_id=people))


def test_node_that_learns_late_of_a_bucket() -> None:
    """On a late node, selecting a new bucket gets KEY_NOT_FOUND until the delay is over."""
    nodes = FakeNodes(nodes=2)
    early, late = ready_clients(nodes)
    nodes.learn_late(1, 5.0)
    nodes[0].cluster.buckets.create("new", {})

    assert Status.SUCCESS == status_of(early.ask(Opcode.SELECT_BUCKET, key=b"new"))
    assert Status.KEY_NOT_FOUND == status_of(late.ask(Opcode.SELECT_BUCKET, key=b"new"))

    late.now += 5.0
    assert Status.SUCCESS == status_of(late.ask(Opcode.SELECT_BUCKET, key=b"new"))
