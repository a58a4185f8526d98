"""Options that are durations."""

from __future__ import annotations

import math

import click
import pytest

from triclinium._cli._durations import Duration


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (Duration(), "nan", "nan is not a number."),
        (Duration(endless=False), "nan", "nan is not a finite number."),
        (Duration(endless=False), "inf", "inf is not a finite number."),
        (Duration(), "-inf", "-inf is not in the range x>=0."),
        (Duration(), "-1", "-1.0 is not in the range x>=0."),
        (Duration(min_open=True), "0", "0.0 is not in the range x>0."),
        (Duration(), "1e10", "1e+10 is more than 1e+09."),
        (Duration(unit=0.001), "1e308", "1e+308 is more than 1e+12."),
        (Duration(), "soon", "'soon' is not a valid number."),
    ],
)
def test_refuses(kind: Duration, text: str, expected: str) -> None:
    """What is no number, or none that can have passed."""
    with pytest.raises(click.BadParameter) as caught:
        kind(text)

    assert expected == caught.value.message
