"""How a request shows who asks: the header that each kind of authenticator stands in.

Source: RFC 7617 (Basic), RFC 6750 (Bearer).
"""

from __future__ import annotations

from base64 import b64encode

from triclinium_core.options import Authenticator, JwtAuthenticator, PasswordAuthenticator


def headers_of(authenticator: Authenticator | None, user_agent: str) -> tuple[tuple[str, str], ...]:
    """Return the headers of every request of a client; a certificate was shown by the driver already."""
    # A header takes no line breaks, and nothing beyond ASCII for sure.
    named = ("user-agent", "".join(each if " " <= each <= "~" else "?" for each in user_agent).strip() or "triclinium")
    if isinstance(authenticator, PasswordAuthenticator):
        pair = b64encode(f"{authenticator.username}:{authenticator.password}".encode()).decode("ascii")
        return named, ("authorization", f"Basic {pair}")
    if isinstance(authenticator, JwtAuthenticator):
        return named, ("authorization", f"Bearer {authenticator.token}")
    return (named,)
