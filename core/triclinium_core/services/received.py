"""Readers of JSON from services, one member at a time, so that an unknown value does not make others unreadable.

A newer server may send words, numbers and structures unknown to this version. The rule for all responses: keep a value
as received if the type of the result can hold it; else replace it with None, or with the value for "not sent", and
return all other values. Refuse a response, or a row of a list, only if it is not valid JSON of the expected type, lacks
a part that the caller needs, such as a name, exceeds a limit, or has an unknown part that may change its meaning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple, TypeVar

import msgspec

from triclinium_core.json_depth import shallow
from triclinium_core.services.answer.decoded_limits import check_decodable
from triclinium_core.services.service_request import HttpResponse, MalformedAnswer, Steps
from triclinium_core.shown import one_line
from triclinium_core.work import LISTED_BYTES_PER_UNIT, LISTED_ROW_WORK

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

WORD_SIZE_MAX = 100
"""Maximum length of an unknown word that is kept. The longest known word has 24 characters."""
INTEGER_MAX = 2**64 - 1
"""Largest absolute value of an integer that is kept: servers send at most 64 bits."""
UNKNOWN_MAX = 100
"""Maximum number of unknown parts of one value that are kept as text. Further parts are counted."""

ITEMS_MAX = 10_000
"""Maximum length of an array within a response. Each item takes some microseconds. A longer array counts as
unreadable."""
ROWS_MAX = 20_000
"""Maximum number of rows of a list: far more buckets, indexes or users than clusters have."""
REFUSED_MAX = 1_000
"""Maximum number of refused rows. With more, the whole list is refused."""

JSON_OBJECT = dict[str, object]
"""Type of members that become Python objects with all their parts. ``decoded`` first checks that they are decodable."""

UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
"""Exceptions of the decoder for JSON that is invalid, nested too deeply, too large, or of another type."""


def decoded(raw: msgspec.Raw | None, kind: type[T]) -> T | None:
    """Return a JSON value as ``kind``; None if there is no value, or if it has another type or exceeds a limit.

    Args:
        raw: part of a text whose nesting was checked.
        kind: type of the result.
    """
    if raw is None:
        return None
    try:
        if kind is JSON_OBJECT:
            check_decodable(bytes(raw))
        return msgspec.json.decode(raw, type=kind)
    except UNREADABLE:
        return None


def as_text(raw: msgspec.Raw) -> str:
    """Return the beginning of a JSON value as one line of printable text."""
    return one_line(bytes(raw).decode("utf-8", "replace"))


class Members(NamedTuple):
    """Members of a JSON object by name."""

    raw: dict[str, msgspec.Raw]

    def get(self, name: str, kind: type[T]) -> T | None:
        """Return a member as ``kind``; None if it is missing, null or of another type, or exceeds a limit."""
        return decoded(self.raw.get(name), kind)

    def integer(self, name: str) -> int | None:
        """Return an integer of at most 64 bits; None for anything else."""
        number = self.get(name, int)
        return number if number is not None and abs(number) <= INTEGER_MAX else None

    def number(self, name: str) -> float | None:
        """Return a finite number; None for anything else."""
        number = self.get(name, float)
        return number if number is not None and math.isfinite(number) else None

    def count(self, name: str) -> int:
        """Return an integer of at least 0; 0 for anything else."""
        return max(self.integer(name) or 0, 0)

    def text(self, name: str) -> str:
        """Return a string; an empty one for anything else."""
        return self.get(name, str) or ""

    def word(self, name: str, kind: type[E]) -> E | str | None:
        """Return a member of an enum, an unknown word as received, or None for anything else."""
        word = kept_word(self.get(name, str))
        return next((member for member in kind if member.value == word), word)

    def members(self, name: str) -> Members:
        """Return the members of an object; empty for anything else."""
        return Members(self.get(name, dict[str, msgspec.Raw]) or {})

    def array(self, name: str) -> list[msgspec.Raw]:
        """Return the items of an array; empty for anything else, and for an array of more than ``ITEMS_MAX``."""
        items = self.get(name, list[msgspec.Raw]) or []
        return items if len(items) <= ITEMS_MAX else []

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the strings of an array, without its other items."""
        return tuple(text for item in self.array(name) if (text := decoded(item, str)) is not None)

    def objects(self, name: str) -> list[Members]:
        """Return the items of an array. An item that is not an object has no members."""
        return [Members(decoded(item, dict[str, msgspec.Raw]) or {}) for item in self.array(name)]

    def no_arrays(self, *names: str) -> list[msgspec.Raw]:
        """Return the members with these names that exist and are not null, but that ``array`` cannot read."""
        arrays = {name: self.get(name, list[msgspec.Raw]) for name in names if self.is_set(name)}
        return [self.raw[name] for name, items in arrays.items() if items is None or len(items) > ITEMS_MAX]

    def is_set(self, name: str) -> bool:
        """Return whether a member exists and is not null."""
        return bytes(self.raw.get(name, msgspec.Raw(b"null"))) != b"null"


