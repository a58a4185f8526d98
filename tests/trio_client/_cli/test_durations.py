"""Options that are durations."""

from __future__ import annotations

import math

import click
import pytest

from tests.rows import rows
from triclinium._cli._durations import Duration


@rows(
    ("kind", "text", "expected"),
    [
        (Duration(), "0", 0.0),
        (Duration(), "2.5", 2.5),
        (Duration(), "1e9", 1e9),
        (Duration(), "inf", math.inf),
        (Duration(min_open=True), "0.1", 0.1),
        (Duration(endless=False), "0.1", 0.1),
    ],
)
def test_takes(kind: Duration, text: str, expected: float) -> None:
    """Numbers from 0 on, and infinity where it makes sense."""
    assert expected == kind(text)


@rows(
    ("kind", "text", "expected"),
    [
        (Duration(), "nan", "number"),
        (Duration(endless=False), "nan", "finite"),
        (Duration(endless=False), "inf", "finite"),
        (Duration(), "-inf", "x>=0"),
        (Duration(), "-1", "x>=0"),
        (Duration(min_open=True), "0", "x>0"),
        (Duration(), "1e10", "1e+09"),
        (Duration(unit=0.001), "1e308", "1e+12"),
        (Duration(), "soon", "'soon'"),
    ],
)
def test_refuses(kind: Duration, text: str, expected: str) -> None:
    """What is no number, or none that can have passed."""
    with pytest.raises(click.BadParameter) as caught:
        kind(text)

    assert expected in caught.value.message
