"""Client side of a SASL authentication. The connection may be new or in use.

SCRAM proves a password in two steps; PLAIN sends it in one. OAUTHBEARER sends a JSON Web Token in one step. The owner
of an exchange sends the messages that the exchange returns, and feeds the responses to the exchange.

Source: kv_engine ``docs/BinaryProtocol.md``; RFC 4616 (PLAIN), RFC 5802 (SCRAM), RFC 7628 (OAUTHBEARER); decision C6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.options import OAUTHBEARER, Authenticator, JwtAuthenticator, PasswordAuthenticator
from triclinium_core.retry.couchbase import Status, status_name
from triclinium_core.runtime.kv.connection.exchange_nonces import ExchangeNonces
from triclinium_core.runtime.kv.connection.scram import (
    MECHANISMS as SCRAM_MECHANISMS,
    SaltedPasswords,
    ScramClient,
    ScramError,
    refusal_in,
)
from triclinium_core.shown import one_line

REFUSED_CREDENTIALS = frozenset({Status.AUTH_ERROR, Status.AUTH_STALE})
"""Statuses for wrong and for expired credentials."""
ACKNOWLEDGED_ERROR = b"\x01"
"""Message that the client sends when the server has given its reasons for refusing a token. The server then sends the
refusal (RFC 7628 §3.2.3)."""

PLAIN_ONLY = (
    "it offers only PLAIN for passwords, which anyone on the network could read: connect with couchbases:// and verify the "
    "certificate, or permit PLAIN with allowed_sasl_mechanisms=('PLAIN',)"
)
"""Advice for a node without SCRAM. The client uses PLAIN without an explicit permission only over verified TLS."""


@dataclass(frozen=True, slots=True)
class SaslMessage:
    """Message of the client: a request with the mechanism as its key. ``repr`` omits the payload."""

    opcode: Opcode
    mechanism: str
    payload: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class SaslRefusal:
    """Reason why an exchange failed. ``status`` is that of the response that caused the failure; None without one."""

    text: str
    status: int | None = None
    advice: str = ""
    """Next step for the user, with which ``text`` ends, or an empty string."""
    is_ours: bool = False
    """Whether the client refuses the node: the node did not prove that it knows the password, or its offer or request
    is not permitted. False if the node refuses the client, or if the exchange cannot start."""

    @property
    def is_of_credentials(self) -> bool:
        """Whether the server refused the credentials."""
        return self.status in REFUSED_CREDENTIALS


def mechanisms_of(authenticator: Authenticator, *, tls: bool) -> tuple[str, ...]:
    """Return the permitted SASL mechanisms in order of preference.

    A certificate needs none, because the client presents it in the TLS handshake.

    Args:
        tls: whether the stream has TLS that verifies the node. Unverified TLS does not protect a password.
    """
    match authenticator:
        case PasswordAuthenticator(allowed_sasl_mechanisms=None):
            return ("PLAIN", *SCRAM_MECHANISMS) if tls else SCRAM_MECHANISMS
        case PasswordAuthenticator(allowed_sasl_mechanisms=tuple() as allowed):
            return allowed
        case JwtAuthenticator():
            return (OAUTHBEARER,)
        case _:
            return ()


def user_of(authenticator: Authenticator) -> str:
    """Return a description of the authenticator's user, for errors."""
    match authenticator:
        case PasswordAuthenticator(username=username):
            return f"user {username!r}"
        case JwtAuthenticator():
            return "the user of the token"
        case _:
            return "the user of the certificate"


