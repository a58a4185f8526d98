"""What callers give as a number or as a duration, checked in one way everywhere (decision D31)."""

from __future__ import annotations

import math
import sys
from datetime import timedelta

from triclinium_core.errors import InvalidArgumentException
from triclinium_core.shown import shown

Duration = float | timedelta
"""A length of time: seconds, or a ``datetime.timedelta``. What is made of one keeps seconds."""


def is_number(value: object) -> bool:
    """Tell whether ``value`` is an int or a float; a bool is none, nor is an int that no float can hold.

    Such an int raises OverflowError as soon as it is added to an instant.
    """
    if isinstance(value, int):
        return not isinstance(value, bool) and -sys.float_info.max <= value <= sys.float_info.max
    return isinstance(value, float)


def in_seconds(duration: Duration) -> float:
    """Return the seconds of a duration. What is neither number nor duration comes back as it is, for its check."""
    return duration.total_seconds() if isinstance(duration, timedelta) else duration


def require_duration(
    name: str, duration: Duration, *, above_zero: bool = False, most: float = sys.float_info.max, endless: bool = False
) -> float:
    """Return the seconds of a duration.

    Args:
        name: of the parameter.
        duration: as it was given.
        above_zero: whether 0 is refused.
        most: seconds.
        endless: whether ``math.inf`` is taken, for no limit.

    Raises:
        InvalidArgumentException: it is no duration, or out of range.
    """
    if type(duration) is float and 0.0 < duration <= most:
        return duration
    seconds = in_seconds(duration)
    is_long_enough = is_number(seconds) and (seconds > 0 or (seconds == 0 and not above_zero))
    if is_long_enough and (seconds <= most or (endless and seconds == math.inf)):
        return seconds
    limits = ["more than 0" if above_zero else "at least 0"]
    limits += ["finite"] if most == sys.float_info.max and not endless else []
    limits += [f"at most {most!r}"] if most < sys.float_info.max else []
    limits += ["or math.inf"] if endless else []
    raise InvalidArgumentException(
        f"{name}={shown(duration)} must be a number of seconds or a timedelta: {', '.join(limits)}", parameter=name
    )
