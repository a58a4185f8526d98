"""Texts and values from outside in messages: they become printable and bounded text, whatever they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core.shown import (
    ENTRIES_SHOWN_MAX,
    MESSAGE_MAX,
    NAME_SHOWN_MAX,
    SERVER_TEXT_MAX,
    VALUE_SHOWN_MAX,
    in_json,
    one_line,
    printable,
    printable_json,
    short_repr,
    shown,
    total_repr,
)


class _Unspeakable:
    def __repr__(self) -> str:
        raise ZeroDivisionError("raise me")


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
    """The text of a large or deeply nested value is cut, and so is that of a value whose repr raises."""
    value = make()

    assert len(shown(value)) <= 250


def test_values_without_a_repr() -> None:
    """A value whose repr raises, such as an integer that is too large for Python to write, is shown by its type."""
    assert "<int>" == shown(10**5_000)
    assert "[1, <int>]" == shown([1, -(10**5_000)])
    assert "_Unspeakable" in shown(_Unspeakable())


@rows(
    ("show", "value"),
    [
        *((shown, value) for value in (None, 7, -0.5, "quorum", True, ["n1"], {"class": 1})),
        *((short_repr, value) for value in (None, 7, 0.25, "k" * NAME_SHOWN_MAX, (), ("a",), ("a", "b\n"))),
        *((short_repr, value) for value in ((4040, 5000), frozenset(), frozenset({"KV_LOCKED"}))),
    ],
)
def test_short_values(show: Callable[[object], str], value: object) -> None:
    """A value within the limits is shown by its repr."""
    assert repr(value) == show(value)


@rows(
    ("value", "entries"),
    [
        ("k" * (NAME_SHOWN_MAX + 1), 1),
        (("k" * 10_000,), 1),
        (("k",) * 10_000, ENTRIES_SHOWN_MAX),
        (frozenset(map(str, range(10_000))), ENTRIES_SHOWN_MAX),
        (10**1_000, 1),
    ],
)
def test_long_representations(value: object, entries: int) -> None:
    """The short repr cuts a long text, and a collection after some entries."""
    assert "..." in short_repr(value)
    assert len(short_repr(value)) <= entries * (NAME_SHOWN_MAX + 4) + len("frozenset({...})")


def test_the_representation_of_nested_entries() -> None:
    """The short repr of a deeply nested value is short and raises no RecursionError."""
    assert len(short_repr((_nested(3_000),))) <= VALUE_SHOWN_MAX + len("(,)")


def _nested(depth: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    return nested


def test_texts_of_servers() -> None:
    """A server's text is complete up to the limit and cut above it."""
    texts = ["", "x" * SERVER_TEXT_MAX, "x" * (SERVER_TEXT_MAX + 1), "x" * 10**6]

    assert [*texts[:2], *(["x" * (SERVER_TEXT_MAX - 3) + "..."] * 2)] == [*map(one_line, texts)]


def test_texts_of_servers_are_one_line() -> None:
    """In a server's text, white space becomes one space, and other non-printable characters become escapes."""
    assert "tr\u00e4ge WARNING \\ud800\\x1b[31m" == one_line("tr\u00e4ge\r\nWARNING\u2028\ud800\x1b[31m")


ANY_TEXT = st.text(st.characters(codec=None), max_size=50)


@given(ANY_TEXT, st.integers(10, 60))
def test_foreign_text_is_printable(text: str, most: int) -> None:
    """Any text becomes printable and bounded; a second pass changes nothing."""
    once = printable(text, most)

    assert once.isprintable()
    assert len(once) <= most
    assert once == printable(once, most)
    assert one_line(text).isprintable()


def test_a_long_message_keeps_its_end() -> None:
    """A message above the limit is cut in the middle, because its end contains the next step."""
    cut = printable("subject: " + "x" * MESSAGE_MAX + ": the next step")

    assert MESSAGE_MAX == len(cut)
    assert cut.startswith("subject: ")
    assert cut.endswith(": the next step")


@given(st.lists(ANY_TEXT))
def test_printable_json_means_the_same(texts: list[str]) -> None:
    """Escaping JSON does not change its value, and keeps line breaks between values."""
    # In JSON, a pair of surrogates is one character.
    texts = [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in texts]
    encoded = printable_json(json.dumps(texts, ensure_ascii=False, indent=1))

    assert texts == json.loads(encoded)
    assert encoded.replace("\n", "").isprintable()


class _Loud:
    def __repr__(self) -> str:
        return "\x1b[31m\n" * VALUE_SHOWN_MAX


def test_the_representation_of_a_value_is_foreign_text() -> None:
    """If a repr contains escape characters or line breaks, the shown text is still printable and bounded."""
    assert shown(_Loud()).isprintable()
    assert len(shown([_Loud()])) <= VALUE_SHOWN_MAX


class _Half:
    name: str

    @total_repr
    def __repr__(self) -> str:
        return f"<half {self.name}>"


def test_the_representation_of_a_half_built_object() -> None:
    """The repr of an object is printable, even if it has no attributes or a name with an escape character."""
    bare, named = _Half(), _Half()
    named.name = "\x1b"

    assert ("<_Half: not initialised>", r"<half \x1b>") == (repr(bare), repr(named))


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
    """A value that JSON can express is described by its JSON type, and any other value by its Python type."""
    assert expected == in_json(value)
