"""One stream: its events, its writes, and its end."""

from __future__ import annotations

import errno
import socket

import pytest
import trio
import trio.testing
from trio.testing import MockClock, memory_stream_pair

from tests.trio_client._driver.stream_events import OPENED, Ears
from tests.trio_client.doubles import STREAM, HalfDeafStream, connector_that_raises, connector_to
from triclinium._driver.plain_stream import PlainStream
from triclinium._driver.streams import LAST_WORDS_SECONDS, new_nonce
from triclinium_core.contract.neutral import BytesReceived, LossCause, StreamLost

MANY = 1024 * 1024
"""Number of bytes that no socket accepts in one call."""


async def never() -> bytes:
    """Wait forever."""
    await trio.sleep_forever()
    raise AssertionError


async def end() -> bytes:
    """Return the end of a stream."""
    await trio.lowlevel.checkpoint()
    return b""


@pytest.mark.native
async def test_bytes_are_written_before_the_task_waits() -> None:
    """On a plain socket, ``send`` writes immediately; bytes that the system does not accept follow in order."""
    ours, theirs = (trio.SocketStream(end) for end in trio.socket.socketpair())
    ears = Ears(connector_to(ours))
    pieces = [b"%08d" % number * 128 for number in range(1024)]
    received = bytearray()

    async with ears.running():
        ears.stream.send(pieces[0])
        first = ears.stream.outbox.handed_over, bool(ears.stream.outbox)
        for piece in pieces[1:]:
            ears.stream.send(piece)
        last = ears.stream.outbox.handed_over < MANY, bool(ears.stream.outbox)
        while len(received) < MANY:
            received += await theirs.receive_some()
        handed_over = ears.stream.close()
        await theirs.aclose()

    assert ((1024, False), (True, True)) == (first, last)
    assert MANY == handed_over
    assert b"".join(pieces) == received


@pytest.mark.native
async def test_writes_keep_their_order() -> None:
    """While the writer waits in ``send_all``, later bytes are queued, even if the socket has capacity."""
    ours, theirs = socket.socketpair()
    ears = Ears(connector_to(trio.SocketStream(trio.socket.from_stdlib_socket(ours))))
    received = bytearray()

    async with ears.running():
        ears.stream.send(b"a" * MANY)
        # When all other tasks wait, the writer is inside send_all.
        await trio.testing.wait_all_tasks_blocked()
        received += theirs.recv(MANY)
        ears.stream.send(b"b")
        while len(received) < MANY + 1:
            await trio.testing.wait_all_tasks_blocked()
            received += theirs.recv(MANY)
        theirs.close()

    assert (MANY, MANY + 1) == (received.index(b"b"), len(received))


@pytest.mark.native
async def test_a_burst_to_a_lost_peer() -> None:
    """If the peer has closed, ``send`` leaves the bytes to the writer, which reports the loss."""
    ours, theirs = (trio.SocketStream(end) for end in trio.socket.socketpair())
    ears = Ears(connector_to(ours))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ears.stream.run)
        await trio.testing.wait_all_tasks_blocked()
        await theirs.aclose()
        ears.stream.send(bytes(MANY))
        at_once = ears.stream.outbox.handed_over

    assert 0 == at_once
    assert isinstance(ears.events[-1], StreamLost)


