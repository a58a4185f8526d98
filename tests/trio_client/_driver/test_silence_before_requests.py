"""Requests that require a silent stream, which are written only if nothing has arrived on the stream."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from tests.trio_client._driver.stream_events import OPENED, Ears
from tests.trio_client._driver.tls_peer import HOST, client_context, server_context
from tests.trio_client.doubles import STREAM, connector_to
from triclinium._driver.pace import Pace
from triclinium._driver.streams import READING_PASSES
from triclinium._driver.tls_stream import TlsStream
from triclinium.testing._memory_stream import memory_stream_pair as piecewise_pair
from triclinium_core.contract.couchbase import Event
from triclinium_core.contract.neutral import BytesReceived, LossCause, StreamId, StreamLost


class LongPass(Pace):
    """Pace that makes readers wait until the test ends the pass of the event loop."""

    def __init__(self) -> None:
        super().__init__()
        self.end = trio.Event()

    async def next_turn(self, stream: StreamId) -> None:
        """Wait for the end of the pass."""
        self.held.add(stream)
        await self.end.wait()
        await super().next_turn(stream)


Pair = tuple[trio.abc.Stream, trio.abc.Stream]


async def bare_pair() -> Pair:
    """Return the two ends of a socket pair."""
    ours, theirs = trio.socket.socketpair()
    return trio.SocketStream(ours), trio.SocketStream(theirs)


async def tls_pair() -> Pair:
    """Return the two ends of TLS over a socket pair."""
    below, above = await bare_pair()
    ours = trio.SSLStream(below, client_context(), server_hostname=HOST, https_compatible=True)
    theirs = trio.SSLStream(above, server_context(), server_side=True, https_compatible=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ours.do_handshake)
        nursery.start_soon(theirs.do_handshake)
    return ours, theirs


async def direct_tls_pair() -> Pair:
    """Return the two ends of TLS over a socket pair; the first end is a ``TlsStream`` of the client."""
    below, above = trio.socket.socketpair()
    ours = TlsStream(trio.SocketStream(below), client_context(), HOST.encode())
    theirs = trio.SSLStream(trio.SocketStream(above), server_context(), server_side=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ours.do_handshake)
        nursery.start_soon(theirs.do_handshake)
    return ours, theirs


async def memory_pair() -> Pair:
    """Return the two ends of a stream in memory, which receive five bytes at a time."""
    return piecewise_pair([5])


PAIRS = pytest.mark.parametrize("make_pair", [bare_pair, tls_pair, direct_tls_pair, memory_pair])


class Asking(Ears):
    """Recorder that sends the request ``order``, once it is set, as soon as bytes arrive."""

    order: bytes = b""
    is_checked = True

    def _feed(self, event: Event) -> None:
        super()._feed(event)
        if isinstance(event, BytesReceived) and self.order:
            order, self.order = self.order, b""
            self.stream.send(order, self.is_checked)


async def what_comes(stream: trio.abc.ReceiveStream) -> bytes:
    """Return the next bytes of a stream, or b"" if it has ended, with or without an error."""
    try:
        return bytes(await stream.receive_some())
    except trio.BrokenResourceError:
        return b""


@PAIRS
@pytest.mark.native
async def test_a_second_response_blocks_the_next_request(
    make_pair: Callable[[], Awaitable[Pair]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a second response waits when a request is sent, the stream is lost and no byte of the request is sent."""
    for name in ("plain_stream", "streams", "tls_stream"):
        monkeypatch.setattr(f"triclinium._driver.{name}.PIECE_SIZE_BYTES_MAX", 5)
    ours, theirs = await make_pair()
    ears = Asking(connector_to(ours))
    ears.order = b"request"

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ears.stream.run)
        await theirs.send_all(b"first")
        await theirs.send_all(b"again")
        received = await what_comes(theirs)
        await trio.testing.wait_all_tasks_blocked()
        ears.stream.close()
        await trio.aclose_forcefully(theirs)

    assert b"" == received
    assert [OPENED, BytesReceived(STREAM, b"first"), StreamLost(STREAM, LossCause.UNSOLICITED, "", 0)] == ears.events


