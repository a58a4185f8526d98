"""Table of the states of one connection."""

from __future__ import annotations

from tests.rows import rows
from triclinium_core.runtime.kv.connection.states import CONNECTION_TRANSITIONS, ConnectionEvent, ConnectionState


def test_is_underway() -> None:
    """A connection is under way in every state except READY and LOST."""
    assert {ConnectionState.READY, ConnectionState.LOST} == {
        state for state in ConnectionState if not state.is_underway
    }


@rows("state", ConnectionState)
def test_permitted_events(state: ConnectionState) -> None:
    """A stream opens only in CONNECTING, can be lost except in LOST, and changes credentials only in READY."""
    opens = {ConnectionEvent.NO_BOOTSTRAP, ConnectionEvent.HELLO_SENT, ConnectionEvent.SASL_SENT}
    row = CONNECTION_TRANSITIONS[state]

    assert (state is ConnectionState.LOST) == (ConnectionEvent.BACKOFF_OVER in row)
    assert (state is ConnectionState.CONNECTING) == (not opens.isdisjoint(row)) == opens.issubset(row)
    assert (state is ConnectionState.LOST) == (ConnectionEvent.STREAM_LOST not in row)
    assert (state is ConnectionState.READY) == (ConnectionEvent.CREDENTIALS_CHANGED in row)


def test_states_only_advance() -> None:
    """No event leads back to an earlier state, except a change of credentials and the end of the backoff."""
    order = [*ConnectionState]
    for state, row in CONNECTION_TRANSITIONS.items():
        for event, next_state in row.items():
            is_back = event in (ConnectionEvent.BACKOFF_OVER, ConnectionEvent.CREDENTIALS_CHANGED)
            assert is_back == (order.index(state) > order.index(next_state))


def test_every_state_can_be_reached() -> None:
    """A connection can reach each state from LOST."""
    reached = {ConnectionState.LOST}
    for _ in ConnectionState:
        reached |= {next_state for state in reached for next_state in CONNECTION_TRANSITIONS[state].values()}

    assert set(ConnectionState) == reached
