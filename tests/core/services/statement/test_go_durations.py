"""Durations in Go's format."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core.services.statement.go_durations import SECONDS_MAX, go_duration, seconds_of


@rows(
    ("duration", "seconds"),
    [
        ("0", 0.0),
        ("0s", 0.0),
        ("75000ms", 75.0),
        ("22.998514ms", 0.022998514),
        ("1m3.5s", 63.5),
        ("1h0m0.5s", 3600.5),
        ("-1.5h", -5400.0),
        ("+2s", 2.0),
        (".5s", 0.5),
        ("1.s", 1.0),
        ("7ns", 7e-9),
        ("3us", 3e-6),
        ("3\u00b5s", 3e-6),
        ("3\u03bcs", 3e-6),
    ],
)
def test_reading(duration: str, seconds: float) -> None:
    """All units, several units in one duration, both micro signs, and the other forms that Go accepts are parsed."""
    assert math.isclose(seconds, seconds_of(duration), rel_tol=1e-12)


@rows("text", ["", "-", "5", "s", "1 s", "1x", "1s!", "1e3s", "٣s", "1m" * 40, "00" * 500_000 + "s"])
def test_invalid_durations(text: str) -> None:
    """An invalid duration of any length raises an error whose text is short."""
    with pytest.raises(ValueError, match="is not a duration") as caught:
        seconds_of(text)

    assert len(str(caught.value)) < 150


@rows(
    ("seconds", "duration"),
    [
        (75.0, "75000ms"),
        (2.5, "2500ms"),
        (0.0001, "1ms"),
        (0.0, "0ms"),
        (SECONDS_MAX + 10_000, None),
        (math.inf, None),
    ],
)
def test_writing(seconds: float, duration: str | None) -> None:
    """A duration is written in whole milliseconds, rounded up; a duration that is too large for Go gives None."""
    assert duration == go_duration(seconds)


@given(st.floats(0, 10_000_000))
def test_round_trip(seconds: float) -> None:
    """If a written duration is parsed, the result is the original time or at most a millisecond more."""
    duration = go_duration(seconds)

    assert duration is not None
    assert -1e-6 < seconds_of(duration) - seconds < 0.001001
