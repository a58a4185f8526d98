"""TLS of a connector: the client certificate of an authenticator, and whether nodes are verified."""

from __future__ import annotations

import ssl

from triclinium._driver.connector import TcpConnector
from triclinium.abc import Connector
from triclinium_core import errors
from triclinium_core.options import Authenticator, CertificateAuthenticator


def verifies_tls(connector: Connector) -> bool:
    """Return the connector's attribute ``tls_is_verified``; True if it has none."""
    return getattr(connector, "tls_is_verified", True)


def show_certificate(connector: Connector, authenticator: Authenticator | None) -> None:
    """Load the certificate of a ``CertificateAuthenticator`` into a connector; do nothing for another authenticator.

    Raises:
        InvalidArgumentException: there is no certificate to load, its files cannot be read, or the authenticator names
            files and the connector is not a ``TcpConnector``, the only one that loads files.
    """
    if not isinstance(authenticator, CertificateAuthenticator):
        return
    if not isinstance(connector, TcpConnector):
        if authenticator.cert_path is not None:
            raise errors.InvalidArgumentException(
                "authenticator names files that the given connector does not read; let the connector present the certificate, "
                "and pass CertificateAuthenticator()",
                parameter="authenticator",
            )
    elif authenticator.cert_path is not None:
        connector.load_certificate(lambda context: _load(context, authenticator))
    elif connector.has_default_context:
        raise errors.InvalidArgumentException(
            "authenticator names no file, and no ssl_context was passed; pass cert_path, or open the cluster with an "
            "ssl_context that has a certificate",
            parameter="authenticator",
        )


def _load(context: ssl.SSLContext, authenticator: CertificateAuthenticator) -> None:
    path, key_path = authenticator.cert_path, authenticator.key_path
    assert path is not None
    try:
        # Without a password argument, OpenSSL prompts on the terminal if the key is encrypted.
        context.load_cert_chain(path, key_path, password=authenticator.key_password or "")
    except (OSError, ValueError) as error:
        files = path if key_path is None else f"{path} and {key_path}"
        raise errors.InvalidArgumentException(
            f"authenticator: cannot read the certificate and its key from {files}: {error}",
            parameter="authenticator",
        ) from error
