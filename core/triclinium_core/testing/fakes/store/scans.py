"""Range scans of a fake node: what one has left to tell, and which documents it tells of.

Source: kv_engine docs/range_scans, engines/ep/src/range_scans.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from struct import Struct

from triclinium_core.kv.wire.leb128 import encode_unsigned
from triclinium_core.testing.fakes.store.documents import Document

LIFETIME_SECONDS = 180.0
"""After which a node closes a scan that is not complete."""

SCANS_MAX = 24
"""How many scans a node has open at once; it is busy for more."""

_META = Struct(">IIQQB")
"""Flags, expiry, sequence number, CAS, datatype."""

Found = tuple[bytes, Document]
"""A key, and its document as it was when the scan was opened."""


@dataclass(slots=True)
class FakeScan:
    """One scan: nothing that is written after it was opened is in it."""

    vbucket: int
    ids_only: bool
    left: deque[Found]
    """By key."""
    closes_at: float

    def take(self, item_limit: int, byte_limit: int, unix_expiry: Callable[[Document], int]) -> list[bytes]:
        """Return the next documents as they travel, one at least if there is any; a limit of 0 does not limit."""
        taken: list[bytes] = []
        size = 0
        while self.left and not (item_limit and len(taken) >= item_limit) and not (byte_limit and size >= byte_limit):
            key, document = self.left.popleft()
            item = encode_unsigned(len(key)) + key
            if not self.ids_only:
                meta = (
                    document.flags,
                    unix_expiry(document),
                    document.sequence_number,
                    document.cas,
                    document.datatype,
                )
                item = _META.pack(*meta) + item + encode_unsigned(len(document.value)) + document.value
            taken.append(item)
            size += len(item)
        return taken


def within(found: Sequence[Found], start: tuple[bytes, bool], end: tuple[bytes, bool]) -> list[Found]:
    """Return what lies in a range, whose ends come with whether they are left out of it."""

    def lies_within(key: bytes) -> bool:
        behind_start = key > start[0] or (key == start[0] and not start[1])
        before_end = key < end[0] or (key == end[0] and not end[1])
        return behind_start and before_end

    return [(key, document) for key, document in found if lies_within(key)]


def sampled(found: Sequence[Found], samples: int, seed: int) -> list[Found]:
    """Return about so many, the same ones for the same seed; all where there are no more."""
    if len(found) <= samples:
        return list(found)
    return [each for each in found if zlib.crc32(each[0], seed) * len(found) < samples * 0x1_0000_0000]
