"""How long to wait before a retry: exponential, with four kinds of jitter, from the number of the retry alone.

Source: the Smithy Python retry design, "Backoff Strategy"; decision S7.
"""

from __future__ import annotations

import math
from enum import StrEnum, unique

from triclinium_core.errors import InvalidArgumentException
from triclinium_core.retry.backoff import Random, is_number
from triclinium_core.retry.smithy.bounds import require_count, require_random, require_seconds

WALK_MAX = 256
"""Steps that a decorrelated delay is walked, at most: a longer walk ends no differently, and would cost more draws."""

_FLOAT_EXPONENT_MAX = 1024


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


class ExponentialRetryBackoffStrategy:
    """Doubles the delay from retry to retry, up to a ceiling.

    It keeps nothing between two calls, so any number of requests may share one.

    Args:
        rng: draws for the jitter; only ``Jitter.NONE`` does without.
        base: seconds before the first retry.
        max: seconds that no delay exceeds; it may be less than ``base``.

    Raises:
        InvalidArgumentException: a number is negative, not finite or none, ``jitter`` is none of ``Jitter``, or ``rng``
            is missing or draws nothing.
    """

    __slots__ = ("_rng", "base", "jitter", "max")

    def __init__(
        self,
        *,
        rng: Random | None = None,
        base: float = 0.025,
        max: float = 20.0,
        jitter: Jitter = Jitter.EQUAL,
    ) -> None:
        self.base = float(require_seconds("base", base))
        self.max = float(require_seconds("max", max))
        if not isinstance(jitter, Jitter):
            raise InvalidArgumentException(
                f"jitter={jitter!r} must be one of {', '.join(f'Jitter.{kind.name}' for kind in Jitter)}",
                parameter="jitter",
            )
        if rng is None and jitter is not Jitter.NONE:
            raise InvalidArgumentException(
                f"rng is missing, and jitter={jitter.value!r} needs one; pass random.Random()", parameter="rng"
            )
        self.jitter = jitter
        self._rng = rng if rng is None else require_random(rng)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(base={self.base}, max={self.max}, jitter={self.jitter.value!r})"

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        """Return the delay in seconds before retry ``retry_attempt``, at most ``max``; 0 for 0.

        Raises:
            InvalidArgumentException: ``retry_attempt`` is no count, or ``rng`` draws something outside [0, 1].
        """
        require_count("retry_attempt", retry_attempt)
        if retry_attempt == 0:
            return 0.0
        if self.jitter is Jitter.DECORRELATED:
            return self._walk(retry_attempt)
        delay = self._exponential(retry_attempt)
        if self.jitter is Jitter.NONE:
            return delay
        share = self._draw()
        return (0.5 + 0.5 * share if self.jitter is Jitter.EQUAL else share) * delay

    def _exponential(self, retry_attempt: int) -> float:
        exponent = retry_attempt - 1
        # base is less than 2 ** e, so that a sum of exponents within a float's can be multiplied out.
        if self.base and math.frexp(self.base)[1] + exponent > _FLOAT_EXPONENT_MAX:
            return self.max
        return min(self.max, math.ldexp(self.base, exponent)) if self.base else 0.0

    def _walk(self, retry_attempt: int) -> float:
        delay = self.base
        for _ in range(min(retry_attempt, WALK_MAX)):
            delay = min(self.max, self.base + self._draw() * 3.0 * delay)
        return delay

    def _draw(self) -> float:
        assert self._rng is not None
        share = self._rng.random()
        # 1 itself does no harm, and is what a test draws that wants the longest delays.
        if not (is_number(share) and 0.0 <= share <= 1.0):
            raise InvalidArgumentException(f"rng drew {share!r}; it must draw from [0, 1)", parameter="rng")
        return share
