"""The streams of a machine: for each, one task that connects and reads, and one that writes.

Three promises to the machine. A stream that is lost is reported once, after every byte that came before the loss, with
how much had been handed over. A stream that the machine closes reports nothing more. Nothing that a peer or the network
does leaves these tasks as an exception.
"""

from __future__ import annotations

import secrets
import socket
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context

import trio

from triclinium._driver.connector import LOSSES, StreamLoss, loss_of
from triclinium._driver.pace import Pace
from triclinium._driver.plain_stream import SEND_SIZE_MAX, PlainStream
from triclinium._driver.tls_stream import TlsStream
from triclinium.abc import Connector
from triclinium_core.contract import neutral
from triclinium_core.contract.neutral import BytesReceived, LossCause, StreamLost, StreamOpened
from triclinium_core.work import PIECE_SIZE_BYTES_MAX

LAST_WORDS_SECONDS = 1.0
"""How long a stream that cannot be written to is still read: the answers to earlier requests may be there already."""

READING_PASSES = 6
"""Passes of trio's loop that the reader of a stream without direct access needs to receive what has arrived: one to
resume, two for each of the two reads that ``trio.SSLStream`` may need for one record, and one to report the end."""


DirectStream = PlainStream | TlsStream
"""Stream that can also send without waiting, and receive in one turn of trio's loop."""

StreamEvent = StreamOpened | BytesReceived | StreamLost
"""Event of one stream."""


def new_nonce() -> str:
    """Return 24 random bytes as printable ASCII without a comma."""
    return secrets.token_urlsafe(24)


