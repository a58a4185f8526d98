"""Delays before retries: pure functions of the number of retries so far.

Source: SDK-RFC 0049 "Best Effort", "Controlled Backoff for Always Retry", "Capping the Retry Duration";
decisions C2, C3, C23.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from typing import Protocol

from triclinium_core.checks import Duration, check_duration, check_integer, check_number

RESOLUTION = 1e-9
"""Two instants less than a nanosecond apart are the same: sums of float seconds are no more exact than that."""

DELAY_LEAST = 0.001
"""Seconds until a request is sent again, at least: a strategy that always answers 0 would leave no time for anything
else, and none would pass at all on a clock that jumps."""

_EXPONENT_MAX = 1_000.0
"""Binary exponents above this are beyond every ceiling and would overflow a float."""
_RETRIES_MAX = 2**62
"""A float holds it, and even the smallest factor above one has reached any ceiling by then."""


class Random(Protocol):
    """The only randomness that the core uses; ``random.Random`` fits."""

    def random(self) -> float:
        """Return the next number in [0, 1)."""
        ...


class ConstantRandom:
    """Randomness without chance: every draw gives the same."""

    __slots__ = ("_value",)

    def __init__(self, value: float) -> None:
        self._value = value

    def random(self) -> float:
        """Return the value."""
        return self._value


class Backoff(Protocol):
    """A delay calculator: any callable of this shape may replace the shipped ones."""

    def __call__(self, retry_attempts: int, rng: Random, /) -> Duration:
        """Return the delay, given how many retries were already done."""
        ...


@dataclass(frozen=True, slots=True, init=False)
class ExponentialBackoff:
    """``min(first * factor ** retry_attempts, most)``, the exponent clamped so that no count overflows.

    Args:
        first: delay before the first retry, at most ``most``; kept as seconds.
        most: what no delay exceeds; kept as seconds.
        factor: growth from one retry to the next, at least 1.
        jitter: share of each delay that is random: the delay is drawn evenly from ``[delay * (1 - jitter), delay]``.

    Raises:
        InvalidArgumentException: a value is not a number, or is out of range.
    """

    first: float = 0.001
    most: float = 0.5
    factor: float = 2.0
    jitter: float = 0.0
    _retries_max: float = field(init=False, repr=False, compare=False)
    """As many retries as have reached any ceiling, and more than would overflow a float."""

    def __init__(self, first: Duration = 0.001, most: Duration = 0.5, factor: float = 2.0, jitter: float = 0.0) -> None:
        ceiling = check_duration(most, "most")
        object.__setattr__(self, "first", check_duration(first, "first", most=ceiling))
        object.__setattr__(self, "most", ceiling)
        for name, value, least, greatest in (("factor", factor, 1.0, sys.float_info.max), ("jitter", jitter, 0.0, 1.0)):
            object.__setattr__(self, name, check_number(value, name, least, greatest))
        retries = _EXPONENT_MAX / math.log2(self.factor) if self.factor > 1 else math.inf
        object.__setattr__(self, "_retries_max", min(retries, _RETRIES_MAX))

    def __call__(self, retry_attempts: int, rng: Random, /) -> float:
        """Return the delay in seconds after ``retry_attempts`` retries.

        Raises:
            InvalidArgumentException: that is no count.
        """
        if type(retry_attempts) is not int or retry_attempts < 0:
            check_integer(retry_attempts, "retry_attempts")
        delay = self.most
        if retry_attempts < self._retries_max:
            grown = self.first * self.factor**retry_attempts
            delay = grown if grown < delay else delay
        return delay * (1.0 - self.jitter * rng.random()) if self.jitter else delay


def exponential(
    *, first: Duration = 0.001, most: Duration = 0.5, factor: float = 2.0, jitter: float = 0.0
) -> ExponentialBackoff:
    """Return the best-effort calculator: 1, 2, 4 … 256, 500, 500 ms unless told otherwise.

    Raises:
        InvalidArgumentException: a value is not a number, or is out of range.
    """
    return ExponentialBackoff(first, most, factor, jitter)


CONTROLLED_DELAYS = (0.001, 0.010, 0.050, 0.100, 0.500)
CONTROLLED_DELAY_MAX = 1.0


def controlled(retry_attempts: int, rng: Random | None = None, /) -> float:
    """Return the delay in seconds for reasons that are always retried: 1, 10, 50, 100, 500, 1000, 1000 … ms.

    Raises:
        InvalidArgumentException: ``retry_attempts`` is no count.
    """
    check_integer(retry_attempts, "retry_attempts")
    if retry_attempts < len(CONTROLLED_DELAYS):
        return CONTROLLED_DELAYS[retry_attempts]
    return CONTROLLED_DELAY_MAX


def cap(delay: float, remaining: float) -> tuple[float, bool]:
    """Return ``delay`` cut to the ``remaining`` seconds, and whether anything is sent afterwards.

    A delay that reaches the limit is cut as well, and then nothing is sent.

    Source: SDK-RFC 0049 "Capping the Retry Duration".
    """
    if delay >= remaining - RESOLUTION:
        return max(remaining, 0.0), False
    return delay, True
