"""Guess at the protocol of a peer that is no Couchbase node, from the first bytes it sent."""

from __future__ import annotations

TLS_ALERT = b"\x15\x03"
"""How a server that speaks TLS answers one that does not (RFC 8446 §6)."""

SIGNS: tuple[tuple[bytes, str], ...] = (
    (b"HTTP/", "this is an HTTP port; the KV service listens on 11210, or 11207 with TLS"),
    (b"<", "this looks like an HTTP port; the KV service listens on 11210, or 11207 with TLS"),
    (TLS_ALERT, "this port speaks TLS; connect with couchbases://"),
    (b"ERROR", "this is a memcached that speaks text only"),
    (b"SSH-", "this is an SSH server"),
)


def recognise(data: bytes) -> str | None:
    """Return a hint on what the peer is, or None."""
    return next((hint for sign, hint in SIGNS if data.startswith(sign)), None)
