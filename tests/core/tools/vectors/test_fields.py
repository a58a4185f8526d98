"""Fields of a question: the accepted values, and the errors for all others."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core.tools.vectors.fields import MalformedQuestion, Question, parse_status, quote


def read_pet(question: Question, name: str) -> int:
    """Return the number of a pet's legs."""
    return question.choice(name, {"cat": 4, "hen": 2})


Reader = Callable[[Question, str], object]


@rows(
    ("read", "value", "expected"),
    [
        (Question.text, "", ""),
        (Question.text, "get", "get"),
        (read_pet, "hen", 2),
        (Question.flag, True, True),
        (Question.flag, False, False),
        (Question.number, 0, 0.0),
        (Question.number, 2500, 2500.0),
        (Question.number, 0.25, 0.25),
        (Question.count, 0, 0),
        (Question.count, 15000, 15000),
        (Question.http_status, 100, 100),
        (Question.http_status, 599, 599),
    ],
)
def test_reads(read: Reader, value: object, expected: object) -> None:
    """A field of the right type and range gives its value, and a name gives the value that it stands for."""
    assert expected == read(Question({"field": value}), "field")


@rows(
    ("read", "value", "message"),
    [
        (Question.text, 1, "field is a number, expected a string"),
        (Question.text, None, "field is null, expected a string"),
        (read_pet, ["cat"], "field is an array, expected a string"),
        (read_pet, "dog", "field 'dog' is not known; expected one of cat, hen"),
        (read_pet, "d" * 61, f"field '{'d' * 60}'... is not known; expected one of cat, hen"),
        (Question.flag, 1, "field is a number, expected true or false"),
        (Question.flag, "true", "field is a string, expected true or false"),
        (Question.number, True, "field is a boolean, expected a number"),
        (Question.number, {}, "field is an object, expected a number"),
        (Question.number, -1, "field is -1.0, expected a finite number of at least 0"),
        (Question.number, math.nan, "field is nan, expected a finite number of at least 0"),
        (Question.number, math.inf, "field is inf, expected a finite number of at least 0"),
        (Question.number, 10**400, "field is too large for a 64-bit float"),
        (Question.count, 1.5, "field is 1.5, expected a whole number"),
        (Question.count, 1.0, "field is 1.0, expected a whole number"),
        (Question.count, False, "field is a boolean, expected a number"),
        (Question.count, -1, "field is -1.0, expected a finite number of at least 0"),
        (Question.http_status, 99, "field is 99, expected 100 to 599"),
        (Question.http_status, 600, "field is 600, expected 100 to 599"),
    ],
)
def test_refuses(read: Reader, value: object, message: str) -> None:
    """The error names the field, its value or type, and the expected one."""
    with pytest.raises(MalformedQuestion) as caught:
        read(Question({"field": value}), "field")

    assert message == str(caught.value)


@rows("read", [Question.text, read_pet, Question.flag, Question.number, Question.count])
def test_refuses_a_missing_field(read: Reader) -> None:
    """The error names the missing field."""
    with pytest.raises(MalformedQuestion, match="^field is missing$"):
        read(Question({"other": 1}), "field")


@given(status=st.integers(0, 0xFFFF), width=st.integers(1, 8))
def test_parses_a_status(status: int, width: int) -> None:
    """Each 16-bit status is parsed, in either case and with leading zeros."""
    text = f"0x{status:0{width}x}"

    assert (status, status) == (parse_status(text, "status"), parse_status(text.upper(), "status"))


@rows(
    ("texts", "fact"),
    [
        (["", "0", "0x", "86", "134", "x86", "0xgg", "0x8_6", "0x 86", "-0x86", "0x٨", "0x86 "], 'such as "0x86"'),
        (["0x10000", "0xFFFFFFFF"], "the largest is 0xffff"),
    ],
)
def test_refuses_an_invalid_status(texts: list[str], fact: str) -> None:
    """The error shows how to write a status, or names the largest one."""
    for text in texts:
        with pytest.raises(MalformedQuestion) as caught:
            parse_status(text, "events[3]")

        assert str(caught.value).startswith(f"events[3] {text!r} ")
        assert fact in str(caught.value)


def test_quotes() -> None:
    """A short text is quoted completely; a longer one is cut after 60 characters."""
    assert ["'a\\n'", f"'{'b' * 60}'", f"'{'c' * 60}'..."] == [quote(text) for text in ("a\n", "b" * 60, "c" * 1000)]


def test_items_are_read_in_order() -> None:
    """Each item of an array is read like a field, in order."""
    assert [2, 0] == Question({"counts": [2, 0]}).each("counts", "whole numbers", Question.count)
    assert [] == Question({"counts": []}).each("counts", "whole numbers", Question.count)


@rows(
    ("question", "message"),
    [
        ({}, "counts is missing"),
        ({"counts": "12"}, "counts is a string, expected an array of whole numbers"),
        ({"counts": [1, None]}, "counts[1] is null, expected a number"),
    ],
)
def test_refuses_items(question: dict[str, object], message: str) -> None:
    """The error names the field, and an invalid item by its index."""
    with pytest.raises(MalformedQuestion) as caught:
        Question(question).each("counts", "whole numbers", Question.count)

    assert message == str(caught.value)
