"""Response without a length, which ends with its TLS stream and is complete only if the server announces the end."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trustme

from tests.trio_client._driver.tls_peer import TlsPeer
from tests.trio_client._services.substitute import Instead
from triclinium import errors, open_cluster, testing
from triclinium._driver.connector import TcpConnector

ADDRESS = "127.0.0.1"
ANSWER = (
    b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n\r\n"
    b'{"requestID": "1", "results": [{"a": 1}], "status": "success", "metrics": {}}'
)


@asynccontextmanager
async def open_query_service(context: ssl.SSLContext, *, says_goodbye: bool) -> AsyncIterator[int]:
    """Yield the port of a service that responds to one request and closes the connection."""

    async def serve(stream: trio.SocketStream) -> None:
        peer = TlsPeer(stream, context=context)
        await peer.do_handshake()
        await peer.receive(lambda data: b'"statement"' in data and data.endswith(b"}"))
        await peer.send_raw(peer.records(ANSWER) + (peer.goodbye() if says_goodbye else b""))
        await stream.send_eof()
        while await stream.receive_some():
            pass

    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host=ADDRESS)
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        yield listener.socket.getsockname()[1]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("says_goodbye", [True, False])
async def test_a_response_without_length_over_tls(says_goodbye: bool) -> None:
    """Without a length, a response that close_notify ends is complete; any other fails, even if its JSON is valid."""
    authority = trustme.CA()
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert(ADDRESS).configure_cert(server)
    authority.configure_trust(client)
    with trio.fail_after(60):
        async with (
            testing.open_tcp_cluster(ssl_context=server) as fake,
            open_query_service(server, says_goodbye=says_goodbye) as port,
        ):
            query_port = fake.node.options.ports(tls=True)[testing.Service.QUERY]
            detour = Instead(TcpConnector(client), query_port, port)
            assert fake.tls_connection_string is not None
            async with open_cluster(fake.tls_connection_string, fake.authenticator, connector=detour) as cluster:
                if says_goodbye:
                    async with cluster.query("DELETE FROM t") as result:
                        assert [{"a": 1}] == [row async for row in result]
                    return
                with pytest.raises(errors.RequestCanceledException) as caught:
                    async with cluster.query("DELETE FROM t") as result:
                        _ = [row async for row in result]

    assert "closed by the server without close_notify" in str(caught.value)
