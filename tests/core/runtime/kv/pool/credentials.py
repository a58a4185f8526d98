"""Credentials for tests, and a function that replaces those of a client."""

from __future__ import annotations

from tests.core.runtime.kv.simulated import Recorded
from triclinium_core.contract import neutral
from triclinium_core.contract.couchbase import Action, AuthenticatorChanged
from triclinium_core.options import (
    Authenticator,
    CertificateAuthenticator,
    JwtAuthenticator,
    PasswordAuthenticator,
)

ADMINISTRATOR = PasswordAuthenticator("Administrator", "password")
SAME = PasswordAuthenticator("Administrator", "password")
WRONG = PasswordAuthenticator("Administrator", "wrong")
TOKEN = JwtAuthenticator("a.b.c", allow_unencrypted=True)
NEXT_TOKEN = JwtAuthenticator("d.e.f", allow_unencrypted=True)
CERTIFICATE = CertificateAuthenticator("ada.pem")
ONE = neutral.StreamId(1)


def change(simulation: Recorded, authenticator: Authenticator, nonce: str = "a-nonce-of-the-user-") -> list[Action]:
    """Replace the client's credentials, and return its actions."""
    return [*simulation.feed(AuthenticatorChanged(authenticator, nonce))]
