"""Limits of JSON that is decoded into Python objects while the event loop waits.

Each limit bounds a kind of work. JSON at all limits takes some fifty milliseconds (``python -m tests.bench --only
bounds``). Text that is not decoded has no limit here.
"""

from __future__ import annotations

UNCOUNTED_SIZE_BYTES_MAX = 256 * 1024
"""Size in bytes up to which nothing is counted. The worst case, only brackets, takes some thirty milliseconds."""
OBJECTS_SIZE_BYTES_MAX = 21 * 1024 * 1024
"""Maximum size of decoded JSON: a document has at most 20 MiB, and a row adds names and metadata."""
OBJECTS_PARTS_MAX = 100_000
"""Maximum number of objects, lists and comma-separated values. A key of an object takes 0.3 to 0.5 microseconds."""
OBJECTS_BYTES_PER_PART = 512
"""Size in bytes of a block that takes as long as one part. Each block lowers the maximum number of parts by one."""
OBJECTS_ESCAPES_MAX = 500_000
"""Maximum number of backslashes: each takes some 0.02 microseconds, ten times as much as another character."""

_COUNTED_SIZE_BYTES = 4 * 1024 * 1024
"""Size in bytes of JSON up to which one call counts all occurrences of a byte. Above it, stopping early is cheaper."""
_BEGINNINGS = b",[{"


class TooManyParts(ValueError):
    """Exception for JSON that is too large to be decoded. The message states the count and the limit."""


def check_decodable(encoded: bytes) -> None:
    """Check that JSON can be decoded into objects without a long delay of the event loop.

    Commas and brackets inside strings count as well, so a count is never too small.

    Raises:
        TooManyParts: the JSON has too many bytes, parts or escapes.
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
    """Return the number of occurrences of a byte. In large JSON, stop at ``most`` plus one."""
    if len(encoded) <= _COUNTED_SIZE_BYTES:
        return encoded.count(byte)
    count, at = 0, encoded.find(byte) if most >= 0 else -1
    while at >= 0 and count <= most:
        count += 1
        at = encoded.find(byte, at + 1)
    return count


def _too_many(count: str, most: int, what: str) -> TooManyParts:
    return TooManyParts(f"{count} {what}; at most {most} are decoded into objects")