class SaslExchange:
    """One SASL exchange. Feed every response to ``receive`` until ``is_done`` or ``refusal``.

    Args:
        authenticator: a password or a token.
        tls: whether the stream has TLS that verifies the node.
        nonce: entropy of an event. Each attempt with SCRAM derives its nonce from it.
        nonces: source of the nonces of the stream. Exchanges on the same stream must share it.
        offered: mechanisms that the server offers; empty if they are unknown.
        salted_passwords: cache of earlier exchanges with the same authenticator.
    """

    def __init__(
        self,
        authenticator: Authenticator,
        *,
        tls: bool,
        nonce: str,
        offered: Sequence[str] = (),
        salted_passwords: SaltedPasswords | None = None,
        nonces: ExchangeNonces | None = None,
    ) -> None:
        self.authenticator: Authenticator = authenticator
        self._allowed = mechanisms_of(authenticator, tls=tls)
        self._nonce = nonce
        self._nonces = nonces if nonces is not None else ExchangeNonces(0)
        self._salted_passwords = salted_passwords
        self._scram: ScramClient | None = None
        self._tried: set[str] = set()
        self.offered: tuple[str, ...] = tuple(offered)
        self.mechanism: str | None = None
        """Mechanism of the last attempt; None before the first."""
        self.status: int | None = None
        """Final status of the server, or 0x20 if the server refused the credentials; None before the end, or if the
        client ended the exchange."""
        self.refusal: SaslRefusal | None = None
        self.is_done: bool = False

    def start(self) -> SaslMessage | None:
        """Return the first message of the exchange.

        Use the most preferred of the client's mechanisms that the server is known to offer. If no such mechanism is
        known, use the client's most preferred mechanism, because the server's offer may be unknown or have changed. If
        the exchange cannot start, set ``refusal`` and return None.
        """
        known = [name for name in self._allowed if name in self.offered]
        return self._begin(known[0] if known else self._allowed[0])

    def receive(self, frame: Frame) -> SaslMessage | None:
        """Process a response. Return the next message; None at the end. Set ``refusal`` if the exchange fails."""
        mechanism = self.mechanism or ""
        error = refusal_in(frame.value) if self._scram is not None else None
        goes_on = frame.status in (Status.SUCCESS, Status.AUTH_CONTINUE)
        is_unknown = bool(self.offered) and mechanism not in self.offered
        if error is not None and (goes_on or not is_unknown):
            # Decision C6: a SCRAM message with an error refuses the credentials, even if the status of its response is
            # success. CouchbaseMock sends such a message with status 0x00.
            self.status = int(Status.AUTH_ERROR)
            text = f"{_refusal_text(self.authenticator, self.status)}: {mechanism}: {error}"
            return self._refuse(text, self.status)
        if frame.status == Status.AUTH_CONTINUE and frame.opcode == Opcode.SASL_AUTH:
            if mechanism == OAUTHBEARER:
                return SaslMessage(Opcode.SASL_STEP, mechanism, ACKNOWLEDGED_ERROR)
            if self._scram is not None:
                return self._prove(self._scram, frame.value)
        if frame.status == Status.SUCCESS:
            return self._succeed(frame)
        if is_unknown:
            others = [name for name in self._allowed if name in self.offered and name not in self._tried]
            return self._begin(others[0]) if others else self._nothing_in_common()
        if goes_on:
            return self._refuse_node(f"{mechanism}: requested another message, which the mechanism does not have")
        self.status = frame.status
        if frame.status in REFUSED_CREDENTIALS:
            # Decision C6 names only the status 0x20. The status for expired credentials is a refusal as well.
            self.status = int(Status.AUTH_ERROR)
            return self._refuse(_refusal_text(self.authenticator, frame.status), frame.status)
        name = status_name(frame.status) or "unknown status"
        return self._refuse(f"{mechanism} failed: {name} [0x{frame.status:02x}]", frame.status)

    def _begin(self, mechanism: str) -> SaslMessage | None:
        self._tried.add(mechanism)
        self.mechanism = mechanism
        self._scram = None
        match self.authenticator:
            case JwtAuthenticator(token=token):
                # RFC 7628 §3.1: the GS2 header, without channel binding or identity, then key and value.
                payload = b"n,,\x01auth=Bearer " + token.encode() + b"\x01\x01"
            case PasswordAuthenticator(username=username, password=password) if mechanism == "PLAIN":
                payload = b"\0" + username.encode() + b"\0" + password.encode()
            case PasswordAuthenticator() as password_authenticator:
                try:
                    self._scram = self._new_scram(mechanism, password_authenticator)
                    payload = self._scram.first()
                except ScramError as error:
                    return self._refuse(f"{mechanism}: {error}")
            case _:
                raise AssertionError("a certificate needs no SASL")
        return SaslMessage(Opcode.SASL_AUTH, mechanism, payload)

    def _new_scram(self, mechanism: str, authenticator: PasswordAuthenticator) -> ScramClient:
        return ScramClient(
            mechanism,
            authenticator.username,
            authenticator.password,
            nonce=self._nonces.next(self._nonce),
            salted_passwords=self._salted_passwords,
            iterations_min=authenticator.scram_iterations_min,
        )

    def _prove(self, scram: ScramClient, challenge: bytes) -> SaslMessage | None:
        try:
            return SaslMessage(Opcode.SASL_STEP, self.mechanism or "", scram.final(challenge))
        except ScramError as error:
            return self._refuse_node(f"{self.mechanism}: {error}")

    def _succeed(self, frame: Frame) -> SaslMessage | None:
        if self._scram is not None:
            if frame.opcode == Opcode.SASL_AUTH:
                return self._refuse_node(
                    f"{self.mechanism}: accepted the credentials without a server signature; the server has not proved "
                    "that it knows the password, so do not trust it"
                )
            try:
                self._scram.verify(frame.value)
            except ScramError as error:
                return self._refuse_node(f"{self.mechanism}: {error}")
        self.status = int(Status.SUCCESS)
        self.is_done = True
        return None

    def _nothing_in_common(self) -> SaslMessage | None:
        hint = advice = ""
        if isinstance(self.authenticator, JwtAuthenticator):
            hint = "; the node accepts no tokens on this connection"
        elif not set(SCRAM_MECHANISMS).isdisjoint(self.offered):
            hint = "; permit one of the offered mechanisms with allowed_sasl_mechanisms"
        elif "PLAIN" in self.offered:
            advice = PLAIN_ONLY
            hint = f"; {advice}"
        text = (
            f"offers {one_line(', '.join(self.offered))}, but the client permits only {', '.join(self._allowed)}{hint}"
        )
        self.refusal = SaslRefusal(text, advice=advice, is_ours=True)
        return None

    def _refuse(self, text: str, status: int | None = None) -> SaslMessage | None:
        self.refusal = SaslRefusal(text, status)
        return None

    def _refuse_node(self, text: str) -> SaslMessage | None:
        self.refusal = SaslRefusal(text, is_ours=True)
        return None


def _refusal_text(authenticator: Authenticator, status: int) -> str:
    stale = ", which have expired" if status == Status.AUTH_STALE else ""
    if isinstance(authenticator, PasswordAuthenticator):
        return f"refused the credentials of {authenticator.username!r}{stale}"
    return f"refused the credentials of {user_of(authenticator)}{stale}; pass new ones to set_authenticator"
