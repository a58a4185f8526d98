"""Schedules of an error map in the machine: their delays, restarts and ends, and the retry count of the request."""

from __future__ import annotations

import pytest

from tests.core.retry.couchbase.request_cases import NODE, annotation, answer, machine_of, map_entry, map_store
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.retry import couchbase

R, S = couchbase.RetryReason, couchbase.RetryState

CONSTANT, LINEAR, EXPONENTIAL, SHORT, OUTSIDE, UNKNOWN = 0xFFF0, 0xFFF1, 0xFFF2, 0xFFF3, 0xFFF4, 0xFFF5
NOT_MY_VBUCKET, LOCKED, OUTDATED = 0x07, 0x09, 0x88


def scheduled(strategy: str, interval: int, after: int, duration: int, **more: object) -> couchbase.ErrorMapEntry:
    """Return an entry with a schedule."""
    retry = {"strategy": strategy, "interval": interval, "after": after, "max-duration": duration, **more}
    return map_entry("auto-retry", "support", retry=retry)


def store() -> couchbase.ErrorMapStore:
    """Return a store with one map: schedules of RFC 0013, a short one, none, and one with an unknown algorithm."""
    return map_store(
        {
            CONSTANT: scheduled("constant", 25, 10, 1500),
            LINEAR: scheduled("linear", 10, 10, 1500, ceil=35),
            EXPONENTIAL: scheduled("exponential", 2, 10, 0, ceil=500),
            SHORT: scheduled("constant", 40, 5, 100),
            OUTSIDE: map_entry("auto-retry", "temp"),
            UNKNOWN: map_entry("auto-retry", "support", retry={"strategy": "fibonacci", "seeds": [1, 1]}),
        }
    )


def machine(
    strategy: couchbase.AnyRetryStrategy | None = None, *, idempotent: bool = False, timeout: float = 75.0
) -> couchbase.RetryMachine:
    """Return a machine with the error map of ``store``, whose attempt is in flight."""
    chosen = strategy if strategy is not None else couchbase.ErrorMapRetryStrategy()
    return machine_of(annotation(chosen, idempotent=idempotent, submitted_at=0.0, timeout=timeout), error_maps=store())


class Run:
    """Driver with its own clock, which responds to the attempts of a machine."""

    def __init__(self, retried: couchbase.RetryMachine, now: float = 0.0) -> None:
        self.machine = retried
        self.now = now
        self.delays_ms: list[float] = []

    def answer(self, *statuses: int) -> None:
        """For each status: respond with it, wait for the delay, and dispatch the next attempt."""
        for status in statuses:
            self._resume(self.machine.handle(answer(status), self.now))

    def close(self) -> None:
        """Close the socket of the attempt, wait for the delay, and dispatch the next attempt."""
        self._resume(self.machine.handle(couchbase.SocketClosed(couchbase.HandedOver.ALL), self.now))

    def _resume(self, actions: object) -> None:
        assert isinstance(actions, list)
        (order,) = [action for action in actions if isinstance(action, couchbase.RetryAfter)]
        self.delays_ms.append(round(order.delay * 1000, 6))
        self.now += order.delay
        assert [couchbase.Dispatch()] == list(self.machine.handle(couchbase.WakeupReached(), self.now))
        self.machine.handle(couchbase.Dispatched(NODE, 1), self.now)


@pytest.mark.parametrize(
    ("status", "delays_ms"),
    [
        (CONSTANT, [10, 25, 25, 25, 25]),
        (LINEAR, [10, 10, 20, 30, 35, 35]),
        (EXPONENTIAL, [10, 2, 4, 8, 16, 32]),
        (OUTSIDE, [1, 2, 4, 8]),
    ],
)
def test_schedules(status: int, delays_ms: list[float]) -> None:
    """The delays follow the entry's schedule; without a schedule they follow best effort (decision C16)."""
    run = Run(machine())
    run.answer(*[status] * len(delays_ms))

    assert delays_ms == run.delays_ms
    assert len(delays_ms) == run.machine.retry_attempts


