"""Laws of requests to services: the results that readers get, and the attempts that nodes receive.

*Safety*: a client sends a non-idempotent request once, and again only after a service refused it. A node applies the
request at most once, and never if the client informed the caller that it was not applied. The reader gets each row
once, in order, only on request, and nothing after the end. The buffer for a reader that requests nothing is bounded.
*Liveness*: a request fails only if it was drawn to fail, or because of a problem that its strategy cannot survive. The
client reads each stream whose reader waits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from triclinium_core import errors
from triclinium_core.contract.couchbase import ReportRetry
from triclinium_core.retry.couchbase import RetryReason, may_be_applied
from triclinium_core.services.answer.incoming_answer import HELD_SIZE_BYTES
from triclinium_core.shown import total_repr
from triclinium_core.testing.fakes import faults
from triclinium_core.testing.fakes.services.faults import CloseAnnounced, CutBody
from triclinium_core.testing.fakes.services.request_log import LoggedRequest
from triclinium_core.testing.oracle.ledger import SURVIVABLE_DELAY
from triclinium_core.testing.oracle.submissions import Instant, Violation
from triclinium_core.testing.request_templates import DrawnRequest, RequestKey, is_preparation, key_of

SURVIVABLE_STRIKES = 3
"""Maximum number of survivable faults that leave enough time for a response."""

READ_SIZE = 64 * 1024
"""Number of bytes that a driver reads in one call."""
HELD_SIZE_MAX = HELD_SIZE_BYTES + 3 * READ_SIZE
"""Maximum number of unrequested bytes in a client: up to the pause, the read that caused it, and reads in progress."""

REFUSALS = frozenset(
    {
        RetryReason.QUERY_INDEX_NOT_FOUND,
        RetryReason.QUERY_PREPARED_STATEMENT_FAILURE,
        RetryReason.ANALYTICS_TEMPORARY_FAILURE,
    }
)
"""Retry reasons, taken from a response, which imply that the service did nothing."""


@dataclass(slots=True, eq=False)
class Asked:
    """One submitted request."""

    token: int
    drawn: DrawnRequest
    begin: Instant
    is_patient: bool
    """Whether the request's strategy survives faults that permit a retry."""
    was_ill: bool
    """Whether the client was not ready when the request was submitted."""
    is_open: bool = True
    wants_rows: bool = True
    rows: list[bytes] = field(default_factory=list)
    times_sent: int = 0
    """Number of times that the client sent bytes of the request, without preparations."""
    times_permitted: int = 1
    times_applied: int = 0
    """Number of times that a node carried the request out."""
    retries: int = 0
    strikes: list[bool] = field(default_factory=list)
    """For each fault that struck the request, whether a patient client survives the fault."""
    is_forged: bool = False
    """Whether a fault struck the connection earlier, so that the response may belong to another request."""
    is_void: bool = False
    """Whether the caller was informed that the request is not applied."""

    @total_repr
    def __repr__(self) -> str:
        return f"request {self.token} ({self.drawn.request.name} {self.drawn.key[1].decode()})"

    @property
    def is_idempotent(self) -> bool:
        """Whether the client may send the request again at any stage."""
        return self.drawn.request.idempotent


