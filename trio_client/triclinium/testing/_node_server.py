"""Server of a fake cluster: connects Trio's clock and streams to ``FakeNodes``.

One task passes the time to the nodes whenever something is due. Each stream has two tasks: one reads requests, one
writes responses. All tasks are shielded from the cancel scopes around the block, so that a client in a cancelled block
can still use its node.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import count
from typing import NamedTuple, TypeVarTuple

import trio

from triclinium._cluster_driver.hidden_nursery import in_background
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import FakeNode, FakeNodes, HangUp, NodeAction, SendReply

UNSENT_SIZE_MAX = 4 * 1024 * 1024
"""Size in bytes of unwritten responses above which the server stops reading from a client and processing its requests:
a client that sends and never reads must not fill the memory. A single response may be larger."""

LINGER_SECONDS = 1.0
"""Time in seconds for which a stream stays half open after the node has closed it. Closing a TCP connection with unread
requests would reset it and lose the last responses, so the client gets time to read them and to close its half."""

Ts = TypeVarTuple("Ts")


class ReplyQueue:
    """Responses of a node to one client that are not written yet; one task takes and writes them."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._has_ended = False
        self._writer = trio.lowlevel.ParkingLot()
        self._readers = trio.lowlevel.ParkingLot()

    def put(self, data: bytes) -> None:
        """Add ``data``, unless the queue has ended."""
        if not self._has_ended:
            self._pieces.append(data)
            self._writer.unpark_all()

    def end(self) -> None:
        """End the queue. ``take`` still returns the queued data."""
        self._has_ended = True
        self._writer.unpark_all()

    async def take(self) -> bytes:
        """Return all queued data, or wait for some; empty at the end."""
        while not self._pieces and not self._has_ended:
            await self._writer.park()
        data = b"".join(self._pieces)
        self._pieces.clear()
        return data

    def written(self) -> None:
        """Wake the tasks that wait for responses to be written or discarded."""
        self._readers.unpark_all()

    async def wait_written(self) -> None:
        """Wait until some of the taken data has been written or discarded."""
        await self._readers.park()


class _ServedClient(NamedTuple):
    """Client of one node."""

    stream: trio.abc.Stream
    replies: ReplyQueue
    node: FakeNode
    number: int
    """Number of the connection at the node."""
    service: Service
    """Service whose port the client uses."""


