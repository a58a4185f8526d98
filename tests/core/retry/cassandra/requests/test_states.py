"""State tables of requests and executions: they are complete, and the machine follows them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import get_args

import pytest

from tests.core.retry.cassandra.policies_for_tests import Always
from tests.rows import rows
from triclinium_core.retry import cassandra
from triclinium_core.retry.cassandra import errors
from triclinium_core.retry.cassandra.requests.states import EXECUTION_TRANSITIONS, REQUEST_TRANSITIONS, ExecutionState
from triclinium_core.retry.invalid_event import InvalidEvent

R, E = cassandra.RequestState, ExecutionState
UNPREPARED = errors.Unprepared(statement_id=b"id")

ERRORS = (errors.ServerError("no"), errors.InvalidQuery("no"), errors.Bootstrapping("no"), UNPREPARED)
EVENTS: dict[type[cassandra.CassandraEvent], list[cassandra.CassandraEvent]] = {
    cassandra.RequestStarted: [cassandra.RequestStarted()],
    cassandra.ConnectionMissed: [cassandra.ConnectionMissed(0)],
    cassandra.RequestWritten: [cassandra.RequestWritten(0)],
    cassandra.AttemptAborted: [
        cassandra.AttemptAborted(0, errors.ClosedConnection("closed"), handed_over) for handed_over in (None, 0, 9)
    ],
    cassandra.ResultReceived: [cassandra.ResultReceived(0, "rows")],
    cassandra.ErrorReceived: [cassandra.ErrorReceived(0, error) for error in ERRORS],
    cassandra.StatementPrepared: [cassandra.StatementPrepared(0, b"id"), cassandra.StatementPrepared(0, b"other")],
    cassandra.StatementForgotten: [cassandra.StatementForgotten(0)],
    cassandra.TimerFired: [cassandra.TimerFired()],
    cassandra.RequestAbandoned: [cassandra.RequestAbandoned()],
}
WAYS: dict[ExecutionState, list[cassandra.CassandraEvent]] = {
    E.SENDING: [],
    E.WAITING: [cassandra.RequestWritten(0)],
    E.PREPARING: [cassandra.RequestWritten(0), cassandra.ErrorReceived(0, UNPREPARED)],
    E.ENDED: [cassandra.ResultReceived(0)],
}
"""Events that put the first execution into each state; its attempt is number 1 in PREPARING, otherwise 0."""

POLICIES = [
    cassandra.RETRY_SAME,
    cassandra.RETRY_NEXT,
    cassandra.RETHROW,
    cassandra.IGNORE,
    ZeroDivisionError("raise me"),
    "nonsense",
]
PLANS: list[list[str]] = [["n1", "n2"], ["n1"]]


def machines(*, with_empty_plan: bool = False) -> list[cassandra.RequestMachine]:
    """Return a new machine for each combination of policy, idempotence, kind and plan."""
    plans = [*PLANS, *([[]] if with_empty_plan else [])]
    speculation = cassandra.ConstantSpeculativeExecutionPolicy(max_executions=2, delay=0.1)
    return [
        cassandra.RequestMachine(
            cassandra.CassandraRequest(
                policy=Always(answer), idempotent=idempotent, kind=kind, speculation=speculation
            ),
            plan,
        )
        for answer, idempotent, kind, plan in itertools.product(POLICIES, (True, False), cassandra.RequestKind, plans)
    ]


def in_state(state: cassandra.RequestState) -> list[cassandra.RequestMachine]:
    """Return machines in the state, of all kinds that can reach it."""
    found = []
    for machine in machines(with_empty_plan=True):
        if state is not R.NEW:
            machine.handle(cassandra.RequestStarted(), 1.0)
        match state:
            case R.COMPLETED if machine.state is R.RUNNING:
                machine.handle(cassandra.ResultReceived(0), 1.0)
            case R.FAILED if machine.state is R.RUNNING:
                machine.handle(cassandra.TimerFired(), 99.0)
            case R.ABANDONED if machine.state is R.RUNNING:
                machine.handle(cassandra.RequestAbandoned(), 1.0)
        if machine.state is state:
            found.append(machine)
    return found


def test_every_state_has_its_row() -> None:
    """The tables have all states and events, and in the request table only a final state has no other next state."""
    assert set(REQUEST_TRANSITIONS) == set(R)
    assert set(EXECUTION_TRANSITIONS) == set(E)
    assert set(get_args(cassandra.CassandraEvent)) <= {event for row in REQUEST_TRANSITIONS.values() for event in row}
    assert set(get_args(cassandra.AttemptEvent)) <= {event for row in EXECUTION_TRANSITIONS.values() for event in row}
    assert {state for state in R if state.is_final} == {
        state for state, row in REQUEST_TRANSITIONS.items() if set(row.values()) == {state}
    }
    assert set(EVENTS) == set(get_args(cassandra.CassandraEvent))


@rows(("state", "kind"), list(itertools.product(R, EVENTS)))
def test_every_pair_of_a_request(state: cassandra.RequestState, kind: type[cassandra.CassandraEvent]) -> None:
    """A permitted event leads to the table's state; others raise and keep the state; final states ignore theirs."""
    allowed = REQUEST_TRANSITIONS[state].get(kind)
    for event in EVENTS[kind]:
        for machine in in_state(state):
            if state in {R.FAILED, R.COMPLETED, R.ABANDONED} and hasattr(event, "attempt"):
                continue  # whether the attempt of the event exists depends on the plan
            try:
                actions = machine.handle(event, 100.0)
            except InvalidEvent:
                assert state is machine.state
                assert allowed is None or kind in {
                    cassandra.RequestWritten,
                    cassandra.StatementPrepared,
                    cassandra.StatementForgotten,
                }
                continue

            assert allowed is not None
            assert machine.state in {allowed, *(REQUEST_TRANSITIONS[allowed].get(type(order)) for order in actions)}
            assert ([cassandra.Ignore()] == actions) is state.is_final


def in_execution_state(state: ExecutionState) -> list[cassandra.RequestMachine]:
    """Return machines whose first execution is in the state, of all kinds that can reach it."""
    found = []
    for machine in machines():
        if state is E.PREPARING and machine.request.is_prepare:
            continue  # a PREPARE fails on UNPREPARED
        machine.handle(cassandra.RequestStarted(), 1.0)
        for step in WAYS[state]:
            machine.handle(step, 1.0)
        found.append(machine)
    return found


@rows(("state", "kind"), list(itertools.product(E, get_args(cassandra.AttemptEvent))))
def test_every_pair_of_an_execution(state: ExecutionState, kind: type[cassandra.AttemptEvent]) -> None:
    """An execution accepts the events that its state permits, and ignores all events after its end."""
    is_allowed = state is E.ENDED or kind in EXECUTION_TRANSITIONS[state]
    for event in EVENTS[kind]:
        for machine in in_execution_state(state):
            assert isinstance(event, cassandra.AttemptEvent)
            reported = replace(event, attempt=1) if state is E.PREPARING else event
            before = (machine.state, machine.wakeup)
            if not is_allowed:
                with pytest.raises(InvalidEvent, match=f"which is {state.value}"):
                    machine.handle(reported, 1.0)
                assert before == (machine.state, machine.wakeup)
                continue
            actions = machine.handle(reported, 1.0)
            assert (state is E.ENDED) is ([cassandra.Ignore()] == actions)
