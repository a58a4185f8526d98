"""The life of one connection, as a table."""

from __future__ import annotations

from tests.rows import rows
from triclinium_core.kv.connection.states import NODE_TRANSITIONS, NodeEvent, NodeState


def test_is_underway() -> None:
    """Neither arrived nor given up."""
    assert {NodeState.READY, NodeState.LOST} == {state for state in NodeState if not state.is_underway}


@rows("state", NodeState)
def test_what_may_happen(state: NodeState) -> None:
    """Streams open once, are lost at any time but twice, begin anew only then, and others speak only on a ready one."""
    opens = {NodeEvent.NOTHING_TO_ASK, NodeEvent.HELLO_SENT, NodeEvent.SASL_SENT}
    row = NODE_TRANSITIONS[state]

    assert (state is NodeState.LOST) == (NodeEvent.BACKOFF_OVER in row)
    assert (state is NodeState.CONNECTING) == (not opens.isdisjoint(row)) == opens.issubset(row)
    assert (state is NodeState.LOST) == (NodeEvent.STREAM_LOST not in row)
    assert (state is NodeState.READY) == (NodeEvent.CREDENTIALS_CHANGED in row)


def test_no_way_back() -> None:
    """On one stream a connection only gets further, but for the way to other credentials, or is lost."""
    order = [*NodeState]
    for state, row in NODE_TRANSITIONS.items():
        for event, next_state in row.items():
            is_back = event in (NodeEvent.BACKOFF_OVER, NodeEvent.CREDENTIALS_CHANGED)
            assert is_back == (order.index(state) > order.index(next_state))


def test_every_state_can_be_reached() -> None:
    """From LOST, where everything begins, through the events that exist."""
    reached = {NodeState.LOST}
    for _ in NodeState:
        reached |= {next_state for state in reached for next_state in NODE_TRANSITIONS[state].values()}

    assert set(NodeState) == reached
