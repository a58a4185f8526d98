"""The answer to one request while it arrives: body or rows, their reader, and pauses of reading.

An answer without rows is kept whole. Rows are handed out as soon as somebody waits for them; what comes before that is
held, and from a bound on nothing more is to be read until it is taken. Behind the last row stands what the request comes
to. Whoever has had rows may not get them a second time.

Source: decisions C22 and C24.
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
"""Bytes of rows that are not requested yet; with more, reading pauses."""
HELD_SIZE_BYTES_MAX = 16 * 1024 * 1024
"""Where rows come although reading was to pause: a driver that ignores that gets the request failed here."""
BODY_SIZE_BYTES_MAX = 32 * 1024 * 1024
"""Of an answer that is read whole: ten times the largest configs and lists that services answer."""
BODY_LIMITS = JsonLimits(size_bytes_max=BODY_SIZE_BYTES_MAX, objects_max=65_536, parts_max=524_288)
"""Limits of an answer that is read whole: lists of some thousand users or indexes, and thirty buckets with the maps of
all vbuckets. Each object of a list takes 0.5 to 3 microseconds, so these limits permit more than 50 milliseconds: the
caller has requested the list, and a large cluster has a long one."""
ROWS_AT_ONCE_MAX = 8192
"""Maximum number of rows that are handed out together. Their reader decodes them without a pause, at some microseconds
each."""
HTTP_OK = 200
"""Rows of any other answer belong to an error."""

Outcome = ServiceResult | errors.CouchbaseException
"""What a request comes to."""


class UnreadableAnswer(ValueError):
    """What comes is not to be read on; the text says what the node did, as in "did not answer a list of rows"."""


class ForeignAnswer(ValueError):
    """An answer to another request. The text says what the node did."""


@unique
class ReaderState(Enum):
    """How whoever asked stands to the rows."""

    NEW = "waits, and has had none"
    READING = "has some to read"
    WAITING = "has read them, and waits for more"


@unique
class ReaderEvent(Enum):
    """What happens to a reader."""

    ROWS_GIVEN = "rows_given"
    ROWS_WANTED = "rows_wanted"


READER_TRANSITIONS: Mapping[ReaderState, Mapping[ReaderEvent, ReaderState]] = transition_table(
    [
        (ReaderState.NEW, ReaderEvent.ROWS_GIVEN, ReaderState.READING),
        (ReaderState.READING, ReaderEvent.ROWS_WANTED, ReaderState.WAITING),
        (ReaderState.WAITING, ReaderEvent.ROWS_GIVEN, ReaderState.READING),
    ]
)
"""The state that an event leads to. Whoever waits and asks again is as far as before."""


class IncomingAnswer:
    """What has come of the answer to the newest attempt, and is not handed out yet."""

    def __init__(self) -> None:
        self.status: int = 0
        """HTTP status of the answer to the newest attempt; 0 before its head has come."""
        self.context_id: str | None = None
        """Client context id of the newest attempt, which its answer repeats. None if the service repeats no id."""
        self.outcome: Outcome | None = None
        """What the request comes to, once that is known; the rows before it may still have to be taken."""
        self._expected = b""
        """JSON text of the id as most services send it: not escaped, and not cut."""
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
        """Whether somebody waits for rows, or for the end."""
        return self._reader is not ReaderState.READING

    @property
    def has_given_rows(self) -> bool:
        """Whether rows were handed out, so that nothing can be retried."""
        return self._reader is not ReaderState.NEW

    def begin(self, status: int, *, rows_of: str | None) -> None:
        """Prepare for the body of an answer.

        Args:
            rows_of: the key of its rows; None for an answer without rows.
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
            ForeignAnswer: the answer names another request; its rows are dropped.
            UnreadableAnswer: the answer is not a list of rows, or is too large to be read whole.
            DecoderFault: the decoder of rows, or of the client context id, failed.
        """
        self.work = len(data) // BYTES_PER_UNIT
        if self._splitter is None:
            self._body += data
            if len(self._body) > BODY_SIZE_BYTES_MAX:
                raise UnreadableAnswer(f"answered more than {BODY_SIZE_BYTES_MAX} bytes")
            return
        before = self._splitter.work
        try:
            rows = self._splitter.feed(data)
        except MalformedRows as error:
            self._check_noted(self._splitter)
            raise UnreadableAnswer(f"did not answer a list of rows: {error}") from None
        except Exception as error:
            raise decoder_faults.unexpected(decoder_faults.Decoder.ROWS, error) from None
        finally:
            self.work += self._splitter.work - before
        if self._splitter.noted is not None and self._splitter.noted != self._expected:
            self._check_noted(self._splitter)
        size = sum(map(len, rows))
        self.work += len(rows) * ROW_WORK + size // PARSED_BYTES_PER_UNIT
        # Those of an error would be held until somebody wants them, and nobody ever does.
        if self.status == HTTP_OK:
            self._rows += rows
            self._rows_size += size

    def check_whole(self) -> None:
        """Check an answer that was read whole and has ended.

        Raises:
            ForeignAnswer: the answer names another request.
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
        """Return whether reading is to pause from now on, for too much of what nobody has taken is held.

        Raises:
            UnreadableAnswer: it was to pause before, and far more came.
        """
        if self._rows_size >= HELD_SIZE_BYTES and not self._is_paused:
            self._is_paused = True
            return True
        if self._rows_size > HELD_SIZE_BYTES_MAX:
            raise UnreadableAnswer(f"sent {HELD_SIZE_BYTES_MAX} bytes of rows that were not requested")
        return False

    def resumes(self, *, is_whole: bool = False) -> bool:
        """Return whether reading, which was to pause, is to go on from now on.

        Args:
            is_whole: whether the answer has ended, so that what comes next is not its own.
        """
        if self._is_paused and (is_whole or self._rows_size < HELD_SIZE_BYTES):
            self._is_paused = False
            return True
        return False

    def whole(self) -> bytes:
        """Return the body of an answer that has ended, without its rows.

        Raises:
            MalformedRows: it ended early, holds no list of rows, or has more parts than ``BODY_LIMITS`` permit.
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
        """Record that somebody wants more rows; return whether that is news."""
        return self._hear(ReaderEvent.ROWS_WANTED)

    def take(self) -> list[bytes] | Outcome | None:
        """Return the received rows, each once, or else the end. None without a reader or without rows."""
        if not self.is_waited_for:
            return None
        if not self._rows:
            return self.outcome
        if len(self._rows) <= ROWS_AT_ONCE_MAX:
            rows, self._rows, self._rows_size = self._rows, [], 0
        else:
            rows, self._rows = self._rows[:ROWS_AT_ONCE_MAX], self._rows[ROWS_AT_ONCE_MAX:]
            self._rows_size -= sum(map(len, rows))
        self._hear(ReaderEvent.ROWS_GIVEN)
        return rows

    def _hear(self, event: ReaderEvent) -> bool:
        state = READER_TRANSITIONS[self._reader].get(event)
        if state is None:
            return False
        self._reader = state
        return True


def _compared(find: Callable[[str, bytes], str | None], ours: str, theirs: bytes) -> str | None:
    """Return the foreign id that ``find`` finds.

    Raises:
        DecoderFault: it failed.
    """
    try:
        return find(ours, theirs)
    except Exception as error:
        raise decoder_faults.unexpected(decoder_faults.Decoder.CONTEXT_ID, error) from None


def _foreign(context_id: str) -> ForeignAnswer:
    return ForeignAnswer(f"sent the answer to another request, with client context id {context_id!r}")
