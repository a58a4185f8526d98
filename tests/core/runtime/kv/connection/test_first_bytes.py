"""Hints in errors about a server that is not a Couchbase node."""

from __future__ import annotations

import pytest

from triclinium_core.kv.wire.frame_buffer import CLIENT_ACCEPTS
from triclinium_core.runtime.kv.connection.first_bytes import SIGNS, recognise


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "HTTP port"),
        (b"HTTP/", "11210"),
        (b"<!DOCTYPE html>", "HTTP port"),
        (b"\x15\x03\x01\x00\x02\x02\x0a", "couchbases://"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "TLS"),
        (b"ERROR\r\n", "text"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "SSH"),
    ],
)
def test_recognises(data: bytes, hint: str) -> None:
    """The first bytes of a server's response show which protocol it uses."""
    found = recognise(data)

    assert found is not None
    assert hint in found


@pytest.mark.parametrize("data", [b"", b"H", b"\x15", b"\x81\x1f", b"xHTTP/1.1", b"220 smtp ready"])
def test_no_hint(data: bytes) -> None:
    """If the first bytes are unknown or too few, there is no hint."""
    assert recognise(data) is None


def test_no_sign_begins_like_a_frame() -> None:
    """No known beginning has the magic byte of a Couchbase frame; otherwise a real node could cause a hint."""
    assert not {sign[0] for sign, _ in SIGNS} & set(map(int, CLIENT_ACCEPTS))
