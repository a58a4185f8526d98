"""Intervals between the operations of a client, and changes in the demand over time.

Demand is measured in seconds of the fleet's usual demand. A trend converts these seconds to clock time: if the demand
doubles, one second of usual demand takes half a second of the clock.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import assert_never

from msgspec import Struct

from triclinium_core import errors
from triclinium_core.checks import check_flag, check_integer, check_number
from triclinium_core.tools.fleet.times import SECONDS_MAX, FixedTime, RandomTime

OPERATIONS_MAX = 20_000_000
"""Maximum number of operations of one simulation: half an hour of work, and some gigabytes in the worst case."""
FACTOR_MAX = 1e6
"""Maximum multiple of the usual demand."""


class EvenArrivals(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="even"):
    """Even arrivals: one operation per client and period, no two clients at the same moment (decision F7)."""


class PoissonArrivals(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="poisson"):
    """Random arrivals: one operation per client and period on average, independent of earlier operations.

    Raises:
        InvalidArgumentException: a value has the wrong type.
    """

    at_once: bool = False
    """Whether each client begins one more operation at 0."""

    def __post_init__(self) -> None:
        check_flag(self.at_once, "at_once")


class ClosedLoop(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="closed_loop"):
    """Closed loop: the next operation of a client begins after the previous one has ended, the first at 0.

    The period of the fleet has no effect.

    Raises:
        InvalidArgumentException: a value is out of range or of the wrong type.
    """

    operations: int = 1
    """Number of operations of each client; fewer if the duration ends earlier."""
    pause: RandomTime = FixedTime(seconds=0.0)
    """Time from the end of an operation to the beginning of the client's next operation."""

    def __post_init__(self) -> None:
        check_integer(self.operations, "operations", 1, OPERATIONS_MAX)


Arrivals = EvenArrivals | PoissonArrivals | ClosedLoop
"""Any kind of intervals between the operations of a client."""


class Steady(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="steady"):
    """Constant demand."""


class Spike(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="spike"):
    """Usual demand, except between two instants.

    Raises:
        InvalidArgumentException: the end is not after the start, or a value is out of range or of the wrong type.
    """

    start: float
    end: float
    factor: float
    """Demand between start and end, as a multiple of the usual demand. It may be below 1."""

    def __post_init__(self) -> None:
        check_number(self.start, "start", 0.0, SECONDS_MAX)
        check_number(self.end, "end", 0.0, SECONDS_MAX)
        check_number(self.factor, "factor", 0.0, FACTOR_MAX)
        if self.end <= self.start:
            raise errors.InvalidArgumentException(
                f"end={self.end!r} of a spike must be later than its start, {self.start!r}", parameter="end"
            )


class Ramp(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="ramp"):
    """Piecewise linear demand, constant before the first point and after the last.

    Raises:
        InvalidArgumentException: there are no points, the seconds of the points do not increase, or a value is out of
            range or of the wrong type.
    """

    points: tuple[tuple[float, float], ...]
    """Instants in seconds, each with the demand as a multiple of the usual demand."""

    def __post_init__(self) -> None:
        if not isinstance(self.points, tuple) or not all(
            isinstance(point, tuple) and len(point) == 2 for point in self.points
        ):
            raise errors.InvalidArgumentException(
                f"points={self.points!r} must be a tuple of pairs: seconds, and a multiple of the usual demand",
                parameter="points",
            )
        for seconds, factor in self.points:
            check_number(seconds, "points", 0.0, SECONDS_MAX)
            check_number(factor, "points", 0.0, FACTOR_MAX)
        if not self.points or any(
            later <= earlier for (earlier, _), (later, _) in zip(self.points, self.points[1:], strict=False)
        ):
            raise errors.InvalidArgumentException(
                f"points={self.points!r} must have at least one pair, in increasing order of seconds",
                parameter="points",
            )


Trend = Steady | Spike | Ramp
"""Any kind of change in the demand over time."""


def corners(trend: Trend) -> Sequence[tuple[float, float]]:
    """Return the corners of the demand, starting at 0: instants in seconds, each with a multiple of the usual demand.

    Two corners at the same instant are a step.
    """
    match trend:
        case Steady():
            return ((0.0, 1.0),)
        case Spike(start=start, end=end, factor=factor):
            return ((0.0, 1.0), (start, 1.0), (start, factor), (end, factor), (end, 1.0))
        case Ramp(points=points):
            return ((0.0, points[0][1]), *points)
        case _:
            assert_never(trend)


def demanded(trend: Trend, duration: float) -> float:
    """Return the demand of ``duration`` seconds of the clock, in seconds of the usual demand."""
    total = 0.0
    lines = corners(trend)
    for (start, low), (end, high) in zip(lines, (*lines[1:], (math.inf, lines[-1][1])), strict=True):
        length = min(end, duration) - start
        if length > 0.0:
            slope = (high - low) / (end - start)
            total += length * (low + 0.5 * slope * length)
    return total


def clock_of(trend: Trend) -> Callable[[float], float]:
    """Return a function that converts seconds of the usual demand to seconds of the clock, ``inf`` if never reached."""
    if isinstance(trend, Steady):
        return lambda demand: demand
    lines = corners(trend)
    reached = [demanded(trend, start) for start, _ in lines]

    def clock(demand: float) -> float:
        line = bisect_right(reached, demand) - 1
        start, low = lines[line]
        end, high = lines[line + 1] if line + 1 < len(lines) else (math.inf, low)
        slope = (high - low) / (end - start) if end > start else 0.0
        rest = demand - reached[line]
        if rest <= 0.0:
            return start
        # rest = low * x + slope * x² / 2, solved without cancellation.
        speed = low + math.sqrt(max(low * low + 2.0 * slope * rest, 0.0))
        return start + 2.0 * rest / speed if speed > 0.0 else math.inf

    return clock