class RequestBook:
    """All requests of the clients of one cluster. Recording an event that breaks a law raises ``Violation``."""

    def __init__(self, timeouts_least: float) -> None:
        self._timeouts_least = timeouts_least
        """Number of requests that must time out before a breaker may open."""
        self._timeouts = 0
        self._asked: dict[int, Asked] = {}
        self._by_key: dict[RequestKey, Asked] = {}
        self._ordered: defaultdict[int, int] = defaultdict(int)
        """Number of bytes that a client ordered to send, by stream."""
        self._unsent: defaultdict[int, list[tuple[Asked, int]]] = defaultdict(list)
        """Requests of which the client has sent no byte, and their offsets, by stream."""
        self._carried: dict[int, Asked] = {}
        """Last request on each stream."""
        self._came: defaultdict[int, int] = defaultdict(int)
        """Number of bytes that the client received after the last request, by stream."""
        self._struck: set[int] = set()
        self._lost_at: Instant = (-1.0, 0)
        """Time at which a connection without an open request was last lost or refused."""

    def __contains__(self, token: int) -> bool:
        return token in self._asked

    def __getitem__(self, token: int) -> Asked:
        return self._asked[token]

    @property
    def open(self) -> list[Asked]:
        """Requests with callers that wait or hold rows, oldest first."""
        return [asked for asked in self._asked.values() if asked.is_open]

    # Actions of callers.

    def submitted(self, token: int, drawn: DrawnRequest, begin: Instant, *, is_patient: bool, is_ill: bool) -> None:
        """Record that a request is about to be submitted."""
        self._asked[token] = self._by_key[drawn.key] = Asked(token, drawn, begin, is_patient, is_ill)

    def wanted(self, token: int) -> None:
        """Record that a reader has taken its rows and waits for more."""
        self._asked[token].wants_rows = True

    def abandoned(self, token: int, *, ambiguous: bool) -> None:
        """Record that a caller left; ``ambiguous`` means that the client reports the request as possibly applied."""
        asked = self._asked[token]
        asked.is_open = False
        if not ambiguous:
            self._void(asked)

    # Actions of clients.

    def ordered(self, stream: int, data: bytes) -> None:
        """Record bytes that a client ordered to send to a service: one complete request."""
        begin = self._ordered[stream]
        self._ordered[stream] += len(data)
        key = key_of(data.partition(b" ")[0], data)
        if key is None:
            self._carried.pop(stream, None)
            return
        asked = self._by_key[key]
        if not asked.is_open:
            raise Violation(f"{asked} is sent after its caller left or got its result")
        if stream in self._struck:
            asked.is_forged = True
        self._carried[stream], self._came[stream] = asked, 0
        if not is_preparation(data):
            self._unsent[stream].append((asked, begin))

    def left(self, stream: int, handed_over: int) -> None:
        """Record the total number of bytes of a stream that have left the client."""
        for asked, begin in self._unsent.pop(stream, []):
            if begin >= handed_over:
                self._unsent[stream].append((asked, begin))
                continue
            asked.times_sent += 1
            if not asked.is_idempotent and asked.times_sent > asked.times_permitted:
                raise Violation(f"{asked} was sent {asked.times_sent} times, although it may have been applied before")

    def retried(self, token: int, report: ReportRetry) -> None:
        """Record a retry that the client reports. The rules must permit it."""
        asked = self._asked[token]
        if not asked.is_open:
            raise Violation(f"{asked} is retried after it was settled")
        if asked.rows:
            raise Violation(f"{asked} is retried for {report.reason} after rows were handed out")
        if not asked.is_idempotent and not report.reason.allows_non_idempotent_retry:
            raise Violation(f"{asked} is retried for {report.reason}: it may have been applied")
        asked.retries += report.dispatches
        asked.times_permitted += report.reason in REFUSALS

    def handed_out(self, token: int, rows: Sequence[bytes]) -> None:
        """Record rows that a reader gets: they must be the next rows, and the reader must be waiting."""
        asked = self._open(token, "gets rows")
        if not asked.wants_rows or not rows:
            raise Violation(f"{asked} hands out rows, {len(rows)} in all, but its reader {_waits(asked)}")
        asked.wants_rows = False
        asked.rows += rows
        if not asked.is_forged and [*asked.drawn.rows[: len(asked.rows)]] != asked.rows:
            raise Violation(f"{asked} handed out rows {asked.rows!r}, which are not its first rows")

    def completed(self, token: int) -> None:
        """Record a success. A node must have applied the request, and no row may be missing."""
        asked = self._close(token)
        if asked.is_forged:
            return
        if asked.drawn.error is not None:
            raise Violation(f"{asked} succeeded; expected {asked.drawn.error.__name__}")
        if len(asked.rows) != len(asked.drawn.rows):
            raise Violation(f"{asked} ended after {len(asked.rows)} of {len(asked.drawn.rows)} rows")
        if not asked.times_applied:
            raise Violation(f"{asked} succeeded, but no node has executed it")

    def failed(
        self, token: int, error: errors.CouchbaseException, troubled_at: Instant, *, was_held_back: bool = False
    ) -> None:
        """Record a failure. It requires an excuse, unless the request was drawn to fail.

        Args:
            troubled_at: time of the last problem of any node.
            was_held_back: whether a strategy delayed the request, which is an excuse.
        """
        asked = self._close(token)
        self._timeouts += isinstance(error, errors.TimeoutException)
        if error.context.retry_attempts != asked.retries:
            raise Violation(
                f"{asked} reports retry_attempts={error.context.retry_attempts}, but the number of retries is {asked.retries}"
            )
        if not may_be_applied(error) and not asked.rows:
            self._void(asked)
        refused = error.context.refused_reason
        if refused is not None and RetryReason[refused].always_retry:
            raise Violation(f"{asked} is not retried for {refused}, which is always retried")
        drawn = asked.drawn.error
        is_as_drawn = drawn is not None and isinstance(error, drawn) and len(asked.rows) == len(asked.drawn.rows)
        if not is_as_drawn and not was_held_back and not self._is_excused(asked, error, troubled_at):
            raise Violation(f"{asked} failed without a cause: {type(error).__name__}: {error}")

    # Events of nodes and streams, and checks.

    def logged(self, entry: LoggedRequest) -> None:
        """Record a request at a node, and the fault that struck it."""
        key = key_of(entry.method.encode(), entry.body + entry.target.encode())
        asked = self._by_key.get(key) if key is not None else None
        if entry.fault is not None:
            self._struck.add(entry.connection)
        if asked is None:
            return
        if entry.fault is not None:
            asked.strikes.append(_is_survivable(entry.fault, is_idempotent=asked.is_idempotent))
        if entry.applied and not is_preparation(entry.body):
            asked.times_applied += 1
            self._check_applied(asked)

    def delivered(self, stream: int, size: int, *, is_paused: bool) -> None:
        """Record bytes that a client has read. If the reader does not request rows, the number of bytes is limited."""
        self._came[stream] += size
        asked = self._carried.get(stream)
        if asked is None or asked.wants_rows or asked.strikes or asked.is_forged:
            return
        held = self._came[stream] - sum(map(len, asked.rows))
        if held > HELD_SIZE_MAX and not is_paused:
            raise Violation(
                f"{asked} holds {held} bytes that its reader has not requested, but its stream is still read"
            )

    def lost(self, stream: int, instant: Instant) -> None:
        """Record the loss of a stream that the client did not close."""
        asked = self._carried.pop(stream, None)
        if asked is not None and asked.is_open:
            asked.strikes.append(asked.is_idempotent)
        else:
            self._lost_at = instant

    def recovered(self) -> None:
        """Record that there are no problems any more, so that no circuit breaker has a reason to be open."""
        self._timeouts = 0

    def check_pauses(self, paused: Iterable[int]) -> None:
        """Check that each paused stream carries an open request whose reader does not wait."""
        for stream in paused:
            asked = self._carried.get(stream)
            if asked is None or not asked.is_open or asked.wants_rows:
                raise Violation(f"stream {stream} is paused, but no reader is behind on it: {asked}")

    def _open(self, token: int, what: str) -> Asked:
        asked = self._asked[token]
        if not asked.is_open:
            raise Violation(f"{asked} {what} after its caller left or got its result")
        return asked

    def _close(self, token: int) -> Asked:
        asked = self._open(token, "is settled")
        if not asked.wants_rows:
            raise Violation(f"{asked} is settled, but its reader {_waits(asked)}")
        asked.is_open = False
        return asked

    def _void(self, asked: Asked) -> None:
        asked.is_void = True
        self._check_applied(asked)

    def _check_applied(self, asked: Asked) -> None:
        if asked.is_idempotent:
            return
        # The log counts a scripted error as carried out, although the service did nothing.
        times = asked.times_applied - asked.drawn.refusals
        if times > 1:
            raise Violation(f"{asked} was applied {times} times")
        if times > 0 and asked.is_void and asked.drawn.error is None:
            raise Violation(f"{asked} was applied, but its error rules that out")

    def _is_excused(self, asked: Asked, error: errors.CouchbaseException, troubled_at: Instant) -> bool:
        reasons = {*error.context.retry_reasons, error.context.refused_reason}
        is_struck_down = not all(asked.strikes) or len(asked.strikes) > SURVIVABLE_STRIKES or bool(asked.rows)
        needs_patience = bool(asked.strikes or asked.drawn.refusals or asked.drawn.is_prepared)
        return (
            asked.was_ill
            or asked.is_forged
            or max(troubled_at, self._lost_at) > asked.begin
            or (bool(asked.strikes) and is_struck_down)
            or (needs_patience and not asked.is_patient)
            or (RetryReason.CIRCUIT_BREAKER_OPEN in reasons and self._timeouts >= self._timeouts_least)
        )


def _waits(asked: Asked) -> str:
    return "waits for rows" if asked.wants_rows else "has not requested more"


def _is_survivable(fault: faults.ServiceFault, *, is_idempotent: bool) -> bool:
    """Return whether a patient client gets a response even if ``fault`` strikes a request a few times."""
    match fault:
        case faults.Delay(seconds):
            return seconds <= SURVIVABLE_DELAY
        case CloseAnnounced():
            return True
        case faults.HangUpBeforeApplying() | faults.HangUpAfterApplying() | faults.HangUpMidReply() | CutBody():
            return is_idempotent
        case _:
            return False
