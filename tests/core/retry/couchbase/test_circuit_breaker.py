"""Circuit breaker: its options, its three states, and every event in each state."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

from hypothesis import given, strategies as st

from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.retry import couchbase
from triclinium_core.retry.couchbase import CircuitBreaker, CircuitBreakerOptions
from triclinium_core.retry.couchbase.circuit_breaker import BREAKER_TRANSITIONS

E, S = couchbase.BreakerEvent, couchbase.BreakerState

OPENED_AT = 100.0


def breaker_with(answered: int, timed_out: int, now: float = OPENED_AT, **options: float) -> CircuitBreaker:
    """Return a breaker that has counted ``answered`` responses and then ``timed_out`` timeouts."""
    breaker = CircuitBreaker(CircuitBreakerOptions(**options))  # type: ignore[arg-type]
    for event, times in ((E.OPERATION_ANSWERED, answered), (E.OPERATION_TIMED_OUT, timed_out)):
        for _ in range(times):
            assert not breaker.handle(event, now)
    return breaker


def in_state(state: couchbase.BreakerState) -> CircuitBreaker:
    """Return a breaker in a state. In the states OPEN and HALF_OPEN it opened at ``OPENED_AT``."""
    if state is S.CLOSED:
        return breaker_with(19, 0)
    breaker = breaker_with(10, 10)
    if state is S.HALF_OPEN:
        assert breaker.handle(E.TIME_PASSED, OPENED_AT + 5.0)
    return breaker


def test_the_default_options() -> None:
    """The breaker is enabled by default: 20 operations, 50 %, sleep window 5 s, rolling window 60 s (decision C33)."""
    assert (
        CircuitBreakerOptions(
            enabled=True,
            volume_threshold=20,
            error_threshold_percentage=50.0,
            sleep_window=5.0,
            rolling_window=60.0,
            canary_timeout=5.0,
        )
        == CircuitBreakerOptions()
    )
    assert 5.0 == CircuitBreaker().canary_timeout
    assert 0.5 == CircuitBreaker(CircuitBreakerOptions(canary_timeout=0.5)).canary_timeout


@rows(
    ("options", "answered", "timed_out", "expected"),
    [
        ({}, 0, 19, S.CLOSED),
        ({}, 0, 20, S.OPEN),
        ({}, 9, 10, S.CLOSED),
        ({}, 10, 10, S.OPEN),
        ({}, 11, 10, S.CLOSED),
        ({}, 11, 11, S.OPEN),
        ({}, 20, 19, S.CLOSED),
        ({}, 20, 20, S.OPEN),
        ({}, 1000, 999, S.CLOSED),
        ({}, 20, 0, S.CLOSED),
        ({"volume_threshold": 1, "error_threshold_percentage": 0}, 0, 1, S.OPEN),
        ({"volume_threshold": 5, "error_threshold_percentage": 100}, 1, 9, S.CLOSED),
        ({"volume_threshold": 5, "error_threshold_percentage": 100}, 0, 5, S.OPEN),
        ({"volume_threshold": 3, "error_threshold_percentage": 33.4}, 2, 1, S.CLOSED),
        ({"volume_threshold": 3, "error_threshold_percentage": 33.3}, 2, 1, S.OPEN),
        ({"volume_threshold": math.inf}, 0, 100, S.CLOSED),
    ],
)
def test_thresholds(options: dict[str, float], answered: int, timed_out: int, expected: couchbase.BreakerState) -> None:
    """The breaker opens once enough operations, by default 20, have ended and enough, by default half, timed out."""
    breaker = breaker_with(answered, timed_out, **options)

    assert expected is breaker.state
    assert (expected is S.CLOSED) is breaker.allows_operations
    assert (OPENED_AT + 5.0 if expected is S.OPEN else math.inf) == breaker.wakeup
    opened_at = OPENED_AT if expected is S.OPEN else None
    assert couchbase.BreakerStatistics(expected, answered + timed_out, timed_out, opened_at) == breaker.statistics()


def test_a_response_never_opens() -> None:
    """A response never opens the breaker, even if it is the operation that reaches the volume threshold."""
    breaker = breaker_with(0, 19)
    breaker.handle(E.OPERATION_ANSWERED, OPENED_AT)

    assert couchbase.BreakerStatistics(S.CLOSED, 20, 19, None) == breaker.statistics()

    breaker.handle(E.OPERATION_TIMED_OUT, OPENED_AT)

    assert S.OPEN is breaker.state


@rows(("later", "counted"), [(59.999, 20), (60.0, 1), (1000.0, 1)])
def test_the_window_is_fixed(later: float, counted: int) -> None:
    """The breaker resets its counts 60 s after the first operation of the rolling window."""
    breaker = breaker_with(10, 9)
    breaker.handle(E.OPERATION_TIMED_OUT, OPENED_AT + later)

    assert counted == breaker.statistics().operations
    assert (S.OPEN if counted == 20 else S.CLOSED) is breaker.state


def test_the_window_does_not_slide() -> None:
    """Operations after the first one do not prolong the rolling window."""
    breaker = breaker_with(1, 0)
    for later in (59.0, 61.0, 120.0):
        breaker.handle(E.OPERATION_ANSWERED, OPENED_AT + later)

    assert 2 == breaker.statistics().operations


def test_the_canary() -> None:
    """After 5 s the breaker sends one canary, and permits no operation until a response to the canary closes it."""
    breaker = in_state(S.OPEN)

    assert not breaker.handle(E.TIME_PASSED, OPENED_AT + 4.999)
    assert S.OPEN is breaker.statistics().state
    assert breaker.handle(E.TIME_PASSED, OPENED_AT + 5.0)
    assert S.HALF_OPEN is breaker.state
    assert not breaker.allows_operations
    assert math.inf == breaker.wakeup
    assert not breaker.handle(E.TIME_PASSED, OPENED_AT + 5.0)
    assert not breaker.handle(E.CANARY_ANSWERED, OPENED_AT + 5.1)
    assert couchbase.BreakerStatistics(S.CLOSED, 0, 0, None) == breaker.statistics()
    assert breaker.allows_operations


def test_a_silent_canary() -> None:
    """If the canary times out, the breaker opens again for 5 s."""
    breaker = in_state(S.HALF_OPEN)

    assert not breaker.handle(E.CANARY_TIMED_OUT, OPENED_AT + 10.0)
    assert OPENED_AT + 15.0 == breaker.wakeup
    assert not breaker.handle(E.TIME_PASSED, OPENED_AT + 14.9)
    assert breaker.handle(E.TIME_PASSED, OPENED_AT + 15.0)


@rows(
    ("state", "event"),
    [
        *itertools.product((S.OPEN, S.HALF_OPEN), (E.OPERATION_ANSWERED, E.OPERATION_TIMED_OUT)),
        *itertools.product((S.CLOSED, S.OPEN), (E.CANARY_ANSWERED, E.CANARY_TIMED_OUT)),
    ],
)
def test_late_events_are_not_counted(state: couchbase.BreakerState, event: couchbase.BreakerEvent) -> None:
    """If an operation or canary started in an earlier state, its event changes nothing."""
    breaker = in_state(state)
    before = (breaker.statistics(), breaker.wakeup)

    assert not breaker.handle(event, OPENED_AT + 5.0)
    assert before == (breaker.statistics(), breaker.wakeup)


@rows("state", couchbase.BreakerState)
def test_a_reconnect_resets(state: couchbase.BreakerState) -> None:
    """A new connection closes the breaker and resets its counts."""
    breaker = in_state(state)

    assert not breaker.handle(E.RECONNECTED, OPENED_AT + 1.0)
    assert couchbase.BreakerStatistics(S.CLOSED, 0, 0, None) == breaker.statistics()
    assert math.inf == breaker.wakeup


@rows(("state", "event"), list(itertools.product(couchbase.BreakerState, couchbase.BreakerEvent)))
def test_all_pairs(state: couchbase.BreakerState, event: couchbase.BreakerEvent) -> None:
    """In every state, every event leads to the state in the table, or keeps the state."""
    reached: set[couchbase.BreakerState] = set()
    for counted, later in itertools.product((0, 18, 19), (0.0, 5.0)):
        breaker = in_state(state)
        if state is S.CLOSED:
            breaker = breaker_with(0, counted)
        breaker.handle(event, OPENED_AT + later)
        reached.add(breaker.state)

    assert {state, BREAKER_TRANSITIONS[state].get(event, state)} >= reached
    assert BREAKER_TRANSITIONS[state].get(event, state) in reached


def test_disabled() -> None:
    """A disabled breaker ignores all events."""
    breaker = CircuitBreaker(CircuitBreakerOptions(enabled=False, volume_threshold=1, sleep_window=0.0))
    canaries = [breaker.handle(event, 0.0) for event in itertools.chain(*[couchbase.BreakerEvent] * 30)]

    assert not any(canaries)
    assert couchbase.BreakerStatistics(S.CLOSED, 0, 0, None) == breaker.statistics()
    assert breaker.allows_operations
    assert math.inf == breaker.wakeup


@rows(
    ("name", "values"),
    [
        ("enabled", ["no", 1, None]),
        ("volume_threshold", [0, -1, math.nan, "20", None, True]),
        ("error_threshold_percentage", [100.1, -1, math.nan, "20", None, True]),
        *((name, [-1, math.nan, "20", None, True]) for name in ("sleep_window", "rolling_window", "canary_timeout")),
    ],
)
def test_options_out_of_range(name: str, values: list[Any]) -> None:
    """An invalid option raises an error with its name and value."""
    for value in values:
        with refusal_of(name, f"^{name}={value!r} ", kind=errors.InvalidArgumentException):
            CircuitBreakerOptions(**{name: value})


def test_the_minimum_options() -> None:
    """Each option may be the lowest value of its range, and keeps that value."""
    options = CircuitBreakerOptions(
        volume_threshold=1, error_threshold_percentage=0, sleep_window=0, rolling_window=0, canary_timeout=0
    )

    assert CircuitBreaker(options).handle(E.OPERATION_TIMED_OUT, 0.0) is False
    assert (True, 1, 0, 0, 0, 0) == dataclasses.astuple(options)


steps = st.lists(
    st.tuples(st.sampled_from(couchbase.BreakerEvent), st.sampled_from([0.0, 0.1, 1.0, 5.0, 30.0, 60.0])), max_size=60
)


@given(steps, st.integers(1, 4), st.sampled_from([0.0, 50.0, 100.0]))
def test_any_history(history: list[tuple[couchbase.BreakerEvent, float]], volume: int, percentage: float) -> None:
    """Each half-open phase has one canary, only a closed breaker permits operations, and it can always close again."""
    breaker = CircuitBreaker(CircuitBreakerOptions(volume_threshold=volume, error_threshold_percentage=percentage))
    now = 0.0
    for event, step in history:
        now += step
        before = breaker.state
        canary = breaker.handle(event, now)
        statistics = breaker.statistics()
        assert canary is (before is S.OPEN and breaker.state is S.HALF_OPEN)
        assert breaker.state in {before, BREAKER_TRANSITIONS[before].get(event, before)}
        assert breaker.allows_operations is (breaker.state is S.CLOSED)
        assert 0 <= statistics.failures <= statistics.operations
        assert (statistics.opened_at is None) is (breaker.state is S.CLOSED)
        assert (breaker.wakeup < math.inf) is (breaker.state is S.OPEN)

    if breaker.state is S.OPEN:
        assert breaker.handle(E.TIME_PASSED, breaker.wakeup)
    if breaker.state is S.HALF_OPEN:
        breaker.handle(E.CANARY_ANSWERED, now)

    assert breaker.allows_operations
