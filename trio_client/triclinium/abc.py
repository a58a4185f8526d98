"""Replaceable parts of the client: the connector and the resolver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import trio

__all__ = ["ConnectedStream", "Connector", "Resolver"]


@dataclass(frozen=True, slots=True)
class ConnectedStream:
    """Byte stream to a node, ready for the first request; with TLS the handshake is done."""

    stream: trio.abc.Stream
    """Stream of bytes. The client does not use ``send_eof``. At most one task reads and one task writes."""
    local_address: str = ""
    """Local address, for error contexts; empty if unknown."""
    remote_address: str = ""
    """Remote address, numeric rather than a name; empty if unknown."""


class Connector(Protocol):
    """Opener of streams to nodes. Default: TCP and TLS. A test or a tunnel passes another connector.

    A connector whose TLS does not verify certificates and host names must have the attribute
    ``tls_is_verified = False``. The client then needs permission to send a token, or the password as PLAIN. A connector
    without the attribute counts as verifying.

    The client reports the end of a stream as the stream reports it. A ``trio.SSLStream`` with ``https_compatible=True``
    does not distinguish an end without close_notify from one with it.
    """

    async def connect(self, host: str, port: int, *, tls: bool) -> ConnectedStream:
        """Return a stream to ``host:port``.

        The connector sets no time limit: the client cancels an attempt that takes too long.

        Args:
            host: a name or an address, without brackets.
            port: port of the node.
            tls: whether to speak TLS, verifying the certificate against ``host``.

        Raises:
            OSError: the node cannot be reached. The client derives the reason from the class of the error or of its
                cause: ``socket.gaierror``, ``ConnectionRefusedError``, ``ssl.SSLError``, or any other.
            trio.BrokenResourceError: the stream broke before it was ready; the cause gives the reason.

        Cancellation: closes what was opened so far.
        """
        ...


class Resolver(Protocol):
    """Source of the nodes that DNS lists under the name of a cluster. Default: ``DnsResolver()``.

    With any resolver, the client drops targets outside of the accepted domains: see ``dns_srv_domains``.
    """

    async def look_up(self, service: str) -> Sequence[tuple[str, int]]:
        """Return host and port of each SRV record of a name, in any order; empty without records.

        Args:
            service: a name such as ``_couchbase._tcp.cluster.example``; with a final dot if the connection string has
                one.

        Raises:
            OSError: the lookup failed, for example because no name server responded.

        Cancellation: happens when the client closes; there is nothing to undo.
        """
        ...