class Stream:
    """One stream, from the order to open it to its end.

    Args:
        order: what to connect to.
        feed: takes the events of this stream.
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
        self._unsent: deque[bytes | memoryview] = deque()
        self._direct: DirectStream | None = None
        """Direct access to the stream, if it offers any."""
        self._is_writing = False
        """Whether the writer is inside of ``send_all``."""
        self._idle_writer = trio.lowlevel.ParkingLot()
        self._is_paused = False
        """Whether nothing more is to be read for now."""
        self._idle_reader = trio.lowlevel.ParkingLot()
        self._write_loss: StreamLoss | None = None
        self.handed_over: int = 0
        """Bytes that were begun to be handed over, whether they arrived or not."""

    @property
    def _is_held(self) -> bool:
        """Whether the reader has received bytes and waits for the pass in which it may feed them."""
        return self._order.stream in self._pace.held

    @property
    def is_behind(self) -> bool:
        """Whether bytes wait that were not handed over."""
        return bool(self._unsent)

    def send(self, data: bytes, unless_readable: bool = False) -> None:
        """Send ``data`` after all earlier data: what the system accepts immediately, and the rest when it can.

        Args:
            unless_readable: end the stream instead, with nothing of ``data`` written, if something waits to be read.
        """
        direct = self._direct
        # While the writer is inside of send_all nothing may overtake it.
        if direct is not None and not self._unsent and not self._is_writing:
            sent = 0
            if not (unless_readable and (self._is_held or direct.is_readable())):
                try:
                    sent = direct.send_now(data)
                except OSError:
                    # The writer finds out what is wrong.
                    pass
                self.handed_over += sent
                if sent == len(data):
                    if direct.is_behind:
                        self._idle_writer.unpark_all()
                    return
            # Once a part is written, it is too late to check.
            self._unsent.append(_UnlessReadable(data) if unless_readable and not sent else memoryview(data)[sent:])
        else:
            self._unsent.append(_UnlessReadable(data) if unless_readable else data)
        self._idle_writer.unpark_all()

    def pause_reading(self) -> None:
        """Read nothing more, but for what is being read, until ``resume_reading``."""
        self._is_paused = True

    def resume_reading(self) -> None:
        """Read again."""
        self._is_paused = False
        self._idle_reader.unpark_all()

    def close(self) -> int:
        """Stop connecting, reading and writing, and return how many bytes had been handed over; never more will be.

        Nothing is reported from now on.
        """
        self._is_closed = True
        # The writer may have been woken already, and would begin to send before it notices that it is cancelled.
        self._unsent.clear()
        self._scope.cancel()
        return self.handed_over

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> None:
        """Connect, then read and write until the stream is lost or closed."""
        with self._scope:
            loss = await self._live()
            if not self._is_closed:
                self._feed(StreamLost(self._order.stream, loss.cause, loss.text, self.handed_over))

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
                    if self._unsent and type(self._unsent[0]) is _UnlessReadable:
                        loss = StreamLoss(LossCause.UNSOLICITED, "")
                        break
                    if not self._is_closed:
                        self._feed(BytesReceived(self._order.stream, bytes(data)))
                    while self._is_paused:
                        await self._idle_reader.park()
            except LOSSES as error:
                loss = loss_of(error)
        return self._write_loss or loss

    @trio.lowlevel.enable_ki_protection
    async def _write(self, stream: trio.abc.SendStream) -> None:
        direct = self._direct
        try:
            while True:
                while not self._unsent and (direct is None or not direct.is_behind):
                    self._is_writing = False
                    await self._idle_writer.park()
                self._is_writing = True
                if direct is not None and direct.is_behind:
                    await stream.wait_send_all_might_not_block()
                    continue
                if type(self._unsent[0]) is _UnlessReadable:
                    # If something waits, the reader receives it in one of these passes and ends the stream.
                    for _ in range(READING_PASSES):
                        await trio.lowlevel.checkpoint()
                    while self._is_held:
                        await trio.lowlevel.checkpoint()
                data = self._take_unsent()
                # Decision C24: what a send_all was given counts as handed over from the moment that it begins.
                self.handed_over += len(data)
                await stream.send_all(data)
                # It may be large, and the next may be long in coming.
                del data
        except LOSSES as error:
            self._write_loss = loss_of(error)
            self._reading.deadline = trio.current_time() + LAST_WORDS_SECONDS

    def _take_unsent(self) -> bytes | memoryview:
        """Return what has piled up, in order, up to ``SEND_SIZE_MAX``; only the first piece is cut, if it is larger."""
        first = self._unsent.popleft()
        if len(first) > SEND_SIZE_MAX:
            self._unsent.appendleft(memoryview(first)[SEND_SIZE_MAX:])
            return memoryview(first)[:SEND_SIZE_MAX]
        pieces, size = [first], len(first)
        while (
            self._unsent
            and size + len(self._unsent[0]) <= SEND_SIZE_MAX
            and type(self._unsent[0]) is not _UnlessReadable
        ):
            pieces.append(self._unsent.popleft())
            size += len(pieces[-1])
        return b"".join(pieces) if len(pieces) > 1 else pieces[0]


class Streams:
    """All streams of one machine, by number, from the order to open one until it is lost or closed.

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
        """Context of all streams: not that of the task that happened to need one, because a stream serves others too."""
        self._open: dict[neutral.StreamId, Stream] = {}
        self._sent_on: set[neutral.StreamId] = set()
        """Streams that were given bytes since the last call of ``unsent``, or had not handed them over then."""

    @property
    def numbers(self) -> Collection[neutral.StreamId]:
        """Names of the streams that were not reported lost."""
        return self._open.keys()

    def open(self, action: neutral.OpenStream, nursery: trio.Nursery) -> None:
        """Begin to connect, in a task of ``nursery``."""
        stream = self._open[action.stream] = Stream(
            action, connector=self._connector, feed=self._feed, make_nonce=self._make_nonce, pace=self._pace
        )
        self._context.run(nursery.start_soon, stream.run)

    def send(self, action: neutral.SendBytes) -> None:
        """Send bytes behind all earlier ones. Ignore a stream that is gone."""
        stream = self._open.get(action.stream)
        if stream is not None:
            stream.send(action.data, action.unless_readable)
            self._sent_on.add(action.stream)

    def close(self, action: neutral.CloseStream) -> None:
        """Close a stream, or stop connecting, and report it lost."""
        stream = self._open.get(action.stream)
        if stream is not None:
            handed_over = stream.close()
            self._feed(StreamLost(action.stream, LossCause.CLOSED_BY_US, handed_over=handed_over))

    def clear(self) -> None:
        """Drop all streams, whose tasks have ended with the driver."""
        self._open.clear()

    def forget(self, number: neutral.StreamId) -> None:
        """Drop a stream that was reported lost."""
        self._open.pop(number, None)

    def pause_reading(self, action: neutral.PauseReading) -> None:
        """Read no more of a stream."""
        stream = self._open.get(action.stream)
        if stream is not None:
            stream.pause_reading()

    def resume_reading(self, action: neutral.ResumeReading) -> None:
        """Read on."""
        stream = self._open.get(action.stream)
        if stream is not None:
            stream.resume_reading()

    def unsent(self) -> Mapping[neutral.StreamId, int]:
        """Return the streams with bytes that wait to be handed over, and how many were before them."""
        behind = ((number, self._open.get(number)) for number in self._sent_on)
        unsent = {number: stream.handed_over for number, stream in behind if stream is not None and stream.is_behind}
        self._sent_on = set(unsent)
        return unsent


class _UnlessReadable(bytes):
    """Bytes to send only if nothing waits to be read when they are next to be sent."""


@contextmanager
def _direct_access_to(stream: trio.abc.SendStream) -> Iterator[DirectStream | None]:
    """Give the block direct access to a stream, if there is any. A socket stays that of its stream."""
    if not isinstance(stream, trio.SocketStream):
        yield stream if isinstance(stream, TlsStream) else None
        return
    theirs = stream.socket
    # All is given: what is left out the system is asked for, and some refuse to tell where the peer is gone already.
    bare = socket.socket(theirs.family, theirs.type, theirs.proto, fileno=theirs.fileno())
    try:
        bare.setblocking(False)
        yield PlainStream(bare)
    finally:
        bare.detach()


async def _close(stream: trio.abc.AsyncResource) -> None:
    """Close ``stream`` at once, without goodbyes and whatever it says to that."""
    try:
        await trio.aclose_forcefully(stream)
    except LOSSES:
        pass