def kept_word(word: str | None) -> str | None:
    """Return a word as received if it has 1 to ``WORD_SIZE_MAX`` printable characters, else None."""
    return word if word and len(word) <= WORD_SIZE_MAX and word.isprintable() else None


def members_of(raw: msgspec.Raw) -> Members:
    """Return the members of a row.

    Raises:
        MalformedAnswer: the row is not an object.
    """
    try:
        return Members(msgspec.json.decode(shallow(bytes(raw)), type=dict[str, msgspec.Raw]))
    except UNREADABLE:
        raise MalformedAnswer(f"{as_text(raw)} is not an object") from None


def body_members(answer: HttpResponse) -> Members:
    """Return the members of a response that is one object.

    Raises:
        MalformedAnswer: the response is not an object.
    """
    return Members(answer.body_as(dict[str, msgspec.Raw]))


def readable(rows: Iterable[msgspec.Raw], read: Callable[[msgspec.Raw], Steps[T]]) -> Steps[tuple[tuple[T, ...], int]]:
    """Read a list in steps. Return the results of ``read``, and the number of rows that ``read`` refuses.

    Raises:
        MalformedAnswer: ``read`` refuses all rows or more than ``REFUSED_MAX``, or there are more than ``ROWS_MAX``
            rows.
    """
    rows = list(rows)
    if len(rows) > ROWS_MAX:
        raise MalformedAnswer(f"a list of {len(rows)} rows; the maximum is {ROWS_MAX}")
    found, refused = yield from separated(rows, read)
    if refused and not found:
        raise refused[0][1]
    return found, len(refused)


def separated(
    rows: Iterable[msgspec.Raw], read: Callable[[msgspec.Raw], Steps[T]]
) -> Steps[tuple[tuple[T, ...], list[tuple[msgspec.Raw, MalformedAnswer]]]]:
    """Read rows in steps. Return the results of ``read``, and each row that ``read`` refuses, with its error.

    Raises:
        MalformedAnswer: ``read`` refuses more than ``REFUSED_MAX`` rows.
    """
    found, refused = [], []
    for row in rows:
        # Yield before the row, so that a large row can begin in a new event.
        yield LISTED_ROW_WORK + len(bytes(row)) // LISTED_BYTES_PER_UNIT
        try:
            found.append((yield from read(row)))
        except MalformedAnswer as error:
            refused.append((row, error))
            if len(refused) > REFUSED_MAX:
                raise
    return tuple(found), refused


def in_one_step(read: Callable[[msgspec.Raw], T]) -> Callable[[msgspec.Raw], Steps[T]]:
    """Return a reader that applies ``read`` to a row in one step. The rows must not contain long lists."""

    def steps(row: msgspec.Raw) -> Steps[T]:
        yield from ()
        return read(row)

    return steps


def unknown_parts(parts: Iterable[msgspec.Raw]) -> tuple[str, ...]:
    """Return the beginning of each part that this version cannot represent, as one line of text.

    Count the parts after the first ``UNKNOWN_MAX`` instead.
    """
    texts = [as_text(part) for part in parts]
    more = len(texts) - UNKNOWN_MAX
    return (*texts[:UNKNOWN_MAX], f"and {more} more") if more > 0 else tuple(texts)
