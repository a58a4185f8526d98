"""Circuit breaker of one key-value connection or HTTP endpoint: a pure state machine with three states.

While the breaker is CLOSED, it counts responses and timeouts of operations in flight, in a fixed window of time. It
opens when the window has at least ``volume_threshold`` of them, and at least ``error_threshold_percentage`` of these
are timeouts. While it is OPEN, it refuses operations. After ``sleep_window`` it requests a canary, a NOOP or an HTTP
ping, and is HALF_OPEN until the canary ends: a response closes the breaker, and a timeout opens it again. A reconnect
closes the breaker of a key-value connection in any state.

Source: SDK-RFC 0049 reason CIRCUIT_BREAKER_OPEN; decision C33.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, unique

from triclinium_core.checks import Duration, check_duration, check_flag, check_number
from triclinium_core.retry.tables import transition_table
from triclinium_core.shown import total_repr


@unique
class BreakerState(Enum):
    """State of the breaker. Operations are dispatched only in the state CLOSED."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@unique
class BreakerEvent(Enum):
    """Event that the breaker handles."""

    OPERATION_ANSWERED = "operation_answered"
    OPERATION_TIMED_OUT = "operation_timed_out"
    TIME_PASSED = "time_passed"
    CANARY_ANSWERED = "canary_answered"
    CANARY_TIMED_OUT = "canary_timed_out"
    RECONNECTED = "reconnected"


BREAKER_TRANSITIONS: Mapping[BreakerState, Mapping[BreakerEvent, BreakerState]] = transition_table(
    [
        (BreakerState.CLOSED, BreakerEvent.OPERATION_TIMED_OUT, BreakerState.OPEN),
        (BreakerState.OPEN, BreakerEvent.TIME_PASSED, BreakerState.HALF_OPEN),
        (BreakerState.HALF_OPEN, BreakerEvent.CANARY_ANSWERED, BreakerState.CLOSED),
        (BreakerState.HALF_OPEN, BreakerEvent.CANARY_TIMED_OUT, BreakerState.OPEN),
        *((state, BreakerEvent.RECONNECTED, BreakerState.CLOSED) for state in BreakerState),
    ]
)
"""Next state for each event; an event without a row changes no state. OPERATION_TIMED_OUT opens the breaker only if the
thresholds are reached, and TIME_PASSED applies only after the sleep window."""


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class CircuitBreakerOptions:
    """Options of the circuit breaker. The defaults are those of all Couchbase clients.

    The two windows and the timeout are durations. The attributes are in seconds.

    Raises:
        InvalidArgumentException: an argument has the wrong type or is out of range.
    """

    enabled: bool = True
    volume_threshold: int = 20
    error_threshold_percentage: float = 50.0
    sleep_window: float = 5.0
    rolling_window: float = 60.0
    canary_timeout: float = 5.0

    def __init__(
        self,
        *,
        enabled: bool = True,
        volume_threshold: int = 20,
        error_threshold_percentage: float = 50.0,
        sleep_window: Duration = 5.0,
        rolling_window: Duration = 60.0,
        canary_timeout: Duration = 5.0,
    ) -> None:
        percentage = check_number(error_threshold_percentage, "error_threshold_percentage", 0, 100)
        object.__setattr__(self, "enabled", check_flag(enabled, "enabled"))
        object.__setattr__(self, "volume_threshold", check_number(volume_threshold, "volume_threshold", 1, math.inf))
        object.__setattr__(self, "error_threshold_percentage", percentage)
        for name, duration in (
            ("sleep_window", sleep_window),
            ("rolling_window", rolling_window),
            ("canary_timeout", canary_timeout),
        ):
            object.__setattr__(self, name, check_duration(duration, name, endless=True))


@dataclass(frozen=True, slots=True)
class BreakerStatistics:
    """Counters of the breaker in the current window."""

    state: BreakerState
    operations: int
    failures: int
    opened_at: float | None


_CLOSED, _ANSWERED = BreakerState.CLOSED, BreakerEvent.OPERATION_ANSWERED
"""Enum members that the breaker needs for each response, as globals, because looking up a member of an enum is slow.
``kv.wire.constants`` has measurements."""


class CircuitBreaker:
    """State machine of a circuit breaker.

    The caller calls ``handle`` for each event and at ``wakeup``, and reads ``allows_operations`` before each dispatch.
    """

    def __init__(self, options: CircuitBreakerOptions | None = None) -> None:
        self._options = options if options is not None else CircuitBreakerOptions()
        self.allows_operations: bool = True
        """Whether the caller may dispatch an operation."""
        self.state: BreakerState = BreakerState.CLOSED
        self.canary_timeout: float = self._options.canary_timeout
        """Timeout of a canary, in seconds."""
        self._window_start = -math.inf
        self._operations = 0
        self._failures = 0
        self._opened_at: float | None = None

    @total_repr
    def __repr__(self) -> str:
        return f"<CircuitBreaker: {self.state.name} operations={self._operations} failures={self._failures}>"

    @property
    def wakeup(self) -> float:
        """Time at which ``TIME_PASSED`` is due; ``inf`` for never."""
        if self.state is BreakerState.OPEN and self._opened_at is not None:
            return self._opened_at + self._options.sleep_window
        return math.inf

    def statistics(self) -> BreakerStatistics:
        """Return a snapshot of the counters."""
        return BreakerStatistics(self.state, self._operations, self._failures, self._opened_at)

    def handle(self, event: BreakerEvent, now: float, count: int = 1) -> bool:
        """Process ``event``. Return whether the caller must send a canary now.

        Args:
            count: number of events of this kind that happened at the same time.
        """
        if not self._options.enabled:
            return False
        if event is _ANSWERED:
            if self.state is _CLOSED:
                self._count(now, count)
            return False
        if event is BreakerEvent.OPERATION_TIMED_OUT and self.state is _CLOSED:
            self._count(now, count)
            self._failures += count
        state = BREAKER_TRANSITIONS[self.state].get(event)
        if (
            state is None
            or (event is BreakerEvent.OPERATION_TIMED_OUT and not self._is_over_threshold())
            or (event is BreakerEvent.TIME_PASSED and now < self.wakeup)
        ):
            return False
        self._enter(state, now)
        return state is BreakerState.HALF_OPEN

    def _count(self, now: float, count: int) -> None:
        if now - self._window_start >= self._options.rolling_window:
            self._window_start, self._operations, self._failures = now, 0, 0
        self._operations += count

    def _is_over_threshold(self) -> bool:
        return (
            self._operations >= self._options.volume_threshold
            and 100.0 * self._failures >= self._options.error_threshold_percentage * self._operations
        )

    def _enter(self, state: BreakerState, now: float) -> None:
        self.state = state
        self.allows_operations = state is BreakerState.CLOSED
        if state is BreakerState.OPEN:
            self._opened_at = now
        elif state is BreakerState.CLOSED:
            self._opened_at = None
            self._window_start, self._operations, self._failures = -math.inf, 0, 0
