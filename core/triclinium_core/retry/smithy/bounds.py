"""What the arguments of Smithy's strategies have to be, checked before anything is made of them."""

from __future__ import annotations

import math

from triclinium_core.errors import InvalidArgumentException
from triclinium_core.quantities import in_seconds, is_number
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.smithy.protocols import RetryBackoffStrategy
from triclinium_core.shown import shown


def require_count(name: str, value: int, *, least: int = 0) -> int:
    """Return ``value``.

    Raises:
        InvalidArgumentException: it is no whole number of at least ``least``.
    """
    if type(value) is int and value >= least:
        return value
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidArgumentException(
            f"{name}={shown(value)} must be a whole number of at least {least}", parameter=name
        )
    return value


def require_seconds(name: str, value: float) -> None:
    """Check a number of seconds that is kept as it is given.

    Raises:
        InvalidArgumentException: it is no finite number of at least 0, or more than a float holds.
    """
    if not is_seconds(value):
        raise InvalidArgumentException(
            f"{name}={shown(value)} must be a finite number of seconds of at least 0", parameter=name
        )


def is_seconds(value: object) -> bool:
    """Tell whether ``value`` is a length of time that can be slept: a number, finite, at least 0."""
    if type(value) is float:
        return 0.0 <= value < math.inf
    if not is_number(value):
        return False
    assert isinstance(value, int | float)
    return 0 <= value < math.inf


def require_random(rng: Random) -> Random:
    """Return ``rng``.

    Raises:
        InvalidArgumentException: it cannot draw numbers.
    """
    if not callable(getattr(rng, "random", None)):
        raise InvalidArgumentException(
            f"rng={shown(rng)} must have a method random() that draws from [0, 1), as random.Random() has",
            parameter="rng",
        )
    return rng


def require_backoff(name: str, backoff: RetryBackoffStrategy) -> RetryBackoffStrategy:
    """Return ``backoff``.

    Raises:
        InvalidArgumentException: it is no backoff strategy.
    """
    if not callable(getattr(backoff, "compute_next_backoff_delay", None)):
        raise InvalidArgumentException(
            f"{name}={shown(backoff)} must have a method compute_next_backoff_delay(retry_attempt)", parameter=name
        )
    return backoff


def backoff_delay(backoff: RetryBackoffStrategy, retry_attempt: int) -> float:
    """Return the seconds that ``backoff`` computes.

    Raises:
        InvalidArgumentException: it computes something else. Whatever the strategy itself raises passes through.
    """
    delay = in_seconds(backoff.compute_next_backoff_delay(retry_attempt))
    if not is_seconds(delay):
        raise InvalidArgumentException(
            f"{type(backoff).__name__} computed delay={shown(delay)} for retry {shown(retry_attempt)}; "
            "it must be a finite number of seconds of at least 0",
            parameter="backoff",
        )
    return delay
