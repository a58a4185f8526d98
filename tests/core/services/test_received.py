"""Readers of JSON from services, one member at a time."""

from __future__ import annotations

import json
from enum import StrEnum

import msgspec
import pytest
from hypothesis import given, strategies as st

from tests.core.services.management.answers import JSON
from tests.rows import rows
from triclinium_core.services.received import (
    INTEGER_MAX,
    ITEMS_MAX,
    REFUSED_MAX,
    ROWS_MAX,
    UNKNOWN_MAX,
    Members,
    body_members,
    in_one_step,
    members_of,
    readable,
    unknown_parts,
)
from triclinium_core.services.service_request import HttpResponse, MalformedAnswer, all_steps
from triclinium_core.shown import SERVER_TEXT_MAX


class Word(StrEnum):
    """Words of a service."""

    KNOWN = "known"


def members(text: str) -> Members:
    """Return the members of an object with one member ``a``."""
    return members_of(msgspec.Raw(f'{{"a":{text}}}'.encode()))


@rows(
    ("text", "integer", "number", "flag", "word"),
    [
        ("5", 5, 5.0, None, None),
        (str(INTEGER_MAX), INTEGER_MAX, float(INTEGER_MAX), None, None),
        (str(INTEGER_MAX + 1), None, float(INTEGER_MAX + 1), None, None),
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
    """A value is returned only by the reader of its own type."""
    found = members(text)

    assert (integer, number, flag, word) == (
        found.integer("a"),
        found.number("a"),
        found.get("a", bool),
        found.word("a", Word),
    )


def test_what_is_missing() -> None:
    """A missing member is read as None or as an empty value."""
    found = members_of(msgspec.Raw(b"{}"))

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


def test_rows_that_are_refused() -> None:
    """Refused rows are counted, and raise MalformedAnswer only if no row is left."""
    row, other = msgspec.Raw(b"{}"), msgspec.Raw(b"7")

    assert ((Members({}),), 1) == all_steps(readable([row, other], in_one_step(members_of)))
    assert ((), 0) == all_steps(readable([], in_one_step(members_of)))
    with pytest.raises(MalformedAnswer):
        all_steps(readable([other], in_one_step(members_of)))


def test_unknown_parts() -> None:
    """Unknown parts have few, short, printable texts, and the last text counts the others."""
    texts = unknown_parts([msgspec.Raw(b'"\x1b[2J\n' + b"x" * 5000)] * (UNKNOWN_MAX + 5))

    assert UNKNOWN_MAX + 1 == len(texts)
    assert all(text.isprintable() and len(text) <= SERVER_TEXT_MAX for text in texts)
    assert "5" in texts[-1]


@given(JSON | st.binary(max_size=64))
def test_any_body(body: object) -> None:
    """Members of an object can be read as any type, and a body that is not an object raises MalformedAnswer."""
    try:
        found = body_members(HttpResponse(200, body if isinstance(body, bytes) else json.dumps(body).encode()))
    except MalformedAnswer:
        return
    for name in found.raw:
        found.integer(name), found.number(name), found.text(name), found.word(name, Word), found.texts(name)
        found.objects(name), found.members(name), found.no_arrays(name), found.get(name, object)


def test_too_much_of_anything() -> None:
    """Lists that are too long or have too many refused rows, and long arrays in an answer, are not read to the end."""
    row = msgspec.Raw(b"{}")

    assert ROWS_MAX == len(all_steps(readable([row] * ROWS_MAX, in_one_step(members_of)))[0])
    for rows_ in ([row] * (ROWS_MAX + 1), [row, *[msgspec.Raw(b"7")] * (REFUSED_MAX + 1)]):
        with pytest.raises(MalformedAnswer):
            all_steps(readable(rows_, in_one_step(members_of)))
    found = members(json.dumps(["x"] * (ITEMS_MAX + 1)))
    assert ([], (), 1) == (found.array("a"), found.texts("a"), len(found.no_arrays("a")))
    assert ITEMS_MAX == len(members(json.dumps(["x"] * ITEMS_MAX)).texts("a"))
