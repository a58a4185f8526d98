"""Functions that read the JSON of services member by member."""

from __future__ import annotations

import json
from enum import StrEnum

import msgspec
import pytest
from hypothesis import given, strategies as st

from tests.core.services.answers import JSON
from tests.rows import rows
from triclinium_core.services import received
from triclinium_core.services.service_request import HttpResponse, MalformedAnswer, all_steps
from triclinium_core.shown import SERVER_TEXT_MAX


class Word(StrEnum):
    """Example enum of words that a service sends."""

    KNOWN = "known"


def members(text: str) -> received.Members:
    """Return the members of an object that has the one member ``a``."""
    return received.members_of(msgspec.Raw(f'{{"a":{text}}}'.encode()))


@rows(
    ("text", "integer", "number", "flag", "word"),
    [
        ("5", 5, 5.0, None, None),
        (str(received.INTEGER_MAX), received.INTEGER_MAX, float(received.INTEGER_MAX), None, None),
        (str(received.INTEGER_MAX + 1), None, float(received.INTEGER_MAX + 1), None, None),
        ("9" * 5000, None, None, None, None),
        ("1e999", None, None, None, None),
        ("1.5", None, 1.5, None, None),
        ("true", None, None, True, None),
        ("null", None, None, None, None),
        ('"known"', None, None, None, Word.KNOWN),
        ('"new"', None, None, None, "new"),
        ('"' + "x" * 101 + '"', None, None, None, None),
        ('""', None, None, None, None),
        (r'"\u001b[2J"', None, None, None, None),
    ],
)
def test_values(text: str, integer: int | None, number: float | None, flag: bool | None, word: str | None) -> None:
    """A reader returns a value only if the value has the reader's type and is within its limits."""
    found = members(text)

    assert (integer, number, flag, word) == (
        found.integer("a"),
        found.number("a"),
        found.get("a", bool),
        found.word("a", Word),
    )


def test_missing_members() -> None:
    """A missing member is read as None or as an empty value."""
    found = received.members_of(msgspec.Raw(b"{}"))

    assert (None, None, 0, "", {}, [], ()) == (
        found.integer("a"),
        found.number("a"),
        found.count("a"),
        found.text("a"),
        found.members("a").raw,
        found.array("a"),
        found.texts("a"),
    )
    assert not found.is_set("a")
    assert [] == found.no_arrays("a")


def read(array: list[msgspec.Raw]) -> tuple[tuple[received.Members, ...], int]:
    """Return the readable objects of an array, and the number of the other elements."""
    return all_steps(received.readable(array, received.in_one_step(received.members_of)))


ROW, OTHER = msgspec.Raw(b"{}"), msgspec.Raw(b"7")


def test_rows_that_are_refused() -> None:
    """Unreadable rows are counted, and raise MalformedAnswer only if no row is readable."""
    assert ((received.Members({}),), 1) == read([ROW, OTHER])
    assert ((), 0) == read([])
    with pytest.raises(MalformedAnswer):
        read([OTHER])


def test_unknown_parts() -> None:
    """Unknown parts are kept as few, short, printable texts, and the last text counts the parts without a text."""
    texts = received.unknown_parts([msgspec.Raw(b'"\x1b[2J\n' + b"x" * 5000)] * (received.UNKNOWN_MAX + 5))

    assert received.UNKNOWN_MAX + 1 == len(texts)
    assert all(text.isprintable() and len(text) <= SERVER_TEXT_MAX for text in texts)
    assert "5" in texts[-1]


@given(JSON | st.binary(max_size=64))
def test_any_body(body: object) -> None:
    """Members of any object can be read as any type, and a body that is not an object raises MalformedAnswer."""
    try:
        found = received.body_members(HttpResponse(200, body if isinstance(body, bytes) else json.dumps(body).encode()))
    except MalformedAnswer:
        return
    for name in found.raw:
        found.integer(name), found.number(name), found.text(name), found.word(name, Word), found.texts(name)
        found.objects(name), found.members(name), found.no_arrays(name), found.get(name, object)


def test_received_data_is_limited() -> None:
    """Too many rows or refused rows raise MalformedAnswer, and an array above its limit counts as unreadable."""
    assert received.ROWS_MAX == len(read([ROW] * received.ROWS_MAX)[0])
    for array in ([ROW] * (received.ROWS_MAX + 1), [ROW, *[OTHER] * (received.REFUSED_MAX + 1)]):
        with pytest.raises(MalformedAnswer):
            read(array)
    found = members(json.dumps(["x"] * (received.ITEMS_MAX + 1)))
    assert ([], (), 1) == (found.array("a"), found.texts("a"), len(found.no_arrays("a")))
    assert received.ITEMS_MAX == len(members(json.dumps(["x"] * received.ITEMS_MAX)).texts("a"))
