"""TLS over a socket: handshakes, reads, writes, and the end of the stream."""

from __future__ import annotations

import os
import ssl
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
import trio
import trio.testing

from tests.trio_client._driver.stream_events import OPENED, Ears
from tests.trio_client._driver.tls_peer import HOST, TlsPeer, client_context, open_pair, server_context
from tests.trio_client.doubles import STREAM, connector_to
from triclinium._driver import tls_stream
from triclinium._driver.tls_records import RECORDS_MAX
from triclinium._driver.tls_stream import ENCRYPTED_SIZE_MAX, TlsStream, TruncatedStreamError
from triclinium_core.contract.neutral import BytesReceived, LossCause, StreamLost

pytestmark = pytest.mark.native
VERSIONS = pytest.mark.parametrize(
    "version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=lambda version: version.name
)
MEGABYTE = bytes(range(256)) * 4096
OVERHEAD_MAX = 4 * 64
"""Maximum number of bytes that four records add to their data."""


async def close(stream: TlsStream, peer: TlsPeer) -> None:
    """Close both ends."""
    await stream.aclose()
    await peer.stream.aclose()


async def send_a_part(stream: TlsStream) -> None:
    """Start to send a megabyte, and cancel the send when the socket is full."""
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.send_all, MEGABYTE)
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()


# -- Reading.


@VERSIONS
@pytest.mark.parametrize("cut", [1, 2, 5, 6, 7])
async def test_records_split_at_any_byte(version: ssl.TLSVersion, cut: int) -> None:
    """Records of the handshake, of data and of the end may arrive in parts of any size; each is read when complete."""
    async with open_pair(version, cut=cut) as (stream, peer):
        received: list[bytes] = []

        async def read() -> None:
            while data := await stream.receive_some():
                received.append(data)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            for piece in (b"one", b"two", b"x" * 300):
                await peer.send_raw(peer.records(piece), cut)
                assert piece == received[-1]
            await peer.send_raw(peer.goodbye(), cut)

    assert [b"one", b"two", b"x" * 300] == received


@VERSIONS
async def test_available_records_are_read_together(version: ssl.TLSVersion) -> None:
    """One read returns the data of all records that have arrived."""
    async with open_pair(version) as (stream, peer):
        await peer.send(b"one ", b"two ", b"three")
        received = await stream.receive_some()

    assert b"one two three" == received


async def test_the_records_of_one_read_are_bounded() -> None:
    """A read decrypts a bounded number of records, and the next does not wait for the rest, but is a checkpoint."""
    async with open_pair() as (stream, peer):
        # Read the session tickets, which arrive before the data.
        await peer.send(b"hello")
        assert b"hello" == await stream.receive_some()
        await peer.send(*[b"x"] * (RECORDS_MAX + 1))
        with trio.testing.assert_checkpoints():
            first = await stream.receive_some()
        with trio.testing.assert_checkpoints():
            second = await stream.receive_some()

    assert (b"x" * RECORDS_MAX, b"x") == (first, second)


async def test_an_idle_stream_keeps_no_received_bytes() -> None:
    """Received bytes are released when all of their records are decrypted."""
    async with open_pair() as (stream, peer):
        await peer.send(b"one", b"two")
        await stream.receive_some()
        kept = stream._received

    assert b"" == kept


@VERSIONS
@pytest.mark.parametrize("size_max", [1, 7, 16_384, 20_000])
async def test_a_read_respects_its_maximum_size(version: ssl.TLSVersion, size_max: int) -> None:
    """A read returns at most ``max_bytes``, and the next reads return the rest of the record."""
    async with open_pair(version) as (stream, peer):
        data = MEGABYTE[: 20 * 5 if size_max < 10 else 40_000]
        received: list[bytes] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.send, data[:50], data[50:])
            while sum(map(len, received)) < len(data):
                received.append(await stream.receive_some(size_max))

    assert data == b"".join(received)
    assert size_max >= max(map(len, received))


async def test_a_read_of_zero_bytes_is_refused() -> None:
    """A maximum of zero bytes raises ValueError."""
    async with open_pair() as (stream, _):
        with pytest.raises(ValueError, match="max_bytes"):
            await stream.receive_some(0)


async def test_a_cancelled_read_loses_nothing() -> None:
    """A cancelled read leaves all data for the next one."""
    async with open_pair() as (stream, peer):
        records = peer.records(b"one")
        for part in (records[:9], records[9:]):
            await peer.send_raw(part)
            with trio.CancelScope() as scope:
                scope.cancel()
                await stream.receive_some()
            assert scope.cancelled_caught
        received = await stream.receive_some()

    assert b"one" == received


