"""One request through the retry machine: which event leads to which orders, and what the caller is told in the end."""

from __future__ import annotations

import gc
import math
import weakref
from dataclasses import replace

import pytest

from tests.core.retry.request_cases import (
    NODE,
    Awaits,
    Raises,
    Says,
    Unbuildable,
    annotation,
    machine_of,
)
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import CouchbaseException, DecodingFailureException
from triclinium_core.retry.actions import (
    CloseConnection,
    Complete,
    ConsultStrategy,
    Dispatch,
    Fail,
    Ignore,
    RefreshCollection,
    RefreshTopology,
    ReportRefusal,
    ReportRetry,
    RequestAction,
    RetryAfter,
)
from triclinium_core.retry.events import (
    Abandoned,
    Dispatched,
    DispatchFailed,
    HandedOver,
    KvResponse,
    RequestEvent,
    ResponseReceived,
    ServiceResponse,
    SocketClosed,
    StrategyDecided,
    TimePassed,
)
from triclinium_core.retry.invalid_event import InvalidEvent
from triclinium_core.retry.machine import RetryMachine
from triclinium_core.retry.reasons import RetryReason
from triclinium_core.retry.service import Service
from triclinium_core.retry.states import RequestState
from triclinium_core.retry.strategy import (
    FailFastRetryStrategy,
    RetryAction,
)

R, S = RetryReason, RequestState

START = 100.0
LOCKED, TEMPORARY, NOT_MY_VBUCKET, OUTDATED, UNKNOWN = 0x09, 0x86, 0x07, 0x88, 0x7FF0


def answer(status: int, node: str | None = NODE) -> ResponseReceived:
    """Return a KV answer."""
    return ResponseReceived(KvResponse(status, node))


def error_of(actions: list[RequestAction] | tuple[RequestAction, ...]) -> CouchbaseException:
    """Return the error that the one Fail among ``actions`` carries."""
    (error,) = [action.error for action in actions if isinstance(action, Fail)]
    return error


def hear(machine: RetryMachine, event: RequestEvent, now: float = START) -> list[RequestAction]:
    """Feed one event."""
    return list(machine.handle(event, now))


def retry(machine: RetryMachine, status: int, now: float) -> tuple[float, float]:
    """Feed an answer that is retried, wait, and dispatch again; return the delay and the instant after it."""
    (delay,) = [action.delay for action in hear(machine, answer(status), now) if isinstance(action, RetryAfter)]
    assert [Dispatch()] == hear(machine, TimePassed(), now + delay)
    hear(machine, Dispatched(NODE, 1), now + delay)
    return delay, now + delay


def test_a_new_request() -> None:
    """It waits to be dispatched, and for its deadline."""
    machine = machine_of(annotation(), state=S.PENDING)

    assert (S.PENDING, 0, frozenset(), None) == (
        machine.state,
        machine.retry_attempts,
        machine.retry_reasons,
        machine.last_reason,
    )
    assert 102.5 == machine.wakeup
    assert not machine.is_ambiguous


@pytest.mark.parametrize(
    ("operation", "response"),
    [
        ("upsert", KvResponse(0x00)),
        ("exists", KvResponse(0x01)),
        ("lookup_in", KvResponse(0xCC)),
        ("range_scan_continue", KvResponse(0xA6)),
        ("query", ServiceResponse(Service.QUERY, 200, b"{}")),
    ],
)
def test_success(operation: str, response: KvResponse | ServiceResponse) -> None:
    """An answer that is no failure completes the request with it, and nothing is awaited any more."""
    machine = machine_of(replace(annotation(), operation=operation), state=S.PENDING)

    assert [] == hear(machine, Dispatched(NODE, 17))
    assert [Complete(response)] == hear(machine, ResponseReceived(response), 100.1)
    assert S.COMPLETED is machine.state
    assert math.inf == machine.wakeup


@rows("status", [0xA6, 0xA7, 0xCC, 0xCD, 0xD3])
@rows("idempotent", [True, False])
def test_an_answer_that_cannot_be(status: int, idempotent: bool) -> None:
    """A success of another operation tells nothing of this one, which fails with it; nothing else is concerned."""
    machine = machine_of(annotation(idempotent=idempotent), state=S.PENDING)
    hear(machine, Dispatched(NODE, 17))
    (action,) = hear(machine, ResponseReceived(KvResponse(status, NODE)), 100.1)
    error = error_of([action])

    assert (DecodingFailureException, status) == (type(error), error.context.status)


