"""State table of a request: it is complete, and the machine follows it for every pair of state and event."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from tests.core.retry.couchbase.request_cases import NODE, Awaits, Raises, Says, annotation, machine_of
from tests.rows import rows
from triclinium_core.retry import couchbase
from triclinium_core.retry.couchbase.states import REQUEST_TRANSITIONS
from triclinium_core.retry.invalid_event import InvalidEvent

S = couchbase.RetryState
FINAL = (S.COMPLETED, S.FAILED, S.ABANDONED)

START, DEADLINE = 100.0, 102.5
TIMES = [START, START + 0.0005, START + 0.001, START + 0.2, DEADLINE - 0.1, DEADLINE, DEADLINE + 10]

STRATEGIES: list[couchbase.AnyRetryStrategy] = [
    Says(couchbase.RetryAction.after(0.2)),
    Says(couchbase.RetryAction.after(99.0)),
    Says(couchbase.RetryAction.no_retry()),
    Says(None),
    Raises(ZeroDivisionError()),
    Awaits(),
]

EVENTS: dict[type[couchbase.RequestEvent], list[couchbase.RequestEvent]] = {
    couchbase.Dispatched: [couchbase.Dispatched(), couchbase.Dispatched(NODE, 7)],
    couchbase.DispatchFailed: [
        couchbase.DispatchFailed(couchbase.RetryReason.SOCKET_NOT_AVAILABLE),
        couchbase.DispatchFailed(couchbase.RetryReason.KV_NOT_MY_VBUCKET),
    ],
    couchbase.SocketClosed: [couchbase.SocketClosed(handed_over) for handed_over in couchbase.HandedOver],
    couchbase.ResponseReceived: [
        *(
            couchbase.ResponseReceived(couchbase.KvResponse(status, NODE))
            for status in (0x00, 0x01, 0x07, 0x09, 0x88, 0x7FF0)
        ),
        couchbase.ResponseReceived(couchbase.ServiceResponse(couchbase.Service.SEARCH, 200)),
        couchbase.ResponseReceived(couchbase.ServiceResponse(couchbase.Service.SEARCH, 429)),
        couchbase.ResponseReceived(couchbase.ServiceResponse(couchbase.Service.SEARCH, 500)),
    ],
    couchbase.ErrorMapLoaded: [couchbase.ErrorMapLoaded(NODE, couchbase.ErrorMap(2, 1, {}))],
    couchbase.StrategyAnswered: [
        couchbase.StrategyAnswered(couchbase.RetryAction.after(0.2)),
        couchbase.StrategyAnswered(couchbase.RetryAction.after(99.0)),
        couchbase.StrategyAnswered(couchbase.RetryAction.no_retry()),
        couchbase.StrategyAnswered(None),
        couchbase.StrategyAnswered(None, ZeroDivisionError()),
    ],
    couchbase.WakeupReached: [couchbase.WakeupReached()],
    couchbase.Abandoned: [couchbase.Abandoned()],
}

LEADS_TO: dict[type[couchbase.RequestAction], couchbase.RetryState] = {
    couchbase.Dispatch: S.PENDING,
    couchbase.AskStrategy: S.CONSULTING,
    couchbase.Complete: S.COMPLETED,
    couchbase.Fail: S.FAILED,
}
"""State after each action that always leads to one state. RetryAfter may lead to either of two."""

PAIRS = list(itertools.product(couchbase.RetryState, EVENTS))


def machine_in(
    state: couchbase.RetryState, strategy: couchbase.AnyRetryStrategy, *, idempotent: bool
) -> couchbase.RetryMachine:
    """Return a machine that has reached ``state`` through events at ``START``."""
    request = annotation(strategy, idempotent=idempotent, timeout=DEADLINE - START)
    if state is S.EXPIRING:
        request = annotation(strategy, idempotent=idempotent, timeout=0.0005)
    machine = machine_of(request, state=S.PENDING)
    if state is S.PENDING:
        return machine
    machine.handle(couchbase.Dispatched(NODE, 1), START)
    leads_to: dict[couchbase.RetryState, couchbase.RequestEvent] = {
        S.CONSULTING: couchbase.ResponseReceived(couchbase.KvResponse(0x09)),
        S.WAITING: couchbase.ResponseReceived(couchbase.KvResponse(0x07)),
        S.EXPIRING: couchbase.ResponseReceived(couchbase.KvResponse(0x07)),
        S.COMPLETED: couchbase.ResponseReceived(couchbase.KvResponse(0x00)),
        S.FAILED: couchbase.ResponseReceived(couchbase.KvResponse(0x01)),
        S.ABANDONED: couchbase.Abandoned(),
    }
    if state in leads_to:
        machine.handle(leads_to[state], START)
    assert state is machine.state
    return machine


def strategies_for(state: couchbase.RetryState) -> list[couchbase.AnyRetryStrategy]:
    """Return the strategies with which a request can reach ``state``."""
    return [Awaits()] if state is S.CONSULTING else STRATEGIES


@rows(("state", "kind"), PAIRS)
def test_all_pairs(state: couchbase.RetryState, kind: type[couchbase.RequestEvent]) -> None:
    """An event in the table leads to exactly the table's states, which fit the actions; any other event raises."""
    allowed = couchbase.permitted_events(state).get(kind)
    # If no decision follows, the strategy and the idempotence make no difference, so one of each is enough.
    sorts = slice(None if allowed is not None and not state.is_final else 1)
    reached: set[couchbase.RetryState] = set()
    for event, strategy, idempotent, now in itertools.product(
        EVENTS[kind], strategies_for(state)[sorts], [True, False][sorts], TIMES
    ):
        machine = machine_in(state, strategy, idempotent=idempotent)
        before = dict(vars(machine))
        if allowed is None:
            with pytest.raises(InvalidEvent) as caught:
                machine.handle(event, now)
            assert f"{kind.__name__} cannot happen to a request that is {state.value}" == str(caught.value)
            assert before == vars(machine)
            continue
        actions = list(machine.handle(event, now))
        assert not state.is_final or ([couchbase.Ignore()], before) == (actions, vars(machine))
        for action in actions:
            if isinstance(action, couchbase.RetryAfter):
                assert (S.WAITING if action.dispatches else S.EXPIRING) is machine.state
            else:
                assert LEADS_TO.get(type(action), machine.state) is machine.state
        if not actions:
            assert {couchbase.Dispatched: S.IN_FLIGHT, couchbase.Abandoned: S.ABANDONED}.get(
                kind, state
            ) is machine.state
        reached.add(machine.state)

    assert set((allowed or {}).values()) == reached


def test_an_invalid_event_raises() -> None:
    """An object that is not an event raises InvalidEvent."""
    machine = machine_in(S.PENDING, Says(None), idempotent=True)
    with pytest.raises(InvalidEvent, match="^str cannot happen to a request that is pending$"):
        machine.handle("dispatched", START)  # type: ignore[arg-type]


def test_the_table_is_complete() -> None:
    """Every state has a row; three states are final, and every state accepts abandonment, wakeups and error maps."""
    assert set(get_args(couchbase.RequestEvent)) == set(EVENTS)
    assert set(couchbase.RetryState) == set(REQUEST_TRANSITIONS)
    for state, row in ((state, couchbase.permitted_events(state)) for state in couchbase.RetryState):
        assert (state in FINAL) is state.is_final
        assert {couchbase.Abandoned, couchbase.WakeupReached, couchbase.ErrorMapLoaded} <= set(row) <= set(EVENTS)
        assert (set(row) == set(EVENTS) and set(REQUEST_TRANSITIONS[state].values()) == {state}) is state.is_final
