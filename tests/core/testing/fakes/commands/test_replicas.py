"""Cluster whose nodes have replicas of each other's vbuckets."""

from __future__ import annotations

import pytest

from tests.core.testing.node_client import NodeClient, as_json, ready_clients, status_of
from tests.rows import rows
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.kv.wire.subdocument import DocumentFlag, PathOpcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES, FakeNodeOptions
from triclinium_core.testing.fakes.store.documents import LOCKED_CAS, REMAINS_MAX, vbucket_of

ADA = vbucket_of(b"ada", 1024)


@pytest.fixture
def nodes() -> FakeNodes:
    """Return three nodes: the first has the document, the other two have its replicas."""
    cluster = FakeNodes(FakeNodeOptions(replicas=2))
    cluster.move([ADA], to=0)
    if cluster.replica_holders_of("ada") == (2, 1):
        cluster.move([ADA], to=2)
        cluster.move([ADA], to=1)
        cluster.move([ADA], to=0)
    cluster.documents.put("default", "ada", b"1")
    return cluster


def copies_at(clients: list[NodeClient]) -> list[bytes | None]:
    """Return the value of each node's replica; None if the node refuses the read."""
    replies = [client.ask_of(Opcode.GET_REPLICA, "ada") for client in clients]
    return [reply.value if status_of(reply) == Status.SUCCESS else None for reply in replies]


def test_only_replicas_answer_for_replicas(nodes: FakeNodes) -> None:
    """Nodes with a replica serve replica reads and refuse other reads; the vbucket's node refuses replica reads."""
    clients = ready_clients(nodes)
    refused = clients[0].ask_of(Opcode.GET_REPLICA, "ada")

    assert (1, 2) == nodes.replica_holders_of("ada") == nodes.replica_holders_of(b"ada")
    assert [None, b"1", b"1"] == copies_at(clients)
    assert Status.NOT_MY_VBUCKET == status_of(refused)
    assert [0, 1, 2] == as_json(refused.value)["vBucketServerMap"]["vBucketMap"][ADA]  # type: ignore[index]
    assert Status.NOT_MY_VBUCKET == status_of(clients[1].ask_of(Opcode.GET, "ada"))


def test_replica_read_replies_like_a_read(nodes: FakeNodes) -> None:
    """A replica read returns flags, value and CAS, but hides the CAS of a locked document."""
    client = ready_clients(nodes)[1]
    document = nodes.documents.get("default", "ada")
    reply = client.ask_of(Opcode.GET_REPLICA, "ada")
    missing = client.ask_of(Opcode.GET_REPLICA, "nobody", vbucket=ADA)
    nodes.documents.lock("default", "ada")
    locked = client.ask_of(Opcode.GET_REPLICA, "ada")

    assert document is not None
    assert (document.cas, document.flags.to_bytes(4, "big"), b"1") == (reply.cas, reply.extras, reply.value)
    assert Status.KEY_NOT_FOUND == status_of(missing)
    assert LOCKED_CAS == locked.cas


@rows(
    ("features", "status"),
    [
        (IMPLEMENTED_FEATURES, Status.SUBDOC_MULTI_PATH_FAILURE),
        (IMPLEMENTED_FEATURES - {HelloFeature.SUBDOC_REPLICA_READ}, Status.INVALID_ARGUMENTS),
    ],
)
def test_old_nodes_refuse_lookups_in_replicas(features: frozenset[HelloFeature], status: Status) -> None:
    """A node without the feature, as before version 7.6, refuses a lookup in a replica."""
    nodes = FakeNodes(FakeNodeOptions(replicas=1, features=features), nodes=2)
    nodes.documents.put("default", "ada", b"{}")
    client = ready_clients(nodes)[nodes.replica_holders_of("ada")[0]]
    spec = bytes((PathOpcode.GET, 0)) + b"\x00\x01a"
    reply = client.ask_of(Opcode.SUBDOC_MULTI_LOOKUP, "ada", extras=bytes((DocumentFlag.REPLICA_READ,)), value=spec)

    assert status is status_of(reply)


def test_missing_replicas() -> None:
    """If a cluster has no replicas or a single node, it refuses each replica read, even of an unknown vbucket."""
    for cluster in (FakeNodes(), FakeNodes(FakeNodeOptions(replicas=3), 1)):
        assert () == cluster.replica_holders_of("ada")
        for client in ready_clients(cluster):
            assert Status.NOT_MY_VBUCKET == status_of(client.ask_of(Opcode.GET_REPLICA, "ada"))
            assert Status.NOT_MY_VBUCKET == status_of(client.ask_of(Opcode.GET_REPLICA, "ada", vbucket=1024))


