"""Streams of a machine: each has one task that connects and reads, and one that writes.

These tasks promise three things to the machine. A lost stream is reported once, after every byte that arrived before
the loss, except unsolicited ones, and with the number of bytes handed over. A stream that the machine closes reports
nothing more. No event in a node or the network makes these tasks raise an exception.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context

import trio

from triclinium._driver.connector import LOSSES, StreamLoss, loss_of
from triclinium._driver.pace import Pace
from triclinium._driver.plain_stream import PlainStream
from triclinium._driver.tls_stream import TlsStream
from triclinium.abc import Connector
from triclinium_core.contract import neutral
from triclinium_core.contract.neutral import BytesReceived, LossCause, Outbox, StreamLost, StreamOpened
from triclinium_core.work import PIECE_SIZE_BYTES_MAX

LAST_WORDS_SECONDS = 1.0
"""Time in seconds for which a stream that cannot be written to is still read: responses may have arrived already."""

READING_PASSES = 6
"""Number of passes of trio's loop in which the reader of a stream without direct access receives what has arrived: one
to resume, two for each of the two reads that ``trio.SSLStream`` may need for one record, and one to report the end."""


DirectStream = PlainStream | TlsStream
"""Stream that can also send without waiting, and receive in one turn of trio's loop."""

StreamEvent = StreamOpened | BytesReceived | StreamLost
"""Event of one stream."""


def new_nonce() -> str:
    """Return 24 random bytes as printable ASCII without a comma."""
    return secrets.token_urlsafe(24)


class Stream:
    """One stream, from the action that opens it to its end.

    Args:
        order: the action, with the address.
        feed: receives the events of this stream.
        make_nonce: returns entropy for authentication; called once, when the stream is open.
        pace: limits the work of all readers of the client.
    """

    def __init__(
        self,
        order: neutral.OpenStream,
        *,
        connector: Connector,
        feed: Callable[[StreamEvent], None],
        make_nonce: Callable[[], str] = new_nonce,
        pace: Pace | None = None,
    ) -> None:
        self._order = order
        self._pace = pace if pace is not None else Pace()
        self._connector = connector
        self._feed = feed
        self._make_nonce = make_nonce
        self._is_closed = False
        self._scope = trio.CancelScope()
        self._reading = trio.CancelScope()
        self.outbox: Outbox = Outbox()
        """Bytes whose write has not started, and the number of those whose write has."""
        self._direct: DirectStream | None = None
        """Direct access to the stream, if it offers any."""
        self._is_writing = False
        """Whether the writer is inside ``send_all``."""
        self._idle_writer = trio.lowlevel.ParkingLot()
        self._is_paused = False
        """Whether reading is paused."""
        self._idle_reader = trio.lowlevel.ParkingLot()
        self._write_loss: StreamLoss | None = None

    @property
    def _is_held(self) -> bool:
        """Whether the reader has received bytes and waits for a pass that may feed them."""
        return self._order.stream in self._pace.held

    def send(self, data: bytes, unless_readable: bool = False) -> None:
        """Send ``data`` after all earlier data. The writer sends what the system does not accept immediately.

        Args:
            unless_readable: if there is something to read, end the stream instead, without writing any of ``data``.
        """
        direct, outbox, sent = self._direct, self.outbox, 0
        # While the writer is inside send_all, other data must not overtake the writer's data.
        if direct is not None and not outbox.size and not self._is_writing:
            try:
                if not (unless_readable and (self._is_held or direct.is_readable())):
                    sent = direct.send_now(data)
            except BlockingIOError:
                pass  # The writer waits until the system accepts more.
            except OSError as error:
                # A socket raises its error only once, so reading may return the end of the stream instead.
                self._write_loss = loss_of(error)
            outbox.handed_over += sent
        if sent < len(data):
            # After a part of ``data`` was written, the rest must follow without a check.
            outbox.put(memoryview(data)[sent:] if sent else data, unless_readable=unless_readable and not sent)
            self._idle_writer.unpark_all()
        elif direct is not None and direct.is_behind:
            self._idle_writer.unpark_all()

    def pause_reading(self) -> None:
        """Stop reading after the current read, until ``resume_reading``."""
        self._is_paused = True

    def resume_reading(self) -> None:
        """Continue to read."""
        self._is_paused = False
        self._idle_reader.unpark_all()

    def close(self) -> int:
        """Stop connecting, reading and writing, and return the final number of bytes handed over.

        The stream reports nothing after this call.
        """
        self._is_closed = True
        # The writer may be awake already, and would begin to send before it notices the cancellation.
        self.outbox.clear()
        self._scope.cancel()
        return self.outbox.handed_over

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> None:
        """Connect, then read and write until the stream is lost or closed."""
        with self._scope:
            loss = await self._live()
            if not self._is_closed:
                self._feed(StreamLost(self._order.stream, loss.cause, loss.text, self.outbox.handed_over))

    async def _live(self) -> StreamLoss:
        order = self._order
        try:
            connected = await self._connector.connect(order.host, order.port, tls=order.tls)
        except LOSSES as error:
            return loss_of(error)
        try:
            if not self._is_closed:
                local, remote = connected.local_address, connected.remote_address
                self._feed(StreamOpened(order.stream, self._make_nonce(), local, remote))
            with _direct_access_to(connected.stream) as self._direct:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._write, connected.stream)
                    loss = await self._read(connected.stream)
                    nursery.cancel_scope.cancel()
            # Data that is sent from here on meets a closed socket, whose error is not the cause of the loss.
            loss = self._write_loss or loss
        finally:
            await _close(connected.stream)
        return loss

    async def _read(self, stream: trio.abc.ReceiveStream) -> StreamLoss:
        loss = StreamLoss(LossCause.END_OF_STREAM, "")
        direct = self._direct
        with self._reading:
            try:
                while data := await (
                    stream.receive_some(PIECE_SIZE_BYTES_MAX) if direct is None else direct.receive_some()
                ):
                    if self._pace.is_over:
                        await self._pace.next_turn(self._order.stream)
                    if self.outbox.is_checked:
                        loss = StreamLoss(LossCause.UNSOLICITED, "")
                        break
                    if not self._is_closed:
                        self._feed(BytesReceived(self._order.stream, bytes(data)))
                    while self._is_paused:
                        await self._idle_reader.park()
            except LOSSES as error:
                loss = loss_of(error)
        return loss

    @trio.lowlevel.enable_ki_protection
    async def _write(self, stream: trio.abc.SendStream) -> None:
        direct, outbox = self._direct, self.outbox
        try:
            while True:
                while not outbox.size and (direct is None or not direct.is_behind):
                    self._is_writing = False
                    await self._idle_writer.park()
                self._is_writing = True
                if direct is not None and direct.is_behind:
                    await stream.wait_send_all_might_not_block()
                    continue
                if outbox.is_checked:
                    # If something is readable, the reader receives it in one of these passes, and then ends the stream.
                    for _ in range(READING_PASSES):
                        await trio.lowlevel.checkpoint()
                    while self._is_held:
                        await trio.lowlevel.checkpoint()
                # Decision C24: all data of a send_all counts as handed over from the beginning of the call.
                data = outbox.take()
                await stream.send_all(data)
                # If the system refused to send this data directly, the reason was temporary, such as ENOBUFS.
                self._write_loss = None
                # The data may be large, and this frame would keep it alive until the next data arrives.
                del data
        except LOSSES as error:
            self._write_loss = self._write_loss or loss_of(error)
            self._reading.deadline = trio.current_time() + LAST_WORDS_SECONDS


