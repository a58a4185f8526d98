"""Functions that compute the delay before a retry from the number of retries so far.

Source: SDK-RFC 0049 "Best Effort", "Controlled Backoff for Always Retry", "Capping the Retry Duration";
decisions C2, C3, C23.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Protocol

from triclinium_core.checks import Duration, check_duration, check_integer, check_number

RESOLUTION = 1e-9
"""Resolution of times in seconds. Times less than a nanosecond apart count as equal, because sums of floats are not
more exact than that."""

DELAY_LEAST = 0.001
"""Minimum delay in seconds before a request is sent again. Without it, a strategy that always returns 0 would leave no
time for other work. On a test clock that advances only when all tasks are blocked, no time would pass."""


class Random(Protocol):
    """Interface of the random sources that the core accepts; ``random.Random`` implements it."""

    def random(self) -> float:
        """Return the next number in [0, 1)."""
        ...


class ConstantRandom:
    """Random source that always returns the same number."""

    __slots__ = ("_value",)

    def __init__(self, value: float) -> None:
        self._value = value

    def random(self) -> float:
        """Return the value."""
        return self._value


class Backoff(Protocol):
    """Interface of functions that compute delays. A callable of the user may replace those of this module."""

    def __call__(self, retry_attempts: int, rng: Random, /) -> Duration:
        """Return the delay after ``retry_attempts`` retries."""
        ...


@dataclass(frozen=True, slots=True, init=False)
class ExponentialBackoff:
    """Backoff of ``min(first * factor ** retry_attempts, most)``. No number of retries makes it overflow.

    Args:
        first: delay before the first retry, at most ``most``; stored in seconds. Default: 1 ms.
        most: maximum delay; stored in seconds. Default: 500 ms.
        factor: growth from one retry to the next, at least 1. Default: 2.
        jitter: random share of each delay, which is then uniform in ``[delay * (1 - jitter), delay]``. Default: 0.

    Raises:
        InvalidArgumentException: a value is not a number, or is out of range.
    """

    first: float = 0.001
    most: float = 0.5
    factor: float = 2.0
    jitter: float = 0.0

    def __init__(self, first: Duration = 0.001, most: Duration = 0.5, factor: float = 2.0, jitter: float = 0.0) -> None:
        ceiling = check_duration(most, "most")
        object.__setattr__(self, "first", check_duration(first, "first", most=ceiling))
        object.__setattr__(self, "most", ceiling)
        for name, value, least, greatest in (("factor", factor, 1.0, sys.float_info.max), ("jitter", jitter, 0.0, 1.0)):
            object.__setattr__(self, name, check_number(value, name, least, greatest))

    def __call__(self, retry_attempts: int, rng: Random, /) -> float:
        """Return the delay in seconds after ``retry_attempts`` retries.

        Raises:
            InvalidArgumentException: ``retry_attempts`` is not an integer of at least 0.
        """
        if type(retry_attempts) is not int or retry_attempts < 0:
            check_integer(retry_attempts, "retry_attempts")
        try:
            grown = self.first * self.factor**retry_attempts
        except OverflowError:
            grown = math.inf if self.first and self.factor > 1 else self.first
        delay = grown if grown < self.most else self.most
        return delay * (1.0 - self.jitter * rng.random()) if self.jitter else delay


def exponential(
    *, first: Duration = 0.001, most: Duration = 0.5, factor: float = 2.0, jitter: float = 0.0
) -> ExponentialBackoff:
    """Return the best-effort backoff; the default delays are 1, 2, 4 … 256, 500, 500 ms.

    Args:
        first: delay before the first retry. Default: 1 ms.
        most: maximum delay. Default: 500 ms.
        factor: growth from one retry to the next, at least 1. Default: 2.
        jitter: random share of each delay, from 0 to 1. Default: 0.

    Raises:
        InvalidArgumentException: a value is not a number, or is out of range.
    """
    return ExponentialBackoff(first, most, factor, jitter)


CONTROLLED_DELAYS = (0.001, 0.010, 0.050, 0.100, 0.500)
CONTROLLED_DELAY_MAX = 1.0


def controlled(retry_attempts: int, rng: Random | None = None, /) -> float:
    """Return the delay in seconds for reasons that are always retried: 1, 10, 50, 100, 500, 1000, 1000 … ms.

    Raises:
        InvalidArgumentException: ``retry_attempts`` is not an integer of at least 0.
    """
    check_integer(retry_attempts, "retry_attempts")
    if retry_attempts < len(CONTROLLED_DELAYS):
        return CONTROLLED_DELAYS[retry_attempts]
    return CONTROLLED_DELAY_MAX


def cap(delay: float, remaining: float) -> tuple[float, bool]:
    """Return ``delay`` cut to the ``remaining`` seconds, and whether the request is sent after that delay.

    If the delay reaches the end of the ``remaining`` seconds, the request is not sent.

    Source: SDK-RFC 0049 "Capping the Retry Duration".
    """
    if delay >= remaining - RESOLUTION:
        return max(remaining, 0.0), False
    return delay, True
