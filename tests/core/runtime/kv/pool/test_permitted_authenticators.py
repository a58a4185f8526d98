"""Authenticators that a connection string permits, and authenticators that may replace others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.runtime.kv.pool.credentials import ADMINISTRATOR, CERTIFICATE, NEXT_TOKEN, TOKEN, WRONG, change
from tests.core.runtime.kv.simulated import Recorded, client_options, get, ready, upsert
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.argument_error import ArgumentError
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.contract import neutral
from triclinium_core.contract.couchbase import AuthenticatorChanged
from triclinium_core.kv.topology.connection_string import parse_connection_string
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.options import (
    Authenticator,
    CertificateAuthenticator,
    ClientOptions,
    JwtAuthenticator,
    PasswordAuthenticator,
)
from triclinium_core.runtime.kv.pool.authentication import check_authenticator, check_change
from triclinium_core.testing.simulation import MIDPOINT

PLAIN, TLS, BARE = (parse_connection_string(text) for text in ("couchbase://h", "couchbases://h", "memcached://h"))


# Permitted authenticators, and the event that replaces one.


@rows(
    ("authenticator", "connection_string", "words"),
    [
        (None, BARE, None),
        (ADMINISTRATOR, BARE, None),
        (ADMINISTRATOR, PLAIN, None),
        (ADMINISTRATOR, TLS, None),
        (TOKEN, PLAIN, None),
        (JwtAuthenticator("a"), TLS, None),
        (CERTIFICATE, TLS, None),
        (PasswordAuthenticator("a:b", "s:cret"), BARE, None),
        (PasswordAuthenticator("ada", "s:e:cret"), PLAIN, None),
        (PasswordAuthenticator("ada:secret", "b"), PLAIN, "has a colon at character 4"),
        (PasswordAuthenticator(":", "secret"), TLS, "has a colon at character 1"),
        (None, PLAIN, "couchbase:// needs one, such as PasswordAuthenticator(username, password)"),
        (None, TLS, "authenticator is missing"),
        (JwtAuthenticator("s.e.cret"), PLAIN, "verify the certificate, or set allow_unencrypted"),
        (CERTIFICATE, PLAIN, "couchbases://"),
        (CERTIFICATE, BARE, "memcached://"),
        (JwtAuthenticator("s.e.cret"), BARE, "memcached://"),
    ],
)
def test_authenticators_of_a_scheme(
    authenticator: Authenticator | None, connection_string: Any, words: str | None
) -> None:
    """A password fits each scheme; a token needs TLS or an option, a certificate TLS; SASL user names have no colon."""
    if words is None:
        check_authenticator(authenticator, connection_string)
        return
    with pytest.raises(errors.InvalidArgumentException) as caught:
        check_authenticator(authenticator, connection_string)

    assert "authenticator" == caught.value.parameter
    assert words in str(caught.value)
    assert "cret" not in str(caught.value)


@rows(
    ("present", "wanted", "connection_string", "words"),
    [
        (ADMINISTRATOR, WRONG, TLS, None),
        (ADMINISTRATOR, TOKEN, TLS, None),
        (TOKEN, ADMINISTRATOR, TLS, None),
        (TOKEN, NEXT_TOKEN, TLS, None),
        (CERTIFICATE, CertificateAuthenticator(), TLS, None),
        (ADMINISTRATOR, CERTIFICATE, TLS, "by TLS, but that of this cluster by SASL"),
        (TOKEN, CERTIFICATE, TLS, "open another cluster"),
        (CERTIFICATE, ADMINISTRATOR, TLS, "by SASL, but that of this cluster by TLS"),
        (ADMINISTRATOR, CERTIFICATE, PLAIN, "couchbases://"),
        (ADMINISTRATOR, JwtAuthenticator("a"), PLAIN, "allow_unencrypted"),
        (ADMINISTRATOR, PasswordAuthenticator("a:b", "secret"), TLS, "has a colon"),
        (None, ADMINISTRATOR, BARE, "memcached://"),
        (ADMINISTRATOR, None, TLS, "not NoneType"),
        (ADMINISTRATOR, "secret", TLS, "not str"),
        (ADMINISTRATOR, PasswordAuthenticator, TLS, "not type"),
    ],
)
def test_permitted_replacements(present: Any, wanted: Any, connection_string: Any, words: str | None) -> None:
    """SASL credentials can only replace SASL credentials, and a certificate only a certificate; the error explains why."""
    if words is None:
        check_change(present, wanted, connection_string)
        return
    with pytest.raises(errors.InvalidArgumentException) as caught:
        check_change(present, wanted, connection_string)

    assert "authenticator" == caught.value.parameter
    assert words in str(caught.value)


def test_a_rejected_authenticator_changes_nothing() -> None:
    """An authenticator that is not permitted is rejected by constructor, check and event; an open client continues."""
    simulation = ready()
    assert isinstance(simulation.machine, ClientMachine)
    simulation.machine.check_authenticator(TOKEN)
    refusals = (
        lambda: ClientMachine(client_options(authenticator=CERTIFICATE), rng=MIDPOINT),
        lambda: simulation.machine.check_authenticator(CERTIFICATE),
        lambda: change(simulation, CERTIFICATE),
    )
    for refused in refusals:
        with pytest.raises(errors.InvalidArgumentException) as caught:
            refused()
        assert "authenticator" == caught.value.parameter
    simulation.result(upsert())

    assert [] == simulation.closings()


@pytest.mark.parametrize("nonce", [None, b"nonce", 7])
def test_wrong_nonce(nonce: Any) -> None:
    """An invalid nonce raises when the event is created."""
    with pytest.raises(ArgumentError) as caught:
        AuthenticatorChanged(ADMINISTRATOR, nonce)

    assert "nonce" == caught.value.parameter


def test_an_event_keeps_its_secrets() -> None:
    """The repr of the event contains neither the password nor the nonce, with which the password could be guessed."""
    event = AuthenticatorChanged(PasswordAuthenticator("ada", "secret"), "the nonce")

    assert (
        "AuthenticatorChanged(PasswordAuthenticator(username='ada', allowed_sasl_mechanisms=None, scram_iterations_min=4000))"
        == repr(event)
    )


# TLS without verification of the nodes.


@rows(
    ("authenticator", "words"),
    [
        (ADMINISTRATOR, None),
        (PasswordAuthenticator("ada", "secret", ("PLAIN",)), None),
        (CERTIFICATE, None),
        (JwtAuthenticator("s.e.cret", allow_unencrypted=True), None),
        (JwtAuthenticator("s.e.cret"), "verify the certificate, or set allow_unencrypted"),
    ],
)
def test_authenticators_of_unverified_tls(authenticator: Authenticator, words: str | None) -> None:
    """Over unverified TLS, a token needs ``allow_unencrypted``, both as first and as replacing authenticator."""
    present = authenticator if authenticator == CERTIFICATE else ADMINISTRATOR
    if words is None:
        check_authenticator(authenticator, TLS, tls_is_verified=False)
        check_change(present, authenticator, TLS, tls_is_verified=False)
        return
    with pytest.raises(errors.InvalidArgumentException, match=words):
        check_authenticator(authenticator, TLS, tls_is_verified=False)
    with pytest.raises(errors.InvalidArgumentException, match=words) as caught:
        check_change(present, authenticator, TLS, tls_is_verified=False)

    assert "authenticator" == caught.value.parameter


@rows(
    ("scheme", "tls_is_verified", "count"),
    [("couchbases", False, 1), ("couchbases", True, 0), ("couchbase", False, 0), ("couchbase", True, 0)],
)
def test_the_warning_of_unverified_tls(scheme: str, tls_is_verified: bool, count: int) -> None:
    """If and only if TLS does not verify the nodes, the client reports once, at WARNING, that they are not verified."""
    options = ClientOptions(
        connection_string=f"{scheme}://127.0.0.1", authenticator=ADMINISTRATOR, tls_is_verified=tls_is_verified
    )
    machine = ClientMachine(options, rng=MIDPOINT)
    reports = [
        action
        for now in (0.0, 1.0)
        for action in machine.handle(neutral.TimePassed(), now)
        if isinstance(action, neutral.ReportConnection) and action.level is neutral.ReportLevel.WARNING
    ]

    assert count == len(reports)
    assert all("not verified" in report.text for report in reports)


@rows(
    ("tls_is_verified", "allowed", "mechanism"),
    [
        (True, None, b"PLAIN"),
        (False, None, b"SCRAM-SHA512"),
        (False, ("PLAIN",), b"PLAIN"),
        (False, ("SCRAM-SHA1", "PLAIN"), b"SCRAM-SHA1"),
    ],
)
def test_the_mechanism_over_unverified_tls(
    tls_is_verified: bool, allowed: tuple[str, ...] | None, mechanism: bytes
) -> None:
    """Over unverified TLS, all exchanges use SCRAM unless the authenticator allows only PLAIN."""
    options = ClientOptions(
        connection_string="couchbases://127.0.0.1",
        authenticator=PasswordAuthenticator("Administrator", "password", allowed),
        tls_is_verified=tls_is_verified,
    )
    simulation = Recorded(options=options, tls_port=11207)
    simulation.finish(get())
    simulation.feed(AuthenticatorChanged(PasswordAuthenticator("Administrator", "password", allowed), "other"))
    simulation.run()

    first = [request for requests in simulation.requests.values() for request in requests]
    assert {mechanism} == {request.key for request in first if request.opcode == Opcode.SASL_AUTH}
