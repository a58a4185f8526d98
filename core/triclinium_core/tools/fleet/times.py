"""Distributions of durations in seconds.

Each kind is a value that describes a distribution; ``sampler`` returns a function that draws from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, assert_never

from msgspec import Meta, Struct

from triclinium_core import errors
from triclinium_core.checks import check_number
from triclinium_core.retry.backoff import Random

SECONDS_LEAST, SECONDS_MAX = 1e-9, 1e9
"""Range of durations, a nanosecond to three decades. Sums of durations within it do not overflow."""


class FixedTime(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="fixed"):
    """The same duration each time.

    Raises:
        InvalidArgumentException: the value is out of range or of the wrong type.
    """

    seconds: float

    def __post_init__(self) -> None:
        check_number(self.seconds, "seconds", 0.0, SECONDS_MAX)


class ExponentialTime(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="exponential"):
    """Exponentially distributed durations: memoryless, and short ones are the most frequent.

    Raises:
        InvalidArgumentException: the value is out of range or of the wrong type.
    """

    mean: float

    def __post_init__(self) -> None:
        check_number(self.mean, "mean", 0.0, SECONDS_MAX)


class NormalTime(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="normal"):
    """Normally distributed durations. A negative draw loses its sign.

    Raises:
        InvalidArgumentException: a value is out of range or of the wrong type.
    """

    mean: float
    deviation: float
    """Standard deviation."""

    def __post_init__(self) -> None:
        check_number(self.mean, "mean", 0.0, SECONDS_MAX)
        check_number(self.deviation, "deviation", 0.0, SECONDS_MAX)


class UniformTime(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="uniform"):
    """Uniformly distributed durations between two limits.

    Raises:
        InvalidArgumentException: a value is out of range or of the wrong type, or the limits are in the wrong order.
    """

    least: float
    most: float

    def __post_init__(self) -> None:
        check_number(self.least, "least", 0.0, SECONDS_MAX)
        check_number(self.most, "most", 0.0, SECONDS_MAX)
        if self.most < self.least:
            raise errors.InvalidArgumentException(
                f"most={self.most!r} must not be less than least={self.least!r}", parameter="most"
            )


RandomTime = Annotated[
    FixedTime | ExponentialTime | NormalTime | UniformTime,
    Meta(description="How long something takes: fixed, exponential, normal or uniform."),
]
"""Any kind of distribution of durations."""


def sampler(time: FixedTime | ExponentialTime | NormalTime | UniformTime, rng: Random) -> Callable[[], float]:
    """Return a function that draws a duration in seconds."""
    draw, log = rng.random, math.log
    match time:
        case FixedTime(seconds=seconds):
            return lambda: seconds
        case ExponentialTime(mean=mean):
            return lambda: -mean * log(1.0 - draw())
        case NormalTime(mean=mean, deviation=deviation):
            # Box and Muller, "A Note on the Generation of Random Normal Deviates" (1958).
            turn, root, cosine = 2.0 * math.pi, math.sqrt, math.cos
            return lambda: abs(mean + deviation * root(-2.0 * log(1.0 - draw())) * cosine(turn * draw()))
        case UniformTime(least=least, most=most):
            return lambda: least + (most - least) * draw()
        case _:
            assert_never(time)