@pytest.mark.native
async def test_a_peer_that_closed_before_the_first_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the peer closed before the first read, after which BSD refuses to inspect a socket, the stream just ends."""
    ours, theirs = (trio.SocketStream(end) for end in trio.socket.socketpair())
    ears = Ears(connector_to(ours))

    def describe(family: int = -1, kind: int = -1, proto: int = -1, *, fileno: int) -> socket.socket:
        if -1 in (family, kind, proto):
            raise OSError(errno.EINVAL, "Invalid argument")
        return bare(family, kind, proto, fileno)

    bare = socket.socket
    monkeypatch.setattr("triclinium._driver.streams.socket.socket", describe)
    await theirs.aclose()
    await ears.stream.run()

    assert StreamLost(STREAM, LossCause.END_OF_STREAM, "", 0) == ears.events[-1]


@pytest.mark.native
async def test_bytes_sent_while_a_stream_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    """If bytes are sent between the end of a stream and the report, the report has the cause of the end."""
    ours, theirs = (trio.SocketStream(end) for end in trio.socket.socketpair())
    ears = Ears(connector_to(ours))

    async def send_and_close(stream: trio.SocketStream) -> None:
        ears.stream.send(b"late")
        stream.socket.close()
        await trio.lowlevel.checkpoint()

    await theirs.aclose()
    monkeypatch.setattr(trio.SocketStream, "aclose", send_and_close)
    await ears.stream.run()

    assert StreamLost(STREAM, LossCause.END_OF_STREAM, "", 0) == ears.events[-1]


@pytest.mark.native
async def test_a_temporary_error_is_no_loss() -> None:
    """If the system has no memory for a direct write, the writer sends the bytes; a later end has its own cause."""

    def refuse(data: bytes) -> int:
        raise OSError(errno.ENOBUFS, "No buffer space available")

    ours, theirs = (trio.SocketStream(end) for end in trio.socket.socketpair())
    ears = Ears(connector_to(ours))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ears.stream.run)
        await trio.testing.wait_all_tasks_blocked()
        direct = ears.stream._direct
        assert isinstance(direct, PlainStream)
        direct.send_now = refuse
        ears.stream.send(b"request")
        received = await theirs.receive_some()
        await theirs.aclose()

    assert b"request" == received
    assert StreamLost(STREAM, LossCause.END_OF_STREAM, "", 7) == ears.events[-1]


async def test_queued_bytes_are_joined_into_one_write() -> None:
    """Bytes that are queued before the writer runs are joined for one ``send_all``, in order."""
    stream = HalfDeafStream(receive_some=never)
    ears = Ears(connector_to(stream))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ears.stream.run)
        for piece in (b"one ", b"two ", b"three"):
            ears.stream.send(piece)
        await trio.testing.wait_all_tasks_blocked()
        ears.stream.send(b"four")
        await trio.testing.wait_all_tasks_blocked()
        ears.stream.close()

    assert [b"one two three", b"four"] == stream.sent


async def test_a_write_counts_when_it_begins() -> None:
    """While ``send_all`` waits, the bytes passed to it count as handed over, and bytes queued after them do not."""
    hang_up = trio.Event()

    async def receive() -> bytes:
        await hang_up.wait()
        return b""

    async def block(data: bytes) -> None:
        await trio.sleep_forever()

    ears = Ears(connector_to(HalfDeafStream(send_all=block, receive_some=receive)))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ears.stream.run)
        ears.stream.send(b"12345")
        await trio.testing.wait_all_tasks_blocked()
        ears.stream.send(b"behind it")
        hang_up.set()

    assert StreamLost(STREAM, LossCause.END_OF_STREAM, "", 5) == ears.events[-1]


async def test_responses_before_a_failed_write_are_read() -> None:
    """After a failed write, the stream is read to its end, and the loss reports the cause of the failed write."""
    left = [b"", b"an answer"]

    async def receive() -> bytes:
        await trio.testing.wait_all_tasks_blocked()
        return left.pop()

    async def fail(data: bytes) -> None:
        raise trio.BrokenResourceError("no more") from BrokenPipeError(32, "broken pipe")

    ears = Ears(connector_to(HalfDeafStream(send_all=fail, receive_some=receive)))
    ears.stream.send(b"12345")
    await ears.stream.run()

    assert [
        OPENED,
        BytesReceived(STREAM, b"an answer"),
        StreamLost(STREAM, LossCause.RESET, "broken pipe", 5),
    ] == ears.events


async def test_an_end_during_a_failing_write() -> None:
    """If the reader gets the end of the stream while a write fails, the loss reports the cause of the failed write."""
    writing = trio.Event()

    async def receive() -> bytes:
        await writing.wait()
        return b""

    async def fail(data: bytes) -> None:
        writing.set()
        with trio.CancelScope(shield=True):
            await trio.testing.wait_all_tasks_blocked()
        raise trio.BrokenResourceError from ConnectionResetError(104, "reset by peer")

    ears = Ears(connector_to(HalfDeafStream(send_all=fail, receive_some=receive)))
    ears.stream.send(b"12345")
    await ears.stream.run()

    assert [OPENED, StreamLost(STREAM, LossCause.RESET, "reset by peer", 5)] == ears.events


async def test_reading_after_a_failed_write_is_bounded(autojump_clock: MockClock) -> None:
    """After a failed write to a silent peer, the loss is reported after a bounded time."""

    async def fail(data: bytes) -> None:
        raise OSError("no more")

    ears = Ears(connector_to(HalfDeafStream(send_all=fail, receive_some=never)))
    ears.stream.send(b"12345")
    await ears.stream.run()

    assert [OPENED, StreamLost(STREAM, LossCause.UNREACHABLE, "no more", 5)] == ears.events
    assert LAST_WORDS_SECONDS == trio.current_time()


async def test_a_failed_read_is_a_loss() -> None:
    """An exception of the stream while reading becomes StreamLost."""

    async def fail() -> bytes:
        await trio.lowlevel.checkpoint()
        raise trio.BrokenResourceError from ConnectionResetError(104, "reset by peer")

    ears = Ears(connector_to(HalfDeafStream(receive_some=fail)))
    await ears.stream.run()

    assert [OPENED, StreamLost(STREAM, LossCause.RESET, "reset by peer", 0)] == ears.events


async def test_an_externally_closed_stream_is_a_loss() -> None:
    """A stream that the user closes externally is reported as lost, and the client continues."""

    async def closed(data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        raise trio.ClosedResourceError("closed beside you")

    async def also_closed() -> bytes:
        await trio.lowlevel.checkpoint()
        raise trio.ClosedResourceError("closed beside you")

    ears = Ears(connector_to(HalfDeafStream(send_all=closed, receive_some=also_closed)))
    ears.stream.send(b"12345")
    await ears.stream.run()

    assert [OPENED, StreamLost(STREAM, LossCause.RESET, "closed beside you", 5)] == ears.events


async def test_a_lost_stream_is_closed() -> None:
    """The stream is closed after its end, even if closing raises."""

    async def fail() -> None:
        raise OSError("not even that")

    stream = HalfDeafStream(receive_some=end, aclose=fail)
    ears = Ears(connector_to(stream))
    await ears.stream.run()

    assert stream.is_closed
    assert StreamLost(STREAM, LossCause.END_OF_STREAM, "", 0) == ears.events[-1]


async def test_nothing_is_sent_after_closing() -> None:
    """A write queued just before ``close`` is not started, even on a stream whose first operation is a write."""
    stream = HalfDeafStream(receive_some=never)
    ears = Ears(connector_to(stream))
    async with ears.running():
        ears.stream.send(b"12345")
        handed_over = ears.stream.close()

    assert (0, []) == (handed_over, stream.sent)


async def test_bytes_during_close_are_not_reported() -> None:
    """Bytes that wake the reader just before ``close`` are not reported."""
    ours, theirs = memory_stream_pair()
    ears = Ears(connector_to(ours))

    deliver = theirs.send_stream.send_all_hook

    async def deliver_and_close() -> None:
        assert deliver is not None
        await deliver()

    theirs.send_stream.send_all_hook = deliver_and_close
    async with ears.running():
        await theirs.send_all(b"late")

    assert [OPENED] == ears.events


async def test_the_writer_is_protected_from_keyboard_interrupt() -> None:
    """The writer is protected from KeyboardInterrupt between counting a write and starting it."""
    protected: list[bool] = []

    async def note(data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        protected.append(trio.lowlevel.currently_ki_protected())
        ears.stream.close()

    ears = Ears(connector_to(HalfDeafStream(send_all=note, receive_some=never)))
    ears.stream.send(b"12345")
    await ears.stream.run()

    assert [True] == protected


async def test_a_connector_defect_is_raised() -> None:
    """An exception of the connector that is not a network error is raised, not reported as a loss."""
    error = KeyError("a defect")
    ears = Ears(connector_that_raises(error))

    with pytest.raises(KeyError) as caught:
        await ears.stream.run()

    assert error is caught.value
    assert [] == ears.events


async def test_a_stream_defect_is_raised() -> None:
    """An exception of the stream that is not a network error is raised and closes the stream."""

    async def fail(data: bytes) -> None:
        raise KeyError("a defect")

    stream = HalfDeafStream(send_all=fail, receive_some=never)
    ears = Ears(connector_to(stream))
    ears.stream.send(b"12345")

    with pytest.RaisesGroup(KeyError):
        await ears.stream.run()

    assert [OPENED] == ears.events
    assert stream.is_closed


async def test_cancellation_closes_without_a_report() -> None:
    """Cancellation from outside closes the stream without an event."""
    stream = HalfDeafStream(receive_some=never)
    ears = Ears(connector_to(stream))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ears.stream.run)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()

    assert [OPENED] == ears.events
    assert stream.is_closed


def test_nonces_are_fresh_and_fit_scram() -> None:
    """A nonce has at least 24 printable ASCII characters, none of them a comma, and is unique."""
    nonces = {new_nonce() for _ in range(100)}

    assert 100 == len(nonces)
    assert all(len(nonce) >= 24 and "," not in nonce and nonce.isascii() and nonce.isprintable() for nonce in nonces)
