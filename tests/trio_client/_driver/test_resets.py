"""Resets of a connection, whose error the socket raises only once: in the call that checks, sends or reads first."""

from __future__ import annotations

import errno
import os
import select
import socket
from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from tests.trio_client._driver.stream_events import Ears
from tests.trio_client._driver.tls_peer import HOST, client_context, server_context
from tests.trio_client.doubles import STREAM, connector_to
from triclinium._driver.tls_stream import TlsStream
from triclinium.testing._tcp_port import RESET_ON_CLOSE
from triclinium_core.contract.neutral import LossCause, StreamLost

pytestmark = pytest.mark.native

ROUNDS = 20
"""Number of repetitions: trio randomizes whether the reader or the writer of a stream runs first."""

SECONDS_MAX = 30.0
"""Maximum time in seconds in which a reset arrives."""

Secure = Callable[[trio.SocketStream, trio.SocketStream], Awaitable[trio.abc.Stream]]


async def plain(ours: trio.SocketStream, theirs: trio.SocketStream) -> trio.abc.Stream:
    """Return our end of a plain connection."""
    return ours


async def tls(ours: trio.SocketStream, theirs: trio.SocketStream) -> trio.abc.Stream:
    """Return our end of TLS over a connection, after the handshake."""
    client = TlsStream(ours, client_context(), HOST.encode())
    server = trio.SSLStream(theirs, server_context(), server_side=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.do_handshake)
        nursery.start_soon(server.do_handshake)
    return client


@pytest.mark.parametrize("secure", [plain, tls])
@pytest.mark.parametrize("is_checked", [False, True])
async def test_reset_is_the_cause_of_the_loss(secure: Secure, is_checked: bool) -> None:
    """If a reset arrives before a request is sent or checked, the loss has the system's error as its cause."""
    for _ in range(ROUNDS):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            ours = await trio.open_tcp_stream(*listener.getsockname())
            theirs = trio.socket.from_stdlib_socket(listener.accept()[0])
        descriptor = ours.socket.fileno()
        ears = Ears(connector_to(await secure(ours, trio.SocketStream(theirs))))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ears.stream.run)
            await trio.testing.wait_all_tasks_blocked()
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            theirs.close()
            # Wait without trio, so that the stream's tasks do not run.
            select.select([descriptor], [], [], SECONDS_MAX)
            ears.stream.send(b"request", unless_readable=is_checked)

        lost = ears.events[-1]
        assert isinstance(lost, StreamLost)
        assert (STREAM, LossCause.RESET, os.strerror(errno.ECONNRESET)) == (lost.stream, lost.cause, lost.text)


async def test_reset_that_a_tls_write_receives() -> None:
    """If a write has received the error of a reset, reading raises this error, and not that of a missing close_notify."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = await trio.open_tcp_stream(*listener.getsockname())
        theirs = trio.socket.from_stdlib_socket(listener.accept()[0])
    descriptor = ours.socket.fileno()
    client = await tls(ours, trio.SocketStream(theirs))
    assert isinstance(client, TlsStream)
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    theirs.close()
    select.select([descriptor], [], [], SECONDS_MAX)
    client.send_now(b"request")

    with pytest.raises(trio.BrokenResourceError) as caught:
        await client.receive_some()
    await client.aclose()

    assert isinstance(caught.value.__cause__, ConnectionResetError)
