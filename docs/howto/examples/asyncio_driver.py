"""The core in asyncio: one class performs the actions of the machine.

Start a node first with ``triclinium serve --port 11210``, and pass its address: ``couchbase://127.0.0.1:11210``.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import itertools
import logging
import math
import random
import secrets
import socket
import ssl
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from triclinium_core import (
    Authenticator,
    CertificateAuthenticator,
    ClientMachine,
    ClientOptions,
    JsonTranscoder,
    PasswordAuthenticator,
)
from triclinium_core.argument_error import ArgumentError
from triclinium_core.client.cluster_machine import ClusterMachine
from triclinium_core.contract import couchbase, neutral
from triclinium_core.errors import CouchbaseException
from triclinium_core.kv.operation.document_operations import Get, Keyspace, Operation, Upsert
from triclinium_core.kv.operation.inquiries import Inquiry
from triclinium_core.kv.operation.results import GetResult, Result
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.services.service_request import ServiceRequest, ServiceResult
from triclinium_core.work import PIECE_SIZE_BYTES_MAX, WORK_BEFORE_TIME_MAX

logger = logging.getLogger("asyncio_driver")

LEVELS = {
    neutral.ReportLevel.DEBUG: logging.DEBUG,
    neutral.ReportLevel.INFO: logging.INFO,
    neutral.ReportLevel.WARNING: logging.WARNING,
}

WRITE_SIZE_MAX = 256 * 1024
"""Maximum number of bytes joined for one write. All count as handed over from its start, hence possibly applied."""

READ_SIZE_MIN = 32 * 1024
"""Minimum number of bytes in one read of asyncio if as many have arrived. After a shorter read, the socket is empty."""

CHECKING_PASSES = 2
"""Passes of the event loop until asyncio has read what has arrived: the first resumes reading, the second reads."""

CAUSES = (
    (socket.gaierror, neutral.LossCause.NAME_NOT_RESOLVED),
    (ssl.SSLError, neutral.LossCause.TLS),
    (ConnectionRefusedError, neutral.LossCause.REFUSED),
    (ConnectionError, neutral.LossCause.RESET),
    (OSError, neutral.LossCause.UNREACHABLE),
    # An invalid host name raises ValueError before a look-up.
    (ValueError, neutral.LossCause.NAME_NOT_RESOLVED),
)
"""Loss cause for each exception that a stream raises; the first matching row applies."""


class ClosedError(Exception):
    """The client was closed before or during the operation."""


Outcome = Result | ServiceResult | couchbase.RowsReceived | Exception
"""Result, rows or exception that ends the wait of a task."""


class Caller(NamedTuple):
    """A task that waits for its operation, or for rows."""

    outcome: asyncio.Future[Outcome]
    context: contextvars.Context


class Rows:
    """Rows of one request. The caller reads them in pieces, and the machine delivers a piece only on demand."""

    def __init__(
        self, client: AsyncioClient, name: str, token: neutral.Token, first: ServiceResult | couchbase.RowsReceived
    ) -> None:
        self.result: ServiceResult | None = None
        """Result of the request, which follows the last row; None before."""
        self.is_over = False
        """Whether the request has ended, or was abandoned."""
        self._client = client
        self._name = name
        self._token = token
        self._rows: Sequence[bytes] = ()
        self._take(first)

    async def pieces(self) -> AsyncIterator[Sequence[bytes]]:
        """Yield the rows as they arrive, each as JSON text. Request a piece only when the caller wants it.

        The exceptions are those of ``AsyncioClient.perform``.
        """
        while self.result is None:
            yield self._rows
            self.is_over = True
            self._take(await self._client.wait(self._name, self._token, couchbase.RowsWanted(self._token)))

    def _take(self, news: Outcome) -> None:
        if isinstance(news, couchbase.RowsReceived):
            self._rows, self.is_over = news.rows, False
        else:
            assert isinstance(news, ServiceResult)
            self._rows, self.result, self.is_over = (), news, True


class AsyncioClient:
    """A driver: it feeds events to the machine, performs its actions, and decides nothing.

    Args:
        machine: makes the decisions; only this driver may call it.
        tls: context for TLS. None, the default, verifies against the system's trust store. For a context that does
            not verify certificates and host names, create the machine with ``ClientOptions(tls_is_verified=False)``.
    """

    def __init__(self, machine: ClusterMachine, tls: ssl.SSLContext | None = None) -> None:
        self.tls = tls or ssl.create_default_context()
        self.loop = asyncio.get_running_loop()
        # Tasks that serve all callers run in this context instead of one caller's.
        self.context = contextvars.copy_context()
        self.unread: set[neutral.StreamId] = set()
        self._machine = machine
        self._is_closed = False
        self._is_feeding = False
        self._happened: deque[couchbase.Event] = deque()
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_time = math.inf
        self._alarm_task: asyncio.Task[None] | None = None
        self._tokens = map(neutral.Token, itertools.count(1))
        self._callers: dict[neutral.Token, Caller] = {}
        self._consultations: dict[neutral.Token, asyncio.Task[None]] = {}
        self._recordings: set[asyncio.Task[None]] = set()
        self._streams: dict[neutral.StreamId, Stream] = {}
        self._execute: dict[type, Callable[[Any], None]] = {
            couchbase.LookUpService: self._look_up,
            neutral.OpenStream: self._open,
            neutral.SendBytes: self._send,
            neutral.CloseStream: self._close,
            neutral.PauseReading: self._pause,
            neutral.ResumeReading: self._resume,
            couchbase.RowsReceived: lambda order: self._settle(order.token, order),
            couchbase.CompleteOperation: lambda order: self._settle(order.token, order.result),
            couchbase.CompleteRequest: lambda order: self._settle(order.token, order.result),
            couchbase.FailOperation: lambda order: self._settle(order.token, order.error),
            neutral.ConsultStrategy: self._consult,
            neutral.AcquirePermit: self._acquire,
            neutral.RecordSuccess: self._record,
            neutral.ReportStrategyError: lambda order: logger.error("%s", order),
            couchbase.ReportRetry: lambda order: logger.debug("%s", order),
            couchbase.ReportRefusal: lambda order: logger.info("%s", order),
            neutral.ReportConnection: lambda order: logger.log(LEVELS[order.level], "%s: %s", order.node, order.text),
            neutral.ReportDecoderFault: lambda order: logger.error("%s", order.node, exc_info=order.fault),
            couchbase.ReportTelemetry: lambda order: logger.info("%s", order.text),
            couchbase.PublishTopology: lambda order: logger.debug("%s", order),
        }
        self.feed(neutral.TimePassed())

    async def perform(self, operation: Operation | Inquiry, strategy: AnyRetryStrategy | None = None) -> Result:
        """Perform ``operation`` and return its result.

        Cancellation abandons the operation; a write may have been applied.

        Args:
            strategy: retry strategy of this operation. None, the default, uses the client's. Ignored for an inquiry.

        Raises:
            ClosedError: the client is closed, or was closed during the operation.
            CouchbaseException: the operation failed.
        """
        token = next(self._tokens)
        if isinstance(operation, Inquiry):
            outcome = await self.wait(operation.name, token, couchbase.InquirySubmitted(token, operation))
        else:
            outcome = await self.wait(operation.name, token, couchbase.OperationSubmitted(token, operation, strategy))
        assert isinstance(outcome, Result)
        return outcome

    @contextlib.asynccontextmanager
    async def ask(self, request: ServiceRequest, strategy: AnyRetryStrategy | None = None) -> AsyncIterator[Rows]:
        """Open the rows of ``request`` for a block, which starts when the first rows or the end have arrived.

        Leaving the block early or cancelling it abandons the request, and the service stops its work.

        Args:
            strategy: see ``perform``, which raises the same exceptions.
        """
        token = next(self._tokens)
        first = await self.wait(request.name, token, couchbase.RequestSubmitted(token, request, strategy))
        assert isinstance(first, ServiceResult | couchbase.RowsReceived)
        rows = Rows(self, request.name, token, first)
        try:
            yield rows
        finally:
            if not rows.is_over:
                self.feed(couchbase.OperationAbandoned(token))

    async def wait(self, name: str, token: neutral.Token, event: couchbase.Event) -> Outcome:
        """Feed the event of a caller, and return or raise the outcome."""
        if self._is_closed:
            raise ClosedError(f"the client is closed, so {name} cannot begin or continue")
        caller = Caller(self.loop.create_future(), contextvars.copy_context())
        self._callers[token] = caller
        self.feed(event)
        try:
            outcome = await caller.outcome
        finally:
            # A caller that is still registered has no outcome, because its task is being cancelled.
            if self._callers.pop(token, None) is not None:
                self._call_off_consultation(token)
                self.feed(couchbase.OperationAbandoned(token))
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def set_authenticator(self, authenticator: Authenticator) -> None:
        """Replace the authenticator of all connections.

        Raises:
            InvalidArgumentException: ``authenticator`` cannot replace the current one; nothing has changed.
            ClosedError: the client is closed.
            OSError: the files of its certificate cannot be read.
        """
        if self._is_closed:
            raise ClosedError("the client is closed, and the authenticator was not set")
        self._machine.check_authenticator(authenticator)
        if isinstance(authenticator, CertificateAuthenticator) and authenticator.cert_path is not None:
            key_password = authenticator.key_password or ""
            self.tls.load_cert_chain(authenticator.cert_path, authenticator.key_path, key_password)
        self.feed(couchbase.AuthenticatorChanged(authenticator, new_nonce()))

    def close(self) -> None:
        """Close all connections immediately; waiting callers get ``ClosedError``."""
        for token in tuple(self._callers):
            self.feed(couchbase.OperationAbandoned(token))
        self._end(ClosedError("the client was closed meanwhile"))

    # -- Events in, actions out.

    def feed(self, event: couchbase.Event) -> None:
        """Feed an event to the machine, and perform its actions in order. Queue events that occur meanwhile."""
        if self._is_closed:
            return
        self._happened.append(event)
        if self._is_feeding:
            return
        self._is_feeding = True
        try:
            while self._happened and not self._is_closed:
                self._handle(self._happened.popleft())
        except BaseException as defect:
            self._end(ClosedError(f"the client has a defect: {defect!r}"))
            raise
        finally:
            self._is_feeding = False

    def _handle(self, event: couchbase.Event) -> None:
        try:
            ordered = self._machine.handle(event, now=self.loop.time())
        except ArgumentError as mistake:
            # The machine refuses an invalid argument of a caller, and the machine's state does not change.
            if not isinstance(
                event, couchbase.OperationSubmitted | couchbase.RequestSubmitted | couchbase.InquirySubmitted
            ):
                raise
            self._settle(event.token, mistake)
            return
        self._carry_out(ordered)
        if self._machine.wakeup < self._alarm_time:
            self._set_alarm()

    def _carry_out(self, ordered: Sequence[couchbase.Action]) -> None:
        for order in ordered:
            self._execute[type(order)](order)

    def _set_alarm(self) -> None:
        """Set the alarm to the machine's ``wakeup``. If ``wakeup`` becomes later, the early alarm is harmless."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_time = self._machine.wakeup
        if not self._is_closed:
            self._alarm = self.loop.call_at(self._alarm_time, self._ring, context=self.context)

    def _ring(self) -> None:
        if self._alarm_task is None:
            self._alarm_task = self.loop.create_task(self._pass_time(), context=self.context)

    async def _pass_time(self) -> None:
        # In a busy program both alarms and reads are late. Read first: the response to an operation whose deadline
        # is due may have arrived. Between two yields of a task asyncio reads once from every stream.
        work_max = self._machine.work + WORK_BEFORE_TIME_MAX
        had_no_turn = set(self._streams)
        while had_no_turn:
            self.unread.clear()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            if self._machine.work >= work_max:
                # A node that never stops sending must not delay deadlines.
                self.unread |= had_no_turn
                break
            had_no_turn = set(self.unread)
        self._alarm_task = None
        self._alarm_time = math.inf
        unsent = {name: stream.handed_over for name, stream in self._streams.items() if stream.is_behind}
        self.feed(neutral.TimePassed(unsent, frozenset(self.unread)))

    # -- Actions.

    def _look_up(self, order: couchbase.LookUpService) -> None:
        # The standard library cannot look up SRV records. Without targets, the machine uses the name as the host.
        self.feed(couchbase.ServiceLookedUp(order.service))

    def _open(self, order: neutral.OpenStream) -> None:
        self._streams[order.stream] = Stream(self, order)

    def _send(self, order: neutral.SendBytes) -> None:
        stream = self._streams.get(order.stream)
        # A stream that is missing here was lost, and the event that reports the loss is queued.
        if stream is not None:
            stream.send(order.data, unless_readable=order.unless_readable)

    def _close(self, order: neutral.CloseStream) -> None:
        stream = self._streams.get(order.stream)
        if stream is not None:
            stream.end(neutral.LossCause.CLOSED_BY_US, order.reason)

    def _pause(self, order: neutral.PauseReading) -> None:
        stream = self._streams.get(order.stream)
        if stream is not None:
            stream.pause_reading()

    def _resume(self, order: neutral.ResumeReading) -> None:
        stream = self._streams.get(order.stream)
        if stream is not None:
            stream.resume_reading()

    def lost(self, stream: Stream, cause: neutral.LossCause, text: str, handed_over: int) -> None:
        """Report the end of a stream."""
        del self._streams[stream.name]
        self.feed(neutral.StreamLost(stream.name, cause, text, handed_over))

    def _settle(self, token: neutral.Token, outcome: Outcome) -> None:
        self._call_off_consultation(token)
        caller = self._callers.pop(token, None)
        # The caller is missing or done if its task was cancelled a moment ago.
        if caller is not None and not caller.outcome.done():
            caller.outcome.set_result(outcome)

    def _consult(self, order: neutral.ConsultStrategy) -> None:
        self._ask(order.token, lambda: order.strategy.retry_after(order.request, order.reason))

    def _acquire(self, order: neutral.AcquirePermit) -> None:
        self._ask(order.token, order.permit.acquire)

    def _ask(self, token: neutral.Token, strategy: Callable[[], Awaitable[object]]) -> None:
        caller = self._callers.get(token)
        if caller is not None:
            task = self.loop.create_task(self._hear(token, strategy), context=caller.context)
            self._consultations[token] = task

    async def _hear(self, token: neutral.Token, strategy: Callable[[], Awaitable[object]]) -> None:
        answer: object = None
        raised: Exception | None = None
        try:
            answer = await strategy()
        except Exception as error:
            raised = error
        # The consultation is missing if it was cancelled after the strategy had returned.
        if self._consultations.pop(token, None) is not None:
            self.feed(neutral.StrategyDecided(token, answer, raised))

    def _record(self, order: neutral.RecordSuccess) -> None:
        task = self.loop.create_task(self._tell(order), context=self.context)
        # The event loop has only weak references to its tasks, so keep a strong one.
        self._recordings.add(task)
        task.add_done_callback(self._recordings.discard)

    async def _tell(self, order: neutral.RecordSuccess) -> None:
        try:
            await order.permit.record()
        except Exception:
            logger.exception("a retry strategy failed to record a success")

    def _call_off_consultation(self, token: neutral.Token) -> None:
        consultation = self._consultations.pop(token, None)
        if consultation is not None:
            consultation.cancel()

    def _end(self, why: Exception) -> None:
        """Settle all callers and close everything; the machine gets no more events."""
        self._is_closed = True
        for alarm in (self._alarm, self._alarm_task):
            if alarm is not None:
                alarm.cancel()
        for token in list(self._callers):
            self._settle(token, why)
        for recording in self._recordings:
            recording.cancel()
        for stream in list(self._streams.values()):
            stream.end(neutral.LossCause.CLOSED_BY_US, "")