class Streams:
    """All streams of one machine by number, from the action that opens one until it is lost or closed.

    Args:
        connector: opens streams.
        feed: passes an event of a stream to the machine.
        make_nonce: returns entropy, once for each stream.
        pace: limits the work of all readers.
    """

    def __init__(
        self,
        *,
        connector: Connector,
        feed: Callable[[StreamEvent], None],
        make_nonce: Callable[[], str],
        pace: Pace,
    ) -> None:
        self._connector = connector
        self._feed = feed
        self._make_nonce = make_nonce
        self._pace = pace
        self._context = copy_context()
        """Context of all streams. A stream serves several tasks, so it does not use the context of the task for which
        it was opened."""
        self._open: dict[neutral.StreamId, Stream] = {}
        self._sent_on: set[neutral.StreamId] = set()
        """Streams with new data since the last call to ``unsent``, or with data that was unsent then."""

    @property
    def numbers(self) -> Collection[neutral.StreamId]:
        """Numbers of the streams that were not reported lost."""
        return self._open.keys()

    def open(self, action: neutral.OpenStream, nursery: trio.Nursery) -> None:
        """Start connecting, in a task of ``nursery``."""
        stream = self._open[action.stream] = Stream(
            action, connector=self._connector, feed=self._feed, make_nonce=self._make_nonce, pace=self._pace
        )
        self._context.run(nursery.start_soon, stream.run)

    def send(self, action: neutral.SendBytes) -> None:
        """Send bytes after all earlier bytes of the stream. Ignore an unknown stream."""
        stream = self._open.get(action.stream)
        if stream is not None:
            stream.send(action.data, action.unless_readable)
            self._sent_on.add(action.stream)

    def close(self, action: neutral.CloseStream) -> None:
        """Close a stream, or stop connecting, and report the loss of the stream."""
        stream = self._open.get(action.stream)
        if stream is not None:
            handed_over = stream.close()
            self._feed(StreamLost(action.stream, LossCause.CLOSED_BY_US, handed_over=handed_over))

    def clear(self) -> None:
        """Drop all streams. The tasks of the streams have ended with the driver."""
        self._open.clear()

    def forget(self, number: neutral.StreamId) -> None:
        """Drop a stream that was reported lost."""
        self._open.pop(number, None)

    def pause_reading(self, action: neutral.PauseReading) -> None:
        """Stop reading from a stream."""
        stream = self._open.get(action.stream)
        if stream is not None:
            stream.pause_reading()

    def resume_reading(self, action: neutral.ResumeReading) -> None:
        """Continue to read from a stream."""
        stream = self._open.get(action.stream)
        if stream is not None:
            stream.resume_reading()

    def unsent(self) -> Mapping[neutral.StreamId, int]:
        """Return the streams with unsent bytes, and the number of bytes handed over on each."""
        behind = ((number, self._open.get(number)) for number in self._sent_on)
        unsent = {
            number: stream.outbox.handed_over for number, stream in behind if stream is not None and stream.outbox
        }
        self._sent_on = set(unsent)
        return unsent


@contextmanager
def _direct_access_to(stream: trio.abc.SendStream) -> Iterator[DirectStream | None]:
    """Give the block direct access to a stream, or None if it has none. The stream still owns its socket."""
    if not isinstance(stream, trio.SocketStream):
        yield stream if isinstance(stream, TlsStream) else None
        return
    theirs = stream.socket
    # Without these arguments, Python requests them from the system, which may refuse once the peer has disconnected.
    bare = socket.socket(theirs.family, theirs.type, theirs.proto, fileno=theirs.fileno())
    try:
        bare.setblocking(False)
        yield PlainStream(bare)
    finally:
        bare.detach()


async def _close(stream: trio.abc.AsyncResource) -> None:
    """Close ``stream`` immediately, without a close_notify, and ignore its errors."""
    try:
        await trio.aclose_forcefully(stream)
    except LOSSES:
        pass
