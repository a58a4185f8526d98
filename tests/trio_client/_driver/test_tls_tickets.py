"""Flood of session tickets, many in one record, which no real server sends; the test encrypts them itself."""

from __future__ import annotations

import ssl
import struct
from collections import Counter
from pathlib import Path

import pytest
import trio
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from tests.trio_client._driver.tls_peer import HOST, TlsPeer, client_context, server_context
from triclinium._driver.tls_stream import TlsStream

pytestmark = pytest.mark.native

# RFC 8446 §4.6.1, §5.2: the smallest ticket, which no client uses, and the content types of records.
TICKET = bytes.fromhex("0400000e 00001c20 00000000 00 000178 0000")
HANDSHAKE, DATA = 22, 23
RECORDS = 12


class Records:
    """Records that a test encrypts like the first records of a TLS 1.3 server.

    Args:
        secret: the server's first secret for data (RFC 8446, section 7.1), of TLS_AES_256_GCM_SHA384.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._cipher, self._nonce = AESGCM(self._derive(b"key", 32)), self._derive(b"iv", 12)
        self._count = 0

    def _derive(self, label: bytes, size: int) -> bytes:
        full = b"tls13 " + label
        info = struct.pack(">HB", size, len(full)) + full + b"\0"
        return HKDFExpand(SHA384(), size, info).derive(self._secret)

    def next(self, content: bytes, kind: int) -> bytes:
        """Return the next record."""
        inner = content + bytes([kind])
        header = struct.pack(">BHH", DATA, 0x0303, len(inner) + 16)
        nonce = (int.from_bytes(self._nonce) ^ self._count).to_bytes(12)
        self._count += 1
        return header + self._cipher.encrypt(nonce, inner, header)


def secret_in(keys: Path) -> bytes:
    """Return the server's first secret for data."""
    lines = keys.read_text(encoding="ascii").splitlines()
    (secret,) = (line.split()[2] for line in lines if line.startswith("SERVER_TRAFFIC_SECRET_0"))
    return bytes.fromhex(secret)


async def test_a_flood_of_session_tickets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client passes OpenSSL one full record of tickets per pass of the event loop, and then reads the data."""
    context = server_context(tickets=0)
    context.keylog_filename = str(tmp_path / "secrets")
    below, above = trio.socket.socketpair()
    stream = TlsStream(trio.SocketStream(below), client_context(ssl.TLSVersion.TLSv1_3), HOST.encode())
    peer = TlsPeer(trio.SocketStream(above), context=context)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.do_handshake)
        nursery.start_soon(peer.do_handshake)
    records = Records(secret_in(Path(context.keylog_filename)))
    flood = b"".join(records.next(TICKET * (16_000 // len(TICKET)), HANDSHAKE) for _ in range(RECORDS))

    passes = 0
    at: list[int] = []
    pass_on = TlsStream._pass_on

    def noting_pass_on(stream: TlsStream) -> int:
        size = pass_on(stream)
        at.extend([passes] * (size > 0))
        return size

    received: list[bytes] = []

    async def read() -> None:
        received.append(await stream.receive_some())

    monkeypatch.setattr(TlsStream, "_pass_on", noting_pass_on)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.stream.send_all, flood + records.next(b"data", DATA))
        nursery.start_soon(read)
        while not received:
            passes += 1
            await trio.lowlevel.checkpoint()
    await stream.aclose()
    await peer.stream.aclose()

    assert [b"data"] == received
    assert RECORDS + 1 == len(at)
    # Trio runs the tasks of a pass in any order: the reader may run before this test in one pass, and after it in the
    # next.
    assert max(Counter(at).values()) <= 2