class Stream(asyncio.Protocol):
    """One connection, from the order to open it until its loss, which it reports exactly once."""

    def __init__(self, client: AsyncioClient, order: neutral.OpenStream) -> None:
        self.name = order.stream
        self._client = client
        self._is_ended = False
        self._transport: asyncio.Transport | None = None
        self._unsent: deque[bytes] = deque()
        self._is_flush_due = False
        self._is_checking = False
        self._is_paused = False
        self.handed_over = 0
        self._connecting = client.loop.create_task(self._connect(order), context=client.context)

    @property
    def is_behind(self) -> bool:
        """Whether there are bytes that were not handed over."""
        return bool(self._unsent)

    def send(self, data: bytes, *, unless_readable: bool = False) -> None:
        """Write ``data`` after all earlier data. A write joins the data of this pass of the event loop, up to a limit.

        Args:
            unless_readable: whether to end the stream, instead of writing, if unread data has arrived.
        """
        self._unsent.append(data)
        if unless_readable:
            self._is_checking = True
            self._call_soon(self._check, CHECKING_PASSES)
        elif not self._is_flush_due:
            self._is_flush_due = True
            self._call_soon(self._flush)

    def _check(self, passes: int) -> None:
        """Let asyncio read for some passes of the event loop, then write. Data that arrives before ends the stream."""
        if passes:
            self._call_soon(self._check, passes - 1)
        else:
            self._is_checking = False
            self._flush()

    def _call_soon(self, callback: Callable[..., None], *args: object) -> None:
        self._client.loop.call_soon(callback, *args, context=self._client.context)

    def pause_reading(self) -> None:
        """Stop reading, so that data stays in the system's buffer, and then with the peer."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Resume reading."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def end(self, cause: neutral.LossCause, text: str) -> None:
        """Close the stream or stop connecting, and report the loss. Later calls do nothing."""
        if self._is_ended:
            return
        self._is_ended = True
        self._unsent.clear()
        self._connecting.cancel()
        if self._transport is not None:
            self._transport.abort()
        self._client.lost(self, cause, text, self.handed_over)

    async def _connect(self, order: neutral.OpenStream) -> None:
        try:
            await self._try_addresses(order)
        except (OSError, ValueError) as error:
            self._end_with(error)

    async def _try_addresses(self, order: neutral.OpenStream) -> None:
        loop = self._client.loop
        found = await loop.getaddrinfo(order.host, order.port, type=socket.SOCK_STREAM)
        for number, (family, kind, protocol, _, address) in enumerate(found, start=1):
            tcp = socket.socket(family, kind, protocol)
            try:
                tcp.setblocking(False)
                await loop.sock_connect(tcp, address)
            except BaseException as error:
                tcp.close()
                if isinstance(error, OSError) and number < len(found):
                    continue
                raise
            tls, host = (self._client.tls, order.host) if order.tls else (None, None)
            # This call makes asyncio the owner of the socket.
            await loop.create_connection(lambda: self, sock=tcp, ssl=tls, server_hostname=host)
            return

    def _end_with(self, error: Exception) -> None:
        cause = next(cause for kind, cause in CAUSES if isinstance(error, kind))
        self.end(cause, getattr(error, "strerror", None) or str(error) or type(error).__name__)

    def _flush(self) -> None:
        self._is_flush_due = False
        while self._unsent and not self._is_paused and not self._is_checking and self._transport is not None:
            pieces = [self._unsent.popleft()]
            size = len(pieces[0])
            while self._unsent and size + len(self._unsent[0]) <= WRITE_SIZE_MAX:
                pieces.append(self._unsent.popleft())
                size += len(pieces[-1])
            # Data passed to asyncio counts as handed over, even while asyncio buffers it.
            self.handed_over += size
            self._transport.write(b"".join(pieces))

    # -- Callbacks of asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Report that the stream is open."""
        assert isinstance(transport, asyncio.Transport)
        if self._is_ended:
            transport.abort()
            return
        self._transport = transport
        transport.set_write_buffer_limits(high=0)
        local, remote = (address_of(transport.get_extra_info(end)) for end in ("sockname", "peername"))
        self._client.feed(neutral.StreamOpened(self.name, new_nonce(), local, remote))

    def data_received(self, data: bytes) -> None:
        """Feed the data in bounded pieces."""
        for start in range(0, len(data), PIECE_SIZE_BYTES_MAX):
            # If the machine ordered a checked request after the previous piece, this piece is unsolicited.
            if self._is_checking:
                self.end(neutral.LossCause.UNSOLICITED, "")
            if self._is_ended:
                return
            self._client.feed(neutral.BytesReceived(self.name, data[start : start + PIECE_SIZE_BYTES_MAX]))
        if len(data) >= READ_SIZE_MIN:
            self._client.unread.add(self.name)

    def pause_writing(self) -> None:
        """Keep unsent data, because the peer does not read."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """Resume writing, beginning with the unsent data."""
        self._is_paused = False
        self._flush()

    def eof_received(self) -> None:
        """Report the loss now: asyncio would first write data that the peer may never read."""
        self._end_as_closed()

    def connection_lost(self, error: Exception | None) -> None:
        """Report the loss."""
        if error is None:
            self._end_as_closed()
        else:
            self._end_with(error)

    def _end_as_closed(self) -> None:
        """Report that the peer has closed the stream. Over TLS asyncio does not report a close_notify."""
        is_tls = self._transport is not None and self._transport.get_extra_info("ssl_object") is not None
        self.end(neutral.LossCause.TRUNCATED if is_tls else neutral.LossCause.END_OF_STREAM, "")


def new_nonce() -> str:
    """Return 24 random bytes as printable ASCII without a comma."""
    return secrets.token_urlsafe(24)


def address_of(name: tuple[str, int, *tuple[int, ...]]) -> str:
    """Return the address of a socket's end as ``host:port``."""
    host, port = name[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def main(connection_string: str) -> None:
    """Write and read a document, read a missing one, and run a query."""
    authenticator = PasswordAuthenticator("Administrator", "password")
    options = ClientOptions(connection_string=connection_string, authenticator=authenticator)
    people = Keyspace("default")
    document = JsonTranscoder().encode({"born": 1815})

    with contextlib.closing(AsyncioClient(ClientMachine(options, rng=random.Random()))) as client:
        await client.perform(Upsert(people, "ada", document.data, document.flags))
        found = await client.perform(Get(people, "ada"))
        assert isinstance(found, GetResult)
        print(found.content)
        try:
            await client.perform(Get(people, "bob"))
        except CouchbaseException as error:
            print(f"{type(error).__name__}: {error}")
        async with client.ask(QueryRequest(statement="SELECT 1 AS one", readonly=True)) as rows:
            async for piece in rows.pieces():
                print(*(row.decode() for row in piece), sep="\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python asyncio_driver.py CONNECTION_STRING, such as couchbase://127.0.0.1:11210")
    asyncio.run(main(sys.argv[1]))
