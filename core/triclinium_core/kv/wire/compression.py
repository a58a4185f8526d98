"""Values in snappy's raw block format. The codec is loaded with the first of them.

Source: kv_engine docs/BinaryProtocol.md, "Data Type"; google/snappy format_description.txt.
"""

from __future__ import annotations

from triclinium_core.kv.wire.constants import VALUE_SIZE_MAX

XATTR_SIZE_MAX = 1024 * 1024
"""Extended attributes share the value's field and are not part of the document's own limit."""

INFLATED_SIZE_MAX = VALUE_SIZE_MAX + XATTR_SIZE_MAX

DEFLATE_SIZE_MIN = 32
"""Shorter values never get short enough to be worth it; every client uses this bound."""

DEFLATE_RATIO_MAX = 0.83
"""A value that does not shrink below this share of its size is sent as it is; every client uses this bound."""

_COPY_OUTPUT_MAX, _COPY_INPUT_MIN = 64, 3
"""The densest element of the format: three bytes that repeat 64 earlier ones."""


class MalformedCompression(ValueError):
    """The bytes are no snappy block, or one that would inflate to more than any value can be."""


def inflate(data: bytes) -> bytes:
    """Return the value that ``data`` was made from.

    Raises:
        MalformedCompression: ``data`` is not a snappy block, or announces an impossible size.
    """
    import cramjam

    try:
        size = cramjam.snappy.decompress_raw_len(data)
        if size > INFLATED_SIZE_MAX or size * _COPY_INPUT_MIN > len(data) * _COPY_OUTPUT_MAX:
            raise _impossible_size(size, data)
        return bytes(cramjam.snappy.decompress_raw(data))
    except cramjam.DecompressionError as error:
        raise MalformedCompression(f"not a snappy block: {error}") from error


def inflated_size(data: bytes) -> int:
    """Return the inflated size in bytes that ``data`` announces.

    Raises:
        MalformedCompression: ``data`` has no size, or announces an impossible one.
    """
    import cramjam

    try:
        size = int(cramjam.snappy.decompress_raw_len(data))
    except cramjam.DecompressionError as error:
        raise MalformedCompression(f"not a snappy block: {error}") from error
    if size > INFLATED_SIZE_MAX or size * _COPY_INPUT_MIN > len(data) * _COPY_OUTPUT_MAX:
        raise _impossible_size(size, data)
    return size


def _impossible_size(size: int, data: bytes) -> MalformedCompression:
    """Return the error for a size above that of the largest value, or above the maximum that the block can express.

    Raised before anything is inflated: the node's claim alone never allocates memory.
    """
    bound = (
        f"the largest has {INFLATED_SIZE_MAX}" if size > INFLATED_SIZE_MAX else f"{len(data)} bytes cannot make so many"
    )
    return MalformedCompression(f"a value of {size} bytes is announced, {bound}")


def deflate(value: bytes) -> bytes | None:
    """Return ``value`` as a snappy block, or None where that does not pay: short values and those that hardly shrink."""
    if len(value) < DEFLATE_SIZE_MIN:
        return None
    import cramjam

    deflated = bytes(cramjam.snappy.compress_raw(value))
    return deflated if len(deflated) <= len(value) * DEFLATE_RATIO_MAX else None
