"""The core in asyncio: one class carries out what the machine orders.

Start a node first with ``triclinium serve --port 11210``, and pass how to reach it: ``couchbase://127.0.0.1:11210``.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import random
import secrets
import ssl
import sys
from collections.abc import Callable
from typing import Any

from triclinium_core import ClientMachine, ClientOptions, JsonTranscoder, PasswordAuthenticator
from triclinium_core.errors import CouchbaseException
from triclinium_core.kv import actions, events
from triclinium_core.kv.operation.requests import Get, Keyspace, Operation, Upsert
from triclinium_core.kv.operation.results import GetResult, Result


class AsyncioClient:
    """A driver: it tells the machine what happens, carries out what the machine orders, and decides nothing."""

    def __init__(self, options: ClientOptions) -> None:
        self._machine = ClientMachine(options, rng=random.Random())
        self._loop = asyncio.get_running_loop()
        self._alarm: asyncio.TimerHandle | None = None
        self._tokens = map(events.Token, itertools.count(1))
        self._callers: dict[events.Token, asyncio.Future[Result]] = {}
        self._streams: dict[events.StreamId, Stream] = {}
        self._connecting: dict[events.StreamId, asyncio.Task[None]] = {}
        self._execute: dict[type, Callable[[Any], None]] = {
            actions.LookUpService: self._look_up,
            actions.OpenStream: self._open,
            actions.SendBytes: lambda order: self._streams[order.stream].send(order.data),
            actions.CloseStream: self._close,
            actions.CompleteOperation: self._complete,
            actions.FailOperation: self._fail,
            actions.ConsultStrategy: lambda order: None,  # no strategy of this program is asynchronous
            actions.ReportRetry: lambda order: None,
            actions.ReportRefusal: lambda order: None,
            actions.ReportConnection: lambda order: None,
            actions.PublishTopology: lambda order: None,
        }
        self.feed(events.TimePassed())

    def feed(self, event: events.Event) -> None:
        """Tell the machine what happened, and do what it orders, in order."""
        for action in self._machine.handle(event, now=self._loop.time()):
            self._execute[type(action)](action)
        if self._alarm is not None:
            self._alarm.cancel()
        if self._machine.wakeup < math.inf:
            self._alarm = self._loop.call_at(self._machine.wakeup, self.feed, events.TimePassed())

    async def perform(self, operation: Operation) -> Result:
        """Return what ``operation`` returns; whoever is cancelled meanwhile has left the machine too."""
        token = next(self._tokens)
        caller = self._callers[token] = self._loop.create_future()
        self.feed(events.OperationSubmitted(token, operation))
        try:
            result: Result = await caller
        except asyncio.CancelledError:
            self._callers.pop(token, None)
            self.feed(events.OperationAbandoned(token))
            raise
        return result

    def close(self) -> None:
        """Close all connections."""
        if self._alarm is not None:
            self._alarm.cancel()
        # Emptied first, so that nothing of this is reported.
        connecting, self._connecting = self._connecting, {}
        for task in connecting.values():
            task.cancel()
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            stream.transport.abort()

    def _look_up(self, order: actions.LookUpService) -> None:
        # The standard library asks for no SRV records. An answer without any has the host used as it stands.
        self._loop.call_soon(self.feed, events.ServiceLookedUp(order.service))

    def _open(self, order: actions.OpenStream) -> None:
        self._connecting[order.stream] = self._loop.create_task(self._connect(order))

    async def _connect(self, order: actions.OpenStream) -> None:
        try:
            await self._loop.create_connection(
                lambda: Stream(self, order.stream), order.host, order.port, ssl=order.tls or None
            )
        except OSError as error:
            cause = events.LossCause.TLS if isinstance(error, ssl.SSLError) else events.LossCause.REFUSED
            self.lost(order.stream, cause, str(error), 0)
        except asyncio.CancelledError:
            self.lost(order.stream, events.LossCause.CLOSED_BY_US, "", 0)
            raise
        finally:
            self._connecting.pop(order.stream, None)

    def _close(self, order: actions.CloseStream) -> None:
        if order.stream in self._connecting:
            self._connecting[order.stream].cancel()
        if order.stream in self._streams:
            self._streams[order.stream].transport.abort()

    def _complete(self, order: actions.CompleteOperation) -> None:
        caller = self._callers.pop(order.token)
        if not caller.done():  # it is, where its task was cancelled a moment ago
            caller.set_result(order.result)

    def _fail(self, order: actions.FailOperation) -> None:
        caller = self._callers.pop(order.token)
        if not caller.done():
            caller.set_exception(order.error)

    def opened(self, name: events.StreamId, stream: Stream) -> None:
        """Take up a stream: the machine sends first."""
        self._streams[name] = stream
        self.feed(events.StreamOpened(name, nonce=secrets.token_urlsafe(24)))

    def lost(self, name: events.StreamId, cause: events.LossCause, text: str, handed_over: int) -> None:
        """Report a loss, also of a stream that the machine closed; but not when the program ends."""
        was_open = self._streams.pop(name, None) is not None
        if was_open or name in self._connecting:
            self.feed(events.StreamLost(name, cause, text, handed_over))


class Stream(asyncio.Protocol):
    """One connection; asyncio sends at once or queues, so all bytes that it was given count as handed over."""

    transport: asyncio.Transport

    def __init__(self, client: AsyncioClient, name: events.StreamId) -> None:
        self._client = client
        self._name = name
        self._handed_over = 0

    def send(self, data: bytes) -> None:
        """Write."""
        self._handed_over += len(data)
        self.transport.write(data)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._client.opened(self._name, self)

    def data_received(self, data: bytes) -> None:
        """Pass on what came."""
        self._client.feed(events.BytesReceived(self._name, data))

    def connection_lost(self, error: Exception | None) -> None:
        """Pass on that nothing more will come."""
        cause = events.LossCause.END_OF_STREAM if error is None else events.LossCause.RESET
        self._client.lost(self._name, cause, str(error or ""), self._handed_over)


async def main(connection_string: str) -> None:
    """Write and read a document, then ask for one that is not there."""
    authenticator = PasswordAuthenticator("Administrator", "password")
    options = ClientOptions(connection_string=connection_string, authenticator=authenticator)
    people = Keyspace("default")
    document = JsonTranscoder().encode({"born": 1815})

    with contextlib.closing(AsyncioClient(options)) as client:
        await client.perform(Upsert(people, "ada", document.data, document.flags))
        found = await client.perform(Get(people, "ada"))
        assert isinstance(found, GetResult)
        print(found.content)
        try:
            await client.perform(Get(people, "bob"))
        except CouchbaseException as error:
            print(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python asyncio_driver.py CONNECTION_STRING, such as couchbase://127.0.0.1:11210")
    asyncio.run(main(sys.argv[1]))
