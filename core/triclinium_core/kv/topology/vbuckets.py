"""Key to vbucket.

Source: kv_engine; the hash that all Couchbase clients use.
"""

from __future__ import annotations

from zlib import crc32


def vbucket_of(key: bytes, count: int) -> int:
    """Return the vbucket of a document id.

    Args:
        key: the id without its collection prefix, which is not hashed.
        count: number of vbuckets of the bucket: 1024, or 128; 0 for a bucket that has none, or as long as no map tells.
    """
    return ((crc32(key) >> 16) & 0x7FFF) % count if count else 0
