"""The fields of a question, each read with its type and range checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeVar

T = TypeVar("T")

Answer = dict[str, object]
"""The answer to one question, as JSON values."""

Ask = Callable[[Mapping[str, object]], Answer]
"""What answers one kind of question; MalformedQuestion says which field cannot be understood."""

STATUS_MAX = 0xFFFF
HTTP_STATUS_MIN, HTTP_STATUS_MAX = 100, 599
_HEXADECIMAL_DIGITS = frozenset("0123456789abcdefABCDEF")
_QUOTED_LENGTH_MAX = 60

_JSON_WORDS: dict[type, str] = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}


class MalformedQuestion(ValueError):
    """The question cannot be understood; the text says what is wrong, and where."""


def in_json(value: object) -> str:
    """Return the kind of ``value`` in JSON's words."""
    return _JSON_WORDS.get(type(value), type(value).__name__)


def quote(text: str) -> str:
    """Return ``text`` in quotes, shortened where it is too long for a message."""
    return repr(text) if len(text) <= _QUOTED_LENGTH_MAX else f"{text[:_QUOTED_LENGTH_MAX]!r}..."


def require(question: Mapping[str, object], name: str) -> object:
    """Return the field ``name``.

    Raises:
        MalformedQuestion: it is missing.
    """
    if name not in question:
        raise MalformedQuestion(f"{name} is missing")
    return question[name]


def require_text(question: Mapping[str, object], name: str) -> str:
    """Return the field ``name``, a string.

    Raises:
        MalformedQuestion: it is missing or of another type.
    """
    value = require(question, name)
    if not isinstance(value, str):
        raise MalformedQuestion(f"{name} is {in_json(value)}, expected a string")
    return value


def require_choice(question: Mapping[str, object], name: str, choices: Mapping[str, T]) -> T:
    """Return what the field ``name``, a string, stands for in ``choices``.

    Raises:
        MalformedQuestion: it is missing, of another type, or none of the choices.
    """
    value = require_text(question, name)
    if value not in choices:
        raise MalformedQuestion(f"{name} {quote(value)} is not known; expected one of {', '.join(choices)}")
    return choices[value]


def require_flag(question: Mapping[str, object], name: str) -> bool:
    """Return the field ``name``, true or false.

    Raises:
        MalformedQuestion: it is missing or of another type.
    """
    value = require(question, name)
    if not isinstance(value, bool):
        raise MalformedQuestion(f"{name} is {in_json(value)}, expected true or false")
    return value


def require_number(question: Mapping[str, object], name: str) -> float:
    """Return the field ``name``, a number of at least 0 that a float can hold.

    Raises:
        MalformedQuestion: it is missing, of another type or out of range.
    """
    value = require(question, name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MalformedQuestion(f"{name} is {in_json(value)}, expected a number")
    try:
        number = float(value)
    except OverflowError as error:
        raise MalformedQuestion(f"{name} is too large") from error
    if not (math.isfinite(number) and number >= 0):
        raise MalformedQuestion(f"{name} is {number}, expected a finite number of at least 0")
    return number


def require_count(question: Mapping[str, object], name: str) -> int:
    """Return the field ``name``, a whole number of at least 0.

    Raises:
        MalformedQuestion: it is missing, of another type or out of range.
    """
    require_number(question, name)
    value = question[name]
    if not isinstance(value, int):
        raise MalformedQuestion(f"{name} is {value}, expected a whole number")
    return value


def require_each(
    question: Mapping[str, object], name: str, of: str, require_item: Callable[[Mapping[str, object], str], T]
) -> list[T]:
    """Return the items of the field ``name``, an array.

    Args:
        of: what should stand in it, for the message.
        require_item: reads one item like a field, which is called ``name[0]``.

    Raises:
        MalformedQuestion: it is missing or of another type, or ``require_item`` refuses an item.
    """
    value = require(question, name)
    if not isinstance(value, list):
        raise MalformedQuestion(f"{name} is {in_json(value)}, expected an array of {of}")
    return [require_item({f"{name}[{index}]": item}, f"{name}[{index}]") for index, item in enumerate(value)]


def require_http_status(question: Mapping[str, object], name: str) -> int:
    """Return the field ``name``, an HTTP status.

    Raises:
        MalformedQuestion: it is missing, of another type or out of range.
    """
    status = require_count(question, name)
    if not HTTP_STATUS_MIN <= status <= HTTP_STATUS_MAX:
        raise MalformedQuestion(f"{name} is {status}, expected {HTTP_STATUS_MIN} to {HTTP_STATUS_MAX}")
    return status


def parse_status(text: str, where: str) -> int:
    """Return the KV status that ``text`` says in hexadecimal, as in "0x86".

    Raises:
        MalformedQuestion: it is not hexadecimal, or has more than 16 bits; ``where`` stands in the text.
    """
    digits = text[2:]
    if not text.lower().startswith("0x") or not digits or not _HEXADECIMAL_DIGITS.issuperset(digits):
        raise MalformedQuestion(f'{where} {quote(text)} is not 0x and hexadecimal digits; write it as "0x86"')
    status = int(digits, 16)
    if status > STATUS_MAX:
        raise MalformedQuestion(f"{where} {quote(text)} has more than 16 bits; the largest is 0x{STATUS_MAX:04x}")
    return status
