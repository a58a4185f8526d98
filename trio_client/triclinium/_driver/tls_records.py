"""Boundaries of TLS records, so that OpenSSL gets one record at a time.

In one call, OpenSSL processes all data that it has. The stream passes one record at a time to bound this work. A key
update has 27 bytes and takes up to 60 microseconds with its reply, and 16 KiB of session tickets take 11 milliseconds.
16 KiB of requests to renegotiate take 70 milliseconds, but only if the caller's context has ``OP_NO_RENEGOTIATION``.

In one pass of trio's loop, each stream whose node floods it has one turn. So a trusted node with many connections can
occupy the loop for longer.
"""

from __future__ import annotations

# RFC 8446 §5.1: type, version and length. RFC 5246 §6.2.3: the largest length of any version.
HEADER_SIZE = 5
CONTENT_SIZE_MAX = 2**14 + 2048
TYPES = range(20, 24)

RECORDS_MAX = 64
"""Maximum number of records before other tasks run. 64 small records take 100 microseconds: one ``PIECE_WORK``."""

DATALESS_SIZE_MAX = 2048
"""Total size in bytes of records without data after which other tasks run: 5 milliseconds if all are key updates."""


def size_of_record(data: bytes, start: int) -> int:
    """Return the size of the record that begins at ``start``, or 0 if it is incomplete.

    Return the size of all data if no record begins there: OpenSSL then reports the error.
    """
    size = len(data) - start
    if size < HEADER_SIZE:
        return 0
    content_size = data[start + 3] << 8 | data[start + 4]
    if data[start] not in TYPES or data[start + 1] != 3 or content_size > CONTENT_SIZE_MAX:
        return size
    return HEADER_SIZE + content_size if HEADER_SIZE + content_size <= size else 0
