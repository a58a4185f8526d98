"""Headers with the credentials of each kind of authenticator.

Source: RFC 7617 (Basic), RFC 6750 (Bearer).
"""

from __future__ import annotations

from base64 import b64decode, b64encode

from triclinium_core.concealment import PASSWORD_MIN, Secrets
from triclinium_core.options import Authenticator, JwtAuthenticator, PasswordAuthenticator

Headers = tuple[tuple[str, str], ...]
AUTHORIZATION = "authorization"


def headers_of(authenticator: Authenticator | None, user_agent: str) -> Headers:
    """Return the headers of a client's requests.

    A certificate adds none: the driver presents it in the TLS handshake.
    """
    # Replace all characters except printable ASCII: a header must not contain line breaks, and only ASCII is safe.
    named = ("user-agent", "".join(each if " " <= each <= "~" else "?" for each in user_agent).strip() or "triclinium")
    if isinstance(authenticator, PasswordAuthenticator):
        pair = b64encode(f"{authenticator.username}:{authenticator.password}".encode()).decode("ascii")
        return named, (AUTHORIZATION, f"Basic {pair}")
    if isinstance(authenticator, JwtAuthenticator):
        return named, (AUTHORIZATION, f"Bearer {authenticator.token}")
    return (named,)


def without_credentials(headers: Headers) -> Headers:
    """Return the headers without those that contain credentials."""
    return tuple(each for each in headers if each[0] != AUTHORIZATION)


def has_credentials(headers: Headers) -> bool:
    """Return whether the headers carry a password or a token."""
    return any(name == AUTHORIZATION for name, _ in headers)


def secrets_of(headers: Headers) -> Secrets:
    """Return the credentials in headers, in encoded and decoded form. Error texts must conceal both."""
    value = dict(headers).get(AUTHORIZATION, "")
    scheme, _, token = value.partition(" ")
    if scheme != "Basic":
        return Secrets((token,) if token else ())
    try:
        pair = b64decode(token).decode("utf-8", "replace")
    except ValueError:
        return Secrets((token,))
    password = pair.partition(":")[2]
    return Secrets((token,), (pair, *([password] if len(password) >= PASSWORD_MIN else [])))
