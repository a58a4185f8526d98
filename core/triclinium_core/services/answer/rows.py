"""Splitter of rows in a streamed JSON document. It takes bytes in pieces of any size, and returns whole rows.

Theory of operation. The document is an object. The elements of one array among its members are rows; the rest is kept.
``ValueEnd`` finds the end of a value by counting brackets and skipping strings. It may find an end in text that is not
JSON, which the decoder then refuses. Each byte is examined a bounded number of times: the patterns are possessive, so
they never backtrack, and if a bracket closes too far away for a pattern, the bracket is skipped alone. Two methods find
the ends of rows:

- The exact method steps from value to value and passes whole rows to the decoder, which checks them.
- The fast method guesses. The same code writes all rows of a response, so the splitter searches each piece backwards
  for the text between the first two rows, and passes everything before it to the decoder in one call. The guess is
  right if and only if the decoder accepts it: the text starts where a row starts, and a whole sequence of JSON values
  with a separator behind it has no other end. If the decoder refuses the text, the splitter uses the exact method, and
  does not guess again before a row ends. So no byte is passed to the decoder more than four times.

The decoder refuses a lone surrogate although the grammar allows it. That matters only to code that decodes the row
later. So if the decoder refuses a row, the exact method passes it the row without lone surrogates, and returns the row
as received.

The splitter always steps through the text after the last row of a piece, so each row is returned with the piece in
which it ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import msgspec

from triclinium_core.json_depth import TooDeep, shallow
from triclinium_core.kv.wire.json_limits import JsonLimits
from triclinium_core.services.answer.row_boundaries import RowBoundary, boundaries_between
from triclinium_core.services.answer.surrogates import first_lone_surrogate, without_lone_surrogates
from triclinium_core.work import MEMBER_WORK, STEP_WORK, STEPPED_BYTES_PER_UNIT

ROW_SIZE_BYTES_MAX = 32 * 1024 * 1024
"""Maximum size of a row: 20 MiB for the largest document that Couchbase stores, and 12 MiB for the rest of the row. The
decoder checks a row in one call, which takes some two milliseconds for each MiB, or up to five milliseconds if the row
has only brackets or escapes."""

REST_SIZE_BYTES_MAX = 4 * 1024 * 1024
"""Maximum size of the document without its rows: far more than metrics, errors, facets and the profile of a large plan
take."""

REST_LIMITS = JsonLimits(size_bytes_max=REST_SIZE_BYTES_MAX, objects_max=16_384, parts_max=40_000)
"""Limits of the document without its rows. It is read in one event, up to three times: for the check, for errors, and
for the result. Within these limits that takes less than 50 milliseconds with CPython 3.11 (``python -m tests.bench
--only bounds``). The profile of a large plan has some thousand parts."""

MEMBERS_MAX = 1024
"""Maximum number of members of the document. Services send a dozen members; each takes several microseconds."""

QUOTE = ord('"')
BACKSLASH = ord("\\")
OPENING = frozenset(b"{[")
VALUE_STARTS = frozenset(b'{["-0123456789tfn')
"""Possible first bytes of a JSON value."""

LEVELS_AT_ONCE = 3
"""Number of nesting levels that one match skips. Python code counts the levels around them."""

DEPTH_AT_ONCE_MIN = 16
"""Nesting depth above which the brackets of several bytes, fewer than the depth, are counted together. A server
may send 64 KiB of brackets that do not close, and counting a single bracket takes a microsecond."""

_PLAIN = rb'[^"{}\[\]]*+'
_STRING_REST = rb'[^"\\]*+(?:\\.[^"\\]*+)*+'
_STRING = rb'"(?:[^"]*+(?<!\\)"|(?=[^"]*+")' + _STRING_REST + rb'")'
"""Pattern of a string. A quote that no backslash precedes always ends a string, and a search for quotes alone is ten
times as fast as one that handles backslashes. The slow search runs only if a quote follows at all."""


def _balanced(levels: int) -> bytes:
    """Return a pattern of text in which all strings end and all brackets close, nested at most ``levels`` deep."""
    parts = [_STRING]
    if levels:
        parts.append(rb"[{\[]" + _balanced(levels - 1) + rb"[}\]]")
    return _PLAIN + rb"(?:(?:" + rb"|".join(parts) + rb")" + _PLAIN + rb")*+"


_Match = Callable[[bytes | bytearray, int], re.Match[bytes]]
"""Match function of a pattern that matches at every position, because it also matches an empty text."""

_match_balanced = cast(_Match, re.compile(_balanced(LEVELS_AT_ONCE), re.DOTALL).match)
_match_string_rest = cast(_Match, re.compile(_STRING_REST, re.DOTALL).match)
_match_scalar = cast(_Match, re.compile(rb"[-+.0-9A-Za-z]*+").match)
_match_space = cast(_Match, re.compile(rb"[ \t\r\n]*+").match)

_decode_rows = msgspec.json.Decoder(list[msgspec.Raw]).decode
_check_json = msgspec.json.Decoder(msgspec.Raw).decode
_decode_name = msgspec.json.Decoder(str).decode

_search_byte = re.compile(r" \(byte (\d+)\)$").search
"""Function that finds the byte offset in an error message of msgspec."""


class MalformedRows(ValueError):
    """Exception for a body that is invalid, ambiguous, cut short or too large. The message names the fault."""


class ValueEnd:
    """Scanner that finds the ends of consecutive JSON values, which arrive in pieces of any size.

    A number or a literal ends before the first byte that cannot belong to it, so its end is known with the next byte.
    """

    __slots__ = ("_depth", "_escaped", "_in_string", "stepped_bytes", "steps")

    def __init__(self) -> None:
        self.steps: int = 0
        """Number of passes through the loop of ``go_on``, which measures its work."""
        self.stepped_bytes: int = 0
        """Number of bytes that patterns skipped, without those of numbers and literals."""
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def begin(self, first: int) -> None:
        """Begin a value with its first byte. Call ``go_on`` with the position after that byte."""
        self._depth = 1 if first in OPENING else 0
        self._in_string = first == QUOTE
        self._escaped = False

    def go_on(self, data: bytes | bytearray, position: int = 0) -> int:
        """Return the position after the value, or -1 if the value continues in the next piece."""
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
        """Count the brackets in the next bytes, which are too few to close all levels. Return their end."""
        end = min(position + self._depth - 1, len(data))
        quote = data.find(QUOTE, position, end)
        end = quote if quote >= 0 else end
        opened = data.count(b"[", position, end) + data.count(b"{", position, end)
        self._depth += opened - data.count(b"]", position, end) - data.count(b"}", position, end)
        return end

    def _string_end(self, data: bytes | bytearray, position: int) -> int:
        """Return the position after the quote that ends the string, or -1 if the string continues."""
        if self._escaped and position < len(data):
            position += 1
            self._escaped = False
        # Handle the two usual cases without a pattern, which would be slower.
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
            # The last byte is a backslash; the next piece begins with the byte that it escapes.
            self._escaped = True
            return -1
        self._in_string = False
        return position + 1


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """Place in the document's grammar. Not an enum: looking up a member takes 300 ns in Python 3.11."""

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
"""Next place for each place outside names and values, and each byte allowed there (RFC 8259, sections 4 and 5)."""


