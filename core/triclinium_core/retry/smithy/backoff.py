"""Delays before retries: exponential, with four kinds of jitter, from the number of the retry alone.

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
"""Steps that a decorrelated delay is walked, at most: a longer walk ends no differently, and would cost more draws."""


@unique
class Jitter(StrEnum):
    """How much of a delay is random. ``d`` is the exponential delay, ``min(max, base * 2 ** (retry_attempt - 1))``."""

    NONE = "none"
    """None of it: ``d``."""
    EQUAL = "equal"
    """Half of it: evenly from ``[d / 2, d)``."""
    FULL = "full"
    """All of it: evenly from ``[0, d)``."""
    DECORRELATED = "decorrelated"
    """Evenly from ``[base, base + 3 * p)``, cut to ``max``, where ``p`` is the delay of the retry before: ``base`` to
    begin with, then drawn anew for each retry that lies between."""


_NONE, _EQUAL, _DECORRELATED = Jitter.NONE, Jitter.EQUAL, Jitter.DECORRELATED


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class ExponentialRetryBackoffStrategy:
    """Doubles the delay from retry to retry, up to a ceiling.

    It keeps nothing between two calls, so any number of requests may share one.

    Args:
        rng: draws for the jitter; only ``Jitter.NONE`` does without.
        base: delay before the first retry.
        max: what no delay exceeds; it may be less than ``base``.

    Raises:
        ArgumentError: ``base`` or ``max`` is no duration, negative or not finite, ``jitter`` is not one of
            ``Jitter``, or ``rng`` is missing or draws nothing.
    """

    rng: Random | None = field(default=None, repr=False)
    base: float = 0.025
    max: float = 20.0
    jitter: Jitter = Jitter.EQUAL
    _doublings: float = field(init=False, repr=False, compare=False)
    """After these many ``max`` is reached in any case."""

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
                f"rng is missing, and jitter={jitter.value!r} draws; pass random.Random()", parameter="rng"
            )
        object.__setattr__(self, "rng", rng)
        object.__setattr__(self, "base", check_duration(base, "base"))
        object.__setattr__(self, "max", check_duration(max, "max"))
        object.__setattr__(self, "jitter", jitter)
        # With e the exponent of max and b that of base, base * 2 ** (e - b + 1) >= 2 ** e > max.
        doublings = math.frexp(self.max)[1] - math.frexp(self.base)[1] + 1 if self.base else math.inf
        object.__setattr__(self, "_doublings", doublings)

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        """Return the delay in seconds before retry ``retry_attempt``, at most ``max``; 0 for 0.

        Raises:
            ArgumentError: ``retry_attempt`` is no count, or ``rng`` draws something outside [0, 1].
        """
        check_integer(retry_attempt, "retry_attempt")
        if retry_attempt == 0:
            return 0.0
        jitter = self.jitter
        if jitter is _DECORRELATED:
            return self._walk(retry_attempt)
        delay = self.max
        if retry_attempt <= self._doublings:
            # The exponent is small here, so that nothing overflows.
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
    """Draws each delay between ``base`` and three times the delay before it, up to a ceiling.

    A strategy tells it that delay, which the token has; so it keeps nothing between two calls, and any number of requests may
    share one. ``Jitter.DECORRELATED`` is Smithy's: it draws from ``[base, base + 3 * p)``, and the delay before anew.

    Args:
        rng: draws.
        base: the least delay, and what counts as the delay before the first one.
        max: what no delay exceeds; it may be less than ``base``.

    Raises:
        ArgumentError: ``base`` or ``max`` is no duration, negative or not finite, or ``rng`` draws nothing.

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
        """Return a delay in seconds for retry ``retry_attempt``, with the delays before it drawn anew; 0 for 0.

        Raises:
            ArgumentError: ``retry_attempt`` is no count, or ``rng`` draws something outside [0, 1].
        """
        check_integer(retry_attempt, "retry_attempt")
        delay = 0.0
        for _ in range(min(retry_attempt, WALK_MAX)):
            delay = self.compute_following_backoff_delay(delay)
        return delay

    def compute_following_backoff_delay(self, previous_delay: float) -> float:
        """Return the delay in seconds after one of ``previous_delay``; 0 before the first retry.

        Raises:
            ArgumentError: ``rng`` draws something outside [0, 1].
        """
        base, top = self.base, 3.0 * max(previous_delay, self.base)
        return min(self.max, base + (top - base) * draw_share(self.rng))


def draw_share(rng: Random) -> float:
    """Return what ``rng`` draws.

    Raises:
        ArgumentError: it is outside [0, 1].
    """
    share = rng.random()
    # 1 itself does no harm, and is what a test draws that wants the longest delays.
    if not (is_seconds(share) and share <= 1.0):
        raise ArgumentError(f"rng drew {shown(share)}; it must draw from [0, 1)", parameter="rng")
    return share


def check_backoff(backoff: RetryBackoffStrategy, parameter: str) -> RetryBackoffStrategy:
    """Return ``backoff``, or raise ArgumentError where it is no backoff strategy."""
    method = "compute_next_backoff_delay"
    return check_method(backoff, parameter, method, f"{method}(retry_attempt)")


def backoff_delay(backoff: RetryBackoffStrategy, retry_attempt: int, previous: float) -> float:
    """Return the seconds that ``backoff`` computes: from the delay before, where it is of that kind.

    Args:
        previous: seconds that were waited before the attempt that failed; 0 for a first one.

    Raises:
        ArgumentError: it computes something else. Whatever the strategy itself raises passes through.
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
