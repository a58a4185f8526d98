"""SCRAM: an exchange in which both sides prove that they know a password without sending the password.

Theory of operation. The exchange has four messages. Each side calls each of its methods once, in this order::

    client                                                    server
    first()   n,,n=<user>,r=<client nonce>                 -> first()
    final()   <- r=<client nonce + server nonce>,s=<salt>,i=<iterations>
              c=biws,r=<both nonces>,p=<client proof>      -> final()
    verify()  <- v=<server signature>, or e=<reason>

The client is authenticated when ``final`` of the server returns, the server when ``verify`` of the client returns. A
call out of turn raises :class:`ScramError` and changes nothing. A call that fails ends the exchange, and every later
call raises. The client does not offer channel binding (the ``-PLUS`` mechanisms), because Couchbase does not support
it.

The caller passes in nonces and salts, and no error contains a password. The only state outside these objects is
``SALTED_BY_SERVERS``, which holds passwords of test servers only.

Source: RFC 5802 (the protocol), RFC 7677 (SHA-256), RFC 4013 and 3454 (SASLprep).
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from types import MappingProxyType

from triclinium_core.options import SCRAM_ITERATIONS_MAX, SCRAM_ITERATIONS_MIN
from triclinium_core.runtime.kv.connection.saslprep import ProhibitedText, saslprep
from triclinium_core.shown import one_line, shown

_DIGESTS: Mapping[str, str] = MappingProxyType(
    {
        "SCRAM-SHA512": "sha512",
        "SCRAM-SHA256": "sha256",
        "SCRAM-SHA1": "sha1",
    }
)

MECHANISMS: tuple[str, ...] = tuple(_DIGESTS)
"""Mechanisms in order of preference, in Couchbase's spelling. Each IANA name has one more dash."""

ITERATIONS_MAX = SCRAM_ITERATIONS_MAX
"""Maximum iteration count that a client accepts from a server (decision D30)."""

SALTED_PASSWORDS_MAX = 16
"""Maximum number of salted passwords in one cache. A client needs three: all nodes have the same salt for each user and
mechanism."""

MESSAGE_SIZE_MAX = 4096
"""Maximum size of a message in bytes. Valid messages have a few hundred bytes."""

_GS2_HEADER = "n,,"

_ATTRIBUTE = re.compile(r"([A-Za-z])=([^,\0]+)")
_ITERATIONS = re.compile(r"[1-9][0-9]{0,8}")
_ESCAPED_NAME = re.compile(r"(?:[^=]|=2C|=3D)+")

# Accept the space, which RFC 5802 §7 excludes: an official Couchbase client sends it in nonces.
_NONCE = re.compile(r"[ -+\--~]+")


class ScramError(Exception):
    """The exchange has failed or cannot start. The message is one line with the reason, without the password."""


class ScramRefused(ScramError):
    """The other side has reported that the exchange failed (RFC 5802 §5.1, ``e``)."""


def refusal_in(message: bytes) -> str | None:
    """Return the error that a message of the other side reports (RFC 5802 §5.1, ``e``); None if it reports none."""
    for part in message[:MESSAGE_SIZE_MAX].split(b","):
        if part.startswith(b"e="):
            return f"the other side refused with {_shown(part[2:].decode('utf-8', 'replace'))}"
    return None


class SaltedPasswords:
    """Cache of salted passwords for all connections of a client, or for all test servers of a process.

    A client keeps one cache for each authenticator. It drops the cache with the authenticator, because the keys of the
    cache contain the password.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes, bytes, int], bytes] = {}

    def of(self, digest: str, password: bytes, salt: bytes, iterations: int) -> bytes:
        """Return the salted password. Compute it only if neither this cache nor ``SALTED_BY_SERVERS`` has it."""
        key = digest, password, salt, iterations
        salted = self._known.pop(key, None) or SALTED_BY_SERVERS._known.get(key) or _salted_password(*key)
        self._known[key] = salted
        # Tolerate a key that is already removed: test servers in other threads may share this cache.
        for oldest in [*self._known][:-SALTED_PASSWORDS_MAX]:
            self._known.pop(oldest, None)
        return salted


SALTED_BY_SERVERS = SaltedPasswords()
"""Passwords salted by the ``ScramServer`` objects of this process.

