"""TLS of a fake node: the handshake, its failures, and the certificate."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Collection, Mapping
from typing import Any, cast

import trio

from triclinium.testing._node_server import close_forcefully, end_sending

HANDSHAKE_SECONDS = 10.0
"""Time limit of a client's TLS handshake in seconds. A slower client is disconnected."""

LAST_WORDS_SECONDS = 1.0
"""Maximum time in seconds for which a refused client may read the reason."""

TLS_HANDSHAKE = b"\x16"
"""First byte from a client that speaks TLS (RFC 8446 §5.1)."""

TLS_ALERT = bytes.fromhex("15 0301 0002 02 46")
"""Fatal alert ``protocol_version`` (RFC 8446 §6.2), which servers send to a client that does not speak TLS."""


async def welcome_to_tls(
    tcp: trio.SocketStream, ssl_context: ssl.SSLContext
) -> trio.SSLStream[trio.SocketStream] | None:
    """Return a stream after its handshake. If that fails, send the client the reason, disconnect, and return None."""
    noting = _NotingContext(ssl_context)
    stream = trio.SSLStream(tcp, cast(ssl.SSLContext, noting), server_side=True, https_compatible=True)
    alert = TLS_ALERT
    try:
        with trio.fail_after(HANDSHAKE_SECONDS):
            if await tcp.socket.recv(1, socket.MSG_PEEK) == TLS_HANDSHAKE:
                await stream.do_handshake()
                return stream
    except (trio.BrokenResourceError, trio.TooSlowError, OSError):
        alert = noting.unsent()
    await _let_go(tcp, alert)
    return None


class _NotingContext:
    """Context that keeps OpenSSL's last output, because Trio does not send the alert of a failed handshake."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._outgoing = ssl.MemoryBIO()

    def wrap_bio(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *, server_side: bool, server_hostname: str | None
    ) -> ssl.SSLObject:
        """Create a TLS object over memory, like ``ssl.SSLContext.wrap_bio``."""
        self._outgoing = outgoing
        return self._context.wrap_bio(incoming, outgoing, server_side=server_side, server_hostname=server_hostname)

    def unsent(self) -> bytes:
        """Return the unsent output."""
        return self._outgoing.read()


async def _let_go(tcp: trio.SocketStream, alert: bytes) -> None:
    """Send an alert, and close once the client has closed, or after a second.

    An immediate close could reset the connection.
    """
    with trio.move_on_after(LAST_WORDS_SECONDS):
        try:
            await tcp.send_all(alert)
            await end_sending(tcp)
            while await tcp.receive_some():
                pass
        except (trio.BrokenResourceError, OSError):
            pass
    await close_forcefully(tcp)


def names_of(certificate: Mapping[str, Any] | None) -> Collection[str] | None:
    """Return the common and alternative names of a verified certificate; None without a certificate.

    Args:
        certificate: result of ``ssl.SSLObject.getpeercert``.
    """
    if not certificate:
        return None
    names = [name for _, name in certificate.get("subjectAltName", ())]
    return names + [name for part in certificate.get("subject", ()) for kind, name in part if kind == "commonName"]
