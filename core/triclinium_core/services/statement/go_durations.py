"""Lengths of time in the format of Go's ``time.Duration``, which query and analytics write and read: ``1m3.5s``, ``75000ms``.

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
"""A microsecond is written with the micro sign, with the Greek letter, or with ``u``."""

SECONDS_MAX = (2**63 - 1) / 1e9
"""The longest that Go can count, in nanoseconds of 64 bits: 292 years."""

TEXT_SIZE_MAX = 64
"""Characters; Go writes at most 28."""

_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)", re.ASCII)


def go_duration(seconds: float) -> str | None:
    """Return whole milliseconds, rounded up; None for more than Go can count, which means no limit."""
    return f"{math.ceil(seconds * 1000)}ms" if seconds <= SECONDS_MAX else None


def seconds_of(duration: str) -> float:
    """Return the seconds of a duration as Go writes it.

    Raises:
        ValueError: it is not a duration.
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
