"""A fake node on a port of this machine, with TLS beside it where asked."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from types import NoneType

import trio

from triclinium._connector import TcpConnector
from triclinium.testing._fake_cluster import FakeCluster, fake_cluster
from triclinium.testing._node_server import NodeServer, close_forcefully, end_sending, serving
from triclinium_core.kv.operation.validation import check_integer, check_type
from triclinium_core.testing import FakeNode

HOST = "127.0.0.1"
"""Nobody but this machine is let in: the credentials of a fake node are no secret."""

HANDSHAKE_SECONDS = 10.0
"""A client that does not finish its TLS handshake by then is let go."""

RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""``SO_LINGER`` on, for no time at all."""

TLS_HANDSHAKE = b"\x16"
"""The first byte of a client that speaks TLS (RFC 8446 §5.1)."""

TLS_ALERT = bytes.fromhex("15 0301 0002 02 46")
"""A fatal alert, ``protocol_version`` (RFC 8446 §6.2): what servers answer to one that does not."""


@asynccontextmanager
async def open_tcp_cluster(
    node: FakeNode, *, port: int = 0, tls_port: int = 0, ssl_context: ssl.SSLContext | None = None
) -> AsyncIterator[FakeCluster]:
    """Give the block a cluster of ``node`` on 127.0.0.1, which any client can talk to; leaving the block closes it.

    The ports are put into the configs of the node. A connection that the node refuses is reset once it is there.

    Args:
        port: 0 for any that is free.
        tls_port: the same for TLS; of no meaning without an ``ssl_context``.
        ssl_context: a server's context, with its certificate; the node speaks TLS only where there is one.

    Raises:
        InvalidArgumentException: an argument is wrong.
        OSError: a port is taken, or is not for this user.
        InternalError: on leaving: the node crashed, which had cancelled the block.

    Cancellation: reaches the block and not the node.
    """
    check_type(node, "node", FakeNode)
    check_integer(port, "port", 0, 0xFFFF)
    check_integer(tls_port, "tls_port", 0, 0xFFFF)
    check_type(ssl_context, "ssl_context", ssl.SSLContext, NoneType)
    async with AsyncExitStack() as stack:
        plain = await stack.enter_async_context(await _listen(port))
        secure = None if ssl_context is None else await stack.enter_async_context(await _listen(tls_port))
        node.set_ports(_port_of(plain), None if secure is None else _port_of(secure))
        server = await stack.enter_async_context(serving(node))
        server.start_soon(_accept, server, plain, None)
        if secure is not None:
            server.start_soon(_accept, server, secure, ssl_context)
        yield fake_cluster(server, HOST, TcpConnector())


async def serve_tcp(
    node: FakeNode,
    *,
    port: int = 0,
    tls_port: int = 0,
    ssl_context: ssl.SSLContext | None = None,
    task_status: trio.TaskStatus[FakeCluster] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve ``node`` in a nursery of one's own: ``fake = await nursery.start(serve_tcp, node)``.

    It runs until it is cancelled. The arguments, and what it raises, are those of ``open_tcp_cluster``.

    Cancellation: closes all connections at once.
    """
    async with open_tcp_cluster(node, port=port, tls_port=tls_port, ssl_context=ssl_context) as fake:
        task_status.started(fake)
        await trio.sleep_forever()


async def _listen(port: int) -> trio.SocketListener:
    (listener,) = await trio.open_tcp_listeners(port, host=HOST)
    return listener


def _port_of(listener: trio.SocketListener) -> int:
    port = listener.socket.getsockname()[1]
    assert isinstance(port, int)
    return port


async def _accept(server: NodeServer, listener: trio.SocketListener, ssl_context: ssl.SSLContext | None) -> None:
    await trio.serve_listeners(partial(_welcome, server, ssl_context), [listener])


async def _welcome(server: NodeServer, ssl_context: ssl.SSLContext | None, tcp: trio.SocketStream) -> None:
    if not server.accepts():
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        await close_forcefully(tcp)
    elif ssl_context is None:
        await server.serve_stream(tcp)
    else:
        await _welcome_to_tls(server, ssl_context, tcp)


async def _welcome_to_tls(server: NodeServer, ssl_context: ssl.SSLContext, tcp: trio.SocketStream) -> None:
    stream = trio.SSLStream(tcp, ssl_context, server_side=True, https_compatible=True)
    try:
        with trio.fail_after(HANDSHAKE_SECONDS):
            if await tcp.socket.recv(1, socket.MSG_PEEK) != TLS_HANDSHAKE:
                await _turn_away(tcp)
                return
            await stream.do_handshake()
    except (trio.BrokenResourceError, trio.TooSlowError, OSError):
        await close_forcefully(tcp)
        return
    await server.serve_stream(stream)


async def _turn_away(tcp: trio.SocketStream) -> None:
    """Tell a client that speaks something else so, and wait until it has read that."""
    await tcp.send_all(TLS_ALERT)
    await end_sending(tcp)
    while await tcp.receive_some():
        pass
    await close_forcefully(tcp)