def test_another_status_restarts_the_schedule() -> None:
    """A response with another status restarts the schedule, but not the retry count of the request (decision C17)."""
    run = Run(machine())
    run.answer(LINEAR, LINEAR, LINEAR, CONSTANT, CONSTANT, LINEAR, LINEAR, LINEAR)

    assert [10, 10, 20, 10, 25, 10, 10, 20] == run.delays_ms
    assert 8 == run.machine.retry_attempts


def test_a_known_status_in_between_restarts_too() -> None:
    """A known status also restarts the schedule; its own delays depend on the retry count of the request."""
    run = Run(machine())
    run.answer(LINEAR, LINEAR, LINEAR, LOCKED, LOCKED, LINEAR)

    assert [10, 10, 20, 8, 16, 10] == run.delays_ms


def test_a_lost_socket_in_between_does_not_restart() -> None:
    """If the socket closes between two responses, the schedule does not restart."""
    run = Run(machine(idempotent=True))
    run.answer(LINEAR, LINEAR)
    run.close()
    run.answer(LINEAR)

    assert [10, 10, 4, 30] == run.delays_ms


def test_http_statuses_count_too() -> None:
    """Each HTTP status has its own retry count, which restarts after a response with another status."""
    request = annotation(couchbase.BestEffortRetryStrategy(), submitted_at=0.0, service=couchbase.Service.VIEWS)
    retried, now, counted = machine_of(request), 0.0, []
    for http_status in (503, 503, 503, 504, 504, 503):
        (report, order) = retried.handle(
            couchbase.ResponseReceived(couchbase.ServiceResponse(couchbase.Service.VIEWS, http_status)), now
        )
        assert isinstance(report, couchbase.ReportRetry)
        assert isinstance(order, couchbase.RetryAfter)
        counted.append(report.request.attempts_this_status)
        now += order.delay
        retried.handle(couchbase.WakeupReached(), now)
        retried.handle(couchbase.Dispatched(NODE, 1), now)

    assert [0, 1, 2, 0, 1, 0] == counted


def test_retries_before_the_first_status_do_not_count() -> None:
    """If retries for a missing connection precede a status, they do not advance its schedule (decision C17)."""
    retried = machine_of(
        annotation(couchbase.ErrorMapRetryStrategy(), submitted_at=0.0), state=S.PENDING, error_maps=store()
    )
    now = 0.0
    for _ in range(3):
        retried.handle(couchbase.DispatchFailed(R.SOCKET_NOT_AVAILABLE), now)
        now = retried.wakeup
        retried.handle(couchbase.WakeupReached(), now)
    retried.handle(couchbase.Dispatched(NODE, 1), now)
    run = Run(retried, now)
    run.answer(LINEAR, LINEAR, LINEAR)

    assert [10, 10, 20] == run.delays_ms
    assert 6 == retried.retry_attempts


def test_max_duration_cuts_the_last_delay() -> None:
    """A delay that reaches ``max-duration`` is cut to that time; then the request fails with the error of the entry."""
    run = Run(machine())
    run.answer(SHORT, SHORT, SHORT)
    report, order = run.machine.handle(answer(SHORT), run.now)

    assert [5, 40, 40] == run.delays_ms
    assert isinstance(report, couchbase.ReportRetry)
    assert isinstance(order, couchbase.RetryAfter)
    assert (False, False) == (report.dispatches, order.dispatches)
    assert 0.015 == pytest.approx(order.delay)
    assert (S.EXPIRING, 3) == (run.machine.state, run.machine.retry_attempts)
    assert 0.1 == pytest.approx(run.machine.wakeup)
    assert [] == list(run.machine.handle(couchbase.WakeupReached(), 0.0999))

    (fail,) = run.machine.handle(couchbase.WakeupReached(), run.machine.wakeup)

    assert isinstance(fail, couchbase.Fail)
    assert errors.FeatureNotAvailableException is type(fail.error)
    assert (3, "KV_ERROR_MAP_RETRY_INDICATED") == (fail.error.context.retry_attempts, fail.error.context.refused_reason)
    assert S.FAILED is run.machine.state