_WORDS: Mapping[_Place, str] = {_NAME: "a name", _VALUE: "a value", _ROW: "a value"}
"""Name, in error messages, of the part that begins at a place."""


class RowSplitter:
    """Splitter that takes the rows out of a streamed JSON document.

    The document is an object. The rows are the elements of the array in its member ``key``. If there is no such member,
    or its value is not an array, there are no rows, and the document is kept whole. The same key in a nested object
    does not count. A document that has the key twice is ambiguous and is refused. A body that is not a JSON object,
    such as the page of a proxy, is kept as received, up to the limit, so that errors can show it.

    After a body is refused, each further call raises the same error. Rows that precede the fault in the same piece are
    lost.

    Args:
        key: name of the array, decoded: the document may escape it in any form.
        row_size_bytes_max: maximum size of a row.
        rest_size_bytes_max: maximum size of the document without its rows.
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
        """JSON text of the value of the member ``noted_key``; None until the value is complete."""
        self._row_size_max = row_size_bytes_max
        self._rest_size_max = rest_size_bytes_max
        self._place = _START
        self._value = ValueEnd()
        self._received = 0
        self._refusal: str | None = None
        # The document without its rows.
        self._rest = bytearray()
        self._name_start = 0
        self._is_ours = self._seen = self._is_noted = False
        self._members = 0
        # The place of the rows, as a position in ``_rest`` and an offset in the body, and their total size in bytes.
        self._rows_at = self._rows_offset = self._rows_size = 0
        # An opening bracket and the incomplete row, ready to be decoded together with the bytes that follow.
        self._row = bytearray(b"[")
        self._row_offset = 0
        self._boundaries: Sequence[RowBoundary] = ()
        self._misled = False

    @property
    def work(self) -> int:
        """Units of work so far, except those that are counted by bytes and rows."""
        value = self._value
        stepped = value.steps * STEP_WORK + value.stepped_bytes // STEPPED_BYTES_PER_UNIT
        return stepped + self._members * MEMBER_WORK

    @property
    def held(self) -> int:
        """Number of buffered bytes: the incomplete row, and the document without its rows."""
        return len(self._row) - 1 + len(self._rest)

    def feed(self, data: bytes | bytearray) -> list[bytes]:
        """Return the rows that end in this piece, each the exact JSON text of one element: valid JSON in UTF-8.

        A number, true, false or null is complete with the byte that follows it.

        Raises:
            MalformedRows: this or an earlier piece is invalid or ambiguous, or a part of the document is too large.
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
            MalformedRows: the document was cut short or refused, or the text around the rows is not JSON or exceeds its
                limits.
        """
        if self._refusal is not None:
            raise MalformedRows(self._refusal)
        rest = bytes(self._rest)
        if self._place in (_START, _TEXT):
            return rest
        if self._place is not _END:
            raise self._refuse(f"the body ends {self._place.text}: it is incomplete", self._received)
        try:
            _check_json(shallow(rest))
            if not rest.isascii():
                rest.decode()
        except (msgspec.DecodeError, RecursionError, TooDeep, UnicodeDecodeError) as error:
            what, position = _read(error, rest)
            offset = position if position < self._rows_at else position + self._rows_size
            raise self._refuse(what, offset) from None
        excess = REST_LIMITS.excess(rest)
        if excess is not None:
            raise self._refuse(f"the document without its rows has {excess}", self._received)
        return rest

    # -- The document around the rows.

    def _keep_structure(self, data: bytes | bytearray, position: int) -> int:
        """Keep whitespace and the byte after it, which determines the next place. Return the new position."""
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
        """Keep a name or a value up to its end or the end of the piece. Return the new position."""
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
            return _decode_name(shallow(encoded))
        except (msgspec.DecodeError, TooDeep, UnicodeDecodeError) as error:
            raise self._refuse(f"the name of a member is invalid: {_read(error, encoded)[0]}", offset) from None

    # -- The rows.

    def _take_rows(self, data: bytes | bytearray, position: int, rows: list[bytes]) -> int:
        """Add the rows that end in this piece, but only the first two while no boundary is known. Return the position.

        The position is the end of the piece, the end of the array, or the byte after the first two rows.
        """
        if self._place is _AFTER_ROW:
            position = self._after_row(data, position)
        if self._boundaries and not self._misled and self._place in (_BEFORE_ROW, _ROW):
            position = self._guess(data, position, rows)
        return self._step_through(data, position, rows)

    def _guess(self, data: bytes | bytearray, position: int, rows: list[bytes]) -> int:
        """Add all rows before the last text that looks like a boundary. Return the position of the next row.

        Return ``position`` if there is no such text or the decoder refuses the rows.
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
            found = _decode_rows(shallow(self._row))
        except (msgspec.DecodeError, RecursionError, TooDeep):
            found = []
        if not found:
            del self._row[began:]
            self._misled = True
            return position
        self._hand_out(found, rows)
        self._place = _BEFORE_ROW
        return at + boundary.row_start

    def _step_through(self, data: bytes | bytearray, position: int, rows: list[bytes]) -> int:
        """Step from row to row to the end of the piece or array, or of the second row if no boundary is known."""
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
        """Skip the first byte of a row, or the closing bracket of an empty array. Return the new position."""
        byte = data[position]
        if byte in VALUE_STARTS:
            self._place = _ROW
            self._value.begin(byte)
            return position + 1
        if self._place is _FIRST_ROW and byte == ord("]"):
            return self._end_rows(position)
        raise self._unexpected(data, position)

    def _after_row(self, data: bytes | bytearray, position: int) -> int:
        """Skip whitespace and the comma or bracket after it. Return the new position."""
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
        """Add the buffered rows, which are whole, and derive the boundaries from the first two."""
        self._row += b"]"
        found: Sequence[bytes]
        try:
            found = _decode_rows(shallow(self._row))
        except (msgspec.DecodeError, RecursionError, TooDeep):
            found = self._with_lone_surrogates()
        if len(found) > 1:
            first, second = memoryview(found[0]), memoryview(found[1])
            self._boundaries = boundaries_between(self._row, 1, first, second)
            first.release()
            second.release()
        self._hand_out(found, rows)

    def _with_lone_surrogates(self) -> Sequence[bytes]:
        """Return the buffered rows as received, if lone surrogates are their only fault."""
        try:
            found = _decode_rows(shallow(without_lone_surrogates(self._row)))
        except (msgspec.DecodeError, RecursionError, TooDeep) as error:
            what, position = _read(error)
            raise self._refuse(f"a row: {what}", self._row_offset + position - 1) from None
        rows: list[bytes] = []
        at = 1
        for taken in found:
            start = _match_space(self._row, at).end()
            end = start + len(bytes(taken))
            rows.append(bytes(self._row[start:end]))
            # Skip the comma or the last bracket.
            at = _match_space(self._row, end).end() + 1
        return rows

    def _hand_out(self, found: Sequence[bytes], rows: list[bytes]) -> None:
        """Add the rows that the decoder found in the buffer, all of which it accepted."""
        # The decoder does not check the encoding of strings that it does not decode.
        if not self._row.isascii():
            try:
                self._row.decode()
            except UnicodeDecodeError as error:
                raise self._refuse(f"a row: {error.reason}", self._row_offset + error.start - 1) from None
        # Copy each row: a Raw is a view of the decoded buffer, so one kept row would keep its whole piece in memory.
        # bytes() takes 18 % more instructions per row of 100 bytes: 3300 instead of 2800 (callgrind).
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
        """Record the refusal, drop the buffers, and return the error."""
        self._refusal = f"byte {offset} of the body: {what}"
        self._row, self._rest = bytearray(b"["), bytearray()
        return MalformedRows(self._refusal)


def _read(error: Exception, encoded: bytes | bytearray = b"") -> tuple[str, int]:
    """Return the fault that a decoder found, and its byte offset in the decoder's input.

    Args:
        error: exception of the decoder.
        encoded: input of the decoder, if it may contain lone surrogates, which the decoder reports as other faults.
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
