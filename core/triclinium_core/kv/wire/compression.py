"""Compression of values in snappy's raw block format. The module imports the codec on first use.

Source: kv_engine docs/BinaryProtocol.md, "Data Types"; google/snappy format_description.txt.
"""

from __future__ import annotations

from triclinium_core.kv.wire.constants import VALUE_SIZE_MAX

XATTR_SIZE_MAX = 1024 * 1024
"""Maximum size of extended attributes in bytes. They precede the document in the value of a frame, but do not count
towards the size limit of the document."""

INFLATED_SIZE_MAX = VALUE_SIZE_MAX + XATTR_SIZE_MAX

DEFLATE_SIZE_MIN = 32
"""Minimum size in bytes of a value that the client compresses, because shorter values hardly shrink. Other Couchbase
clients use the same bound."""

DEFLATE_RATIO_MAX = 0.83
"""Maximum ratio of compressed to original size. Above it, the client sends the value uncompressed. Other Couchbase
clients use the same bound."""

_COPY_OUTPUT_MAX, _COPY_INPUT_MIN = 64, 3
"""Sizes in bytes of the densest element of the format: three bytes, which repeat 64 earlier bytes."""


class MalformedCompression(ValueError):
    """The bytes are not a snappy block, or announce a size that is too large or impossible."""


def inflate(data: bytes) -> bytes:
    """Return the inflated value of ``data``.

    Raises:
        MalformedCompression: ``data`` is not a snappy block, or announces an invalid size.
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
        MalformedCompression: ``data`` announces no size, or an invalid size.
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
    """Return the error for a size that exceeds the maximum, or to which the block cannot inflate.

    The caller raises the error before inflation, so an announced size alone never allocates memory.
    """
    bound = (
        f"the maximum is {INFLATED_SIZE_MAX}"
        if size > INFLATED_SIZE_MAX
        else f"this is too many for {len(data)} compressed bytes"
    )
    return MalformedCompression(f"a value of {size} bytes is announced; {bound}")


def deflate(value: bytes) -> bytes | None:
    """Return ``value`` as a snappy block, or None if ``value`` is short or hardly shrinks."""
    if len(value) < DEFLATE_SIZE_MIN:
        return None
    import cramjam

    deflated = bytes(cramjam.snappy.compress_raw(value))
    return deflated if len(deflated) <= len(value) * DEFLATE_RATIO_MAX else None
