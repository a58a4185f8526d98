"""What the machine hears shows in logs and failing tests without what must not stand there."""

from __future__ import annotations

from triclinium_core.kv.events import BytesReceived, StreamId, StreamOpened


def test_bytes_are_counted_not_shown() -> None:
    """They may hold documents."""
    assert "BytesReceived(stream=7, data=<6 bytes>)" == repr(BytesReceived(StreamId(7), b"secret"))


def test_the_nonce_is_not_shown() -> None:
    """It is entropy of an authentication."""
    assert "StreamOpened(stream=7, 'a:1' to 'b:2')" == repr(StreamOpened(StreamId(7), "secret", "a:1", "b:2"))
