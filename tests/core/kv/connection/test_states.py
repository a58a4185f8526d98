"""The life of one connection, as a table."""

from __future__ import annotations

from itertools import product

from tests.rows import rows
from triclinium_core.kv.connection.states import NODE_TRANSITIONS, NodeEvent, NodeState


def test_is_underway() -> None:
    """Neither arrived nor given up."""
    assert {NodeState.READY, NodeState.LOST} == {state for state in NodeState if not state.is_underway}


@rows(("state", "event"), [*product(NodeState, NodeEvent)])
def test_all_pairs(state: NodeState, event: NodeEvent) -> None:
    """Streams open once, bytes come only on an open one, it can be lost at any time but twice, begins anew only
    then, and takes other credentials only when it is ready.
    """
    is_open = state not in (NodeState.CONNECTING, NodeState.LOST)
    possible = {
        NodeEvent.BACKOFF_OVER: state is NodeState.LOST,
        NodeEvent.STREAM_OPENED: state is NodeState.CONNECTING,
        NodeEvent.BYTES_RECEIVED: is_open,
        NodeEvent.STREAM_LOST: state is not NodeState.LOST,
        NodeEvent.CREDENTIALS_CHANGED: state is NodeState.READY,
    }

    assert possible[event] == (event in NODE_TRANSITIONS[state])


def test_no_way_back() -> None:
    """On one stream a connection only gets further, or is lost."""
    order = [*NodeState]
    for state, row in NODE_TRANSITIONS.items():
        for next_state in row.get(NodeEvent.BYTES_RECEIVED, ()):
            assert order.index(state) <= order.index(next_state)


def test_every_state_can_be_reached() -> None:
    """From LOST, where everything begins, through the events that exist."""
    reached = {NodeState.LOST}
    for _ in NodeState:
        reached |= {
            next_state for state in reached for states in NODE_TRANSITIONS[state].values() for next_state in states
        }

    assert set(NodeState) == reached
