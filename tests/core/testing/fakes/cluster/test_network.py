"""Cut and slow connections of fake nodes."""

from __future__ import annotations

import math

import pytest

from tests.core.testing.node_client import ready_client
from triclinium_core import errors
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.kv.wire.frame import encode_request
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.cluster.outbox import HangUp, NodeAction, SendReply
from triclinium_core.testing.fakes.faults import delay, refuse_connection

ASK = encode_request(Opcode.SASL_LIST_MECHS, opaque=7)
"""Request to which every node responds, even without authentication."""


def connections_of(actions: list[NodeAction]) -> list[int]:
    """Return the connections to which the actions send replies."""
    return [action.connection for action in actions if isinstance(action, SendReply)]


@pytest.fixture
def node() -> FakeNode:
    """Return a node with two connections."""
    node = FakeNode()
    for connection in (1, 2):
        node.connection_opened(connection, 0.0)
    return node


def test_cut_connection_moves_nothing(node: FakeNode) -> None:
    """A node processes the bytes on a cut connection when the cut is healed, in order."""
    node.network.cut(None)
    held = [node.bytes_received(1, ASK[:10], 0.0), node.bytes_received(1, ASK[10:], 1.0)]

    assert [[], []] == held
    assert ([], math.inf, True) == (node.command_log, node.wakeup, node.network.cuts_some)
    node.network.heal()
    assert -math.inf == node.wakeup
    assert [1] == connections_of([*node.time_passed(2.0)])
    assert (math.inf, False) == (node.wakeup, node.network.cuts_some)
    assert [2.0] == [command.now for command in node.command_log]


def test_cut_of_some_connections(node: FakeNode) -> None:
    """A cut applies to the given connections; later cuts add to it, and ``heal`` ends all of them."""
    node.network.cut([1])
    other = node.bytes_received(2, ASK, 0.0)
    node.bytes_received(1, ASK, 0.0)
    node.network.cut([2])

    assert [2] == connections_of([*other])
    assert [] == node.bytes_received(2, ASK, 0.0)
    node.network.heal()
    assert [1, 2] == connections_of([*node.time_passed(0.0)])


def test_cut_holds_back_replies(node: FakeNode) -> None:
    """A reply that is due during a cut arrives when the cut is healed."""
    node.faults.next(Opcode.SASL_LIST_MECHS, delay(1.0))
    node.bytes_received(1, ASK, 0.0)
    node.network.cut(None)

    assert 1.0 == node.wakeup
    assert [] == node.time_passed(1.0)
    assert math.inf == node.wakeup
    node.network.heal()
    assert [1] == connections_of([*node.time_passed(3.0)])
    assert [] == node.time_passed(4.0)


def test_closed_connection_gets_nothing(node: FakeNode) -> None:
    """If a cut connection closes, a new connection with the same number has neither the held-back bytes nor the cut."""
    node.faults.next(Opcode.SASL_LIST_MECHS, delay(1.0))
    node.bytes_received(1, ASK, 0.0)
    node.network.cut(None)
    node.bytes_received(1, ASK, 0.5)
    held = node.time_passed(1.0)
    node.connection_lost(1, 1.0)
    node.connection_opened(1, 1.0)
    node.network.heal()

    assert [] == held == node.time_passed(2.0)
    node.network.cut([1])
    node.connection_lost(1, 2.0)
    node.connection_opened(1, 2.0)
    assert not node.network.cuts_some
    assert [1] == connections_of([*node.bytes_received(1, ASK, 2.0)])
    assert 2 == len(node.command_log)


@pytest.mark.parametrize("is_killed", [False, True])
def test_connecting_during_a_cut(node: FakeNode, is_killed: bool) -> None:
    """A connect to a cut node succeeds. If the node is killed during the cut, its connections close after the cut."""
    node.network.cut(None)
    node.faults.next(None, refuse_connection())
    if is_killed:
        node.kill()

    assert [] == node.time_passed(0.0)
    assert node.accepts(0.0)
    assert 1 == node.faults.pending
    assert [] == node.connection_opened(3, 0.0)
    assert [] == node.bytes_received(3, ASK, 0.0)
    node.network.heal()
    healed = node.time_passed(1.0)
    assert [HangUp(1), HangUp(2), HangUp(3)] == healed if is_killed else [3] == connections_of([*healed])


def test_notifications_are_held_back() -> None:
    """A notification of a new map arrives when the cut is healed."""
    node = FakeNode()
    features = (HelloFeature.DUPLEX, HelloFeature.CLUSTERMAP_NOTIFICATION_BRIEF)
    ready_client(node, connection=1, features=features)
    node.network.cut(None)
    reported = node.set_config_revision(9, now=0.0)
    node.network.heal()

    assert [] == reported
    assert [1] == connections_of([*node.time_passed(0.0)])


def test_slow_node_replies_late() -> None:
    """A slow node delays every reply, in addition to a fault's delay, but applies the command immediately."""
    node = FakeNode()
    client = ready_client(node)
    node.network.slow_down(0.5)
    node.faults.next(Opcode.SASL_LIST_MECHS, delay(1.0))

    assert [] == node.bytes_received(client.connection, ASK, 0.0)
    assert (0.5, 1.5) == (node.network.slowness, node.wakeup)
    assert Status.SUCCESS == node.command_log[-1].status
    node.network.slow_down(0)
    assert [client.connection] * 2 == connections_of([*node.bytes_received(client.connection, ASK, 2.0)])


@pytest.mark.parametrize("seconds", [-1, math.nan, 1e300, "1", True])
def test_invalid_slowness(seconds: float) -> None:
    """A slowness that is not a valid duration raises InvalidArgumentException."""
    with pytest.raises(errors.InvalidArgumentException, match="seconds="):
        FakeNode().network.slow_down(seconds)


def test_network_of_a_cluster() -> None:
    """A cluster cuts, heals and slows down the nodes with the given indexes, and leaves other nodes unchanged."""
    nodes = FakeNodes(nodes=2)
    rung: list[bool] = []
    nodes.set_alarm(lambda: rung.append(True))
    nodes.cut_off(1)
    nodes.slow_down(0, 0.25)
    partitioned = [node.network.cuts_some for node in nodes]
    nodes.rejoin(1)

    assert [False, True] == partitioned
    assert [False, False] == [node.network.cuts_some for node in nodes]
    assert [0.25, 0.0] == [node.network.slowness for node in nodes]
    assert [True, True] == rung
