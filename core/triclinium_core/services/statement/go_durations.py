"""Durations in the format of Go's ``time.Duration``, such as ``1m3.5s``, for query and analytics.

Source: SDK-RFC 0056 "ICluster#Query" ("go format"); the documentation of Go's ``time.ParseDuration``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

SECONDS_OF_UNIT: Mapping[str, float] = {
    "ns": 1e-9,
    "us": 1e-6,
    "\u00b5s": 1e-6,
    "\u03bcs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
"""Seconds of each unit. The micro sign, the Greek letter mu and ``u`` all mean micro."""

SECONDS_MAX = (2**63 - 1) / 1e9
"""Longest duration of Go, which counts nanoseconds in 64 bits: 292 years."""

TEXT_SIZE_MAX = 64
"""Maximum length of a duration in characters; Go writes at most 25."""

_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)", re.ASCII)


def go_duration(seconds: float) -> str | None:
    """Return a duration as text in milliseconds, rounded up; None, for no limit, if it exceeds ``SECONDS_MAX``."""
    return f"{math.ceil(seconds * 1000)}ms" if seconds <= SECONDS_MAX else None


def seconds_of(duration: str) -> float:
    """Return the number of seconds of a Go duration.

    Raises:
        ValueError: ``duration`` is not a duration of Go, or has more than ``TEXT_SIZE_MAX`` characters.
    """
    sign, text = (-1.0, duration[1:]) if duration[:1] == "-" else (1.0, duration.removeprefix("+"))
    if text == "0":
        return 0.0
    position, seconds = 0, 0.0
    while position < len(text) <= TEXT_SIZE_MAX:
        part = _PART.match(text, position)
        if part is None:
            break
        seconds += float(part[1]) * SECONDS_OF_UNIT[part[2]]
        position = part.end()
    if not text or position < len(text):
        raise ValueError(f"{duration[:TEXT_SIZE_MAX]!r} is not a duration such as 1m3.5s")
    return sign * seconds