# -- Handshakes.


@VERSIONS
async def test_a_handshake_that_carries_data(version: ssl.TLSVersion) -> None:
    """Data that arrives with the server's last handshake message is read without waiting for the socket."""
    async with open_pair(version, behind=b"early") as (stream, _):
        with trio.fail_after(60):
            received = await stream.receive_some()

    assert b"early" == received
    assert version.name.replace("_", ".") == stream.version()


async def test_a_refused_certificate_sends_its_alert() -> None:
    """A client that refuses the certificate sends the alert with the reason."""
    below, above = trio.socket.socketpair()
    stream = TlsStream(trio.SocketStream(below), ssl.create_default_context(), HOST.encode())
    peer = TlsPeer(trio.SocketStream(above))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(shake_hands_in_vain, peer)
        with pytest.raises(trio.BrokenResourceError) as caught:
            await stream.do_handshake()
    await close(stream, peer)

    assert isinstance(caught.value.__cause__, ssl.SSLCertVerificationError)


async def shake_hands_in_vain(peer: TlsPeer) -> None:
    """Attempt a handshake with a client that does not trust the server."""
    with pytest.raises(ssl.SSLError, match="UNKNOWN_CA"):
        await peer.do_handshake()


async def test_sending_after_an_alert() -> None:
    """If the peer refuses the client after the handshake, as in TLS 1.3, its alert is the cause of later errors."""
    context = server_context()
    context.verify_mode = ssl.CERT_REQUIRED
    below, above = trio.socket.socketpair()
    stream = TlsStream(trio.SocketStream(below), client_context(), HOST.encode())
    peer = TlsPeer(trio.SocketStream(above), context=context)

    async def refuse() -> None:
        with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
            await peer.do_handshake()
        await peer.send_raw(peer.outgoing.read())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(refuse)
        await stream.do_handshake()
    for call in (stream.receive_some, partial(stream.send_all, b"x")):
        with pytest.raises(trio.BrokenResourceError) as caught:
            await call()
        assert "ALERT" in str(caught.value.__cause__)
    await close(stream, peer)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x16\x03\x03\xff\xff", b"\x16\x03"])
async def test_a_response_without_tls_fails(answer: bytes) -> None:
    """A response that is not a TLS record, or only the beginning of one, fails the handshake."""
    below, above = trio.socket.socketpair()
    stream, peer = TlsStream(trio.SocketStream(below), client_context(), HOST.encode()), trio.SocketStream(above)
    await peer.send_all(answer)
    await peer.send_eof()
    with pytest.raises(trio.BrokenResourceError) as caught:
        await stream.do_handshake()
    await stream.aclose()
    await peer.aclose()

    assert isinstance(caught.value.__cause__, ssl.SSLError)


# -- Ends.


@VERSIONS
@pytest.mark.parametrize("end", ["close_notify", "none", "amid a record"])
async def test_each_end_of_a_connection_is_reported(version: ssl.TLSVersion, end: str) -> None:
    """After all data, reads return b"" if the peer sent close_notify; after any other end, every read raises."""
    async with open_pair(version) as (stream, peer):
        records = peer.records(b"last")
        if end == "close_notify":
            records += peer.goodbye()
        if end == "amid a record":
            records += peer.records(b"lost")[:-1]
        await peer.send_raw(records)
        await peer.stream.aclose()

        assert b"last" == await stream.receive_some()
        for _ in range(2):
            if end == "close_notify":
                assert b"" == await stream.receive_some()
            else:
                with pytest.raises(TruncatedStreamError):
                    await stream.receive_some()


@pytest.mark.parametrize(
    ("cause", "text"), [(LossCause.END_OF_STREAM, ""), (LossCause.TRUNCATED, LossCause.TRUNCATED.value)]
)
async def test_an_end_without_close_notify_is_truncation(cause: LossCause, text: str) -> None:
    """StreamLost reports whether the peer announced the end with close_notify."""
    async with open_pair() as (stream, peer):
        ears = Ears(connector_to(stream))
        await peer.send_raw(peer.records(b"last") + (peer.goodbye() if cause is LossCause.END_OF_STREAM else b""))
        await peer.stream.aclose()
        await ears.stream.run()

    assert [OPENED, BytesReceived(STREAM, b"last"), StreamLost(STREAM, cause, text, 0)] == ears.events


