"""The core in asyncio: ``AsyncioClient`` performs the actions of the machine, and ``Stream`` those of one connection.

Start a node first with ``triclinium serve --port 11210``, and pass its address: ``couchbase://127.0.0.1:11210``.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import random
import secrets
import ssl
import sys
from collections import deque
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

from triclinium_core import ClientMachine, ClientOptions, JsonTranscoder, PasswordAuthenticator
from triclinium_core.contract import couchbase, neutral
from triclinium_core.errors import CouchbaseException
from triclinium_core.kv.operation.document_operations import Get, Keyspace, Operation, Upsert
from triclinium_core.kv.operation.inquiries import Inquiry
from triclinium_core.kv.operation.results import GetResult, Result
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.services.service_request import ServiceRequest, ServiceResult

READ_SIZE_MIN = 32 * 1024
"""Minimum number of bytes in one read of asyncio if as many have arrived. After a shorter read, the socket is empty."""

CHECKING_PASSES = 2
"""Passes of the event loop until asyncio has read what has arrived: the first resumes reading, the second reads."""


class Waiter(NamedTuple):
    """A task that waits for the outcome of its operation, or for rows."""

    outcome: asyncio.Future[object]
    context: contextvars.Context


class Rows:
    """Rows of one request, each as JSON text. The service sends more rows only as the caller reads them."""

    def __init__(self, client: AsyncioClient, token: neutral.Token) -> None:
        self.arrived = deque[bytes]()
        """Rows that the loop returns without waiting."""
        self.result: ServiceResult | None = None
        """Result of the request, which follows the last row; None before."""
        self._client = client
        self._token = token

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the rows. The exceptions are those of ``AsyncioClient.perform``."""
        while self.arrived or self.result is None:
            if self.arrived:
                yield self.arrived.popleft()
            else:
                await self.receive(couchbase.RowsWanted(self._token))

    async def receive(self, event: couchbase.Event) -> None:
        """Feed an event of the caller, and wait for rows or the result."""
        outcome = await self._client.outcome(self._token, event)
        if isinstance(outcome, couchbase.RowsReceived):
            self.arrived.extend(outcome.rows)
        elif isinstance(outcome, ServiceResult):
            self.result = outcome