def test_a_final_answer() -> None:
    """A known status that is not in the list surfaces at once, with everything that is known of the request."""
    machine = machine_of(annotation(), state=S.PENDING)
    hear(machine, Dispatched(NODE, 17))
    response = KvResponse(0x01, NODE, server_context="gone", server_ref="4f-1")
    error = error_of(hear(machine, ResponseReceived(response), 100.25))

    assert errors.DocumentNotFoundException is type(error)
    assert "upsert 'airline_10': the server answered KEY_NOT_FOUND [0x01] (gone)" == str(error)
    assert error.context == ErrorContext(
        service="kv",
        operation="upsert",
        idempotent=False,
        bucket="travel-sample",
        scope="inventory",
        collection="airline",
        key="airline_10",
        opaque=17,
        status=0x01,
        status_name="KEY_NOT_FOUND",
        server_context="gone",
        server_ref="4f-1",
        last_dispatched_to=NODE,
        elapsed=0.25,
        timeout=2.5,
    )
    assert (S.FAILED, math.inf) == (machine.state, machine.wakeup)


def test_best_effort_sequence() -> None:
    """Every failure waits twice as long as the one before, and the reasons are kept as a set."""
    machine, now = machine_of(annotation()), START
    delays = []
    for status in (LOCKED, LOCKED, TEMPORARY, LOCKED, TEMPORARY):
        delay, now = retry(machine, status, now)
        delays.append(delay)

    assert [0.001, 0.002, 0.004, 0.008, 0.016] == delays
    assert 5 == machine.retry_attempts
    assert {R.KV_LOCKED, R.KV_TEMPORARY_FAILURE} == machine.retry_reasons
    assert R.KV_TEMPORARY_FAILURE is machine.last_reason


def test_a_retry_writes_no_record_for_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """What errors tell is written when there is one: of thousands that are retried at once, none needs it."""
    machine, now = machine_of(annotation(), state=RequestState.PENDING), START
    written = []
    monkeypatch.setattr(ErrorContext, "__init__", lambda self, **given: written.append(given))
    hear(machine, Dispatched(NODE, 1, "127.0.0.1:4711"))
    for status in (LOCKED, NOT_MY_VBUCKET, TEMPORARY):
        _, now = retry(machine, status, now)

    assert [] == written


@pytest.mark.parametrize(("status", "refresh"), [(NOT_MY_VBUCKET, RefreshTopology()), (OUTDATED, RefreshCollection())])
def test_always_retried(status: int, refresh: RequestAction) -> None:
    """Even under fail-fast, after a refresh, and with a report for the log."""
    machine = machine_of(annotation(FailFastRetryStrategy()))
    hear_of = machine.snapshot(START)
    actions = hear(machine, answer(status))
    reason = machine.last_reason

    assert reason is not None
    assert [refresh, ReportRetry(hear_of, reason, 0.001, True, None), RetryAfter(0.001, True)] == actions
    assert (S.WAITING, 100.001) == (machine.state, machine.wakeup)


def test_a_retry_is_reported() -> None:
    """The log learns of request, reason, delay and node; the request is what the strategy saw."""
    strategy = Says(RetryAction.after(0.25))
    machine = machine_of(annotation(strategy), state=S.PENDING)
    hear(machine, Dispatched(NODE, 17))
    actions = hear(machine, answer(LOCKED), 100.5)
    ((seen, reason),) = strategy.asked

    assert R.KV_LOCKED is reason
    assert [ReportRetry(seen, R.KV_LOCKED, 0.25, True, NODE), RetryAfter(0.25, True)] == actions


def test_a_refusal_is_reported() -> None:
    """The log learns of request, reason, node and the error's name, before the caller does."""
    strategy = Says(RetryAction.no_retry())
    machine = machine_of(annotation(strategy), state=S.PENDING)
    hear(machine, Dispatched(NODE, 17))
    report, fail = hear(machine, answer(LOCKED), 100.5)
    ((seen, _),) = strategy.asked

    assert ReportRefusal(seen, R.KV_LOCKED, "DocumentLockedException", NODE) == report
    assert isinstance(fail, Fail)
    assert (0, frozenset(), "KV_LOCKED") == (
        fail.error.context.retry_attempts,
        fail.error.context.retry_reasons,
        fail.error.context.refused_reason,
    )