@VERSIONS
async def test_an_error_after_good_records(version: ssl.TLSVersion) -> None:
    """Data before an invalid record is returned, then reads raise, and the peer receives the alert."""
    async with open_pair(version) as (stream, peer):
        good, bad = peer.records(b"one", b"two"), bytearray(peer.records(b"three"))
        bad[-1] ^= 1
        await peer.send_raw(good + bytes(bad))

        assert b"onetwo" == await stream.receive_some()
        for _ in range(2):
            with pytest.raises(trio.BrokenResourceError) as caught:
                await stream.receive_some()
            assert isinstance(caught.value.__cause__, ssl.SSLError)
            assert not isinstance(caught.value, TruncatedStreamError)
        with pytest.raises(ssl.SSLError, match="BAD_RECORD_MAC"):
            await peer.receive_exactly(1)


async def test_a_reset_connection_fails_both_directions() -> None:
    """After a reset, the system's error is the cause of the exceptions of both reading and sending."""
    async with open_pair() as (stream, peer):
        assert 3 == stream.send_now(b"one")
        # Closing a socket that has unread data resets the connection.
        await peer.stream.aclose()
        with pytest.raises(trio.BrokenResourceError) as caught:
            await stream.receive_some()
        with pytest.raises(trio.BrokenResourceError) as also_caught:
            await stream.send_all(b"two")

    assert all(isinstance(error.value.__cause__, ConnectionError) for error in (caught, also_caught))


# -- Sending, replies and checkpoints.


@VERSIONS
async def test_ten_megabytes_in_both_directions(version: ssl.TLSVersion) -> None:
    """Ten megabytes pass in both directions at the same time, unchanged."""
    async with open_pair(version) as (stream, peer):
        data = os.urandom(2**20) * 10
        received = bytearray()

        async def send() -> None:
            for start in range(0, len(data), 333_333):
                await stream.send_all(data[start : start + 333_333])

        async def echo() -> None:
            left = len(data)
            while left:
                part = await peer.receive(bool)
                left -= len(part)
                await peer.send(part)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            nursery.start_soon(echo)
            while len(received) < len(data):
                received += await stream.receive_some()

    is_same = data == received
    assert is_same