Test servers add passwords, and clients in the same process read them. So a test suite computes 4,000 iterations once,
not for every exchange. Clients never add passwords, so a process without a test server keeps no password here.
"""


class ScramClient:
    """Client side of an exchange.

    Args:
        mechanism: one of ``MECHANISMS``.
        username, password: texts before SASLprep.
        nonce: printable ASCII without a comma, new and unpredictable for each exchange.
        salted_passwords: cache of earlier exchanges.
        iterations_min: minimum iteration count to accept from the server.

    Raises:
        ScramError: the mechanism is unknown, SASLprep refuses the user name or leaves none, the password has a lone
            surrogate, or the nonce is empty or has a prohibited character.
    """

    def __init__(
        self,
        mechanism: str,
        username: str,
        password: str,
        *,
        nonce: str,
        salted_passwords: SaltedPasswords | None = None,
        iterations_min: int = SCRAM_ITERATIONS_MIN,
    ) -> None:
        self._digest = _digest_of(mechanism)
        self._salted_passwords = salted_passwords if salted_passwords is not None else SaltedPasswords()
        self._password = _prepare_password(password)
        self._iterations_min = iterations_min
        self._nonce = _checked_nonce("the client nonce", nonce)
        self._first_bare = f"n={_escape(_prepare_username(username))},r={nonce}"
        self._signature = b""
        self._turns = _Turns()

    def first(self) -> bytes:
        """Return the client-first-message.

        Raises:
            ScramError: the call is out of turn.
        """
        self._turns.take("first")
        self._turns.give("final")
        return f"{_GS2_HEADER}{self._first_bare}".encode()

    def final(self, server_first: bytes) -> bytes:
        """Return the client-final-message, which proves that the client knows the password.

        Raises:
            ScramError: the call is out of turn. Or ``server_first`` is malformed, lacks an attribute or has one twice,
                contains an error or a mandatory extension, has a nonce that does not extend the client nonce, or has an
                iteration count outside ``iterations_min`` to ``ITERATIONS_MAX``.
        """
        self._turns.take("final")
        name = "server-first-message"
        text = _text(name, server_first)
        attributes = _attributes(name, text, "r", "s", "i")
        nonce = _checked_nonce(f"{name}: r=", attributes["r"])
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise ScramError(
                f"{name}: the nonce {_shown(nonce)} does not extend the client nonce, {_shown(self._nonce)}"
            )
        salt = _from_base64(f"{name}: s=", attributes["s"])
        iterations = _accepted_iterations(f"{name}: i=", attributes["i"], self._iterations_min)

        salted_password = self._salted_passwords.of(self._digest, self._password, salt, iterations)
        without_proof = f"c={_to_base64(_GS2_HEADER.encode())},r={nonce}"
        auth_message = f"{self._first_bare},{text},{without_proof}".encode()
        proof, self._signature = _proof_and_signature(self._digest, salted_password, auth_message)
        self._turns.give("verify")
        return f"{without_proof},p={_to_base64(proof)}".encode()

    def verify(self, server_final: bytes) -> None:
        """Check the proof that the server knows the password.

        Raises:
            ScramError: the call is out of turn. Or ``server_final`` is malformed, contains an error or a mandatory
                extension, or has a signature that a server with the password would not send.
        """
        self._turns.take("verify")
        name = "server-final-message"
        attributes = _attributes(name, _text(name, server_final), "v")
        if not hmac.compare_digest(self._signature, _from_base64(f"{name}: v=", attributes["v"])):
            raise ScramError(
                f"{name}: wrong server signature; the server may not know the password, so do not trust it"
            )


def username_in(client_first: bytes) -> str:
    """Return the user name in a client-first-message, before SASLprep.

    Raises:
        ScramError: ``client_first`` is not a valid client-first-message.
    """
    name = "client-first-message"
    _, _, bare = _gs2_parts(name, _text(name, client_first))
    return _unescape(name, _attributes(name, bare, "n", "r")["n"])


class ScramServer:
    """Server side of an exchange for one user, for the fake nodes of tests.

    An unknown user fails in ``final`` like a wrong password, so that the exchange reveals no user names.

    Args:
        mechanism: one of ``MECHANISMS``.
        username, password: texts before SASLprep.
        nonce: as for the client.
        salt: at least one byte.
        iterations: from 1 to ``ITERATIONS_MAX``.

    Raises:
        ScramError: an argument is invalid, SASLprep refuses the user name or leaves none, or the password has a lone
            surrogate.
    """

    def __init__(
        self, mechanism: str, *, username: str, password: str, nonce: str, salt: bytes, iterations: int
    ) -> None:
        if not salt:
            raise ScramError("the salt is empty; it needs at least one byte")
        self._digest = _digest_of(mechanism)
        self._username = _prepare_username(username)
        self._password = _prepare_password(password)
        self._own_nonce = _checked_nonce("the server nonce", nonce)
        self._salt = salt
        if not 1 <= iterations <= ITERATIONS_MAX:
            raise ScramError(
                f"the iteration count {shown(iterations)} must be a whole number from 1 to {ITERATIONS_MAX}"
            )
        self._iterations = iterations
        self._is_known_user = False
        self._gs2_header = self._first_bare = self._nonce = self._first = ""
        self._turns = _Turns()

    def first(self, client_first: bytes) -> bytes:
        """Return the server-first-message, even for an unknown user.

        Raises:
            ScramError: the call is out of turn. Or ``client_first`` is malformed, lacks an attribute or has one twice,
                has a user name that SASLprep refuses, requests channel binding or the rights of another user, or
                contains a mandatory extension.
        """
        self._turns.take("first")
        name = "client-first-message"
        flag, authorization, bare = _gs2_parts(name, _text(name, client_first))
        attributes = _attributes(name, bare, "n", "r")
        if authorization not in ("", f"a={attributes['n']}"):
            raise ScramError(f"{name}: {_shown(authorization)} requests the rights of another user; omit it")
        self._is_known_user = _prepare_username(_unescape(name, attributes["n"])) == self._username
        self._nonce = _checked_nonce(f"{name}: r=", attributes["r"]) + self._own_nonce
        self._gs2_header = f"{flag},{authorization},"
        self._first_bare = bare
        self._first = f"r={self._nonce},s={_to_base64(self._salt)},i={self._iterations}"
        self._turns.give("final")
        return self._first.encode()

    def final(self, client_final: bytes) -> bytes:
        """Return the server-final-message, which proves that the server knows the password.

        Raises:
            ScramError: the call is out of turn. Or ``client_final`` is malformed, lacks an attribute or has one twice,
                contains a mandatory extension, or has the channel binding or the nonce of another exchange. Or the user
                is unknown, or the proof is wrong.
        """
        self._turns.take("final")
        name = "client-final-message"
        text = _text(name, client_final)
        attributes = _attributes(name, text, "c", "r")
        if list(attributes)[-1] != "p":
            raise ScramError(f"{name}: the last attribute must be the proof, p=")
        if _from_base64(f"{name}: c=", attributes["c"]) != self._gs2_header.encode():
            raise ScramError(f"{name}: the channel binding differs from that of the first message")
        if attributes["r"] != self._nonce:
            raise ScramError(f"{name}: the nonce belongs to another exchange")
        received_proof = _from_base64(f"{name}: p=", attributes["p"])

        salted_password = SALTED_BY_SERVERS.of(self._digest, self._password, self._salt, self._iterations)
        without_proof = text.removesuffix(f",p={attributes['p']}")
        auth_message = f"{self._first_bare},{self._first},{without_proof}".encode()
        proof, signature = _proof_and_signature(self._digest, salted_password, auth_message)
        is_right_proof = hmac.compare_digest(proof, received_proof)
        if not (is_right_proof and self._is_known_user):
            raise ScramError(f"{name}: unknown user or wrong password")
        return f"v={_to_base64(signature)}".encode()


class _Turns:
    """Order of the calls of one exchange. A call that does not ``give`` the name of the next one ends the exchange."""

    def __init__(self) -> None:
        self._due: str | None = "first"

    def take(self, call: str) -> None:
        if call != self._due:
            due = "the exchange is over; start a new one" if self._due is None else f"call {self._due}()"
            raise ScramError(f"{call}() was called out of order; {due}")
        self._due = None

    def give(self, call: str) -> None:
        self._due = call


def _digest_of(mechanism: str) -> str:
    digest = _DIGESTS.get(mechanism)
    if digest is None:
        raise ScramError(f"unknown mechanism {_shown(mechanism)}; known mechanisms: {', '.join(MECHANISMS)}")
    return digest


def _salted_password(digest: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    """Return one block of PBKDF2 with HMAC (RFC 5802 §2.2, ``Hi``)."""
    if hasattr(hashlib, "pbkdf2_hmac"):
        return hashlib.pbkdf2_hmac(digest, password, salt, iterations)
    # Python without OpenSSL, as in WebAssembly, has no pbkdf2_hmac. A copy of ``keyed`` avoids hashing the key again
    # in each iteration.
    keyed = hmac.new(password, digestmod=digest)
    block = hmac.digest(password, salt + b"\x00\x00\x00\x01", digest)
    total = int.from_bytes(block, "big")
    for _ in range(iterations - 1):
        step = keyed.copy()
        step.update(block)
        block = step.digest()
        total ^= int.from_bytes(block, "big")
    return total.to_bytes(len(block), "big")


def _proof_and_signature(digest: str, salted_password: bytes, auth_message: bytes) -> tuple[bytes, bytes]:
    """Return the client proof and the server signature (RFC 5802 §3)."""
    client_key = hmac.digest(salted_password, b"Client Key", digest)
    server_key = hmac.digest(salted_password, b"Server Key", digest)
    stored_key = hashlib.new(digest, client_key).digest()
    client_signature = hmac.digest(stored_key, auth_message, digest)
    proof = bytes(left ^ right for left, right in zip(client_key, client_signature, strict=True))
    return proof, hmac.digest(server_key, auth_message, digest)


def _text(name: str, message: bytes) -> str:
    if len(message) > MESSAGE_SIZE_MAX:
        raise ScramError(f"{name}: {len(message)} bytes exceed the maximum of {MESSAGE_SIZE_MAX}")
    try:
        return message.decode()
    except UnicodeDecodeError as error:
        raise ScramError(f"{name}: not UTF-8 at byte {error.start}") from None


def _attributes(name: str, text: str, *leading: str) -> dict[str, str]:
    """Return the attributes of a message by letter, in order.

    The message must begin with the attributes ``leading``. Other attributes may follow.

    Source: RFC 5802 §5.1 (meaning and order), §7 (grammar).
    """
    refusal = refusal_in(text.encode())
    if refusal is not None:
        raise ScramRefused(f"{name}: {refusal}")
    attributes: dict[str, str] = {}
    for part in text.split(","):
        match = _ATTRIBUTE.fullmatch(part)
        if match is None:
            raise ScramError(f"{name}: {_shown(part)} is not an attribute like x=value")
        letter, value = match[1], match[2]
        if letter == "m":
            raise ScramError(f"{name}: the mandatory extension {_shown(part)} is not supported")
        if letter in attributes:
            raise ScramError(f"{name}: the attribute {letter}= occurs twice")
        attributes[letter] = value
    if tuple(attributes)[: len(leading)] != leading:
        expected, got = ("=, ".join(letters) + "=" for letters in (leading, attributes))
        raise ScramError(f"{name}: must begin with {expected}, but has {_shown(got)}")
    return attributes


def _gs2_parts(name: str, text: str) -> tuple[str, str, str]:
    """Return the channel-binding flag, the authorization identity, and the remainder of a client-first-message."""
    parts = text.split(",", 2)
    if len(parts) != 3:
        raise ScramError(f"{name}: {_shown(text)} has no header like n,,")
    flag, authorization, bare = parts
    # "y" means that the client supports channel binding but assumes that the server does not. This server does not.
    if flag not in ("n", "y"):
        raise ScramError(f"{name}: the header must begin with n or y; channel binding is not supported")
    return flag, authorization, bare


def _checked_nonce(what: str, nonce: str) -> str:
    if _NONCE.fullmatch(nonce) is None:
        raise ScramError(f"{what} {_shown(nonce)} must be printable ASCII without a comma, and not empty")
    return nonce


def _accepted_iterations(what: str, count: str, least: int) -> int:
    """Return the iteration count of the server, from ``least`` to ``ITERATIONS_MAX``."""
    if _ITERATIONS.fullmatch(count) is None or int(count) > ITERATIONS_MAX:
        raise ScramError(
            f"{what} {_shown(count)} must be a whole number from {least} to {ITERATIONS_MAX}; connect with "
            "couchbases:// and verify the certificate, because PLAIN needs no iterations, or set the server's "
            f"scramShaIterations to a count from {max(least, SCRAM_ITERATIONS_MIN)} to {ITERATIONS_MAX} and set the "
            "password again"
        )
    iterations = int(count)
    if iterations < least:
        raise ScramError(
            f"{what}{iterations} is fewer than the {least} iterations that scram_iterations_min requires, so the proof "
            "would let the node find a weak password; if the server is yours, raise its scramShaIterations to "
            f"that number, but at least to {SCRAM_ITERATIONS_MIN}, and set the password again, or permit fewer with "
            "PasswordAuthenticator(scram_iterations_min=...)"
        )
    return iterations


def _to_base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _from_base64(what: str, text: str) -> bytes:
    """Return the decoded bytes. Refuse text that is not the canonical encoding of these bytes."""
    try:
        data = b64decode(text)
    except ValueError:
        data = b""
    # b64decode skips characters outside its alphabet, so compare the text with the encoding of the result.
    if _to_base64(data) != text:
        raise ScramError(f"{what} is not base64 in canonical form")
    return data


def _escape(username: str) -> str:
    return username.replace("=", "=3D").replace(",", "=2C")


def _unescape(name: str, escaped: str) -> str:
    if _ESCAPED_NAME.fullmatch(escaped) is None:
        raise ScramError(f"{name}: the user name {_shown(escaped)} has = outside of =2C and =3D")
    return escaped.replace("=2C", ",").replace("=3D", "=")


def _prepare_username(username: str) -> str:
    # RFC 5802 §5.1: a user name is a query string, so it may have code points that Unicode 3.2 does not assign.
    try:
        prepared = saslprep(username)
    except ProhibitedText as error:
        raise ScramError(f"the user name {error}") from None
    if not prepared:
        raise ScramError("the user name is empty, or empty after SASLprep")
    return prepared


def _prepare_password(password: str) -> bytes:
    """Return the bytes to hash. If SASLprep refuses the password, encode it unchanged, as the server does."""
    try:
        prepared = saslprep(password, stored=True)
    except ProhibitedText:
        prepared = password
    # Check before encoding: a UnicodeEncodeError contains the password, and would be the context of this error.
    if any("\ud800" <= character <= "\udfff" for character in prepared):
        raise ScramError("the password has a lone surrogate, which UTF-8 cannot encode")
    return prepared.encode()


def _shown(text: str) -> str:
    """Return ``text`` as one short line of ASCII. The text may come from an untrusted server."""
    return ascii(one_line(text))
