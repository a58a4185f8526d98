"""The response to one request while it arrives: body or rows, their reader, and pauses of reading.

A response without rows is buffered until it is complete. Rows are handed out as soon as a reader waits for them. Until
then, rows are buffered, and above a limit reading pauses until the reader takes them. The outcome follows the last row.
Once a reader has received rows, the request is not retried, because a retry would deliver rows twice.

Source: decisions D47 and D48.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, unique

from triclinium_core import decoder_faults, errors
from triclinium_core.kv.wire.json_limits import JsonLimits
from triclinium_core.retry.tables import transition_table
from triclinium_core.services.answer.context_ids import MEMBER, foreign_id, foreign_id_in
from triclinium_core.services.answer.rows import MalformedRows, RowSplitter
from triclinium_core.services.service_request import ServiceResult
from triclinium_core.work import BYTES_PER_UNIT, PARSED_BYTES_PER_UNIT, ROW_WORK

HELD_SIZE_BYTES = 256 * 1024
"""Size of the buffered rows, which the reader has not requested yet, at which reading pauses."""
HELD_SIZE_BYTES_MAX = 16 * 1024 * 1024
"""Size of the buffered rows above which the request fails if data arrives although reading should be paused."""
BODY_SIZE_BYTES_MAX = 32 * 1024 * 1024
"""Maximum size of a response that is read whole: ten times the largest configs and lists that services send."""
BODY_LIMITS = JsonLimits(size_bytes_max=BODY_SIZE_BYTES_MAX, objects_max=65_536, parts_max=524_288)
"""Limits of a response that is read whole: lists of some thousand users or indexes, and thirty buckets with the maps of
all vbuckets. Each object of a list takes 0.5 to 3 microseconds, so these limits permit more than 50 milliseconds: the
caller has requested the list, and a large cluster has a long one."""
ROWS_AT_ONCE_MAX = 8192
"""Maximum number of rows that are handed out together. Their reader decodes them without a pause, at some microseconds
each."""
HTTP_OK = 200
"""The status of a success. Rows of a response with another status belong to an error."""

Outcome = ServiceResult | errors.CouchbaseException
"""Outcome of a request: a result or an error."""


class UnreadableAnswer(ValueError):
    """Exception for an unreadable response. The message is a predicate, such as "did not send a list of rows"."""


class ForeignAnswer(ValueError):
    """Exception for a response to another request. The message is a predicate about the node."""


@unique
class ReaderState(Enum):
    """State of the reader of the rows."""

    NEW = "waiting for the first rows"
    READING = "reading the current rows"
    WAITING = "waiting for more rows"


@unique
class ReaderEvent(Enum):
    """Event that changes the state of the reader."""

    ROWS_GIVEN = "rows_given"
    ROWS_WANTED = "rows_wanted"


READER_TRANSITIONS: Mapping[ReaderState, Mapping[ReaderEvent, ReaderState]] = transition_table(
    [
        (ReaderState.NEW, ReaderEvent.ROWS_GIVEN, ReaderState.READING),
        (ReaderState.READING, ReaderEvent.ROWS_WANTED, ReaderState.WAITING),
        (ReaderState.WAITING, ReaderEvent.ROWS_GIVEN, ReaderState.READING),
    ]
)
"""Next state for each state and event. Any other event, such as a second request for rows, changes nothing."""


class IncomingAnswer:
    """The received part of the response to the newest attempt, without the rows that were handed out."""

    def __init__(self) -> None:
        self.status: int = 0
        """HTTP status of the response to the newest attempt; 0 before its head arrives."""
        self.context_id: str | None = None
        """Client context id of the newest attempt, which its response repeats. None if the service repeats no id."""
        self.outcome: Outcome | None = None
        """Outcome of the request; None until it is known. Rows that precede it may still be buffered."""
        self._expected = b""
        """JSON text of ``context_id`` as services usually send it: not escaped, and not cut."""
        self._reader = ReaderState.NEW
        self._is_paused = False
        self._splitter: RowSplitter | None = None
        self._body = bytearray()
        self._rows: list[bytes] = []
        self._rows_size = 0
        self.work: int = 0
        """Units of work of the newest piece."""

    @property
    def is_waited_for(self) -> bool:
        """Whether a reader waits for rows or for the outcome."""
        return self._reader is not ReaderState.READING

    @property
    def has_given_rows(self) -> bool:
        """Whether rows were handed out, so that the request cannot be retried."""
        return self._reader is not ReaderState.NEW

    def begin(self, status: int, *, rows_of: str | None) -> None:
        """Prepare for the body of a response.

        Args:
            status: HTTP status of the response.
            rows_of: key of the array of rows; None for a response without rows.
        """
        self.status = status
        self._splitter = RowSplitter(rows_of) if rows_of is not None else None
        if self._splitter is not None and self.context_id is not None:
            self._splitter.noted_key = MEMBER
            self._expected = f'"{self.context_id}"'.encode(errors="replace")
        self._body.clear()

    def receive(self, data: bytes) -> None:
        """Take a piece of the body.

        Raises:
            ForeignAnswer: the response names another request; its rows are dropped.
            UnreadableAnswer: the response is not a list of rows, or exceeds a size limit.
            DecoderFault: the decoder of rows, or of the client context id, failed.
        """
        self.work = len(data) // BYTES_PER_UNIT
        if self._splitter is None:
            self._body += data
            if len(self._body) > BODY_SIZE_BYTES_MAX:
                raise UnreadableAnswer(f"sent more than {BODY_SIZE_BYTES_MAX} bytes")
            return
        before = self._splitter.work
        try:
            rows = self._splitter.feed(data)
        except MalformedRows as error:
            self._check_noted(self._splitter)
            raise UnreadableAnswer(f"did not send a list of rows: {error}") from None
        except Exception as error:
            raise decoder_faults.unexpected(decoder_faults.Decoder.ROWS, error) from None
        finally:
            self.work += self._splitter.work - before
        if self._splitter.noted is not None and self._splitter.noted != self._expected:
            self._check_noted(self._splitter)
        size = sum(map(len, rows))
        self.work += len(rows) * ROW_WORK + size // PARSED_BYTES_PER_UNIT
        # No reader ever takes the rows of an error, so they are not buffered.
        if self.status == HTTP_OK:
            self._rows += rows
            self._rows_size += size

    def check_whole(self) -> None:
        """Check the client context id of a response that was read whole and has ended.

        Raises:
            ForeignAnswer: the response names another request.
            DecoderFault: the decoder of the id failed.
        """
        if self._splitter is None and self.context_id is not None:
            found = _compared(foreign_id_in, self.context_id, bytes(self._body))
            if found is not None:
                raise _foreign(found)

    def _check_noted(self, splitter: RowSplitter) -> None:
        noted, splitter.noted = splitter.noted, None
        if noted is None or self.context_id is None:
            return
        found = _compared(foreign_id, self.context_id, noted)
        if found is not None:
            self._rows, self._rows_size = [], 0
            raise _foreign(found)

    def pauses(self) -> bool:
        """Return whether reading must pause now, because too many bytes of rows are buffered.

        Raises:
            UnreadableAnswer: reading is paused already, and more than ``HELD_SIZE_BYTES_MAX`` bytes are buffered.
        """
        if self._rows_size >= HELD_SIZE_BYTES and not self._is_paused:
            self._is_paused = True
            return True
        if self._rows_size > HELD_SIZE_BYTES_MAX:
            raise UnreadableAnswer(f"sent more than {HELD_SIZE_BYTES_MAX} bytes of rows that the caller has not read")
        return False

    def resumes(self, *, is_whole: bool = False) -> bool:
        """Return whether paused reading must resume now.

        Args:
            is_whole: whether the response has ended, so that the next bytes are not part of it.
        """
        if self._is_paused and (is_whole or self._rows_size < HELD_SIZE_BYTES):
            self._is_paused = False
            return True
        return False

    def whole(self) -> bytes:
        """Return the body of a response that has ended, without its rows.

        Raises:
            MalformedRows: the body ended early, is malformed, or exceeds its limits.
            DecoderFault: the decoder of rows failed.
        """
        if self._splitter is None:
            body = bytes(self._body)
            excess = BODY_LIMITS.excess(body)
            if excess is not None:
                raise MalformedRows(f"the body has {excess}")
            return body
        try:
            return self._splitter.finish()
        except MalformedRows:
            raise
        except Exception as error:
            raise decoder_faults.unexpected(decoder_faults.Decoder.ROWS, error) from None

    def want(self) -> bool:
        """Record that the reader waits for rows. Return False if it waited already."""
        return self._move_reader(ReaderEvent.ROWS_WANTED)

    def take(self) -> list[bytes] | Outcome | None:
        """Return the next rows, or the outcome if no rows are left. None if no reader waits, or if there is neither."""
        if not self.is_waited_for:
            return None
        if not self._rows:
            return self.outcome
        if len(self._rows) <= ROWS_AT_ONCE_MAX:
            rows, self._rows, self._rows_size = self._rows, [], 0
        else:
            rows, self._rows = self._rows[:ROWS_AT_ONCE_MAX], self._rows[ROWS_AT_ONCE_MAX:]
            self._rows_size -= sum(map(len, rows))
        self._move_reader(ReaderEvent.ROWS_GIVEN)
        return rows

    def _move_reader(self, event: ReaderEvent) -> bool:
        state = READER_TRANSITIONS[self._reader].get(event)
        if state is None:
            return False
        self._reader = state
        return True


def _compared(find: Callable[[str, bytes], str | None], ours: str, theirs: bytes) -> str | None:
    """Return the foreign id that ``find`` finds, or None.

    Raises:
        DecoderFault: ``find`` failed.
    """
    try:
        return find(ours, theirs)
    except Exception as error:
        raise decoder_faults.unexpected(decoder_faults.Decoder.CONTEXT_ID, error) from None


def _foreign(context_id: str) -> ForeignAnswer:
    return ForeignAnswer(f"sent the response to another request, with client context id {context_id!r}")
