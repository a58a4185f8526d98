"""Splitter of rows in a streamed JSON document: bytes in any pieces in, whole rows out.

Theory of operation. The document is an object; the elements of one array of its own are rows, and all else is kept.
The end of a value is found by counting brackets and skipping strings (``ValueEnd``). Text that is not JSON may get an end
as well: a decoder has to refuse it. Each byte is examined a bounded number of times: the patterns are possessive, so they
never go back, and a bracket that closes too far away for them is stepped over alone. Two ways lead to the ends of rows:

- The exact way steps from value to value and hands whole rows to the decoder, which checks them.
- The short way guesses. All rows of an answer are written by the same code, so what stood between the first two is
  looked for from the end of a piece backwards, and everything in front of it is handed to the decoder at once. The
  guess is right if and only if the decoder takes it: it began where a row begins, and a text that is a whole sequence
  of JSON values, with a separator behind it, has no other end. Where the decoder refuses, the exact way is taken, and
  no other guess is made before a row has ended, so no byte is handed to the decoder more than four times.

A lone surrogate, which the decoder refuses although the grammar allows it, concerns only who decodes its row: on the
exact way the decoder gets a text without it where it refused the row, and the row leaves as it came.

What follows the last row of a piece is always stepped through, so a row leaves with the piece in which it ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import msgspec

from triclinium_core.kv.wire.json_limits import JsonLimits
from triclinium_core.services.answer.row_boundaries import RowBoundary, boundaries_between
from triclinium_core.services.answer.surrogates import first_lone_surrogate, without_lone_surrogates
from triclinium_core.work import MEMBER_WORK, STEP_WORK, STEPPED_BYTES_PER_UNIT

ROW_SIZE_BYTES_MAX = 32 * 1024 * 1024
"""Maximum size of a row: the largest document that Couchbase stores, 20 MiB, and half as much around it. The decoder
checks a row in one call, at some two milliseconds for each MiB, and up to five if it has only brackets or escapes."""

REST_SIZE_BYTES_MAX = 4 * 1024 * 1024
"""Far more than metrics, errors, facets and the profile of a large plan take."""

REST_LIMITS = JsonLimits(size_bytes_max=REST_SIZE_BYTES_MAX, objects_max=16_384, parts_max=40_000)
"""Limits of the document without its rows. It is read in one event, up to three times: to check it, for errors, and for
the result. Within these limits that takes less than 50 milliseconds of CPython 3.11 (``python -m tests.bench --only
bounds``). The profile of a large plan has some thousand parts."""

MEMBERS_MAX = 1024
"""Maximum number of members of the document itself. Services send a dozen; each takes several microseconds."""

QUOTE = ord('"')
BACKSLASH = ord("\\")
OPENING = frozenset(b"{[")
VALUE_STARTS = frozenset(b'{["-0123456789tfn')
"""Possible first bytes of a JSON value."""

LEVELS_AT_ONCE = 3
"""Levels of nesting that one match steps over. Those around them are counted in Python."""

DEPTH_AT_ONCE_MIN = 16
"""Minimum nesting depth at which the brackets in that many bytes are counted together. A server may send 64 KiB of
brackets that do not close, and a single bracket takes a microsecond."""

_PLAIN = rb'[^"{}\[\]]*+'
_STRING_REST = rb'[^"\\]*+(?:\\.[^"\\]*+)*+'
_STRING = rb'"(?:[^"]*+(?<!\\)"|(?=[^"]*+")' + _STRING_REST + rb'")'
"""A quote without a backslash in front of it ends a string for sure, and a search for quotes alone is ten times as fast as
one that looks at backslashes. That one is made only where a quote follows at all."""


def _balanced(levels: int) -> bytes:
    """Return a pattern of anything in which all strings end, and all brackets close within so many levels."""
    parts = [_STRING]
    if levels:
        parts.append(rb"[{\[]" + _balanced(levels - 1) + rb"[}\]]")
    return _PLAIN + rb"(?:(?:" + rb"|".join(parts) + rb")" + _PLAIN + rb")*+"


_Match = Callable[[bytes | bytearray, int], re.Match[bytes]]
"""A pattern that matches at every position, if only an empty text."""

_match_balanced = cast(_Match, re.compile(_balanced(LEVELS_AT_ONCE), re.DOTALL).match)
_match_string_rest = cast(_Match, re.compile(_STRING_REST, re.DOTALL).match)
_match_scalar = cast(_Match, re.compile(rb"[-+.0-9A-Za-z]*+").match)
_match_space = cast(_Match, re.compile(rb"[ \t\r\n]*+").match)

_decode_rows = msgspec.json.Decoder(list[msgspec.Raw]).decode
_check_json = msgspec.json.Decoder(msgspec.Raw).decode
_decode_name = msgspec.json.Decoder(str).decode

_search_byte = re.compile(r" \(byte (\d+)\)$").search
"""Where msgspec says in which byte it found an error."""


class MalformedRows(ValueError):
    """A body is not JSON, was cut short, or has a part above its bound. The text says what is wrong, and at which byte."""


class ValueEnd:
    """Finds the end of one JSON value after the other, whose bytes arrive in any cut.

    A number or a literal ends in front of the first byte that cannot belong to it, so its end is known with the next
    byte.
    """

    __slots__ = ("_depth", "_escaped", "_in_string", "stepped_bytes", "steps")

    def __init__(self) -> None:
        self.steps: int = 0
        """Number of brackets and strings that were skipped one by one."""
        self.stepped_bytes: int = 0
        """Number of bytes that patterns skipped."""
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def begin(self, first: int) -> None:
        """Begin with a value, whose first byte this is; ``go_on`` behind it."""
        self._depth = 1 if first in OPENING else 0
        self._in_string = first == QUOTE
        self._escaped = False

    def go_on(self, data: bytes | bytearray, position: int = 0) -> int:
        """Return the position behind the value; -1 where it goes on in the next piece."""
        size = len(data)
        while True:
            self.steps += 1
            if self._in_string:
                position = self._string_end(data, position)
                if position < 0 or not self._depth:
                    return position
            elif not self._depth:
                position = _match_scalar(data, position).end()
                return position if position < size else -1
            start, position = position, _match_balanced(data, position).end()
            self.stepped_bytes += position - start
            if position == size:
                return -1
            byte = data[position]
            position += 1
            if byte == QUOTE:
                self._in_string = True
            elif byte in OPENING:
                self._depth += 1
            else:
                self._depth -= 1
                if not self._depth:
                    return position
            if self._depth > DEPTH_AT_ONCE_MIN and not self._in_string:
                position = self._step_within(data, position)

    def _step_within(self, data: bytes | bytearray, position: int) -> int:
        """Count the brackets of the next bytes, too few to close all levels, and return the end of these bytes."""
        end = min(position + self._depth - 1, len(data))
        quote = data.find(QUOTE, position, end)
        end = quote if quote >= 0 else end
        opened = data.count(b"[", position, end) + data.count(b"{", position, end)
        self._depth += opened - data.count(b"]", position, end) - data.count(b"}", position, end)
        return end

    def _string_end(self, data: bytes | bytearray, position: int) -> int:
        """Return the position behind the quote that ends the string; -1 where it goes on."""
        if self._escaped and position < len(data):
            position += 1
            self._escaped = False
        # The two usual cases, without a pattern.
        quote = data.find(QUOTE, position)
        if quote < 0 and data[-1] != BACKSLASH:
            return -1
        if quote > position and data[quote - 1] != BACKSLASH:
            self._in_string = False
            return quote + 1
        start, position = position, _match_string_rest(data, position).end()
        self.stepped_bytes += position - start
        if position == len(data):
            return -1
        if data[position] != QUOTE:
            # A backslash is the last byte; what it escapes comes with the next piece.
            self._escaped = True
            return -1
        self._in_string = False
        return position + 1


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """Where in the document the next byte stands. Not an enum: to look up a member takes 300 ns in Python 3.11."""

    text: str


_START = _Place("before the document")
_TEXT = _Place("in a text that is not a JSON object")
_FIRST_NAME = _Place("at the beginning of the document")
_BEFORE_NAME = _Place("before the name of a member")
_NAME = _Place("in the name of a member")
_AFTER_NAME = _Place("after the name of a member")
_BEFORE_VALUE = _Place("before the value of a member")
_VALUE = _Place("in the value of a member")
_AFTER_VALUE = _Place("after the value of a member")
_FIRST_ROW = _Place("at the beginning of the rows")
_BEFORE_ROW = _Place("before a row")
_ROW = _Place("in a row")
_AFTER_ROW = _Place("after a row")
_END = _Place("after the document")

_AMONG_ROWS = frozenset({_FIRST_ROW, _BEFORE_ROW, _ROW, _AFTER_ROW})
_IN_MEMBER = frozenset({_NAME, _VALUE})

_NEXT: Mapping[_Place, Mapping[int, _Place]] = {
    place: {ord(byte): following for byte, following in bytes_.items()}
    for place, bytes_ in {
        _START: {"{": _FIRST_NAME},
        _FIRST_NAME: {'"': _NAME, "}": _END},
        _BEFORE_NAME: {'"': _NAME},
        _AFTER_NAME: {":": _BEFORE_VALUE},
        _BEFORE_VALUE: dict.fromkeys(map(chr, VALUE_STARTS), _VALUE),
        _AFTER_VALUE: {",": _BEFORE_NAME, "}": _END},
        _FIRST_ROW: {**dict.fromkeys(map(chr, VALUE_STARTS), _ROW), "]": _AFTER_VALUE},
        _BEFORE_ROW: dict.fromkeys(map(chr, VALUE_STARTS), _ROW),
        _AFTER_ROW: {",": _BEFORE_ROW, "]": _AFTER_VALUE},
        _END: {},
    }.items()
}
"""RFC 8259, sections 4 and 5: where each byte that may stand in a place leads to."""


_WORDS: Mapping[_Place, str] = {_NAME: "a name", _VALUE: "a value", _ROW: "a value"}
"""What begins with a byte that leads there, in errors."""


class RowSplitter:
    """Cuts the rows out of a JSON document that is streamed.

    The document is an object. The elements of the array that it has under ``key`` are the rows. Without such a member,
    or where its value is not an array, there are no rows, and the document is kept whole. The same key deeper within
    does not count. A document that has the key twice is refused: nobody can say which of the two is meant. A body that
    is not a JSON object, such as the page of a proxy, is kept as it came, up to the bound, so that it can be shown.

    Once a body was refused, each further call raises the same. Rows in front of the fault that arrived in the same piece
    are lost.

    Args:
        key: of the array, decoded: the document may escape it as it likes.
        row_size_bytes_max: bytes that a row may have.
        rest_size_bytes_max: bytes that the document without its rows may have.
    """

    def __init__(
        self,
        key: str,
        *,
        row_size_bytes_max: int = ROW_SIZE_BYTES_MAX,
        rest_size_bytes_max: int = REST_SIZE_BYTES_MAX,
    ) -> None:
        self.key: str = key
        self.noted_key: str | None = None
        """Name of the member whose value is stored in ``noted`` when it is complete; None for no member."""
        self.noted: bytes | None = None
        """JSON text of that value; None until it is complete."""
        self._row_size_max = row_size_bytes_max
        self._rest_size_max = rest_size_bytes_max
        self._place = _START
        self._value = ValueEnd()
        self._received = 0
        self._refusal: str | None = None
        # The document without its rows, and where in it they stood.
        self._rest = bytearray()
        self._name_start = 0
        self._is_ours = self._seen = self._is_noted = False
        self._members = 0
        self._rows_at = self._rows_offset = self._rows_size = 0
        # An opening bracket and the row that has begun, ready to be decoded with whatever follows.
        self._row = bytearray(b"[")
        self._row_offset = 0
        self._boundaries: Sequence[RowBoundary] = ()
        self._misled = False

    @property
    def work(self) -> int:
        """Units of work so far, without those that are counted by bytes and rows."""
        value = self._value
        stepped = value.steps * STEP_WORK + value.stepped_bytes // STEPPED_BYTES_PER_UNIT
        return stepped + self._members * MEMBER_WORK

    @property
    def held(self) -> int:
        """Bytes that are buffered: the row that has begun, and the document without its rows."""
        return len(self._row) - 1 + len(self._rest)

    def feed(self, data: bytes | bytearray) -> list[bytes]:
        """Return the rows that are complete now, each the exact JSON text of one element: valid JSON in UTF-8.

        A number, true, false or null is complete with the byte that follows it.

        Raises:
            MalformedRows: a JSON document does not go on like this, or a part of it is above its bound.
        """
        if self._refusal is not None:
            raise MalformedRows(self._refusal)
        rows: list[bytes] = []
        position, size = 0, len(data)
        while position < size:
            place = self._place
            if place in _AMONG_ROWS:
                position = self._take_rows(data, position, rows)
            elif place in _IN_MEMBER:
                position = self._keep_value(data, position)
            elif place is _TEXT:
                self._rest += data[position : position + self._rest_size_max - len(self._rest)]
                position = size
            else:
                position = self._keep_structure(data, position)
        self._received += size
        if len(self._row) - 1 > self._row_size_max:
            raise self._above(self._row_size_max, "a row", self._row_offset)
        if len(self._rest) > self._rest_size_max:
            raise self._above(self._rest_size_max, "the document without its rows", self._received)
        return rows

    def finish(self) -> bytes:
        """Return the document with its array emptied: whole, valid JSON in UTF-8.

        Return a body that is not a JSON object, or is empty, as received, cut at ``rest_size_bytes_max``.

        Raises:
            MalformedRows: the document was cut short, or the text around the rows is not JSON or exceeds its limits.
        """
        if self._refusal is not None:
            raise MalformedRows(self._refusal)
        rest = bytes(self._rest)
        if self._place in (_START, _TEXT):
            return rest
        if self._place is not _END:
            raise self._refuse(f"the body ends {self._place.text}: it was cut short", self._received)
        try:
            _check_json(rest)
            if not rest.isascii():
                rest.decode()
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            what, position = _read(error, rest)
            offset = position if position < self._rows_at else position + self._rows_size
            raise self._refuse(what, offset) from None
        excess = REST_LIMITS.excess(rest)
        if excess is not None:
            raise self._refuse(f"the document without its rows has {excess}", self._received)
        return rest

    # -- The document around the rows.

    def _keep_structure(self, data: bytes | bytearray, position: int) -> int:
        """Step over whitespace and the one byte behind it, which says what comes next; return the new position."""
        at = _match_space(data, position).end()
        self._rest += data[position:at]
        if at == len(data):
            return at
        place = self._place
        following = _NEXT[place].get(data[at])
        if following is None:
            if place is not _START:
                raise self._unexpected(data, at)
            self._place = _TEXT
            return at
        if following is _VALUE and self._is_ours and data[at] == ord("["):
            following = _FIRST_ROW
            self._rows_at, self._rows_offset = len(self._rest) + 1, self._received + at + 1
        self._place = following
        if following in _IN_MEMBER:
            self._name_start = len(self._rest)
            self._value.begin(data[at])
        self._rest.append(data[at])
        return at + 1

    def _keep_value(self, data: bytes | bytearray, position: int) -> int:
        """Keep a name or a value up to its end, or to that of the piece; return the new position."""
        end = self._value.go_on(data, position)
        if end < 0:
            self._rest += data[position:]
            return len(data)
        self._rest += data[position:end]
        if self._place is _VALUE:
            self._place = _AFTER_VALUE
            if self._is_noted:
                self.noted = bytes(self._rest[self._name_start :])
            return end
        self._place = _AFTER_NAME
        self._members += 1
        if self._members > MEMBERS_MAX:
            raise self._refuse(f"the document has more than {MEMBERS_MAX} members", self._received + end)
        name = self._name(self._received + end)
        self._is_ours, self._is_noted = name == self.key, name == self.noted_key
        if self._is_ours and self._seen:
            raise self._refuse(f"the document has {self.key!r} twice", self._received + end)
        self._seen |= self._is_ours
        return end

    def _name(self, offset: int) -> str:
        encoded = self._rest[self._name_start :]
        try:
            return _decode_name(encoded)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._refuse(f"the name of a member: {_read(error, encoded)[0]}", offset) from None

    # -- The rows.

    def _take_rows(self, data: bytes | bytearray, position: int, rows: list[bytes]) -> int:
        """Add the rows that end in this piece, or, while nothing is known of them, the first two; return the position.

        It is the end of the piece or of the array, or what follows the first two rows.
        """
        if self._place is _AFTER_ROW:
            position = self._after_row(data, position)
        if self._boundaries and not self._misled and self._place in (_BEFORE_ROW, _ROW):
            position = self._guess(data, position, rows)
        return self._step_through(data, position, rows)

    def _guess(self, data: bytes | bytearray, position: int, rows: list[bytes]) -> int:
        """Add all rows in front of what looks like the last boundary, and return where the next row begins.

        Without one, or where the decoder refuses it, the position stays the same.
        """
        for boundary in self._boundaries:
            at = data.rfind(boundary.text, position)
            if at >= 0:
                break
        else:
            return position
        began = len(self._row)
        if began == 1:
            self._row_offset = self._received + position
        self._row += data[position : at + boundary.row_end]
        self._row += b"]"
        try:
            found = _decode_rows(self._row)
        except (msgspec.DecodeError, RecursionError):
            found = []
        if not found:
            del self._row[began:]
            self._misled = True
            return position
        self._hand_out(found, rows)
        self._place = _BEFORE_ROW
        return at + boundary.row_start

    def _step_through(self, data: bytes | bytearray, position: int, rows: list[bytes]) -> int:
        """Go from row to row, to the end of the piece or of the array; while no boundary is known, up to the second."""
        size, first, latest, done = len(data), position, position, -1
        left = -1 if self._boundaries else 2
        while position < size and left:
            place = self._place
            if place is _ROW:
                end = self._value.go_on(data, position)
                if end < 0:
                    break
                position = done = end
                left -= 1
                self._place = _AFTER_ROW
            elif place is _AFTER_ROW:
                position = self._after_row(data, position)
            elif place is _AFTER_VALUE:
                break
            else:
                position = _match_space(data, position).end()
                if position < size:
                    position = self._begin_row(data, position)
                    if self._place is _ROW:
                        latest = position - 1
                        first = first if done >= 0 else latest
        if len(self._row) == 1:
            self._row_offset = self._received + first
        if done >= 0:
            self._row += data[first:done]
            self._decode(rows)
            self._misled = False
            self._row_offset = self._received + latest
        if self._place is _ROW:
            self._row += data[latest:]
            return size
        return position

    def _begin_row(self, data: bytes | bytearray, position: int) -> int:
        """Step over the first byte of a row, or over the bracket behind no row at all; return the new position."""
        byte = data[position]
        if byte in VALUE_STARTS:
            self._place = _ROW
            self._value.begin(byte)
            return position + 1
        if self._place is _FIRST_ROW and byte == ord("]"):
            return self._end_rows(position)
        raise self._unexpected(data, position)

    def _after_row(self, data: bytes | bytearray, position: int) -> int:
        """Step over whitespace and the comma or bracket behind it; return the new position."""
        at = _match_space(data, position).end()
        if at == len(data):
            return at
        if data[at] == ord(","):
            self._place = _BEFORE_ROW
            return at + 1
        if data[at] == ord("]"):
            return self._end_rows(at)
        raise self._unexpected(data, at)

    def _end_rows(self, position: int) -> int:
        self._rest += b"]"
        self._rows_size = self._received + position - self._rows_offset
        self._place = _AFTER_VALUE
        return position + 1

    def _decode(self, rows: list[bytes]) -> None:
        """Add the rows that are held, whole ones, and learn from them what stands between two."""
        self._row += b"]"
        found: Sequence[bytes]
        try:
            found = _decode_rows(self._row)
        except (msgspec.DecodeError, RecursionError):
            found = self._with_lone_surrogates()
        if len(found) > 1:
            first, second = memoryview(found[0]), memoryview(found[1])
            self._boundaries = boundaries_between(self._row, 1, first, second)
            first.release()
            second.release()
        self._hand_out(found, rows)

    def _with_lone_surrogates(self) -> Sequence[bytes]:
        """Return the rows that are held as they came, if nothing but lone surrogates is wrong with them."""
        try:
            found = _decode_rows(without_lone_surrogates(self._row))
        except (msgspec.DecodeError, RecursionError) as error:
            what, position = _read(error)
            raise self._refuse(f"a row: {what}", self._row_offset + position - 1) from None
        rows: list[bytes] = []
        at = 1
        for taken in found:
            start = _match_space(self._row, at).end()
            end = start + len(bytes(taken))
            rows.append(bytes(self._row[start:end]))
            # Over the comma, or the last bracket.
            at = _match_space(self._row, end).end() + 1
        return rows

    def _hand_out(self, found: Sequence[bytes], rows: list[bytes]) -> None:
        """Add the rows that the decoder found in what is held, which it took as a whole."""
        # The decoder does not look into strings that it need not decode.
        if not self._row.isascii():
            try:
                self._row.decode()
            except UnicodeDecodeError as error:
                raise self._refuse(f"a row: {error.reason}", self._row_offset + error.start - 1) from None
        # A Raw is a window into all that was decoded: one row that is kept would keep its whole piece in memory. So each
        # is copied. With bytes() a row takes 17 % more instructions: 3500 for 3000 (``python -m tests.bench --only queries``).
        taken = [b"" + raw for raw in found]
        if len(self._row) > self._row_size_max:
            large = next((row for row in taken if len(row) > self._row_size_max), None)
            if large is not None:
                raise self._above(self._row_size_max, "a row", self._row_offset + self._row.index(large) - 1)
        rows += taken
        self._row = bytearray(b"[")

    # -- Refusals.

    def _unexpected(self, data: bytes | bytearray, position: int) -> MalformedRows:
        expected = sorted({_WORDS.get(following, chr(byte)) for byte, following in _NEXT[self._place].items()})
        wanted = " or ".join(expected) or "nothing"
        what = f"{wanted} is expected {self._place.text}, not {bytes(data[position : position + 1])!r}"
        return self._refuse(what, self._received + position)

    def _above(self, most: int, what: str, offset: int) -> MalformedRows:
        return self._refuse(f"{what} has more than {most} bytes", offset)

    def _refuse(self, what: str, offset: int) -> MalformedRows:
        """Return the error, and hold nothing any more."""
        self._refusal = f"byte {offset} of the body: {what}"
        self._row, self._rest = bytearray(b"["), bytearray()
        return MalformedRows(self._refusal)


def _read(error: Exception, encoded: bytes | bytearray = b"") -> tuple[str, int]:
    """Return what a decoder refuses, and at which byte of what it was given.

    Args:
        encoded: what that was, if it may have lone surrogates, which the decoder calls by other names.
    """
    lone = first_lone_surrogate(encoded)
    if lone is not None:
        return str(lone), lone.offset
    if isinstance(error, RecursionError):
        return "it is nested too deeply to be decoded", 0
    if isinstance(error, UnicodeDecodeError):
        return error.reason, error.start
    text = str(error)
    at = _search_byte(text)
    return (text, 0) if at is None else (text[: at.start()], int(at[1]))