def test_max_duration_starts_with_the_status() -> None:
    """``max-duration`` starts at the first of the latest responses in a row that have the status (decision C15)."""
    run = Run(machine())
    run.answer(LOCKED)
    run.now = 0.2
    run.answer(SHORT, LINEAR)
    run.now = 0.4
    run.answer(SHORT)
    run.now = 0.45
    run.answer(SHORT)
    report, fail = run.machine.handle(answer(SHORT), 0.5)

    assert [1, 5, 10, 5, 40] == run.delays_ms
    assert isinstance(report, couchbase.ReportRefusal)
    assert 0.5 == report.request.since_first_failure
    assert 0.1 == pytest.approx(report.request.since_this_status)
    assert isinstance(fail, couchbase.Fail)


def test_max_duration_excludes_waiting_for_a_connection() -> None:
    """A request that waits long for a connection before the first response still has its complete ``max-duration``."""
    retried = machine_of(
        annotation(couchbase.ErrorMapRetryStrategy(), submitted_at=0.0, timeout=75.0),
        state=S.PENDING,
        error_maps=store(),
    )
    retried.handle(couchbase.DispatchFailed(R.SOCKET_NOT_AVAILABLE), 0.0)
    retried.handle(couchbase.WakeupReached(), 60.0)
    retried.handle(couchbase.Dispatched(NODE, 1), 60.0)
    _, order = retried.handle(answer(SHORT), 60.0)

    assert couchbase.RetryAfter(0.005, dispatches=True) == order


@rows(
    "strategy",
    [couchbase.ErrorMapRetryStrategy(), couchbase.ErrorMapRetryStrategy(couchbase.BestEffortRetryStrategy())],
)
def test_an_unknown_algorithm_fails_the_request(strategy: couchbase.ErrorMapRetryStrategy) -> None:
    """If a schedule has an unknown algorithm, ErrorMapRetryStrategy fails the request with the error of the entry."""
    report, fail = machine(strategy).handle(answer(UNKNOWN), 0.0)

    assert isinstance(report, couchbase.ReportRefusal)
    assert isinstance(fail, couchbase.Fail)
    assert errors.FeatureNotAvailableException is type(fail.error)
    assert "KV_ERROR_MAP_RETRY_INDICATED" == fail.error.context.refused_reason
    assert "fibonacci" in str(fail.error)


def test_an_unknown_algorithm_under_the_default_strategy() -> None:
    """If a schedule has an unknown algorithm, a strategy that ignores schedules retries the entry (decision C14)."""
    run = Run(machine(couchbase.FastFailOnTerminalErrorRetryStrategy()))
    run.answer(UNKNOWN, UNKNOWN)

    assert [1, 2] == run.delays_ms


def test_max_duration_with_a_late_wakeup() -> None:
    """If a wakeup is after both limits and ``max-duration`` ended first, the request fails with the entry's error."""
    run = Run(machine(timeout=2.5))
    run.answer(SHORT, SHORT, SHORT)
    run.machine.handle(answer(SHORT), run.now)
    (fail,) = run.machine.handle(couchbase.WakeupReached(), 99.0)

    assert isinstance(fail, couchbase.Fail)
    assert errors.FeatureNotAvailableException is type(fail.error)


def test_one_counter_for_both_backoffs() -> None:
    """The controlled backoff and the strategy's backoff share one retry count (decision C3)."""
    run = Run(machine(couchbase.BestEffortRetryStrategy()))
    run.answer(NOT_MY_VBUCKET, LOCKED, NOT_MY_VBUCKET, LOCKED, OUTDATED, NOT_MY_VBUCKET, LOCKED)

    assert [1, 2, 50, 8, 500, 1000, 64] == run.delays_ms