class NodeServer:
    """Server of all nodes of a cluster. Use one server at a time: the nodes continue with the time of the last one.

    Args:
        nodes: nodes to serve, or a single node. Their times are seconds since they were first served.
    """

    def __init__(self, nodes: FakeNodes | FakeNode) -> None:
        self.nodes: FakeNodes = nodes if isinstance(nodes, FakeNodes) else FakeNodes.around(nodes)
        self.started: trio.Event = trio.Event()
        """Event that is set when clients may connect."""
        self._nursery: trio.Nursery
        self._scope = trio.CancelScope(shield=True)
        self._alarm = trio.CancelScope()
        self._replies: dict[int, ReplyQueue] = {}
        self._numbers = count(1)
        self._watchers: list[Callable[[], None]] = []
        self._now = 0.0
        self._zero = 0.0
        """Trio's time at which the clock of the nodes was 0."""

    @property
    def node(self) -> FakeNode:
        """First node."""
        return self.nodes[0]

    @property
    def is_open(self) -> bool:
        """Whether clients may connect."""
        return self.started.is_set() and not self._scope.cancel_called

    async def run(self) -> None:
        """Serve until ``close``. The caller's cancel scopes have no effect.

        Raises:
            BaseExceptionGroup: a node crashed, which is a defect.
        """
        self._now = self.nodes.now
        self._zero = trio.current_time() - self._now
        self.nodes.set_alarm(self._ring)
        self.nodes.set_clock(self._see_time)
        try:
            with self._scope:
                async with trio.open_nursery() as self._nursery:
                    self.started.set()
                    await self._keep_time()
        finally:
            self.nodes.set_alarm(None)
            self.nodes.set_clock(None)
            self.close()

    def close(self) -> None:
        """Close all streams immediately."""
        self._scope.cancel()

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call ``watcher`` now, and whenever a node may have opened or closed its ports."""
        self._watchers.append(watcher)
        watcher()

    async def serve_listener(
        self, handler: Callable[[trio.SocketStream], Awaitable[object]], listener: trio.SocketListener
    ) -> None:
        """Start a task for each connection, until the listener is closed. The tasks end when the server closes."""
        try:
            await trio.serve_listeners(handler, [listener], handler_nursery=self._nursery)
        except* trio.ClosedResourceError:
            pass

    def start_soon(self, work: Callable[[*Ts], Awaitable[object]], *args: *Ts) -> None:
        """Start a task for ``work`` that is cancelled when the server closes."""
        self._nursery.start_soon(work, *args)

    def accepts(self, node: FakeNode | None = None) -> bool:
        """Return whether a node accepts the connection of a client. Each call counts as one attempt to connect.

        Args:
            node: the node; default: the first.
        """
        return self.is_open and (node or self.node).accepts(self._see_time())

    async def serve_stream(
        self,
        stream: trio.abc.Stream,
        node: FakeNode | None = None,
        service: Service = Service.KV,
        *,
        certificate_names: Collection[str] | None = None,
    ) -> None:
        """Serve one client at ``node`` until either side closes, and close ``stream``.

        Args:
            node: the node; default: the first.
            service: service whose port the client uses.
            certificate_names: names in the certificate of the client, if it has one.
        """
        node = node or self.node
        number = next(self._numbers)
        replies = self._replies[number] = ReplyQueue()
        try:
            opened = node.connection_opened(number, self._see_time(), service=service, unsent_size_max=UNSENT_SIZE_MAX)
            self._carry_out(opened)
            if certificate_names is not None:
                node.certificate_shown(number, certificate_names)
            client = _ServedClient(stream, replies, node, number, service)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write, client, nursery.cancel_scope)
                await self._read(client)
                nursery.cancel_scope.cancel()
        finally:
            del self._replies[number]
            node.connection_lost(number, self._see_time())
            await close_forcefully(stream)

    async def _read(self, client: _ServedClient) -> None:
        """Pass the client's data to the node, which ignores a client that it has disconnected."""
        stream, replies, node, number, _ = client
        try:
            while data := await stream.receive_some():
                self._carry_out(node.bytes_received(number, bytes(data), self._see_time()))
                while not node.has_room(number):
                    await replies.wait_written()
        except trio.BrokenResourceError:
            pass

    async def _write(self, client: _ServedClient, connection: trio.CancelScope) -> None:
        """Write the node's responses. If a KV client has disconnected, process its earlier requests without writing.

        A service handles one request at a time, and stops generating a response that is not read.
        """
        stream, replies, node, number, service = client
        is_gone = False
        while data := await replies.take():
            if not is_gone:
                try:
                    await stream.send_all(data)
                except trio.BrokenResourceError:
                    is_gone = True
            if is_gone and service is not Service.KV:
                connection.cancel()
                return
            self._carry_out(node.replies_written(number, len(data), self._see_time()))
            replies.written()
        try:
            await end_sending(stream)
        except trio.BrokenResourceError:
            return
        await trio.sleep(LINGER_SECONDS)
        connection.cancel()

    async def _keep_time(self) -> None:
        while True:
            with trio.CancelScope(deadline=self._zero + self.nodes.wakeup) as self._alarm:
                await trio.sleep_forever()
            if trio.current_time() >= self._zero + self.nodes.wakeup:
                # Rounding may keep the nodes' time slightly below ``wakeup``. Then this loop would never sleep.
                self._now = max(self._now, self.nodes.wakeup)
            for node in self.nodes:
                self._carry_out(node.time_passed(self._see_time()))

    def _ring(self) -> None:
        self._alarm.deadline = -math.inf
        for watcher in self._watchers:
            watcher()

    def _see_time(self) -> float:
        self._now = max(self._now, trio.current_time() - self._zero)
        return self._now

    def _carry_out(self, actions: Sequence[NodeAction]) -> None:
        for action in actions:
            replies = self._replies[action.connection]
            match action:
                case SendReply(_, data):
                    replies.put(data)
                case HangUp():
                    replies.end()
        self._alarm.deadline = min(self._alarm.deadline, self._zero + self.nodes.wakeup)


def serving(nodes: FakeNodes | FakeNode) -> AbstractAsyncContextManager[NodeServer]:
    """Give a block a server of ``nodes``; leaving the block closes all streams of the server."""
    server = NodeServer(nodes)
    return in_background(server, server)


async def end_sending(stream: trio.abc.Stream) -> None:
    """Send the end of ``stream`` after all data. The client may continue to send.

    Raises:
        trio.BrokenResourceError: the client has disconnected.
    """
    below = stream.transport_stream if isinstance(stream, trio.SSLStream) else stream
    if isinstance(below, trio.abc.HalfCloseableStream):
        await below.send_eof()


async def close_forcefully(stream: trio.abc.AsyncResource) -> None:
    """Close ``stream`` immediately, even if it is broken."""
    try:
        await trio.aclose_forcefully(stream)
    except trio.BrokenResourceError:
        pass
