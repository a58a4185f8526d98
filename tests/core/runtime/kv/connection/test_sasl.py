"""SASL exchange: the messages of each mechanism, and the result of each response."""

from __future__ import annotations

import pytest

from tests.core.runtime.kv.connection.peer import PASSWORD, USERNAME
from tests.core.runtime.kv.connection.scram_exchange import make_server
from tests.rows import rows
from triclinium_core import options
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.frame import Frame, encode_response
from triclinium_core.kv.wire.frame_buffer import CLIENT_ACCEPTS, FrameBuffer
from triclinium_core.retry.couchbase import Status
from triclinium_core.runtime.kv.connection import sasl
from triclinium_core.runtime.kv.connection.sasl import PLAIN_ONLY
from triclinium_core.runtime.kv.connection.scram import MECHANISMS

ADA = options.PasswordAuthenticator(USERNAME, PASSWORD)
TOKEN = options.JwtAuthenticator("a.b.c")
CERTIFICATE = options.CertificateAuthenticator("ada.pem")


def answer(message: sasl.SaslMessage | None, status: int, value: bytes = b"") -> Frame:
    """Return a response to a message."""
    assert message is not None
    (frame,) = FrameBuffer(CLIENT_ACCEPTS).receive(
        encode_response(message.opcode, opaque=1, status=status, value=value)
    )
    return frame


def begun(authenticator: options.Authenticator, *offered: str) -> tuple[sasl.SaslExchange, sasl.SaslMessage]:
    """Return an exchange and its first message."""
    exchange = sasl.SaslExchange(authenticator, tls=False, nonce="nonce", offered=offered)
    message = exchange.start()
    assert message is not None
    return exchange, message


@pytest.mark.parametrize(
    ("expected", "authenticator", "tls"),
    [
        (MECHANISMS, ADA, False),
        (("PLAIN", *MECHANISMS), ADA, True),
        (("PLAIN",), options.PasswordAuthenticator(USERNAME, PASSWORD, ("PLAIN",)), False),
        (("OAUTHBEARER",), TOKEN, True),
        (("OAUTHBEARER",), TOKEN, False),
        ((), CERTIFICATE, True),
    ],
    ids=str,
)
def test_mechanisms(expected: tuple[str, ...], authenticator: options.Authenticator, tls: bool) -> None:
    """A password uses SCRAM, and PLAIN with TLS or on request; a token uses OAUTHBEARER; a certificate uses no SASL."""
    assert expected == sasl.mechanisms_of(authenticator, tls=tls)


@pytest.mark.parametrize(
    ("expected", "authenticator"),
    [("user 'ada'", ADA), ("the user of the token", TOKEN), ("the user of the certificate", CERTIFICATE)],
)
def test_users(expected: str, authenticator: options.Authenticator) -> None:
    """An error names the user by the user name, or as the user of the token or the certificate."""
    assert expected == sasl.user_of(authenticator)


def test_token() -> None:
    """The client sends a token as in RFC 6750, after a header without channel binding and identity (RFC 7628 §3.1)."""
    exchange, message = begun(TOKEN)

    assert sasl.SaslMessage(Opcode.SASL_AUTH, "OAUTHBEARER", b"n,,\x01auth=Bearer a.b.c\x01\x01") == message
    assert exchange.receive(answer(message, Status.SUCCESS)) is None
    assert (True, Status.SUCCESS, None) == (exchange.is_done, exchange.status, exchange.refusal)


def test_a_message_keeps_its_secret() -> None:
    """The repr of a message with a token does not contain the token."""
    _, message = begun(TOKEN)

    assert "SaslMessage(opcode=<Opcode.SASL_AUTH: 33>, mechanism='OAUTHBEARER')" == repr(message)


@pytest.mark.parametrize("gives_reason", [False, True])
@pytest.mark.parametrize("status", [Status.AUTH_ERROR, Status.AUTH_STALE])
def test_a_token_that_is_refused(gives_reason: bool, status: Status) -> None:
    """The server refuses a token immediately, or after the client has confirmed its error (RFC 7628 §3.2.3)."""
    exchange, message = begun(TOKEN)
    if gives_reason:
        step = exchange.receive(answer(message, Status.AUTH_CONTINUE, b'{"status":"invalid_token"}'))
        assert sasl.SaslMessage(Opcode.SASL_STEP, "OAUTHBEARER", b"\x01") == step
        message = step
    exchange.receive(answer(message, status))
    refusal = exchange.refusal

    assert refusal is not None
    assert refusal.is_of_credentials
    # The exchange reports both refusals as AUTH_ERROR (decision C6).
    assert (Status.AUTH_ERROR, status) == (exchange.status, refusal.status)
    assert "refused the credentials of the user of the token" in refusal.text
    assert "set_authenticator" in refusal.text
    assert ("expired" in refusal.text) == (status == Status.AUTH_STALE)
    assert "a.b.c" not in refusal.text