def test_what_a_strategy_sees() -> None:
    """Key, times, attempts, earlier reasons and the application's own context, and no more than that."""
    strategy = Says(RetryAction.after(0.25))
    machine = machine_of(annotation(strategy, client_context={"robot": True}), state=S.PENDING)
    hear(machine, DispatchFailed(R.NODE_NOT_AVAILABLE), 100.25)
    hear(machine, TimePassed(), 100.5)
    hear(machine, Dispatched(NODE, 17), 100.5)
    hear(machine, answer(LOCKED), 101.5)
    (first, _), (second, reason) = strategy.asked

    assert (0, frozenset(), 0.25, 2.25, 0.0, 0) == (
        first.retry_attempts,
        first.retry_reasons,
        first.age,
        first.remaining,
        first.since_first_failure,
        first.attempts_this_status,
    )
    assert (1, frozenset({R.NODE_NOT_AVAILABLE}), 1.5, 1.0, 1.25, 0) == (
        second.retry_attempts,
        second.retry_reasons,
        second.age,
        second.remaining,
        second.since_first_failure,
        second.attempts_this_status,
    )
    assert (Service.KV, "upsert", False, "airline_10", {"robot": True}, None) == (
        second.service,
        second.operation,
        second.idempotent,
        second.key,
        second.client_context,
        second.error_map_entry,
    )
    assert R.KV_LOCKED is reason


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("reason", [R.SOCKET_NOT_AVAILABLE, R.NODE_NOT_AVAILABLE, R.AUTHENTICATION_ERROR])
def test_a_socket_that_closed_before_the_frame(idempotent: bool, reason: RetryReason) -> None:
    """A frame that was never begun is as a failed dispatch, for the reason given."""
    machine = machine_of(annotation(idempotent=idempotent))
    actions = hear(machine, SocketClosed(HandedOver.NOTHING, "reset", reason))

    assert RetryAfter(0.001, True) == actions[-1]
    assert {reason} == machine.retry_reasons
    assert "reset" == machine.error_context(START).last_dispatch_error
    assert not machine.is_ambiguous


def test_services() -> None:
    """Answers of the HTTP services take the same way, with their own lists and texts."""
    body = b'{"errors":[{"code":4040,"msg":"stale plan"}]}'
    request = annotation(FailFastRetryStrategy(), service=Service.QUERY, operation="query")
    error = error_of(hear(machine_of(request), ResponseReceived(ServiceResponse(Service.QUERY, 400, body))))
    final = error_of(hear(machine_of(request), ResponseReceived(ServiceResponse(Service.QUERY, 401, b"no"))))
    retried = machine_of(annotation(service=Service.QUERY, operation="query"))
    hear(retried, ResponseReceived(ServiceResponse(Service.QUERY, 400, body)))

    assert errors.PreparedStatementFailureException is type(error)
    assert ("query", 400, "stale plan") == (error.context.service, error.context.status, error.context.status_text)
    assert "error 4040" == error.context.status_name
    assert final.context.status_name is None
    assert (CouchbaseException, "query 'airline_10': the server answered HTTP status 401") == (type(final), str(final))
    assert {R.QUERY_PREPARED_STATEMENT_FAILURE} == retried.retry_reasons


@pytest.mark.parametrize("state", [S.PENDING, S.IN_FLIGHT])
def test_abandoned(state: RequestState) -> None:
    """Who has left is told nothing, and nothing is awaited."""
    machine = machine_of(annotation(), state=state)

    assert [] == hear(machine, Abandoned())
    assert (S.ABANDONED, math.inf) == (machine.state, machine.wakeup)


def test_abandoned_while_waiting() -> None:
    """The retry that was ordered does not happen."""
    machine = machine_of(annotation())
    hear(machine, answer(LOCKED))
    hear(machine, Abandoned())

    assert math.inf == machine.wakeup
    assert [Ignore()] == hear(machine, TimePassed(), 100.001)


@pytest.mark.parametrize("late", [answer(0x00), answer(0x01), SocketClosed(HandedOver.ALL), TimePassed(), Abandoned()])
def test_exactly_one_settlement(late: RequestEvent) -> None:
    """A response, a closed socket or a deadline that comes after the end changes nothing."""
    for first in (answer(0x00), answer(0x01), TimePassed()):
        machine = machine_of(annotation())
        settled = [action for action in hear(machine, first, 102.5) if isinstance(action, Complete | Fail)]
        state = machine.state
        assert 1 == len(settled)
        assert [Ignore()] == hear(machine, late, 103.0)
        assert state is machine.state


def test_taken_over_at_the_first_failure() -> None:
    """A machine may be made when the first attempt has failed, with what is known from before."""
    machine = RetryMachine(
        annotation(Says(RetryAction.after(0.25))),
        rng=machine_of(annotation()).snapshot(START).rng,
        state=S.IN_FLIGHT,
        retry_attempts=3,
        first_failure_at=99.0,
    )
    seen = machine.snapshot(101.0)

    assert (3, 3, 2.0) == (seen.retry_attempts, seen.attempts_this_status, seen.since_first_failure)
    assert machine.is_ambiguous

    hear(machine, answer(LOCKED), 101.0)

    assert 4 == machine.retry_attempts
    assert 4 == machine.error_context(101.0).retry_attempts
    assert 2.0 == machine.snapshot(101.0).since_first_failure


