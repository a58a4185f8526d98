"""Connector: resolves a host name, opens TCP and TLS, and maps exceptions to causes of a loss."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterator
from typing import NamedTuple

import idna
import trio

from triclinium._driver.tls_stream import TlsStream, TruncatedStreamError
from triclinium.abc import ConnectedStream
from triclinium_core.contract.neutral import LossCause
from triclinium_core.contract.neutral.addresses import address_of


class StreamLoss(NamedTuple):
    """Cause of the loss of a stream, or of a failed attempt to open it, and the error text."""

    cause: LossCause
    text: str


class TcpConnector:
    """Connector over TCP, with TLS if requested.

    Args:
        ssl_context: settings of TLS; default: the system's trust store, with certificates and host names verified.
            ``verify_mode`` and ``check_hostname`` are read when the cluster opens.
    """

    def __init__(self, ssl_context: ssl.SSLContext | None = None) -> None:
        self._ssl_context = ssl_context
        self._is_own_context = ssl_context is None

    @property
    def has_default_context(self) -> bool:
        """Whether the caller gave no ``ssl_context``."""
        return self._is_own_context

    def load_certificate(self, load: Callable[[ssl.SSLContext], None]) -> None:
        """Use a client certificate in later handshakes. Open connections do not change.

        Args:
            load: loads the certificate and its key into a context. If it raises, nothing has changed.
        """
        fresh = ssl.create_default_context()
        load(fresh)
        if self._is_own_context:
            self._ssl_context = fresh
        else:
            assert self._ssl_context is not None
            load(self._ssl_context)

    @property
    def tls_is_verified(self) -> bool:
        """Whether a certificate must be trusted and must name the host. The default context requires both.

        For a client, ``CERT_OPTIONAL`` is the same as ``CERT_REQUIRED``. A context does not show whether its
        authorities are private; anyone can get a public authority's certificate for a name that they own.
        """
        context = self._ssl_context
        # Contexts of other packages may lack these attributes; a missing one counts as verifying.
        demands_trust = getattr(context, "verify_mode", ssl.CERT_REQUIRED) != ssl.CERT_NONE
        return demands_trust and bool(getattr(context, "check_hostname", True))

    async def connect(self, host: str, port: int, *, tls: bool) -> ConnectedStream:
        """Return a stream to the first of the host's addresses that accepts a connection.

        Raises:
            OSError: no address accepts a connection, the host has no address, or TLS does not support its name.
            trio.BrokenResourceError: the TLS handshake failed.
        """
        stream: trio.abc.Stream = (tcp := await _open_tcp(host, port))
        try:
            local, remote = address_of(tcp.socket.getsockname()), address_of(tcp.socket.getpeername())
            if tls:
                stream = secured = self._tls_over(tcp, host)
                await secured.do_handshake()
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        return ConnectedStream(stream, local, remote)

    def _tls_over(self, tcp: trio.SocketStream, host: str) -> TlsStream:
        if self._ssl_context is None:
            # Reading the trust store takes milliseconds: create the context only when it is needed, and keep it.
            self._ssl_context = ssl.create_default_context()
        try:
            # Trio looks up non-ASCII names by IDNA 2008; ssl would encode them by IDNA 2003. idna refuses underscores.
            name = host.encode("ascii") if host.isascii() else idna.encode(host, uts46=True)
            # RFC 6066 §3: the name has no final dot. Names in certificates have none either.
            return TlsStream(tcp, self._ssl_context, name.removesuffix(b"."))
        except (ValueError, TypeError) as error:
            # For example, a custom resolver of trio may accept a name that begins with a dot.
            text = f"{host!r} is not a valid host name for TLS: {error}"
            raise ssl.SSLError(ssl.SSL_ERROR_SSL, text) from error


async def _open_tcp(host: str, port: int) -> trio.SocketStream:
    try:
        return await trio.open_tcp_stream(host, port)
    except (ValueError, OverflowError) as error:
        # For example, a name with an empty label fails before a lookup.
        raise trio.socket.gaierror(trio.socket.EAI_NONAME, f"{host!r} is not a host name: {error}") from error


LOSSES = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)
"""Exceptions of a connector that cannot connect, or of a stream whose connection is lost. ClosedResourceError is
included because a user's stream may be closed outside of the driver."""

CAUSES: tuple[tuple[type[BaseException], LossCause], ...] = (
    (TruncatedStreamError, LossCause.TRUNCATED),
    (trio.socket.gaierror, LossCause.NAME_NOT_RESOLVED),
    (ssl.SSLError, LossCause.TLS),
    (ConnectionRefusedError, LossCause.REFUSED),
    (ConnectionError, LossCause.RESET),
    (trio.BrokenResourceError, LossCause.RESET),
    (trio.ClosedResourceError, LossCause.RESET),
    (OSError, LossCause.UNREACHABLE),
)
"""Loss cause for each type of error. The first row that matches any of the root errors applies. So if a host has
several addresses, a refused connection takes precedence over an unreachable address, because it is more specific."""


def loss_of(error: OSError | trio.BrokenResourceError | trio.ClosedResourceError) -> StreamLoss:
    """Return the cause of an exception of a connector or a stream, with the system's text."""
    roots = list(_roots(error))
    cause = next(cause for kind, cause in CAUSES if any(isinstance(root, kind) for root in roots))
    if len(roots) == 1:
        return StreamLoss(cause, _without_address(roots[0]))
    return StreamLoss(cause, "; ".join(dict.fromkeys(_words(root) for root in roots)))


def _roots(error: BaseException) -> Iterator[BaseException]:
    """Yield the root errors: trio wraps those of streams, and groups those of a host's addresses."""
    cause = error.__cause__
    if isinstance(cause, BaseExceptionGroup):
        for inner in cause.exceptions:
            yield from _roots(inner)
    elif isinstance(cause, OSError | trio.BrokenResourceError):
        yield from _roots(cause)
    else:
        yield error


def _words(error: BaseException) -> str:
    words = error.strerror if isinstance(error, OSError) else None
    return words or str(error) or type(error).__name__


def _without_address(error: BaseException) -> str:
    """Return the error text without the address that Trio adds, because the host has no other address."""
    words = _words(error)
    if isinstance(error, OSError) and error.errno and words.startswith("Error connecting to "):
        return os.strerror(error.errno)
    return words
