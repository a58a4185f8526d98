"""Restarts of a node, with and without its data."""

from __future__ import annotations

import pytest

from tests.core.testing.node_client import ready_client, status_of, value_of
from tests.rows import rows
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing import NO_NODE, FakeNodeOptions, FakeNodes

KEYS = [f"n{number}" for number in range(60)]


def filled(*, nodes: int, replicas: int) -> FakeNodes:
    """Return a cluster with some documents on every node."""
    cluster = FakeNodes(FakeNodeOptions(replicas=replicas), nodes=nodes)
    for key in KEYS:
        cluster.documents.put("default", key, b"1")
    assert set(range(nodes)) == {cluster.owner_of(key) for key in KEYS}
    return cluster


def present(nodes: FakeNodes) -> set[str]:
    """Return the keys of the remaining documents."""
    return {key for key in KEYS if value_of(nodes, key) is not None}


@pytest.mark.parametrize("replicas", [0, 1])
def test_restart_with_data(replicas: int) -> None:
    """A node that keeps its data has all of its documents and its vbuckets after a restart."""
    nodes = filled(nodes=3, replicas=replicas)
    before = nodes.map
    nodes.restart(1)

    assert before is nodes.map
    assert set(KEYS) == present(nodes)


def test_restart_without_data_or_replicas() -> None:
    """Without replicas, the node keeps its vbuckets, and exactly their documents are lost."""
    nodes = filled(nodes=3, replicas=0)
    owners = nodes.map.owners
    expected = {key for key in KEYS if nodes.owner_of(key) != 1}
    nodes.restart(1, keep_data=False)

    assert owners == nodes.map.owners
    assert expected == present(nodes)


@rows("replicas", [1, 2])
def test_replicas_take_over_without_data(replicas: int) -> None:
    """With replicas nothing is lost: the first replica takes over, and the chains of other vbuckets stay."""
    nodes = filled(nodes=3, replicas=replicas)
    before = nodes.map
    nodes.restart(1, keep_data=False)

    assert set(KEYS) == present(nodes)
    assert before.members == nodes.map.members
    for vbucket, owner in enumerate(before.owners):
        _, *others = before.chain(vbucket)
        expected = [*others, NO_NODE] if owner == 1 else before.chain(vbucket)
        assert expected == nodes.map.chain(vbucket)


def test_restart_after_a_failover_loses_nothing() -> None:
    """A node that was failed over has no vbuckets, so that it loses nothing without its data."""
    nodes = filled(nodes=3, replicas=1)
    nodes.kill(1)
    nodes.fail_over(1)
    nodes.restart(1, keep_data=False)

    assert set(KEYS) == present(nodes)
    assert nodes[1].is_alive


def test_held_replicas_lose_later_writes() -> None:
    """If replication to the heir was held back, writes since then are lost with the data of the node."""
    nodes = filled(nodes=2, replicas=1)
    key = next(key for key in KEYS if nodes.owner_of(key) == 1)
    nodes.hold_replication(0)
    nodes.documents.put("default", key, b"2")
    nodes.restart(1, keep_data=False)

    assert (b"1", 0) == (value_of(nodes, key), nodes.owner_of(key))


@rows("keep_data", [True, False])
def test_node_without_own_data_renews_held_replicas(keep_data: bool) -> None:
    """Held-back replicas on a node stay old if it keeps its data, and are copied again if not."""
    nodes = filled(nodes=2, replicas=1)
    key = next(key for key in KEYS if nodes.owner_of(key) == 0)
    nodes.hold_replication(1)
    nodes.documents.put("default", key, b"2")
    nodes.restart(1, keep_data=keep_data)
    nodes.fail_over(0)

    assert (b"1" if keep_data else b"2") == value_of(nodes, key)


def test_restart_releases_locks() -> None:
    """The locks of a restarted node are released, and those of other nodes are not."""
    nodes = filled(nodes=2, replicas=0)
    keys = [next(key for key in KEYS if nodes.owner_of(key) == index) for index in (0, 1)]
    for key in keys:
        nodes.documents.lock("default", key)
    nodes.restart(1)
    writes = [
        ready_client(nodes[index], connection=index + 1).ask_of(Opcode.SET, key, extras=bytes(8))
        for index, key in enumerate(keys)
    ]

    assert [Status.LOCKED, Status.SUCCESS] == list(map(status_of, writes))


def test_restart_keeps_pending_durable_writes() -> None:
    """A durable write that waits for a dead replica still waits after a restart of its node, until the replica is back."""
    nodes = filled(nodes=2, replicas=1)
    key = next(key for key in KEYS if nodes.owner_of(key) == 0)
    client = ready_client(nodes[0])
    nodes.kill(1)
    client.send(client.encode_of(Opcode.SET, key, extras=bytes(8), value=b"2", framing_extras=b"\x11\x01"))
    nodes.restart(0)
    client.wait(0.0)
    prepared = nodes.documents.get_prepared("default", key)
    before = value_of(nodes, key)
    nodes.revive(1)

    assert client.is_hung_up
    assert prepared is not None
    assert (b"1", b"2") == (before, prepared.value)
    assert (b"2", None) == (value_of(nodes, key), nodes.documents.get_prepared("default", key))