def test_replication_held_back(nodes: FakeNodes) -> None:
    """If replication to one replica is held back, that replica keeps its state until the release; others get each
    write.
    """
    clients = ready_clients(nodes)
    nodes.hold_replication(1)
    nodes.documents.put("default", "ada", b"2")
    nodes.hold_replication(1)
    stale = copies_at(clients)
    nodes.documents.remove("default", "ada")
    removed = copies_at(clients)
    nodes.release_replication(1)

    assert [None, b"1", b"2"] == stale
    assert [None, b"1", None] == removed
    assert [None, None, None] == copies_at(clients)
    nodes.release_replication(1)


def test_stale_replica_still_expires(nodes: FakeNodes) -> None:
    """A document also expires in a replica to which replication is held back."""
    nodes.documents.put("default", "ada", b"1", expires_after=5.0)
    client = ready_clients(nodes)[1]
    nodes.hold_replication(1)
    client.wait(5.0)

    assert Status.KEY_NOT_FOUND == status_of(client.ask_of(Opcode.GET_REPLICA, "ada"))


def test_removed_documents_stay_while_replicas_are_held(nodes: FakeNodes) -> None:
    """While replication is held back, nothing is purged, because a failover compares progress; then purging resumes."""
    client = ready_clients(nodes)[0]
    nodes.hold_replication(1)
    for number in range(REMAINS_MAX + 1):
        nodes.documents.put("default", f"k{number}", b"1")
        nodes.documents.remove("default", f"k{number}")
    client.ask(Opcode.NOOP)
    held = len(nodes.documents.snapshot())
    nodes.release_replication(1)
    client.ask(Opcode.NOOP)

    assert REMAINS_MAX + 2 == held
    assert REMAINS_MAX + 1 == len(nodes.documents.snapshot())


def test_a_replica_takes_over(nodes: FakeNodes) -> None:
    """A failover lets the first replica take over with all documents, and only a rebalance creates new replicas."""
    clients = ready_clients(nodes)
    nodes.fail_over(0)
    after = nodes.map.chain(ADA)
    nodes.fail_over(1)
    last = nodes.map.chain(ADA)
    nodes.add_node(0)
    nodes.rebalance()

    assert [1, 2, -1] == after
    assert [2, -1, -1] == last
    assert {0, 2} == set(nodes.map.chain(ADA)[:2])
    owner, holder, _ = nodes.map.chain(ADA)
    assert b"1" == clients[owner].ask_of(Opcode.GET, "ada").value
    assert b"1" == clients[holder].ask_of(Opcode.GET_REPLICA, "ada").value
    nodes.remove_node(0)
    assert [2, -1, -1] == nodes.map.chain(ADA)


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_stale_replica_that_takes_over_loses_writes(replicas: int) -> None:
    """If a stale replica takes over, the newer writes of its vbucket are lost, and those of other vbuckets are kept."""
    nodes = FakeNodes(FakeNodeOptions(replicas=replicas))
    clients = ready_clients(nodes)
    keys = [f"key{number}" for number in range(40)]
    for key in keys:
        nodes.documents.put("default", key, b"old")
    for held in range(1, 1 + replicas):
        nodes.hold_replication(held)
    for key in keys:
        nodes.documents.put("default", key, b"new")
    nodes.documents.put("default", "made", b"new")
    heirs = {key: nodes.map.chain(vbucket_of(key.encode(), 1024)) for key in keys}
    nodes.fail_over(0)

    lost = {key for key, (owner, heir, *_) in heirs.items() if owner == 0 and heir <= replicas}
    assert lost
    assert lost != set(keys)
    for key in keys:
        owner = nodes.owner_of(key)
        assert owner is not None
        assert (b"old" if key in lost else b"new") == clients[owner].ask_of(Opcode.GET, key).value


def test_the_replica_that_has_most_takes_over() -> None:
    """In a failover, of two replicas that are held back, the one that was held back last takes over."""
    nodes = FakeNodes(FakeNodeOptions(replicas=2), nodes=4)
    nodes.move([ADA], to=0)
    _, first, second = nodes.map.chain(ADA)
    nodes.hold_replication(first)
    nodes.documents.put("default", "ada", b"1")
    nodes.hold_replication(second)
    nodes.documents.put("default", "ada", b"2")
    nodes.fail_over(0)

    assert [second, first, -1] == nodes.map.chain(ADA)
    assert b"1" == ready_clients(nodes)[second].ask_of(Opcode.GET, "ada").value


def test_new_replica_is_current() -> None:
    """A node that gets a replica starts with the current state, even if replication to the node is held back."""
    nodes = FakeNodes(FakeNodeOptions(replicas=1))
    nodes.move([ADA], to=0)
    (replica,) = nodes.replica_holders_of("ada")
    nodes.documents.put("default", "ada", b"1")
    nodes.hold_replication(replica)
    nodes.move([ADA], to=replica)
    nodes.documents.put("default", "ada", b"2")
    nodes.move([ADA], to=0)
    nodes.documents.put("default", "ada", b"3")
    swapped = nodes.map.chain(ADA)
    nodes.fail_over(0)

    assert [0, replica] == swapped
    assert b"2" == ready_clients(nodes)[replica].ask_of(Opcode.GET, "ada").value