class AsyncioClient(couchbase.ClientDriver[Waiter, "Stream"]):
    """Driver of the client machine in the running event loop.

    Args:
        machine: makes the decisions; only this driver may call it.
        tls: context for TLS; by default, one that verifies against the system's trust store. For a context that does
            not verify certificates and host names, create the machine with ``ClientOptions(tls_is_verified=False)``.
    """

    def __init__(self, machine: couchbase.DrivenClient, tls: ssl.SSLContext | None = None) -> None:
        self.tls = tls or ssl.create_default_context()
        self.loop = asyncio.get_running_loop()
        super().__init__(
            machine,
            now=self.loop.time,
            open_stream=partial(Stream, self),
            make_nonce=partial(secrets.token_urlsafe, 24),
            log=logging.getLogger("asyncio_driver"),
        )
        # Streams and alarms serve all callers, so events are handled in this context instead of one caller's.
        self._context = contextvars.copy_context()
        self._alarm: asyncio.TimerHandle | None = None
        self._tasks = set[asyncio.Task[None]]()
        self.feed(neutral.TimePassed())

    async def perform(self, operation: Operation | Inquiry, strategy: AnyRetryStrategy | None = None) -> Result:
        """Perform ``operation`` and return its result. Cancellation abandons it; a write may have been applied.

        Raises:
            ClosedError: the client is closed, or was closed during the operation.
            CouchbaseException: the operation failed.
        """
        token = next(self.tokens)
        outcome = await self.outcome(token, self.submission(token, operation, strategy))
        assert isinstance(outcome, Result)
        return outcome

    @asynccontextmanager
    async def request(self, request: ServiceRequest, strategy: AnyRetryStrategy | None = None) -> AsyncIterator[Rows]:
        """Open the rows of ``request`` for a block, which starts when the first rows or the end have arrived.

        Leaving the block early abandons the request, and the service stops its work. Otherwise like ``perform``.
        """
        token, reason = next(self.tokens), couchbase.AbandonReason.CANCELLED
        rows = Rows(self, token)
        try:
            await rows.receive(self.submission(token, request, strategy))
            yield rows
            reason = couchbase.AbandonReason.NOT_NEEDED
        finally:
            self.leave(token, event=couchbase.OperationAbandoned(token, reason=reason))

    async def outcome(self, token: neutral.Token, event: couchbase.Event) -> object:
        """Feed an event of a caller, and return or raise its next outcome. Cancellation abandons the submission."""
        earlier, waiter = self.waiters.get(token), Waiter(self.loop.create_future(), contextvars.copy_context())
        if earlier is not None and not earlier.outcome.done():
            raise RuntimeError("another task waits for these rows; only one task may read them")
        self.wait({token: waiter}, event)
        try:
            outcome = await waiter.outcome
        except BaseException:
            # An outcome that arrived a moment ago, such as rows, is lost.
            self.leave(token)
            raise
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def close(self) -> None:
        """Close all connections immediately; waiting callers get ``ClosedError``."""
        super().close()
        if self._alarm is not None:
            self._alarm.cancel()
        for task in self._tasks:
            task.cancel()

    # -- Methods that the base class calls, and the alarm.

    def handle(self, event: couchbase.Event) -> None:
        """Handle one event in the context of the client."""
        self._context.run(super().handle, event)

    def set_alarm(self, time: float) -> None:
        """Move the alarm to ``time``."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self.loop.call_at(time, lambda: self.run(self._ring()))

    async def _ring(self) -> None:
        for _ in self.pass_time():
            # After the second yield, asyncio has read once from every stream that had data.
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    def wake(self, waiter: Waiter, outcome: object) -> None:
        """Resume a task, unless it was cancelled a moment ago."""
        if not waiter.outcome.done():
            waiter.outcome.set_result(outcome)

    def run(self, work: Coroutine[object, None, None], waiter: Waiter | None = None) -> asyncio.Task[None]:
        """Run ``work`` in a task that ``close`` cancels; for a waiter, in its context and until its outcome."""
        task = self.loop.create_task(work, context=waiter and waiter.context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if waiter is not None:
            waiter.outcome.add_done_callback(lambda _: task.cancel())
        return task


class Stream(asyncio.Protocol):
    """One connection, from the order to open it until its loss."""

    def __init__(self, client: AsyncioClient, order: neutral.OpenStream) -> None:
        self.outbox = neutral.Outbox()
        self._client = client
        self._order = order
        self._connecting: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._is_full = self._is_flush_due = False
        self._passes = 0

    def start(self) -> None:
        """Begin to connect."""
        self._connecting = self._client.run(self._connect())

    async def _connect(self) -> None:
        host, port, tls = self._order.host, self._order.port, self._order.tls
        context, name = (self._client.tls, host.removesuffix(".")) if tls else (None, None)
        try:
            await self._client.loop.create_connection(lambda: self, host, port, ssl=context, server_hostname=name)
        except (OSError, ValueError) as error:
            self._client.lose(self._order.stream, *neutral.loss_of(error))

    def flush(self) -> None:
        """Write in a later pass of the event loop, so that one write has all sends of a pass."""
        self._passes = CHECKING_PASSES if self.outbox.is_checked else 0
        if not self._is_flush_due:
            self._is_flush_due = True
            self._client.loop.call_soon(self._flush)

    def _flush(self) -> None:
        if self._passes:
            self._passes -= 1
            self._client.loop.call_soon(self._flush)
            return
        self._is_flush_due = False
        while self.outbox and self._transport is not None and not self._is_full:
            self._transport.write(self.outbox.take())

    def set_paused(self, is_paused: bool) -> None:
        """Stop reading, so that data stays in the system's buffer and then with the peer, or resume reading."""
        if self._transport is not None and is_paused:
            self._transport.pause_reading()
        elif self._transport is not None:
            self._transport.resume_reading()

    def abort(self) -> None:
        """Close the connection or stop connecting."""
        if self._connecting is not None:
            self._connecting.cancel()
        if self._transport is not None:
            self._transport.abort()

    # -- Methods that asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Report that the stream is open."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # Over TLS, a limit of 0 counts an empty buffer as full.
        transport.set_write_buffer_limits(high=1)
        self._client.opened(self._order.stream, *map(transport.get_extra_info, ("sockname", "peername")))

    def data_received(self, data: bytes) -> None:
        """Feed the data."""
        self._client.received(self._order.stream, data, may_have_more=len(data) >= READ_SIZE_MIN)

    def pause_writing(self) -> None:
        """Keep further data, because the peer does not read."""
        self._is_full = True

    def resume_writing(self) -> None:
        """Write what was kept."""
        self._is_full = False
        self.flush()

    def eof_received(self) -> None:
        """Report the loss now: asyncio would first write data that the peer may never read."""
        self.connection_lost(None)

    def connection_lost(self, error: Exception | None) -> None:
        """Report the loss. Over TLS, asyncio does not report whether the end had a close_notify."""
        end = neutral.LossCause.TRUNCATED if self._order.tls else neutral.LossCause.END_OF_STREAM
        loss = neutral.loss_of(error) if isinstance(error, OSError | ValueError) else (end, "")
        self._client.lose(self._order.stream, *loss)


async def main(connection_string: str) -> None:
    """Write and read a document, read a missing one, and run a query."""
    authenticator = PasswordAuthenticator("Administrator", "password")
    options = ClientOptions(connection_string=connection_string, authenticator=authenticator)
    people, document = Keyspace("default"), JsonTranscoder().encode({"born": 1815})
    with AsyncioClient(ClientMachine(options, rng=random.Random())) as client:
        await client.perform(Upsert(people, "ada", document.data, document.flags))
        found = await client.perform(Get(people, "ada"))
        print(found.content if isinstance(found, GetResult) else found)
        try:
            await client.perform(Get(people, "bob"))
        except CouchbaseException as error:
            print(f"{type(error).__name__}: {error}")
        async with client.request(QueryRequest(statement="SELECT 1 AS one", readonly=True)) as rows:
            async for row in rows:
                print(row.decode())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python asyncio_driver.py CONNECTION_STRING, such as couchbase://127.0.0.1:11210")
    asyncio.run(main(sys.argv[1]))
