"""Authenticator of a client: its checks, and its replacement on connections that are in use.

A connection can authenticate by SASL, with a password or a token, any number of times. A client presents a certificate
once, in the TLS handshake, and the server accepts no SASL after that. So a connection cannot change between the two.

Source: kv_engine ``docs/BinaryProtocol.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

from triclinium_core import errors, options
from triclinium_core.contract.couchbase import AuthenticatorChanged
from triclinium_core.kv.topology.connection_string import ConnectionString, Scheme
from triclinium_core.options import AUTHENTICATOR_NAMES
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.connection.connection_events import News
from triclinium_core.runtime.kv.connection.sasl import mechanisms_of
from triclinium_core.runtime.kv.connection.scram import SaltedPasswords

UNVERIFIED_TLS = (
    "the connections use TLS, but the nodes' certificates are not verified, so anyone on the network can pose as a "
    "node: key-value authenticates by SCRAM or by allowed_sasl_mechanisms, services over HTTP receive the password "
    "or token unprotected; pass an ssl_context that verifies certificates and host names, such as "
    "ssl.create_default_context(cafile=...)"
)
"""Warning that a client logs at its start if its TLS does not verify certificates or host names."""


def check_authenticator(
    authenticator: options.Authenticator | None, connection_string: ConnectionString, *, tls_is_verified: bool = True
) -> None:
    """Check that a client may use an authenticator with a connection string.

    Raises:
        InvalidArgumentException: the authenticator is missing, would be sent without protection, cannot be used with
            the scheme, or has a user name that HTTP's basic authentication cannot send.
    """
    scheme = connection_string.scheme
    # Decision D61: refuse a user name that SASL accepts, but that the HTTP services cannot receive.
    if (
        isinstance(authenticator, options.PasswordAuthenticator)
        and scheme is not Scheme.MEMCACHED
        and ":" in authenticator.username
    ):
        # The text after the colon may be the password, so leave it out of the error.
        place = authenticator.username.index(":") + 1
        raise errors.InvalidArgumentException(
            f"the user name of the authenticator has a colon at character {place}, where HTTP basic authentication would "
            "end it; Couchbase has no such users: pass the name alone, and the password separately",
            parameter="authenticator",
        )
    if authenticator is None and scheme is not Scheme.MEMCACHED:
        raise errors.InvalidArgumentException(
            f"authenticator is missing: {scheme}:// needs one, such as PasswordAuthenticator(username, password)",
            parameter="authenticator",
        )
    if connection_string.tls and tls_is_verified:
        return
    if isinstance(authenticator, options.CertificateAuthenticator) and not connection_string.tls:
        raise errors.InvalidArgumentException(
            f"authenticator is a certificate, which {scheme}:// cannot present; connect with couchbases://",
            parameter="authenticator",
        )
    if isinstance(authenticator, options.JwtAuthenticator) and not authenticator.allow_unencrypted:
        raise errors.InvalidArgumentException(
            f"authenticator is a token, which anyone on the network can read over {scheme}://"
            f"{' while the certificate is not verified' if connection_string.tls else ''}; connect with couchbases:// "
            "and verify the certificate, or set allow_unencrypted",
            parameter="authenticator",
        )


def check_change(
    present: options.Authenticator | None,
    wanted: options.Authenticator,
    connection_string: ConnectionString,
    *,
    tls_is_verified: bool = True,
) -> None:
    """Check that ``wanted`` may replace the ``present`` authenticator.

    Raises:
        InvalidArgumentException: ``wanted`` is not an authenticator, the scheme has no authentication,
            ``check_authenticator`` refuses it, or an authenticator of its kind cannot replace the present one.
    """
    if not isinstance(wanted, options.AUTHENTICATORS):
        raise errors.InvalidArgumentException(
            f"authenticator must be a {AUTHENTICATOR_NAMES}, not {type(wanted).__name__}", parameter="authenticator"
        )
    if connection_string.scheme is Scheme.MEMCACHED:
        raise errors.InvalidArgumentException(
            "authenticator cannot be set over memcached://, which has no authentication", parameter="authenticator"
        )
    check_authenticator(wanted, connection_string, tls_is_verified=tls_is_verified)
    kinds = [_shown_by(each) for each in (present, wanted)]
    if kinds[0] != kinds[1]:
        raise errors.InvalidArgumentException(
            f"authenticator is presented by {kinds[1]}, but that of this cluster by {kinds[0]}; a connection cannot change "
            "between them: open another cluster",
            parameter="authenticator",
        )


class Authentication:
    """Current authenticator of a client, and the reauthentication of connections with an earlier authenticator."""

    def __init__(
        self,
        authenticator: options.Authenticator | None,
        connection_string: ConnectionString,
        *,
        tls_is_verified: bool = True,
    ) -> None:
        self.authenticator: options.Authenticator | None = authenticator
        self.hides_passwords: bool = connection_string.tls and tls_is_verified
        """Whether all streams have TLS that verifies the node, so that only the node can read a password from PLAIN."""
        self._connection_string, self._tls_is_verified = connection_string, tls_is_verified
        self.salted_passwords: SaltedPasswords = SaltedPasswords()
        """Salted passwords that the connections have computed for the current authenticator."""
        self._nonce = ""
        """Nonce of the last ``AuthenticatorChanged`` event; empty before the first."""

    def check(self, authenticator: options.Authenticator) -> None:
        """Check that an authenticator may replace the current one.

        Raises:
            InvalidArgumentException: the authenticator may not replace the current one.
        """
        check_change(self.authenticator, authenticator, self._connection_string, tls_is_verified=self._tls_is_verified)

    def change(self, event: AuthenticatorChanged) -> None:
        """Replace the current authenticator, and drop its salted passwords.

        Raises:
            InvalidArgumentException: the new authenticator may not replace the current one.
        """
        self.check(event.authenticator)
        self.authenticator, self._nonce = event.authenticator, event.nonce
        self.salted_passwords = SaltedPasswords()

    def is_outdated(self, connection: Connection) -> bool:
        """Return whether a connection uses an earlier authenticator than the current one."""
        return connection.negotiated.authenticator not in (None, self.authenticator)

    def begin_again(self, connection: Connection) -> Sequence[News] | None:
        """Start to reauthenticate a connection, and return its events. Return None if the client uses no SASL."""
        authenticator, tls = self.authenticator, self.hides_passwords
        if authenticator is None or not mechanisms_of(authenticator, tls=tls):
            return None
        return connection.authenticate_again(
            authenticator, tls=tls, nonce=self._nonce, salted_passwords=self.salted_passwords
        )


def _shown_by(authenticator: options.Authenticator | None) -> str:
    return "TLS" if isinstance(authenticator, options.CertificateAuthenticator) else "SASL"
