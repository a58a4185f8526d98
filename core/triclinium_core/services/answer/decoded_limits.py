"""Limits of JSON that is decoded into Python objects: the event loop waits while a decoder makes them.

Each is a count of work, and JSON that is full up to all of them takes some fifty milliseconds (``python -m tests.bench
--only bounds``). Text that is not decoded has no limit here.
"""

from __future__ import annotations

UNCOUNTED_SIZE_BYTES_MAX = 256 * 1024
"""Bytes of JSON whose parts are not counted: brackets alone, the costliest there are, take some thirty milliseconds."""
OBJECTS_SIZE_BYTES_MAX = 21 * 1024 * 1024
"""Bytes of JSON that is decoded: a document has at most 20 MiB, and a row has names and metadata beside it."""
OBJECTS_PARTS_MAX = 100_000
"""Objects, lists and the values that commas separate: a key takes 0.3 to 0.5 microseconds."""
OBJECTS_BYTES_PER_PART = 512
"""Bytes that take as long as one part. The more bytes there are, the fewer parts may they have."""
OBJECTS_ESCAPES_MAX = 500_000
"""Backslashes: each takes some 0.02 microseconds, ten times as much as another character."""

_COUNTED_SIZE_BYTES = 4 * 1024 * 1024
"""Bytes up to which each occurrence is counted in one call. Beyond that, searching and stopping early is cheaper."""
_BEGINNINGS = b",[{"


class TooManyParts(ValueError):
    """JSON is too large to be decoded; the text gives count and limit."""


def check_decodable(encoded: bytes) -> None:
    """Check that JSON can be decoded into objects without delaying the event loop.

    Commas and brackets inside of texts count as well, so a count is never too small.

    Raises:
        TooManyParts: it has too many bytes, parts or escapes.
    """
    size = len(encoded)
    if size <= UNCOUNTED_SIZE_BYTES_MAX:
        return
    if size > OBJECTS_SIZE_BYTES_MAX:
        raise _too_many(f"{size}", OBJECTS_SIZE_BYTES_MAX, "bytes")
    parts, most = 0, OBJECTS_PARTS_MAX - size // OBJECTS_BYTES_PER_PART
    for byte in _BEGINNINGS:
        parts += _count(encoded, byte, most - parts)
    if parts > most:
        raise _too_many(f"{parts}" if size <= _COUNTED_SIZE_BYTES else f"more than {most}", most, "parts")
    escapes = encoded.count(b"\\", first) if (first := encoded.find(b"\\")) >= 0 else 0
    if escapes > OBJECTS_ESCAPES_MAX:
        raise _too_many(f"{escapes}", OBJECTS_ESCAPES_MAX, "escapes")


def _count(encoded: bytes, byte: int, most: int) -> int:
    """Return how often a byte occurs; of large JSON at most ``most`` and one."""
    if len(encoded) <= _COUNTED_SIZE_BYTES:
        return encoded.count(byte)
    count, at = 0, encoded.find(byte) if most >= 0 else -1
    while at >= 0 and count <= most:
        count += 1
        at = encoded.find(byte, at + 1)
    return count


def _too_many(count: str, most: int, what: str) -> TooManyParts:
    return TooManyParts(f"{count} {what}; at most {most} are decoded into objects")
