"""Commands with which older clients observe the replication and persistence of writes."""

from __future__ import annotations

import struct

import pytest

from tests.core.testing.node_client import NodeClient, ready_client, status_of
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.commands.observe import KeyState
from triclinium_core.testing.fakes.options import FakeNodeOptions
from triclinium_core.testing.fakes.store.documents import vbucket_of
from triclinium_core.testing.fakes.store.histories import HISTORIES_MAX, vbucket_uuid

ADA = vbucket_of(b"ada", 1024)
UUID = vbucket_uuid(ADA)


@pytest.fixture
def nodes() -> FakeNodes:
    """Return three nodes with one replica: the first has the vbucket of the document."""
    cluster = FakeNodes(FakeNodeOptions(replicas=1))
    cluster.move([ADA], to=0)
    return cluster


def numbers_of(client: NodeClient, uuid: int = UUID) -> tuple[int, ...]:
    """Return the fields of the response to OBSERVE_SEQNO."""
    reply = client.ask(Opcode.OBSERVE_SEQNO, vbucket=ADA, value=uuid.to_bytes(8, "big"))
    assert Status.SUCCESS == status_of(reply)
    return struct.unpack(">BHQQQ" if len(reply.value) == 27 else ">BHQQQQQ", reply.value)


def states_of(client: NodeClient, *wire_keys: bytes) -> list[tuple[bytes, KeyState, int]]:
    """Return each key, its state and its CAS in the response to OBSERVE."""
    value = b"".join(struct.pack(">HH", ADA, len(key)) + key for key in wire_keys)
    reply = client.ask(Opcode.OBSERVE, value=value)
    assert Status.SUCCESS == status_of(reply)
    found, start = [], 0
    while start < len(reply.value):
        vbucket, size = struct.unpack_from(">HH", reply.value, start)
        assert ADA == vbucket
        key = reply.value[start + 4 : start + 4 + size]
        state, cas = struct.unpack_from(">BQ", reply.value, start + 4 + size)
        found.append((key, KeyState(state), cas))
        start += 13 + size
    return found


def test_replica_has_a_write_unless_held(nodes: FakeNodes) -> None:
    """Node and replica report each write as present and persisted, except a replica whose replication is held back."""
    (replica,) = nodes.replica_holders_of("ada")
    active, other = ready_client(nodes[0]), ready_client(nodes[replica])
    active.ask_of(Opcode.SET, "ada", extras=bytes(8), value=b"1")
    nodes.hold_replication(replica)
    active.ask_of(Opcode.SET, "ada", extras=bytes(8), value=b"2")
    before = [numbers_of(active), numbers_of(other)]
    nodes.release_replication(replica)

    assert [(0, ADA, UUID, 2, 2), (0, ADA, UUID, 1, 1)] == before
    assert (0, ADA, UUID, 2, 2) == numbers_of(other)


def test_observing_another_node_is_not_my_vbucket(nodes: FakeNodes) -> None:
    """A node that has neither the vbucket nor its replica refuses both commands, and returns its map."""
    (replica,) = nodes.replica_holders_of("ada")
    client = ready_client(nodes[3 - replica])
    key = struct.pack(">HH", ADA, 4) + b"\0ada"
    replies = [
        client.ask(Opcode.OBSERVE_SEQNO, vbucket=ADA, value=UUID.to_bytes(8, "big")),
        client.ask(Opcode.OBSERVE, value=key),
    ]

    assert [Status.NOT_MY_VBUCKET] * 2 == [status_of(reply) for reply in replies]
    assert all(b"vBucketMap" in reply.value for reply in replies)


def test_failover_begins_a_new_history(nodes: FakeNodes) -> None:
    """After a failover that loses a write, the former UUID returns the last sequence number that survived."""
    (replica,) = nodes.replica_holders_of("ada")
    active = ready_client(nodes[0])
    active.ask_of(Opcode.SET, "ada", extras=bytes(8), value=b"1")
    nodes.hold_replication(replica)
    active.ask_of(Opcode.SET, "ada", extras=bytes(8), value=b"2")
    nodes.fail_over(0)
    heir = ready_client(nodes[replica])
    _, _, uuid, *after = numbers_of(heir)
    written = heir.ask_of(Opcode.SET, "ada", extras=bytes(8), value=b"3")

    assert uuid != UUID
    assert [1, 1, UUID, 1] == after
    assert (uuid, 2) == struct.unpack(">QQ", written.extras)
    assert (0, ADA, uuid, 2, 2) == numbers_of(heir, uuid)


def test_observing_an_unknown_history_finds_nothing(nodes: FakeNodes) -> None:
    """A UUID that the failover log lacks, also because it is too old, is refused as not found."""
    nodes.rebalance()
    for _ in range(HISTORIES_MAX + 1):
        owner = nodes.owner_of("ada")
        assert owner is not None
        nodes.fail_over(owner)
        nodes.add_node(owner)
        nodes.rebalance()
    client = ready_client(nodes[nodes.owner_of("ada") or 0])
    replies = [client.ask(Opcode.OBSERVE_SEQNO, vbucket=ADA, value=uuid.to_bytes(8, "big")) for uuid in (7, UUID)]

    assert [Status.KEY_NOT_FOUND] * 2 == [status_of(reply) for reply in replies]


def test_ephemeral_buckets_persist_nothing() -> None:
    """In an ephemeral bucket, no write is persisted, and a removed document remains as logically deleted."""
    nodes = FakeNodes(FakeNodeOptions(), 1)
    nodes[0].cluster.buckets.create("cache", {"bucketType": "ephemeral"})
    client = ready_client(nodes[0], bucket=b"cache")
    stored = client.ask_of(Opcode.SET, "ada", extras=bytes(8), value=b"1")
    before = states_of(client, b"\0ada"), numbers_of(client)
    removed = client.ask_of(Opcode.DELETE, "ada")

    assert ([(b"\0ada", KeyState.NOT_PERSISTED, stored.cas)], (0, ADA, UUID, 0, 1)) == before
    assert [(b"\0ada", KeyState.LOGICALLY_DELETED, removed.cas)] == states_of(client, b"\0ada")


def test_observe_reports_the_state_of_keys(nodes: FakeNodes) -> None:
    """A stored key is persisted, with its CAS; a removed key and an unknown key are not found."""
    client = ready_client(nodes[0])
    stored = client.ask_of(Opcode.SET, "ada", extras=bytes(8), value=b"1")
    states = states_of(client, b"\0ada", b"\0bob")
    client.ask_of(Opcode.DELETE, "ada")

    assert [(b"\0ada", KeyState.PERSISTED, stored.cas), (b"\0bob", KeyState.NOT_FOUND, 0)] == states
    assert [(b"\0ada", KeyState.NOT_FOUND, 0)] == states_of(client, b"\0ada")


def test_observe_refuses_malformed_values(nodes: FakeNodes) -> None:
    """A value that ends within an entry, an empty key, an unknown collection and a UUID of 7 bytes are refused."""
    client = ready_client(nodes[0])
    head = struct.pack(">HH", ADA, 4)
    values = (head[:3], head + b"\0ad", struct.pack(">HH", ADA, 1) + b"\0", head + b"\x63ada")
    statuses = [status_of(client.ask(Opcode.OBSERVE, value=value)) for value in values]
    short = client.ask(Opcode.OBSERVE_SEQNO, vbucket=ADA, value=bytes(7))

    assert [*[Status.INVALID_ARGUMENTS] * 3, Status.UNKNOWN_COLLECTION] == statuses
    assert Status.INVALID_ARGUMENTS == status_of(short)
