"""Key updates of TLS 1.3 and renegotiations of TLS 1.2, with a server that performs them."""

from __future__ import annotations

import signal
import ssl
from collections import Counter
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.trio_client._driver.openssl_server import OpensslServer, open_openssl
from triclinium._driver.tls_records import RECORDS_MAX
from triclinium._driver.tls_stream import TlsStream

pytestmark = pytest.mark.native


async def exchange(server: OpensslServer, number: int) -> None:
    """Send a line in each direction, after the server's request for new keys."""
    received = bytearray()

    async def read() -> None:
        while True:
            received.extend(await server.stream.receive_some())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        while server.unread():
            await trio.lowlevel.checkpoint()
        # A renegotiation is complete when this call returns. Before that, the server accepts no line.
        await server.stream.send_all(b"from the client %d\n" % number)
        await server.wait_output(b"from the client %d\n" % number)
        line = b"from the server %d\n" % number
        await server.order(line.decode().strip())
        while not received.endswith(line):
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("version", "command"),
    [
        (ssl.TLSVersion.TLSv1_3, "K"),
        (ssl.TLSVersion.TLSv1_3, "k"),
        (ssl.TLSVersion.TLSv1_2, "r"),
        (ssl.TLSVersion.TLSv1_2, "R"),
    ],
)
async def test_data_around_new_keys(version: ssl.TLSVersion, command: str, tmp_path: Path) -> None:
    """Data is exchanged before and after the server changes its own keys or those of both sides, several times."""
    async with open_openssl(tmp_path, version) as server:
        for number in range(3):
            await exchange(server, number)
            await server.command(command)
        await exchange(server, 3)


async def test_sending_during_a_renegotiation(tmp_path: Path) -> None:
    """During a renegotiation, ``send_now`` accepts no data until the peer has responded; then the data is sent."""
    async with open_openssl(tmp_path, ssl.TLSVersion.TLSv1_2) as server:
        stream = server.stream
        await exchange(server, 0)
        await server.command("r")
        # Read what has arrived, without a pass of the event loop in which the peer could respond.
        await stream._receive()
        assert b"" == stream._decrypt(1)
        sent = stream.send_now(b"too early")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.receive_some)
            await stream.send_all(b"in time\n")
            await server.wait_output(b"in time\n")
            nursery.cancel_scope.cancel()
        await exchange(server, 1)

    assert 0 == sent


async def test_sending_during_renegotiation_with_unread_data(tmp_path: Path) -> None:
    """If unread data precedes the client's handshake, ``send_now`` accepts no data; the data is sent after a read."""
    async with open_openssl(tmp_path, ssl.TLSVersion.TLSv1_2) as server:
        stream = server.stream
        await exchange(server, 0)
        await server.command("r")
        await server.command("before the handshake")
        received = bytearray(await stream.receive_some(3))
        sent = stream.send_now(b"too early")

        async def read() -> None:
            while True:
                received.extend(await stream.receive_some())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await stream.send_all(b"in time\n")
            await server.wait_output(b"in time\n")
            nursery.cancel_scope.cancel()
        await exchange(server, 1)

    assert 0 == sent
    assert b"before the handshake\n" == received


async def test_a_lost_peer_during_a_renegotiation(tmp_path: Path) -> None:
    """A task that waits to send fails if the peer closes the connection during a renegotiation."""
    async with open_openssl(tmp_path, ssl.TLSVersion.TLSv1_2) as server:
        stream = server.stream
        await exchange(server, 0)
        await server.command("r")
        server.send_signal(signal.SIGSTOP)
        await stream._receive()
        assert b"" == stream._decrypt(1)

        async def send() -> None:
            with pytest.raises(trio.BrokenResourceError):
                await stream.send_all(b"never")

        async def read() -> None:
            with pytest.raises(trio.BrokenResourceError):
                await stream.receive_some()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            nursery.start_soon(read)
            await trio.testing.wait_all_tasks_blocked()
            server.send_signal(signal.SIGKILL)


async def test_a_flood_of_key_updates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSL gets a bounded number of key updates per pass of the event loop, and responds to all of them."""
    count = 6 * RECORDS_MAX
    passes = 0
    at: list[int] = []
    decrypt = TlsStream._decrypt

    def noting_decrypt(stream: TlsStream, size_max: int) -> bytes:
        at.append(passes)
        return decrypt(stream, size_max)

    async with open_openssl(tmp_path, ssl.TLSVersion.TLSv1_3) as server:
        await exchange(server, 0)
        for _ in range(count):
            await server.command("K")
        monkeypatch.setattr(TlsStream, "_decrypt", noting_decrypt)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.stream.receive_some)
            while len(at) < count // RECORDS_MAX:
                passes += 1
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        monkeypatch.undo()
        await exchange(server, 1)

    # Trio runs the tasks of a pass in any order: the reader may run before this test in one pass, after it in another.
    assert max(Counter(at).values()) <= 2
