"""Conditions of faults and of node commands: from which request, at which time, for how long, with which probability.

Both start when all of their start conditions are met, and end ``for_seconds`` later, if given. A probability applies to
each request separately. The driver supplies time and randomness; all nodes of a cluster share them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict, Unpack

from triclinium_core import errors
from triclinium_core.checks import Duration, check_duration, check_integer, check_number
from triclinium_core.kv.operation.validation import UINT32_MAX
from triclinium_core.options import SECONDS_MAX
from triclinium_core.retry.backoff import Random


class StartConditions(TypedDict, total=False):
    """Conditions to start; with both, the later one decides. Default: immediately."""

    after_requests: int
    """Number of requests that come first."""
    at_seconds: Duration
    """Time in seconds since the nodes were first served, or since ``start_clock``; a time in the past is immediate."""


class SpanConditions(StartConditions, total=False):
    """Conditions to start, and the time until the end."""

    for_seconds: Duration
    """Time in seconds from the start to the end. Default: no end."""


class FaultConditions(SpanConditions, total=False):
    """Conditions of a fault that strikes requests or connections."""

    probability: float
    """Probability, from 0 to 1, with which the fault strikes each request. Default: 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Conditions with their defaults, checked by ``check_conditions``."""

    after_requests: int = 0
    at_seconds: float = 0.0
    for_seconds: float = math.inf
    probability: float = 1.0


IMMEDIATELY = Conditions()
"""Default of all conditions: immediately, without an end, every request."""


def check_conditions(**given: Unpack[FaultConditions]) -> Conditions:
    """Check the conditions, and return them with times in seconds.

    Raises:
        InvalidArgumentException: a value is invalid; ``parameter`` names it.
    """
    return Conditions(
        after_requests=check_integer(given.get("after_requests", 0), "after_requests", 0, UINT32_MAX),
        at_seconds=check_duration(given.get("at_seconds", 0.0), "at_seconds", most=SECONDS_MAX),
        for_seconds=check_duration(
            given.get("for_seconds", math.inf), "for_seconds", above_zero=True, most=SECONDS_MAX, endless=True
        ),
        probability=check_number(given.get("probability", 1.0), "probability", 0, 1),
    )


class FaultClock:
    """Time and randomness of the conditions, shared by all nodes of a cluster.

    Args:
        rng: source of randomness; None if no fault has a probability.
    """

    def __init__(self, rng: Random | None = None) -> None:
        self.now: float = 0.0
        """Newest known time: of the last event of any node, or of the last ``refresh``."""
        self.zero: float = 0.0
        """Time from which ``at_seconds`` counts."""
        self.rng: Random | None = rng
        self.read: Callable[[], float] | None = None
        """Function of the driver that returns the current time; None if the time of the last event is current."""

    def refresh(self) -> None:
        """Record the current time, which may be later than the last event."""
        if self.read is not None:
            self.now = max(self.now, self.read())

    def check(self, conditions: Conditions) -> None:
        """Raise InvalidArgumentException for a probability without a source of randomness."""
        if conditions.probability < 1 and self.rng is None:
            raise errors.InvalidArgumentException(
                f"probability={conditions.probability!r} needs a source of randomness; pass rng=random.Random(seed) to "
                "the nodes",
                parameter="probability",
            )

    def draws(self, probability: float) -> bool:
        """Return whether an event of this probability happens now. With a probability of 1, nothing is drawn."""
        if probability >= 1:
            return True
        return self.rng is not None and self.rng.random() < probability


class Progress:
    """Progress of one set of conditions, from its creation to its end."""

    __slots__ = ("_clock", "_is_immediate", "_requests_missing", "_since", "conditions")

    def __init__(self, conditions: Conditions, clock: FaultClock) -> None:
        clock.check(conditions)
        clock.refresh()
        self.conditions: Conditions = conditions
        self._is_immediate = conditions == IMMEDIATELY
        self._clock = clock
        self._requests_missing = conditions.after_requests
        self._since = clock.now
        """Time of the creation, or of the last request that ``after_requests`` counted."""

    @property
    def starts_at(self) -> float:
        """Time of the start; infinity until ``after_requests`` is reached."""
        if self._requests_missing:
            return math.inf
        return max(self._clock.zero + self.conditions.at_seconds, self._since)

    @property
    def ends_at(self) -> float:
        """Time of the end; infinity without an end, or until ``after_requests`` is reached."""
        return self.starts_at + self.conditions.for_seconds

    @property
    def is_active(self) -> bool:
        """Whether the fault or command has started and not ended."""
        return self._is_immediate or self.starts_at <= self._clock.now < self.ends_at

    @property
    def is_over(self) -> bool:
        """Whether the fault or command has ended."""
        return self.conditions.for_seconds < math.inf and self._clock.now >= self.ends_at

    def request_arrived(self) -> None:
        """Count a request."""
        if self._requests_missing:
            self._requests_missing -= 1
            self._since = self._clock.now

    def is_drawn(self) -> bool:
        """Return whether this request is struck according to the probability."""
        return self._clock.draws(self.conditions.probability)
