"""Distributions of durations. Seconds.

Each kind is a value that says what is drawn; ``sampler`` returns what draws it.
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
"""A nanosecond to three decades: no sum of durations leaves what a float holds, nor is it lost beside another."""


class FixedTime(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="fixed"):
    """The same each time.

    Raises:
        InvalidArgumentException: the value is out of range, or of another type.
    """

    seconds: float

    def __post_init__(self) -> None:
        check_number(self.seconds, "seconds", 0.0, SECONDS_MAX)


class ExponentialTime(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="exponential"):
    """Short ones are the most frequent, and how long it took so far says nothing about how long it will take.

    Raises:
        InvalidArgumentException: the value is out of range, or of another type.
    """

    mean: float

    def __post_init__(self) -> None:
        check_number(self.mean, "mean", 0.0, SECONDS_MAX)


class NormalTime(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="normal"):
    """Around a mean; a draw below zero counts without its sign.

    Raises:
        InvalidArgumentException: a value is out of range, or of another type.
    """

    mean: float
    deviation: float
    """The standard deviation."""

    def __post_init__(self) -> None:
        check_number(self.mean, "mean", 0.0, SECONDS_MAX)
        check_number(self.deviation, "deviation", 0.0, SECONDS_MAX)


class UniformTime(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="uniform"):
    """Any time between two limits, with equal chances.

    Raises:
        InvalidArgumentException: a value is out of range or of another type, or the limits are in the wrong order.
    """

    least: float
    most: float

    def __post_init__(self) -> None:
        check_number(self.least, "least", 0.0, SECONDS_MAX)
        check_number(self.most, "most", 0.0, SECONDS_MAX)
        if self.most < self.least:
            raise errors.InvalidArgumentException(
                f"most={self.most!r} must not be below least={self.least!r}", parameter="most"
            )


RandomTime = Annotated[
    FixedTime | ExponentialTime | NormalTime | UniformTime,
    Meta(description="How long something takes: fixed, exponential, normal or uniform."),
]
"""Any of them."""


def sampler(time: FixedTime | ExponentialTime | NormalTime | UniformTime, rng: Random) -> Callable[[], float]:
    """Return what draws such a time, in seconds, each time it is called."""
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
