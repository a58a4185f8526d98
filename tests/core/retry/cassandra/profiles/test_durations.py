"""Durations that are written as a number and a unit."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest

from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.cassandra.profiles.durations import TEXT_LENGTH_MAX, UNITS, read_duration

NAMES = {
    1e-9: "ns nano nanos nanosecond nanoseconds",
    1e-6: "us micro micros microsecond microseconds",
    1e-3: "ms milli millis millisecond milliseconds",
    1.0: "s second seconds",
    60.0: "m minute minutes",
    3600.0: "h hour hours",
    86400.0: "d day days",
}
"""Number of seconds in each unit of HOCON, with the names of the unit."""


@rows(("seconds", "names"), list(NAMES.items()))
def test_each_unit(seconds: float, names: str) -> None:
    """A number with any name of a unit is read as seconds, with or without whitespace, as an integer or a fraction."""
    for name in names.split():
        assert seconds == read_duration(f"1{name}", "x", needs_unit=True)
        assert seconds == read_duration(f" 1  {name}\n", "x", needs_unit=True)
        assert 2.5 * seconds == pytest.approx(read_duration(f"2.5 {name}", "x", needs_unit=True))


def test_no_other_units() -> None:
    """Only the units of HOCON are accepted."""
    assert {name for names in NAMES.values() for name in names.split()} == set(UNITS)


@rows(
    "text",
    [
        "",
        " ",
        "seconds",
        "1 S",
        "1 Seconds",
        "1 w",
        "-1 s",
        "+1 s",
        "1,5 s",
        "1 s 1 s",
        "1 s;",
        ".",
        ". s",
        "1e3 s",
        "\u0661 s",
    ],
)
def test_an_invalid_duration(text: str) -> None:
    """A string that is not a number with a known unit is refused; the error has its path in the document."""
    with refusal_of("a.b"):
        read_duration(text, "a.b", needs_unit=False)


@rows(("value", "needs_unit"), [("30", False), ("30", True), ("1.5", False), (30, True), (0.5, True)])
def test_a_duration_without_its_unit(value: object, needs_unit: bool) -> None:
    """A string without a unit is always refused; a number is refused if a unit is required."""
    with pytest.raises(ArgumentError, match="has no unit"):
        read_duration(value, "a.b", needs_unit=needs_unit)


@rows(
    ("value", "needs_unit"),
    [
        *((value, False) for value in (30, 0.5, math.inf, 0, timedelta(seconds=1), None, True, [1])),
        *((value, True) for value in (math.inf, 0, timedelta(seconds=1), True)),
    ],
)
def test_other_values_stay_as_they_are(value: object, needs_unit: bool) -> None:
    """A non-string is returned unchanged, unless it is a number, neither 0 nor infinity, that needs a unit."""
    assert value is read_duration(value, "a.b", needs_unit=needs_unit)


def test_the_longest_text() -> None:
    """A string of the maximum length is read, and a longer string is refused."""
    longest = f"{'9' * (TEXT_LENGTH_MAX - 1)}s"

    assert 1e63 == read_duration(longest, "a", needs_unit=True)
    with pytest.raises(ArgumentError):
        read_duration(f"9{longest}", "a", needs_unit=True)
