"""Headers with the credentials of requests."""

from __future__ import annotations

from triclinium_core.options import CertificateAuthenticator, JwtAuthenticator, PasswordAuthenticator
from triclinium_core.runtime.services.credentials import headers_of


def test_each_kind_of_authenticator() -> None:
    """A password is sent as Basic in UTF-8 and a token as Bearer; a certificate adds no header."""
    password, token = PasswordAuthenticator("ada", "pä:ss"), JwtAuthenticator("a.b.c")

    assert ("authorization", "Basic YWRhOnDDpDpzcw==") == headers_of(password, "test")[1]
    assert ("authorization", "Bearer a.b.c") == headers_of(token, "test")[1]
    assert (("user-agent", "test"),) == headers_of(CertificateAuthenticator(), "test") == headers_of(None, "test")


def test_a_name_that_no_header_can_have() -> None:
    """If the client's name has a character that a header cannot have, such as a line break, the character is replaced."""
    assert (("user-agent", "a??b: c?"),) == headers_of(None, "a\r\nb: cä")
    assert (("user-agent", "triclinium"),) == headers_of(None, " ")