@rows(("authenticator", "steps"), [(TOKEN, 1), (options.PasswordAuthenticator(USERNAME, PASSWORD, ("PLAIN",)), 0)])
def test_too_many_challenges(authenticator: options.Authenticator, steps: int) -> None:
    """PLAIN has one message and a token two; if the server sends one more challenge, the exchange fails."""
    exchange, message = begun(authenticator)
    for _ in range(steps):
        step = exchange.receive(answer(message, Status.AUTH_CONTINUE))
        assert step is not None
        message = step

    assert exchange.receive(answer(message, Status.AUTH_CONTINUE)) is None
    assert exchange.refusal is not None
    assert not exchange.refusal.is_of_credentials


@pytest.mark.parametrize(
    ("expected", "offered"),
    [("SCRAM-SHA512", ()), ("SCRAM-SHA256", ("SCRAM-SHA1", "SCRAM-SHA256")), ("SCRAM-SHA1", ("PLAIN", "SCRAM-SHA1"))],
)
def test_the_best_common_mechanism_is_used(expected: str, offered: tuple[str, ...]) -> None:
    """The client uses the best mechanism that both sides support, or its own best one if the node lists none."""
    _, message = begun(ADA, *offered)

    assert expected == message.mechanism


@pytest.mark.parametrize(
    ("authenticator", "offered", "words"),
    [
        (
            ADA,
            ("PLAIN",),
            f"offers PLAIN, but the client permits only SCRAM-SHA512, SCRAM-SHA256, SCRAM-SHA1; {PLAIN_ONLY}",
        ),
        (
            options.PasswordAuthenticator("ada", "secret", ("SCRAM-SHA512",)),
            ("PLAIN", "SCRAM-SHA1"),
            "offers PLAIN, SCRAM-SHA1, but the client permits only SCRAM-SHA512; permit one of the offered mechanisms",
        ),
        (TOKEN, ("PLAIN",), "offers PLAIN, but the client permits only OAUTHBEARER; "),
    ],
)
def test_nothing_in_common(authenticator: options.Authenticator, offered: tuple[str, ...], words: str) -> None:
    """Without a common mechanism the exchange fails with both lists; the credentials do not count as refused."""
    exchange, message = begun(authenticator, *offered)

    assert exchange.receive(answer(message, Status.AUTH_ERROR)) is None
    assert exchange.refusal is not None
    assert words in exchange.refusal.text
    assert (False, True) == (exchange.refusal.is_of_credentials, exchange.refusal.is_ours)
    assert exchange.status is None


def at_message(is_second: bool) -> tuple[sasl.SaslExchange, sasl.SaslMessage]:
    """Return a SCRAM exchange that awaits the server's first or second message, with the client's last message."""
    exchange, message = begun(ADA)
    if is_second:
        server = make_server(message.mechanism, USERNAME, PASSWORD)
        step = exchange.receive(answer(message, Status.AUTH_CONTINUE, server.first(message.payload)))
        assert step is not None
        message = step
    return exchange, message


@rows("is_second", [False, True])
@rows("status", [Status.SUCCESS, Status.AUTH_CONTINUE, Status.AUTH_ERROR, Status.INTERNAL_ERROR])
@rows("text", [b"e=invalid-proof", b"e=other-error", b"v=AAAA,e=failed", b"e=failed,m=1,,nonsense", b"e="])
def test_a_scram_error_message(text: bytes, status: int, is_second: bool) -> None:
    """An error in either server message refuses the credentials, whatever its status and attributes (RFC 5802 §5.1)."""
    exchange, message = at_message(is_second)
    exchange.receive(answer(message, status, text))

    assert exchange.refusal is not None
    assert exchange.refusal.is_of_credentials
    assert Status.AUTH_ERROR == exchange.status


@pytest.mark.parametrize("value", [b"v=QQ==", b"v=", b"", b"nonsense"])
@pytest.mark.parametrize("is_second", [False, True])
def test_a_node_without_the_password(is_second: bool, value: bytes) -> None:
    """If a node sends no valid signature, the client refuses the node, and the credentials do not count as refused."""
    exchange, message = at_message(is_second)
    exchange.receive(answer(message, Status.SUCCESS, value))

    assert exchange.refusal is not None
    assert (True, False) == (exchange.refusal.is_ours, exchange.refusal.is_of_credentials)
    assert (False, None) == (exchange.is_done, exchange.status)


@pytest.mark.parametrize("status", [Status.TEMPORARY_FAILURE, Status.NOT_SUPPORTED, 0x7FF0])
@pytest.mark.parametrize("authenticator", [ADA, TOKEN], ids=["password", "token"])
def test_other_failures(authenticator: options.Authenticator, status: int) -> None:
    """A status other than a refusal fails the exchange; the credentials do not count as refused (decision C6)."""
    exchange, message = begun(authenticator)
    exchange.receive(answer(message, status))

    assert exchange.refusal == sasl.SaslRefusal(exchange.refusal.text if exchange.refusal else "", status)
    assert status == exchange.status
    assert f"[0x{status:02x}]" in exchange.refusal.text
