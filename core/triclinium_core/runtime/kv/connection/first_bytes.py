"""Recognition of servers that are not Couchbase nodes, by the first bytes that they send."""

from __future__ import annotations

TLS_ALERT = b"\x15\x03"
"""First bytes that a TLS server sends to a client without TLS: an alert (RFC 8446 §6)."""

SIGNS: tuple[tuple[bytes, str], ...] = (
    (b"HTTP/", "this is an HTTP port; the KV service listens on 11210, or 11207 with TLS"),
    (b"<", "this looks like an HTTP port; the KV service listens on 11210, or 11207 with TLS"),
    (TLS_ALERT, "this port speaks TLS; connect with couchbases://"),
    (b"ERROR", "this is a memcached that only speaks the text protocol"),
    (b"SSH-", "this is an SSH server"),
)


def recognise(data: bytes) -> str | None:
    """Return a hint about the kind of server that sent ``data``, or None if it is unknown."""
    return next((hint for sign, hint in SIGNS if data.startswith(sign)), None)
