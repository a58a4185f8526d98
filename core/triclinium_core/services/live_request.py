"""One request on its way: what the client keeps of it between submission and settlement."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from triclinium_core.client.events import StreamId, Token
from triclinium_core.client.timers import TimerId
from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import CouchbaseException
from triclinium_core.kv.address import Address
from triclinium_core.retry.combined.request_tokens import AnyRequestTokens
from triclinium_core.retry.couchbase.machine import RetryMachine
from triclinium_core.services.endpoint import Endpoint
from triclinium_core.services.request import Encoding, ServiceRequest, ServiceResult
from triclinium_core.services.rows import RowSplitter
from triclinium_core.services.statement.request import StatementRequest
from triclinium_core.telemetry.facts import OperationFacts, microseconds, milliseconds
from triclinium_core.telemetry.past_attempts import PastAttempts
from triclinium_core.telemetry.span_names import SPAN_NAMES

HELD_SIZE_BYTES = 256 * 1024
"""Rows that nobody has asked for yet: from here on nothing more is read."""
HELD_SIZE_BYTES_MAX = 16 * 1024 * 1024
"""Where rows come although reading was to pause: a driver that ignores that gets the request failed here."""
BODY_SIZE_BYTES_MAX = 32 * 1024 * 1024
"""Of an answer that is read whole: ten times the largest configs and lists that services answer."""


class SentPing(NamedTuple):
    """How a ping left the client."""

    stream: StreamId
    local_address: str | None
    """Our end of the stream, where the driver told."""
    at: float


@dataclass(slots=True, eq=False)
class LiveRequest:
    """One request, its newest attempt, and what has come of the answer. Instants are monotonic seconds."""

    token: int
    request: ServiceRequest
    retry: RetryMachine
    timeout: float
    """Seconds for the first rows or the whole answer, and then for each further piece that is wanted."""
    message: ServiceRequest
    """What the newest attempt sends: the request itself, or what has to go before it."""
    tokens: AnyRequestTokens | None = None
    """What a token strategy has lent the request; None under Couchbase's strategies."""
    pinned: Endpoint | None = None
    """Where alone it may go, whatever the breaker says; None for any endpoint of its service."""
    owner: object = None
    """Which part of the client asked, by a ping; None where a user did."""
    sent: SentPing | None = None
    """Of a ping alone; None until it is sent."""
    deadline_timer: TimerId | None = None
    retry_timer: TimerId | None = None
    endpoint: Endpoint | None = None
    """Where the newest attempt waits, or travels."""
    stream: StreamId | None = None
    """On which it travels; None while it does not."""
    failed_at: Address | None = None
    """Where the newest attempt that failed had gone."""
    status: int = 0
    """HTTP status of the answer that is coming."""
    splitter: RowSplitter | None = None
    body: bytearray = field(default_factory=bytearray)
    """Of an answer without rows, what has come."""
    rows: list[bytes] = field(default_factory=list)
    """Rows that nobody has asked for yet."""
    rows_size: int = 0
    """Their bytes."""
    wants_rows: bool = True
    """Whether somebody waits for rows, or for the end."""
    has_given_rows: bool = False
    """Whether rows were handed out, so that nothing can be retried."""
    is_paused: bool = False
    """Whether reading was to pause."""
    traced_as: Token | None = None
    """Whose attempts these are to a tracer: the request's own, or those of who pings; None where nobody is told."""
    encoding: Encoding | None = None
    """Has the payload of each attempt encoded; None where nobody measures that."""
    encode_seconds: float | None = None
    """How long that took, of all attempts together; None before, and where there is nothing to encode."""
    dispatched_at: float | None = None
    """When the attempt was sent that is not over; None while there is none."""
    dispatched_on: StreamId | None = None
    """The stream of the newest attempt, which may be gone."""
    past: PastAttempts | None = None
    """The attempts that are over; None before there is one."""
    sockets: tuple[str | None, str] | None = None
    """Our end and the node's, ``host:port``, of the stream on which the newest attempt was sent."""
    outcome: ServiceResult | CouchbaseException | None = None
    """What the request comes to, once that is known; the rows before it may still have to be taken."""

    @property
    def deadline(self) -> float:
        """When the request, or its first rows, are due."""
        return self.retry.annotation.deadline

    @property
    def operation_id(self) -> str | None:
        """What the server's logs call a statement; None for all other requests (SDK-RFC 0067 "Operation ID")."""
        return self.request.client_context_id or None if isinstance(self.request, StatementRequest) else None

    def end_attempt(self, now: float) -> bool:
        """Measure the attempt that is over; return whether there was one."""
        if self.dispatched_at is None:
            return False
        self.past = self.past or PastAttempts()
        self.past.add(now - self.dispatched_at, None)
        self.dispatched_at = None
        return True

    def facts(self, now: float) -> OperationFacts:
        """Return what is told of the request that is over now."""
        past, (local, remote) = self.past, self.sockets or (None, None)
        return OperationFacts(
            service=self.request.service,
            operation_name=SPAN_NAMES[self.request.name],
            total_duration_us=microseconds(now - self.retry.annotation.submitted_at),
            encode_duration_us=microseconds(self.encode_seconds) if self.encode_seconds is not None else None,
            last_dispatch_duration_us=microseconds(past.last) if past is not None else None,
            total_dispatch_duration_us=microseconds(past.total) if past is not None else None,
            operation_id=self.operation_id,
            last_local_socket=local,
            last_remote_socket=remote,
            timeout_ms=milliseconds(self.timeout),
        )

    def begin_answer(self, status: int) -> None:
        """Prepare for the body of an answer."""
        self.status = status
        key = self.message.rows_of
        self.splitter = RowSplitter(key) if key is not None else None
        self.body.clear()
        self.drop_rows()

    def leave_endpoint(self) -> None:
        """Stand nowhere, because the newest attempt has failed, and remember where that was."""
        if self.endpoint is not None:
            self.failed_at = self.endpoint.address
        self.endpoint = None

    def drop_rows(self) -> None:
        """Forget the rows that nobody has asked for."""
        self.rows, self.rows_size = [], 0

    def take_rows(self) -> list[bytes]:
        """Return the rows that have come, once."""
        rows = self.rows
        self.drop_rows()
        self.has_given_rows = True
        self.wants_rows = False
        return rows

    def abandoned_context(self, now: float) -> ErrorContext:
        """Return what is known of the request if it is given up now."""
        context = replace(self.retry.error_context(now), state=self.retry.state.value)
        if self.endpoint is not None and self.stream is None:
            context = replace(context, last_dispatch_error=waits_for(self.endpoint))
        elif self.tokens is not None and self.tokens.obstacle is not None:
            context = replace(context, last_dispatch_error=self.tokens.obstacle)
        return context


def waits_for(endpoint: Endpoint | None) -> str:
    """Return in words what a request waits for that was not sent."""
    if endpoint is None:
        return "no cluster config has come yet, which tells where the services are"
    why = f" ({endpoint.last_error})" if endpoint.last_error else ""
    return f"no connection to {endpoint.node} is {'open' if endpoint.opening else 'free'} yet{why}"
