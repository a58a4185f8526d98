"""The table of a request's states: whole, and true of the machine in every pair of state and event."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from tests.core.retry.couchbase.request_cases import NODE, Awaits, Raises, Says, annotation, machine_of
from tests.rows import rows
from triclinium_core.retry.couchbase.actions import (
    AskStrategy,
    Complete,
    Dispatch,
    Fail,
    Ignore,
    RequestAction,
    RetryAfter,
)
from triclinium_core.retry.couchbase.events import (
    Abandoned,
    Dispatched,
    DispatchFailed,
    ErrorMapLoaded,
    HandedOver,
    KvResponse,
    RequestEvent,
    ResponseReceived,
    ServiceResponse,
    SocketClosed,
    StrategyAnswered,
    WakeupReached,
)
from triclinium_core.retry.couchbase.retry_machine import RetryMachine
from triclinium_core.retry.couchbase.states import REQUEST_TRANSITIONS, RetryState, events_heard
from triclinium_core.retry.couchbase.strategy import AnyRetryStrategy, RetryAction
from triclinium_core.retry.couchbase.tables.error_map import ErrorMap
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.invalid_event import InvalidEvent

S = RetryState
FINAL = (S.COMPLETED, S.FAILED, S.ABANDONED)

START, DEADLINE = 100.0, 102.5
TIMES = [START, START + 0.0005, START + 0.001, START + 0.2, DEADLINE - 0.1, DEADLINE, DEADLINE + 10]

STRATEGIES: list[AnyRetryStrategy] = [
    Says(RetryAction.after(0.2)),
    Says(RetryAction.after(99.0)),
    Says(RetryAction.no_retry()),
    Says(None),
    Raises(ZeroDivisionError()),
    Awaits(),
]

EVENTS: dict[type[RequestEvent], list[RequestEvent]] = {
    Dispatched: [Dispatched(), Dispatched(NODE, 7)],
    DispatchFailed: [DispatchFailed(RetryReason.SOCKET_NOT_AVAILABLE), DispatchFailed(RetryReason.KV_NOT_MY_VBUCKET)],
    SocketClosed: [SocketClosed(handed_over) for handed_over in HandedOver],
    ResponseReceived: [
        *(ResponseReceived(KvResponse(status, NODE)) for status in (0x00, 0x01, 0x07, 0x09, 0x88, 0x7FF0)),
        ResponseReceived(ServiceResponse(Service.SEARCH, 200)),
        ResponseReceived(ServiceResponse(Service.SEARCH, 429)),
        ResponseReceived(ServiceResponse(Service.SEARCH, 500)),
    ],
    ErrorMapLoaded: [ErrorMapLoaded(NODE, ErrorMap(2, 1, {}))],
    StrategyAnswered: [
        StrategyAnswered(RetryAction.after(0.2)),
        StrategyAnswered(RetryAction.after(99.0)),
        StrategyAnswered(RetryAction.no_retry()),
        StrategyAnswered(None),
        StrategyAnswered(None, ZeroDivisionError()),
    ],
    WakeupReached: [WakeupReached()],
    Abandoned: [Abandoned()],
}

LEADS_TO: dict[type[RequestAction], RetryState] = {
    Dispatch: S.PENDING,
    AskStrategy: S.CONSULTING,
    Complete: S.COMPLETED,
    Fail: S.FAILED,
}
"""Where a request stands once this was ordered; a delay leads to one of two states."""

PAIRS = list(itertools.product(RetryState, EVENTS))


def machine_in(state: RetryState, strategy: AnyRetryStrategy, *, idempotent: bool) -> RetryMachine:
    """Return a machine that was brought to ``state`` at ``START`` by events alone."""
    request = annotation(strategy, idempotent=idempotent, timeout=DEADLINE - START)
    if state is S.EXPIRING:
        request = annotation(strategy, idempotent=idempotent, timeout=0.0005)
    machine = machine_of(request, state=S.PENDING)
    if state is S.PENDING:
        return machine
    machine.handle(Dispatched(NODE, 1), START)
    leads_to: dict[RetryState, RequestEvent] = {
        S.CONSULTING: ResponseReceived(KvResponse(0x09)),
        S.WAITING: ResponseReceived(KvResponse(0x07)),
        S.EXPIRING: ResponseReceived(KvResponse(0x07)),
        S.COMPLETED: ResponseReceived(KvResponse(0x00)),
        S.FAILED: ResponseReceived(KvResponse(0x01)),
        S.ABANDONED: Abandoned(),
    }
    if state in leads_to:
        machine.handle(leads_to[state], START)
    assert state is machine.state
    return machine


def strategies_for(state: RetryState) -> list[AnyRetryStrategy]:
    """Return the strategies under which ``state`` can be reached."""
    return [Awaits()] if state is S.CONSULTING else STRATEGIES


@rows(("state", "kind"), PAIRS)
def test_all_pairs(state: RetryState, kind: type[RequestEvent]) -> None:
    """A pair of the table leads to the states it names and no other, as what is ordered wants it; a missing one raises."""
    allowed = events_heard(state).get(kind)
    # Nobody is asked where nothing is decided: one strategy, of one request, will do.
    sorts = slice(None if allowed is not None and not state.is_final else 1)
    reached: set[RetryState] = set()
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
        assert not state.is_final or ([Ignore()], before) == (actions, vars(machine))
        for action in actions:
            if isinstance(action, RetryAfter):
                assert (S.WAITING if action.dispatches else S.EXPIRING) is machine.state
            else:
                assert LEADS_TO.get(type(action), machine.state) is machine.state
        if not actions:
            assert {Dispatched: S.IN_FLIGHT, Abandoned: S.ABANDONED}.get(kind, state) is machine.state
        reached.add(machine.state)

    assert set((allowed or {}).values()) == reached


def test_what_is_no_event_raises() -> None:
    """A thing of another kind is a mistake of the caller."""
    machine = machine_in(S.PENDING, Says(None), idempotent=True)
    with pytest.raises(InvalidEvent, match="^str cannot happen to a request that is pending$"):
        machine.handle("dispatched", START)  # type: ignore[arg-type]


def test_the_table_is_whole() -> None:
    """Every state has its row of events that exist; three are final, and the caller and the clock are heard in all."""
    assert set(get_args(RequestEvent)) == set(EVENTS)
    assert set(RetryState) == set(REQUEST_TRANSITIONS)
    for state, row in ((state, events_heard(state)) for state in RetryState):
        assert (state in FINAL) is state.is_final
        assert {Abandoned, WakeupReached, ErrorMapLoaded} <= set(row) <= set(EVENTS)
        assert (set(row) == set(EVENTS) and set(REQUEST_TRANSITIONS[state].values()) == {state}) is state.is_final
