"""Replaceable parts under the client: the connector and the resolver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import trio


@dataclass(frozen=True, slots=True)
class ConnectedStream:
    """A byte stream to a node, ready for the first request; over TLS the handshake is done."""

    stream: trio.abc.Stream
    """It need not support ``send_eof``. One task reads and one task writes, never more."""
    local_address: str = ""
    """Our end, for error contexts; empty where it is not known."""
    remote_address: str = ""
    """Their end, as an address rather than a name; empty where it is not known."""


class Connector(Protocol):
    """Opens streams to nodes. Default: TCP and TLS. A test or a tunnel passes another connector.

    A connector whose TLS does not verify certificates and host names has an attribute ``tls_is_verified = False``. Then
    the client needs permission to send a token, or the password as PLAIN. A connector without the attribute counts as
    verifying.
    """

    async def connect(self, host: str, port: int, *, tls: bool) -> ConnectedStream:
        """Return a stream to ``host:port``.

        It sets no time limit of its own: the client cancels an attempt that takes too long.

        Args:
            host: a name or an address, without brackets.
            port: the KV port of the node.
            tls: whether to speak TLS, verifying the certificate against ``host``.

        Raises:
            OSError: the node cannot be reached. The subclass tells the client why: ``socket.gaierror``,
                ``ConnectionRefusedError``, ``ssl.SSLError``, any other; here or as the cause.
            trio.BrokenResourceError: the stream broke before it was ready; the cause tells why.

        Cancellation: closes what was opened so far.
        """
        ...


class Resolver(Protocol):
    """Source of the nodes that DNS lists under the name of a cluster. Default: ``DnsResolver()``.

    The client drops targets outside the accepted domains, for any resolver: see ``dns_srv_domains``.
    """

    async def look_up(self, service: str) -> Sequence[tuple[str, int]]:
        """Return host and port of each SRV record of a name, in any order; none where there is none.

        Args:
            service: such as ``_couchbase._tcp.cluster.example``; with a final dot if the connection string has one.

        Raises:
            OSError: nobody answered.

        Cancellation: the client is closed; there is nothing to undo.
        """
        ...
