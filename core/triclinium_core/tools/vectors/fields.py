"""Fields of a question, each read with a check of its type and range."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeVar

from triclinium_core.shown import in_json

T = TypeVar("T")

AnswerFields = dict[str, object]
"""Answer to one question, as JSON values."""

STATUS_MAX = 0xFFFF
HTTP_STATUS_MIN, HTTP_STATUS_MAX = 100, 599
_HEXADECIMAL_DIGITS = frozenset("0123456789abcdefABCDEF")
_QUOTED_LENGTH_MAX = 60


class MalformedQuestion(ValueError):
    """Exception for an invalid question. The message names the field and its fault."""


def quote(text: str) -> str:
    """Return ``text`` in quotes, shortened if it is too long for a message."""
    return repr(text) if len(text) <= _QUOTED_LENGTH_MAX else f"{text[:_QUOTED_LENGTH_MAX]!r}..."


class Question(dict[str, object]):
    """Fields of a question by name. Each method reads one field, and checks its type and range.

    Raises:
        MalformedQuestion: from every method, for a field that is missing, of the wrong type or out of range.
    """

    def value(self, name: str) -> object:
        """Return a field of any type."""
        if name not in self:
            raise MalformedQuestion(f"{name} is missing")
        return self[name]

    def text(self, name: str) -> str:
        """Return a string."""
        value = self.value(name)
        if not isinstance(value, str):
            raise MalformedQuestion(f"{name} is {in_json(value)}, expected a string")
        return value

    def choice(self, name: str, choices: Mapping[str, T]) -> T:
        """Return the value of a string in ``choices``."""
        value = self.text(name)
        if value not in choices:
            raise MalformedQuestion(f"{name} {quote(value)} is not known; expected one of {', '.join(choices)}")
        return choices[value]

    def flag(self, name: str) -> bool:
        """Return true or false."""
        value = self.value(name)
        if not isinstance(value, bool):
            raise MalformedQuestion(f"{name} is {in_json(value)}, expected true or false")
        return value

    def number(self, name: str) -> float:
        """Return a number of at least 0 that a float can hold."""
        value = self.value(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise MalformedQuestion(f"{name} is {in_json(value)}, expected a number")
        try:
            number = float(value)
        except OverflowError as error:
            raise MalformedQuestion(f"{name} is too large for a 64-bit float") from error
        if not (math.isfinite(number) and number >= 0):
            raise MalformedQuestion(f"{name} is {number}, expected a finite number of at least 0")
        return number

    def count(self, name: str) -> int:
        """Return a whole number of at least 0."""
        self.number(name)
        value = self[name]
        if not isinstance(value, int):
            raise MalformedQuestion(f"{name} is {value}, expected a whole number")
        return value

    def http_status(self, name: str) -> int:
        """Return an HTTP status."""
        status = self.count(name)
        if not HTTP_STATUS_MIN <= status <= HTTP_STATUS_MAX:
            raise MalformedQuestion(f"{name} is {status}, expected {HTTP_STATUS_MIN} to {HTTP_STATUS_MAX}")
        return status

    def each(self, name: str, of: str, read: Callable[[Question, str], T]) -> list[T]:
        """Return the items of an array.

        Args:
            name: name of the field.
            of: description of the items, for the message.
            read: function that reads one item like a field; the name of the first item is ``name[0]``.
        """
        value = self.value(name)
        if not isinstance(value, list):
            raise MalformedQuestion(f"{name} is {in_json(value)}, expected an array of {of}")
        return [read(Question({f"{name}[{index}]": item}), f"{name}[{index}]") for index, item in enumerate(value)]


Ask = Callable[[Question], AnswerFields]
"""Function that answers one kind of question, or raises MalformedQuestion."""

Clauses = Callable[[Question], tuple[str, ...]]
"""Function that returns the clauses that decide the answer to one kind of question, or raises MalformedQuestion."""


def parse_status(text: str, where: str) -> int:
    """Return a KV status from hexadecimal text, such as "0x86".

    Raises:
        MalformedQuestion: the text is not hexadecimal, or has more than 16 bits. The message names ``where``.
    """
    digits = text[2:]
    if not text.lower().startswith("0x") or not digits or not _HEXADECIMAL_DIGITS.issuperset(digits):
        raise MalformedQuestion(f'{where} {quote(text)} is not 0x and hexadecimal digits, such as "0x86"')
    status = int(digits, 16)
    if status > STATUS_MAX:
        raise MalformedQuestion(f"{where} {quote(text)} has more than 16 bits; the largest is 0x{STATUS_MAX:04x}")
    return status
