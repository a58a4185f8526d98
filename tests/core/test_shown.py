"""Values in messages: short, and without fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.rows import rows
from triclinium_core.shown import SERVER_TEXT_MAX, in_json, one_line, shown


class _Unspeakable:
    def __repr__(self) -> str:
        raise ZeroDivisionError("raise me")


@pytest.mark.parametrize("value", [None, 7, -0.5, "quorum", True, ["n1"], {"class": 1}])
def test_short_values(value: object) -> None:
    """They are shown as they are written."""
    assert repr(value) == shown(value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: "a" * 10_000,
        lambda: 10**4_000,
        lambda: 10**5_000,
        lambda: list(range(10_000)),
        lambda: {number: number for number in range(10_000)},
        lambda: _nested(3_000),
        lambda: ValueError("a" * 10_000),
        _Unspeakable,
        lambda: [_Unspeakable()],
    ],
)
def test_values_without_end(make: Callable[[], Any]) -> None:
    """They are cut, and whatever raises when it is shown is called by its type."""
    value = make()

    assert len(shown(value)) <= 250


def test_what_cannot_be_shown() -> None:
    """An integer that Python refuses to write out, and a value that raises."""
    assert "<int>" == shown(10**5_000)
    assert "[1, <int>]" == shown([1, -(10**5_000)])
    assert "_Unspeakable" in shown(_Unspeakable())


def _nested(depth: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    return nested


def test_texts_of_servers() -> None:
    """They are shown whole up to the limit, and cut to it beyond."""
    texts = ["", "x" * SERVER_TEXT_MAX, "x" * (SERVER_TEXT_MAX + 1), "x" * 10**6]

    assert [*texts[:2], *(["x" * (SERVER_TEXT_MAX - 3) + "..."] * 2)] == [*map(one_line, texts)]


def test_texts_of_servers_that_forge_lines_of_the_log() -> None:
    """Of them nothing is left but what can be printed, on one line."""
    assert "tr\u00e4ge WARNING [31m" == one_line("tr\u00e4ge\r\nWARNING\u2028\ud800\x1b[31m")


@rows(
    ("value", "expected"),
    [
        (None, "null"),
        (True, "a boolean"),
        (1, "a number"),
        (1.5, "a number"),
        ("", "a string"),
        ([], "an array"),
        ({}, "an object"),
        (b"", "bytes"),
    ],
)
def test_names_kinds_in_the_words_of_json(value: object, expected: str) -> None:
    """Whoever writes questions thinks in JSON, and a value from elsewhere has Python's word."""
    assert expected == in_json(value)
