"""Parsing of arguments: names, suggestions, and durations."""

from __future__ import annotations

import math
from collections.abc import Collection

import click
import pytest

from tests.rows import rows
from triclinium._cli._input import DurationParameter, WrongInput, choose, suggestion

CHOICES = {"get_and_lock": 1, "get_and_touch": 2, "UPSERT": 3}
MANY = [f"choice_{number:02}" for number in range(13)]


@pytest.mark.parametrize("name", ["get_and_lock", "get-and-lock", "GET_AND_LOCK", " Get-And_Lock "])
def test_names_are_parsed_leniently(name: str) -> None:
    """Case, surrounding blanks, and the choice of hyphen or underscore do not matter."""
    assert 1 == choose(name, CHOICES, "operation")


def test_a_misspelled_name_gets_a_suggestion() -> None:
    """An unknown name is an error that suggests the similar choices in their own spelling."""
    with pytest.raises(WrongInput) as caught:
        choose("upsrt", CHOICES, "operation")

    assert "'upsrt'; did you mean UPSERT?" in caught.value.message
    assert 2 == caught.value.exit_code


@rows(
    ("name", "choices", "expected"),
    [
        ("get_and", ["get_and_touch", *CHOICES, "get"], "; did you mean get_and_lock or get_and_touch?"),
        ("xyz", CHOICES, "; choose from get_and_lock, get_and_touch, UPSERT"),
        ("xyz", MANY, "; --help lists them"),
    ],
)
def test_suggestions(name: str, choices: Collection[str], expected: str) -> None:
    """At most two similar choices are suggested; without any, a few choices are listed, and many are not."""
    assert expected == suggestion(name, choices)


def test_alternative_to_many_choices() -> None:
    """Instead of many choices, the suggestion may give an alternative."""
    assert "; write a number" == suggestion("xyz", MANY, "write a number")


@rows(
    ("kind", "text", "expected"),
    [
        (DurationParameter(), "0", 0.0),
        (DurationParameter(), "2.5", 2.5),
        (DurationParameter(), "1e9", 1e9),
        (DurationParameter(), "inf", math.inf),
        (DurationParameter(min_open=True), "0.1", 0.1),
        (DurationParameter(endless=False), "0.1", 0.1),
    ],
)
def test_valid_durations(kind: DurationParameter, text: str, expected: float) -> None:
    """A duration is a number from 0 up, or infinity if the option allows it."""
    assert expected == kind(text)


@rows(
    ("kind", "text", "expected"),
    [
        (DurationParameter(), "nan", "number"),
        (DurationParameter(endless=False), "nan", "finite"),
        (DurationParameter(endless=False), "inf", "finite"),
        (DurationParameter(), "-inf", "x>=0"),
        (DurationParameter(), "-1", "x>=0"),
        (DurationParameter(min_open=True), "0", "x>0"),
        (DurationParameter(), "1e10", "1e+09"),
        (DurationParameter(unit=0.001), "1e308", "1e+12"),
        (DurationParameter(), "soon", "'soon'"),
    ],
)
def test_invalid_durations(kind: DurationParameter, text: str, expected: str) -> None:
    """Text that is not a number, and a duration outside the limits of the option, are refused."""
    with pytest.raises(click.BadParameter) as caught:
        kind(text)

    assert expected in caught.value.message
