"""TLS of a fake node: the handshake, its failures, and the certificate."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Collection, Mapping
from typing import Any, cast

import trio

from triclinium.testing._node_server import close_forcefully, end_sending

HANDSHAKE_SECONDS = 10.0
"""A client that does not finish its TLS handshake by then is let go."""

LAST_WORDS_SECONDS = 1.0
"""How long a client that is let go is given to read why."""

TLS_HANDSHAKE = b"\x16"
"""The first byte of a client that speaks TLS (RFC 8446 §5.1)."""

TLS_ALERT = bytes.fromhex("15 0301 0002 02 46")
"""A fatal alert, ``protocol_version`` (RFC 8446 §6.2): what servers answer to one that does not."""


async def welcome_to_tls(
    tcp: trio.SocketStream, ssl_context: ssl.SSLContext
) -> trio.SSLStream[trio.SocketStream] | None:
    """Return a stream whose handshake is done; None where it failed, and the client was told why and let go."""
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
    """A context that knows what OpenSSL had to say in the end: Trio does not send the alert of a handshake that failed."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._outgoing = ssl.MemoryBIO()

    def wrap_bio(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *, server_side: bool, server_hostname: str | None
    ) -> ssl.SSLObject:
        """Begin TLS over memory, as an ``ssl.SSLContext`` does."""
        self._outgoing = outgoing
        return self._context.wrap_bio(incoming, outgoing, server_side=server_side, server_hostname=server_hostname)

    def unsent(self) -> bytes:
        """Return what was to be sent."""
        return self._outgoing.read()


async def _let_go(tcp: trio.SocketStream, alert: bytes) -> None:
    """Close a connection once the client has read the alert: closed at once, it would find a reset instead."""
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
    """Return the common names and the alternative ones of a certificate that was verified; None where there is none.

    Args:
        certificate: as ``ssl.SSLObject.getpeercert`` returns it.
    """
    if not certificate:
        return None
    names = [name for _, name in certificate.get("subjectAltName", ())]
    return names + [name for part in certificate.get("subject", ()) for kind, name in part if kind == "commonName"]