@PAIRS
@pytest.mark.native
async def test_bytes_of_a_pause_are_unsolicited(make_pair: Callable[[], Awaitable[Pair]]) -> None:
    """If bytes arrived during a pause, a stream that is resumed for the next request is lost."""
    ours, theirs = await make_pair()
    ears = Ears(connector_to(ours))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ears.stream.run)
        await trio.testing.wait_all_tasks_blocked()
        ears.stream.pause_reading()
        for data in (b"first", b"again"):
            await theirs.send_all(data)
            await trio.testing.wait_all_tasks_blocked()
        ears.stream.resume_reading()
        ears.stream.send(b"request", unless_readable=True)
        received = await what_comes(theirs)
        await trio.testing.wait_all_tasks_blocked()
        ears.stream.close()
        await trio.aclose_forcefully(theirs)

    assert b"" == received
    assert StreamLost(STREAM, LossCause.UNSOLICITED, "", 0) == ears.events[-1]
    assert BytesReceived(STREAM, b"again") not in ears.events


@PAIRS
@pytest.mark.native
async def test_bytes_held_by_the_reader_are_unsolicited(make_pair: Callable[[], Awaitable[Pair]]) -> None:
    """If the reader holds bytes for a later pass, a request is not sent, and the stream is lost without these bytes."""
    ours, theirs = await make_pair()
    pace = LongPass()
    ears = Ears(connector_to(ours), pace)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ears.stream.run)
        await trio.testing.wait_all_tasks_blocked()
        pace.note(0)
        await theirs.send_all(b"again")
        await trio.testing.wait_all_tasks_blocked()
        held = set(pace.held)
        ears.stream.send(b"request", unless_readable=True)
        for _ in range(2 * READING_PASSES):
            await trio.lowlevel.checkpoint()
        pace.end.set()
        received = await what_comes(theirs)
        await trio.testing.wait_all_tasks_blocked()
        await trio.aclose_forcefully(theirs)

    assert {STREAM} == held
    assert b"" == received
    assert [OPENED, StreamLost(STREAM, LossCause.UNSOLICITED, "", 0)] == ears.events


@PAIRS
@pytest.mark.native
async def test_requests_on_a_silent_stream(make_pair: Callable[[], Awaitable[Pair]]) -> None:
    """If nothing waits to be read, all data is sent in order, with and without ``unless_readable``."""
    ours, theirs = await make_pair()
    ears = Asking(connector_to(ours))

    async with ears.running():
        for number in range(6):
            ears.stream.send(b"%d" % number, unless_readable=bool(number % 2))
        received = b""
        while len(received) < 6:
            received += await theirs.receive_some()
        ears.order = b"next"
        await theirs.send_all(b"one")
        while len(received) < 10:
            received += await theirs.receive_some()
        handed_over = ears.stream.close()
        await trio.aclose_forcefully(theirs)

    assert b"012345next" == received
    assert 10 == handed_over
    assert [OPENED, BytesReceived(STREAM, b"one")] == ears.events


@PAIRS
@pytest.mark.native
async def test_a_closed_stream_blocks_the_next_request(make_pair: Callable[[], Awaitable[Pair]]) -> None:
    """If the peer has closed a paused stream, a request is not sent, and the loss reports how the stream ended."""
    ours, theirs = await make_pair()
    ears = Ears(connector_to(ours))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ears.stream.run)
        await trio.testing.wait_all_tasks_blocked()
        ears.stream.pause_reading()
        await theirs.send_all(b"first")
        await trio.testing.wait_all_tasks_blocked()
        await trio.aclose_forcefully(theirs)
        ears.stream.resume_reading()
        ears.stream.send(b"request", unless_readable=True)

    cause = LossCause.TRUNCATED if isinstance(ours, TlsStream) else LossCause.END_OF_STREAM
    text = cause.value if isinstance(ours, TlsStream) else ""
    assert [OPENED, BytesReceived(STREAM, b"first"), StreamLost(STREAM, cause, text, 0)] == ears.events


@pytest.mark.native
async def test_bytes_before_an_unwritten_request() -> None:
    """If bytes arrive before any part of a request is written, the stream is lost, with no request handed over."""
    ours, theirs = socket.socketpair()
    ears = Ears(connector_to(trio.SocketStream(trio.socket.from_stdlib_socket(ours))))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ears.stream.run)
        await trio.testing.wait_all_tasks_blocked()
        while not ears.stream.outbox:
            ears.stream.send(bytes(1024))
        # When all other tasks wait, the writer is inside send_all.
        await trio.testing.wait_all_tasks_blocked()
        begun = ears.stream.outbox.handed_over
        ears.stream.send(b"request", unless_readable=True)
        theirs.send(b"unasked")
        await trio.testing.wait_all_tasks_blocked()
        theirs.close()

    assert StreamLost(STREAM, LossCause.UNSOLICITED, "", begun) == ears.events[-1]
