"""Backoff strategies, which compute delays before retries: exponential with four kinds of jitter, and decorrelated.

Source: the Smithy Python retry design, "Backoff Strategy"; decision S7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum, unique

from triclinium_core.argument_error import ArgumentError
from triclinium_core.checks import Duration, in_seconds, is_seconds
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.checks import check_choice, check_duration, check_integer, check_method, check_random
from triclinium_core.retry.smithy.protocols import RetryBackoffStrategy
from triclinium_core.shown import shown

WALK_MAX = 256
"""Maximum number of random numbers drawn for one decorrelated delay. More draws would not noticeably change its
distribution."""


@unique
class Jitter(StrEnum):
    """Random part of a delay. ``d`` is the exponential delay, ``min(max, base * 2 ** (retry_attempt - 1))``."""

    NONE = "none"
    """The delay is not random: it is ``d``."""
    EQUAL = "equal"
    """Half of the delay is random: it is uniform in ``[d / 2, d)``."""
    FULL = "full"
    """All of the delay is random: it is uniform in ``[0, d)``."""
    DECORRELATED = "decorrelated"
    """The delay is uniform in ``[base, base + 3 * p)``, but at most ``max``. ``p`` is the delay before the previous
    retry. The strategy does not remember ``p``: it starts at ``base`` and draws the delay of each earlier retry
    again."""


_NONE, _EQUAL, _DECORRELATED = Jitter.NONE, Jitter.EQUAL, Jitter.DECORRELATED


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class ExponentialRetryBackoffStrategy:
    """Exponential backoff: the delay doubles with each retry, up to a maximum.

    An object keeps no state between calls, so any number of requests may share it.

    Args:
        rng: random source for the jitter; None is permitted only with ``Jitter.NONE``.
        base: delay before the first retry, before jitter.
        max: maximum delay; it may be less than ``base``.
        jitter: random part of the delays. Default: half of each delay.

    Raises:
        ArgumentError: ``base`` or ``max`` is not a duration, is negative or not finite, ``jitter`` is not a ``Jitter``,
            or ``rng`` is missing or not a random source.
    """

    rng: Random | None = field(default=None, repr=False)
    base: float = 0.025
    max: float = 20.0
    jitter: Jitter = Jitter.EQUAL
    _doublings: float = field(init=False, repr=False, compare=False)
    """Number of doublings of ``base`` that certainly reaches ``max``."""

    def __init__(
        self,
        *,
        rng: Random | None = None,
        base: Duration = 0.025,
        max: Duration = 20.0,
        jitter: Jitter = Jitter.EQUAL,
    ) -> None:
        check_choice(jitter, "jitter", Jitter)
        if rng is not None:
            check_random(rng)
        elif jitter is not Jitter.NONE:
            raise ArgumentError(
                f"rng is missing, and jitter={jitter.value!r} needs one; pass random.Random()", parameter="rng"
            )
        object.__setattr__(self, "rng", rng)
        object.__setattr__(self, "base", check_duration(base, "base"))
        object.__setattr__(self, "max", check_duration(max, "max"))
        object.__setattr__(self, "jitter", jitter)
        # If e is the exponent of max and b that of base, then base * 2 ** (e - b + 1) >= 2 ** e > max.
        doublings = math.frexp(self.max)[1] - math.frexp(self.base)[1] + 1 if self.base else math.inf
        object.__setattr__(self, "_doublings", doublings)

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        """Return the delay in seconds before retry ``retry_attempt``, at most ``max``; 0 for ``retry_attempt`` 0.

        Raises:
            ArgumentError: ``retry_attempt`` is not an integer of at least 0, or ``rng`` draws a number outside [0, 1].
        """
        check_integer(retry_attempt, "retry_attempt")
        if retry_attempt == 0:
            return 0.0
        jitter = self.jitter
        if jitter is _DECORRELATED:
            return self._walk(retry_attempt)
        delay = self.max
        if retry_attempt <= self._doublings:
            # Up to this number of doublings, the exponent is too small to overflow a float.
            delay = min(delay, math.ldexp(self.base, retry_attempt - 1))
        if jitter is _NONE:
            return delay
        share = self._draw()
        return delay * (0.5 + 0.5 * share if jitter is _EQUAL else share)

    def _walk(self, retry_attempt: int) -> float:
        delay = self.base
        for _ in range(min(retry_attempt, WALK_MAX)):
            delay = min(self.max, self.base + self._draw() * 3.0 * delay)
        return delay

    def _draw(self) -> float:
        assert self.rng is not None
        return draw_share(self.rng)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class DecorrelatedRetryBackoffStrategy:
    """Decorrelated backoff: each delay lies between ``base`` and three times the previous delay, up to a maximum.

    The retry strategy passes the previous delay, which the token has recorded. An object therefore keeps no state
    between calls, and any number of requests may share it. ``Jitter.DECORRELATED`` is Smithy's variant, which draws
    from ``[base, base + 3 * p)`` and draws the previous delay ``p`` again.

    Args:
        rng: random source.
        base: minimum delay. The first delay is computed as if the previous one had been ``base``.
        max: maximum delay; it may be less than ``base``.

    Raises:
        ArgumentError: ``base`` or ``max`` is not a duration, is negative or not finite, or ``rng`` is not a random
            source.

    Source: AWS Architecture Blog, "Exponential Backoff and Jitter"; decision S23.
    """

    rng: Random = field(repr=False)
    base: float = 0.025
    max: float = 20.0

    def __init__(self, *, rng: Random, base: Duration = 0.025, max: Duration = 20.0) -> None:
        object.__setattr__(self, "rng", check_random(rng))
        object.__setattr__(self, "base", check_duration(base, "base"))
        object.__setattr__(self, "max", check_duration(max, "max"))

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        """Return a delay in seconds before retry ``retry_attempt``, after drawing the earlier delays.

        Return 0 if ``retry_attempt`` is 0.

        Raises:
            ArgumentError: ``retry_attempt`` is not an integer of at least 0, or ``rng`` draws a number outside [0, 1].
        """
        check_integer(retry_attempt, "retry_attempt")
        delay = 0.0
        for _ in range(min(retry_attempt, WALK_MAX)):
            delay = self.compute_following_backoff_delay(delay)
        return delay

    def compute_following_backoff_delay(self, previous_delay: float) -> float:
        """Return the delay in seconds that follows ``previous_delay``. The first retry has a ``previous_delay`` of 0.

        Raises:
            ArgumentError: ``rng`` draws a number outside [0, 1].
        """
        base, top = self.base, 3.0 * max(previous_delay, self.base)
        return min(self.max, base + (top - base) * draw_share(self.rng))


def draw_share(rng: Random) -> float:
    """Return a random number from ``rng``.

    Raises:
        ArgumentError: the number is outside [0, 1].
    """
    share = rng.random()
    # Accept 1: it is harmless, and tests use a source that returns it to get the longest delays.
    if not (is_seconds(share) and share <= 1.0):
        raise ArgumentError(f"rng returned {shown(share)}; random() must return a number in [0, 1)", parameter="rng")
    return share


def check_backoff(backoff: RetryBackoffStrategy, parameter: str) -> RetryBackoffStrategy:
    """Return ``backoff``, or raise ArgumentError if it is not a backoff strategy."""
    method = "compute_next_backoff_delay"
    return check_method(backoff, parameter, method, f"{method}(retry_attempt)")


def backoff_delay(backoff: RetryBackoffStrategy, retry_attempt: int, previous: float) -> float:
    """Return the delay in seconds that ``backoff`` computes before retry ``retry_attempt``.

    If ``backoff`` has a method that computes a delay from the previous one, call that method.

    Args:
        previous: delay in seconds before the attempt that failed; 0 for a first attempt.

    Raises:
        ArgumentError: the result is not a finite number of at least 0. Exceptions of the backoff strategy propagate.
    """
    following = getattr(backoff, "compute_following_backoff_delay", None)
    delay = in_seconds(backoff.compute_next_backoff_delay(retry_attempt) if following is None else following(previous))
    if not is_seconds(delay):
        raise ArgumentError(
            f"{type(backoff).__name__} computed delay={shown(delay)} for retry {shown(retry_attempt)}; "
            "it must be a finite number of seconds of at least 0",
            parameter="backoff",
        )
    return delay
