"""Parser of durations in a document with profiles: seconds, or a number with a unit, such as ``30 seconds``.

Source: HOCON, "Duration format", which the configuration of the Cassandra Java driver uses; decision D72.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction

from triclinium_core.checks import is_number
from triclinium_core.retry.cassandra.profiles.policy_settings import wrong
from triclinium_core.shown import shown

UNITS: Mapping[str, Fraction] = {
    name: seconds
    for seconds, names in (
        (Fraction(1, 10**9), ("ns", "nano", "nanos", "nanosecond", "nanoseconds")),
        (Fraction(1, 10**6), ("us", "micro", "micros", "microsecond", "microseconds")),
        (Fraction(1, 10**3), ("ms", "milli", "millis", "millisecond", "milliseconds")),
        (Fraction(1), ("s", "second", "seconds")),
        (Fraction(60), ("m", "minute", "minutes")),
        (Fraction(3_600), ("h", "hour", "hours")),
        (Fraction(86_400), ("d", "day", "days")),
    )
    for name in names
}
"""Length of each unit in seconds, by name. Names are case-sensitive, as in HOCON."""

TEXT_LENGTH_MAX = 64
"""Maximum number of characters of a duration. The longest timeout, written in nanoseconds, needs 30."""

_DURATION = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z]*)\s*")


def read_duration(value: object, path: str, *, needs_unit: bool) -> object:
    """Return the length of a duration with a unit, in seconds. Return any value that is not a string unchanged.

    Args:
        path: path of the value in the document.
        needs_unit: whether to refuse a number without a unit, except 0 and infinity. True for the driver's option
            names, because the driver reads a number as milliseconds.

    Raises:
        ArgumentError: a string is not a duration or has no unit, or a number lacks a required unit.
    """
    if isinstance(value, str):
        return _read_text(value, path)
    if needs_unit and is_number(value) and value not in (0, math.inf):
        raise _lacks_unit(value, path)
    return value


def _read_text(text: str, path: str) -> float:
    match = _DURATION.fullmatch(text) if len(text) <= TEXT_LENGTH_MAX else None
    if match is None or match[2] not in {*UNITS, ""}:
        raise wrong(
            path,
            f"={shown(text)} is not a duration such as '30 seconds' or '500ms'; units are ns, us, ms, s, m, h, d and their "
            "names, such as milliseconds",
        )
    number, unit = match.groups()
    if not unit:
        raise _lacks_unit(text, path)
    return float(Fraction(number) * UNITS[unit])


def _lacks_unit(value: object, path: str) -> Exception:
    return wrong(
        path,
        f"={shown(value)} has no unit, and the driver assumes milliseconds; write '30 seconds' or '500 milliseconds'",
    )