def test_a_connection_of_no_more_use() -> None:
    """It is closed after the request is settled."""
    assert [Fail, CloseConnection] == [type(action) for action in hear(machine_of(annotation()), answer(0x25))]


def test_an_event_that_cannot_happen() -> None:
    """A mistake of the caller raises, naming event and state, and changes nothing."""
    machine = machine_of(annotation(), state=S.PENDING)
    with pytest.raises(InvalidEvent, match="^ResponseReceived cannot happen to a request that is pending$"):
        machine.handle(answer(0x00), START)

    assert (S.PENDING, 102.5) == (machine.state, machine.wakeup)


def test_a_socket_that_closed_in_flight() -> None:
    """A write fails and a read is sent again."""
    write, read = machine_of(annotation()), machine_of(annotation(idempotent=True))

    assert errors.RequestCanceledException is type(error_of(hear(write, SocketClosed(HandedOver.ALL))))
    assert RetryAfter(0.001, True) == hear(read, SocketClosed(HandedOver.ALL))[-1]


def test_a_strategy_that_raises() -> None:
    """The request fails with that as the cause (decision C28)."""
    error = error_of(hear(machine_of(annotation(Raises(OSError("down")))), answer(LOCKED)))

    assert errors.RequestCanceledException is type(error)
    assert OSError is type(error.__cause__)


def test_an_error_that_cannot_be_built() -> None:
    """A class of the application's own that takes no context does not break the machine."""
    error = error_of(hear(machine_of(annotation(Says(RetryAction.no_retry(Unbuildable)))), answer(LOCKED)))

    assert errors.RequestCanceledException is type(error)
    assert TypeError is type(error.__cause__)


@pytest.mark.parametrize(
    ("decided", "expected"),
    [
        (StrategyDecided(RetryAction.no_retry()), errors.DocumentLockedException),
        (StrategyDecided(None), errors.RequestCanceledException),
        (StrategyDecided(None, OSError("down")), errors.RequestCanceledException),
    ],
)
def test_a_strategy_that_is_awaited(decided: StrategyDecided, expected: type[CouchbaseException]) -> None:
    """The driver is told to consult it, and its answer is followed."""
    strategy = Awaits()
    failing, retrying = machine_of(annotation(strategy)), machine_of(annotation(strategy))
    (consult,) = hear(failing, answer(LOCKED))
    hear(retrying, answer(LOCKED))

    assert isinstance(consult, ConsultStrategy)
    assert (strategy, R.KV_LOCKED) == (consult.strategy, consult.reason)
    assert expected is type(error_of(hear(failing, decided)))
    assert RetryAfter(0.25, True) == hear(retrying, StrategyDecided(RetryAction.after(0.25)))[-1]


def test_an_awaited_strategy_is_not_asked_about_everything() -> None:
    """What is always retried needs no answer."""
    assert RetryAfter(0.001, True) == hear(machine_of(annotation(Awaits())), answer(NOT_MY_VBUCKET))[-1]


def test_the_deadline() -> None:
    """In flight it times out; a delay beyond it is cut; a failure after it is not retried."""
    in_flight, cut, late = (machine_of(annotation(Says(RetryAction.after(9.0)))) for _ in range(3))

    assert errors.AmbiguousTimeoutException is type(error_of(hear(in_flight, TimePassed(), 102.5)))
    assert RetryAfter(0.5, False) == hear(cut, answer(LOCKED), 102.0)[-1]
    assert S.EXPIRING is cut.state
    assert [] == hear(cut, TimePassed(), 102.4)
    assert errors.UnambiguousTimeoutException is type(error_of(hear(cut, TimePassed(), 102.5)))
    assert errors.UnambiguousTimeoutException is type(error_of(hear(late, answer(LOCKED), 102.5)))


def test_a_limit_of_the_strategy() -> None:
    """A delay that is cut to the strategy's own limit ends with the failure's own error."""
    machine = machine_of(annotation(Says(RetryAction.after(0.2, within=0.1))))

    assert RetryAfter(0.1, False) == hear(machine, answer(LOCKED))[-1]
    assert errors.DocumentLockedException is type(error_of(hear(machine, TimePassed(), 100.1)))


def test_a_request_that_is_over_leaves_nothing() -> None:
    """Its machine goes with whoever refers to it last, and waits for no collector of garbage."""
    machine = machine_of(annotation())
    hear(machine, answer(TEMPORARY))
    seen = weakref.ref(machine)
    gc.disable()
    try:
        del machine

        assert seen() is None
    finally:
        gc.enable()
