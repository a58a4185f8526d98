"""Processing times that the server of a connection reports."""

from __future__ import annotations

import pytest

from triclinium_core.kv.wire.framing_extras import ResponseFrameInfo, encode_framing_extras, encode_server_duration_us
from triclinium_core.runtime.kv.connection.server_time import ServerTime


def reported(duration_us: float) -> bytes:
    """Return the framing extras of a response in which a server reports this duration."""
    code = encode_server_duration_us(duration_us)
    return encode_framing_extras({ResponseFrameInfo.SERVER_DURATION: code.to_bytes(2, "big")})


def test_durations_add_up() -> None:
    """Each duration adds to the sum and the count, and may be the new maximum."""
    time = ServerTime()
    for duration_us in (100.0, 5_000.0, 300.0):
        time.note(reported(duration_us))

    assert 3 == time.answers
    assert pytest.approx(0.0054, rel=0.02) == time.total
    assert pytest.approx(0.005, rel=0.02) == time.longest


@pytest.mark.parametrize("framing_extras", [b"", b"\x12\x00\x01", b"\x02\x00"])
def test_extras_without_a_duration(framing_extras: bytes) -> None:
    """If framing extras have no duration, the sum and the count do not change."""
    time = ServerTime()
    time.note(framing_extras)

    assert ServerTime() == time