@VERSIONS
async def test_a_send_after_a_cancelled_one(version: ssl.TLSVersion) -> None:
    """After a cancelled send, the next one sends the data that was already encrypted before its own."""
    async with open_pair(version) as (stream, peer):
        for _ in range(3):
            await send_a_part(stream)
        received = b""

        async def read() -> None:
            nonlocal received
            received = await peer.receive(lambda data: data.endswith(b"the end"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await stream.send_all(b"the end")

    is_prefix = received == MEGABYTE[: len(received) - 7] + b"the end"
    assert is_prefix
    assert ENCRYPTED_SIZE_MAX < len(received) < len(MEGABYTE)


async def test_encryption_ahead_is_bounded() -> None:
    """At most 64 KiB of data is encrypted ahead, and at most that much counts as handed over before it is sent."""
    async with open_pair() as (stream, peer):
        ears = Ears(connector_to(stream))
        async with ears.running():
            for _ in range(4):
                ears.stream.send(MEGABYTE)
            await trio.testing.wait_all_tasks_blocked()
            ahead = len(stream._unsent) + stream._outgoing.pending
            is_behind, handed_over = bool(ears.stream.outbox), ears.stream.close()
            await trio.testing.wait_all_tasks_blocked()
            received = await peer.receive(lambda data: False)

    assert is_behind
    assert 0 < ahead <= ENCRYPTED_SIZE_MAX + OVERHEAD_MAX
    size = len(received)
    assert size <= handed_over <= size + ENCRYPTED_SIZE_MAX


async def test_data_is_handed_over_once_encrypted() -> None:
    """Encrypted data counts as handed over before the system accepts it, and is sent when the socket has capacity."""
    async with open_pair() as (stream, peer):
        ears = Ears(connector_to(stream))
        async with ears.running():
            size = 0
            while not stream.is_behind:
                ears.stream.send(bytes(1000))
                size += 1000
            handed_over = ears.stream.outbox.handed_over
            await trio.testing.wait_all_tasks_blocked()
            received = await peer.receive_exactly(size)
            await trio.testing.wait_all_tasks_blocked()
            is_behind = stream.is_behind, bool(ears.stream.outbox)

    assert (size, size) == (handed_over, len(received))
    assert (False, False) == is_behind


async def test_unsent_records_are_sent_while_reading() -> None:
    """Unsent records are sent while a task reads, even if no task calls ``send_all``."""
    async with open_pair() as (stream, peer):
        await send_a_part(stream)
        is_behind = stream.is_behind
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.receive_some)
            await trio.testing.wait_all_tasks_blocked()
            while stream.is_behind:
                peer.incoming.write(await peer.stream.receive_some())
                await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()

    assert is_behind


async def test_nothing_is_decrypted_with_many_unsent_replies(monkeypatch: pytest.MonkeyPatch) -> None:
    """While unsent records exceed the bound for replies, nothing further from the peer is decrypted."""
    async with open_pair() as (stream, peer):
        await send_a_part(stream)
        monkeypatch.setattr(tls_stream, "REPLIES_SIZE_MAX", 1)
        received: list[bytes] = []

        async def read() -> None:
            received.append(await stream.receive_some())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await peer.send(b"unread")
            await trio.testing.wait_all_tasks_blocked()
            before = list(received)
            while not received:
                peer.incoming.write(await peer.stream.receive_some())
                await trio.testing.wait_all_tasks_blocked()

    assert ([], [b"unread"]) == (before, received)


async def test_every_call_is_a_checkpoint() -> None:
    """A call that does not have to wait is still a checkpoint."""
    async with open_pair() as (stream, peer):
        for call in (
            partial(stream.send_all, b""),
            partial(stream.send_all, b"x"),
            stream.wait_send_all_might_not_block,
        ):
            with trio.testing.assert_checkpoints():
                await call()
        await peer.send(b"x")
        with trio.testing.assert_checkpoints():
            await stream.receive_some()
        with trio.testing.assert_checkpoints():
            await stream.aclose()


# -- Closing, cancellation, and refused hosts.


async def test_closing_twice() -> None:
    """A second ``aclose`` does nothing, even if the file descriptor is reused; a closed stream accepts no data."""
    async with open_pair() as (stream, _):
        await stream.aclose()
        assert 0 == stream.send_now(b"x")
        others = [trio.socket.socketpair() for _ in range(4)]
        await stream.aclose()
        for one, other in others:
            await one.send(b"x")
            assert b"x" == await other.recv(1)
            one.close()
            other.close()
        calls = (stream.receive_some, partial(stream.send_all, b"x"), stream.wait_send_all_might_not_block)
        for call in calls:
            with pytest.raises(trio.ClosedResourceError):
                await call()


@pytest.mark.parametrize("call", ["receive_some", "send_all", "both", "receive_some with unsent data"])
async def test_closing_wakes_waiting_tasks(call: str) -> None:
    """Tasks that wait to read, to send or for both when the stream is closed raise ClosedResourceError, ungrouped."""
    async with open_pair() as (stream, _):
        if call == "receive_some with unsent data":
            await send_a_part(stream)
        ended: list[str] = []

        async def wait(name: str) -> None:
            with pytest.raises(trio.ClosedResourceError):
                await (stream.receive_some() if name == "receive_some" else stream.send_all(MEGABYTE))
            ended.append(name)

        async with trio.open_nursery() as nursery:
            names = ["send_all", "receive_some"] if call == "both" else call.split()[:1]
            for name in names:
                nursery.start_soon(wait, name)
                await trio.testing.wait_all_tasks_blocked()
            await stream.aclose()

    assert sorted(names) == sorted(ended)


async def test_cancelling_a_reader_that_sends() -> None:
    """A reader that also waits to send raises Cancelled without a group."""
    async with open_pair() as (stream, _):
        for call in (partial(stream.send_all, MEGABYTE), stream.receive_some):
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(wait_until_cancelled, call)
                    await trio.testing.wait_all_tasks_blocked()
                    scope.cancel()


async def wait_until_cancelled(call: Callable[[], Awaitable[object]]) -> None:
    """Check that ``call`` raises exactly Cancelled, and raise it again."""
    with pytest.raises(trio.Cancelled) as caught:
        await call()
    raise caught.value


def test_a_refused_host_leaves_the_socket_open() -> None:
    """If the TLS stream cannot be created, the socket stays with its owner."""

    async def main() -> None:
        below, above = trio.socket.socketpair()
        tcp = trio.SocketStream(below)
        with pytest.raises(ValueError, match="server_hostname"):
            TlsStream(tcp, client_context(), b"")

        await tcp.send_all(b"x")
        assert b"x" == await above.recv(1)
        await tcp.aclose()
        above.close()

    trio.run(main)
