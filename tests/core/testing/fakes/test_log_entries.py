"""What stands in the log of a node."""

from __future__ import annotations

import pytest

from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.kv.wire.frame import Frame, encode_request
from triclinium_core.kv.wire.frame_buffer import SERVER_ACCEPTS, FrameBuffer
from triclinium_core.testing.fakes.faults import DropResponse
from triclinium_core.testing.fakes.log_entries import log_entry
from triclinium_core.testing.fakes.state import Connection


def request(opcode: int, key: bytes) -> Frame:
    """Return a request as it comes out of the buffer."""
    (frame,) = FrameBuffer(SERVER_ACCEPTS).receive(encode_request(opcode, opaque=9, vbucket=5, cas=7, key=key))
    return frame


@pytest.mark.parametrize(
    ("opcode", "wire_key", "collection_id", "key"),
    [
        (Opcode.GET, b"\x08ada", 8, b"ada"),
        (Opcode.GET, b"\x80", 0, b"\x80"),
        (Opcode.SELECT_BUCKET, b"\x08ada", 0, b"\x08ada"),
        (0x55, b"\x08ada", 0, b"\x08ada"),
    ],
)
def test_entry(opcode: int, wire_key: bytes, collection_id: int, key: bytes) -> None:
    """The key without its prefix where there is one that can be read, else as it came."""
    connection = Connection(3)
    connection.bucket, connection.features = "travel", frozenset({HelloFeature.COLLECTIONS})
    fault = DropResponse()
    entry = log_entry(
        connection,
        request(opcode, wire_key),
        came_at=1.5,
        fault=fault,
        status=None,
        applied=True,
    )

    assert (3, opcode, key, 9, 7) == (entry.connection, entry.opcode, entry.key, entry.opaque, entry.cas)
    assert (1.5, fault, None, True) == (entry.now, entry.fault, entry.status, entry.applied)
    assert ("travel", collection_id, 5) == (entry.bucket, entry.collection_id, entry.vbucket)
