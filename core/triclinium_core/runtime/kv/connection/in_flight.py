"""The requests of one stream: those that are ordered to be sent, and those that have no answer yet, by opaque.

Source: decisions C24 (what a closed socket means for each) and C37 (the bounds).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import Enum, unique

import msgspec

from triclinium_core.contract.neutral import StreamId
from triclinium_core.kv.operation.document_operations import Keyspace
from triclinium_core.kv.wire.constants import OPCODE_OFFSET, RANGE_SCAN_CONTINUE_OPCODE
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.retry.couchbase import HandedOver, Status
from triclinium_core.runtime.kv.live_operation import LiveOperation
from triclinium_core.runtime.lifecycle.measured import Measured

REQUESTS_MAX = 16_384
"""Unanswered requests of one stream; a client with more of them is not helped by queueing yet another."""
BYTES_MAX = 64 * 1024 * 1024
"""Bytes of unanswered requests of one stream: three documents of the largest size."""
OPAQUE_MAX = 0xFFFF_FFFF


@unique
class Purpose(Enum):
    """Requests of our own."""

    KEEP_ALIVE = "keep_alive"
    CANARY = "canary"
    CONFIG = "config"
    AUTHENTICATION = "authentication"
    SCAN_CANCEL = "scan_cancel"
    MANIFEST = "manifest"
    NOT_NEEDED = "not_needed"
    """An operation of a caller whose result is complete without it: its late answer is no orphan."""


class CollectionQuestion(msgspec.Struct, frozen=True):
    """A GET_COLLECTION_ID of ours."""

    keyspace: Keyspace


class Probe(msgspec.Struct, frozen=True):
    """A NOOP that belongs to the ping with this token."""

    ping: int


class ManifestQuestion(msgspec.Struct, frozen=True):
    """A GET_COLLECTIONS_MANIFEST that belongs to the wait with this token."""

    wait: int


class AbandonedScan(msgspec.Struct, frozen=True):
    """The opening of a scan that nobody waits for any more, so that it has to be ended once it is open."""

    vbucket: int
    measured: Measured | None = None
    """What was measured of it, where its late answer is to be reported."""
    is_orphan: bool = True
    """Whether its late answer counts as an orphan."""


Owner = LiveOperation | Purpose | CollectionQuestion | Probe | ManifestQuestion | AbandonedScan | Measured | None
"""Who waits for the answer: an operation, or one of our own questions. Of an operation that was abandoned, what was measured
where its late answer is to be reported, and None otherwise."""


def is_last(opcode: int, status: int) -> bool:
    """Tell whether no further response with the same opaque follows.

    Source: kv_engine ``docs/range_scans/range_scan_continue.md`` "Response format".
    """
    return opcode != RANGE_SCAN_CONTINUE_OPCODE or status != Status.SUCCESS


class InFlightRequest(msgspec.Struct, gc=False):
    """One request. ``offset`` is where its frame begins in the bytes ordered for this stream."""

    opaque: int
    opcode: int
    owner: Owner
    offset: int
    size: int

    def handed_over(self, byte_count: int) -> HandedOver:
        """Tell how much of the frame left the client, given how many bytes of the stream the driver began to send."""
        if self.offset + self.size <= byte_count:
            return HandedOver.ALL
        return HandedOver.NOTHING if self.offset >= byte_count else HandedOver.PART


class InFlightTable:
    """The unanswered requests of one stream, and the frames that leave when the current event is handled.

    Args:
        sending: takes the table when the first frame of an event is ordered; shared by the connections of a client.
    """

    def __init__(self, sending: list[InFlightTable]) -> None:
        self.stream: StreamId = StreamId(0)
        """The current stream, or the last one, unique in the client; 0 before the first."""
        self.is_full: bool = False
        """Whether a further request has to wait until others were answered."""
        self.outgoing: list[bytes] = []
        """Frames that are sent when the current event is handled."""
        self.next_opaque: int = 1
        """What the next request is called: no unanswered one has this opaque."""
        self._sending = sending
        self._requests: dict[int, InFlightRequest] = {}
        self._stream_size = 0
        self._bytes = 0
        self._full_since = math.inf
        """Since when operations wait for room; ``inf`` where there is some, or none wait."""

    def __len__(self) -> int:
        return len(self._requests)

    def begin(self, stream: StreamId) -> None:
        """Record the number of a stream that is being opened."""
        self.stream = stream

    def send(self, owner: Owner, frame: bytes) -> None:
        """Order a request that was encoded with ``next_opaque``. It leaves when the current event is handled."""
        opaque, requests, size = self.next_opaque, self._requests, len(frame)
        requests[opaque] = InFlightRequest(opaque, frame[OPCODE_OFFSET], owner, self._stream_size, size)
        self._stream_size += size
        self._bytes += size
        if len(requests) >= REQUESTS_MAX or self._bytes >= BYTES_MAX:
            self.is_full = True
        opaque += 1
        while opaque in requests or opaque > OPAQUE_MAX:
            opaque = opaque + 1 if opaque < OPAQUE_MAX else 1
        self.next_opaque = opaque
        if not self.outgoing:
            self._sending.append(self)
        self.outgoing.append(frame)

    def send_foreign(self, frames: bytes, opaque: int) -> None:
        """Order requests that are not of this table, the bootstrap's, whose last opaque is given."""
        self._stream_size += len(frames)
        self.next_opaque = max(self.next_opaque, opaque + 1)
        if not self.outgoing:
            self._sending.append(self)
        self.outgoing.append(frames)

    def was_made(self, opaque: int) -> bool:
        """Tell whether any request of the connection, answered or not, had this opaque."""
        return 1 <= opaque < self.next_opaque

    def get(self, opaque: int) -> InFlightRequest | None:
        """Return the request that an answer belongs to, or None where there is none."""
        return self._requests.get(opaque)

    def answered(self, frame: Frame) -> InFlightRequest | None:
        """Return the request that ``frame`` answers, or None where there is none. Its last answer removes it."""
        request = self._requests.get(frame.opaque)
        if request is None or request.opcode != frame.opcode:
            return None
        if request.opcode != RANGE_SCAN_CONTINUE_OPCODE or is_last(request.opcode, frame.status):
            del self._requests[request.opaque]
            self._bytes -= request.size
            if self.is_full and len(self._requests) < REQUESTS_MAX and self._bytes < BYTES_MAX:
                self.is_full, self._full_since = False, math.inf
        return request

    def abandon(self, opaque: int, heir: AbandonedScan | Measured | Purpose | None = None) -> None:
        """Pass the answer, when it comes, to ``heir``; until then the request counts against the bounds."""
        request = self._requests.get(opaque)
        if request is not None:
            request.owner = heir

    def lacks_room(self, now: float) -> bool:
        """Record that an operation waits for room. Return whether it is the first since there was some."""
        is_first = self._full_since == math.inf
        if is_first:
            self._full_since = now
        return is_first

    def has_lacked_room(self, now: float, seconds: float) -> bool:
        """Return whether operations have waited for room that long. They count from anew after that."""
        since, self._full_since = self._full_since, math.inf
        return self.is_full and since + seconds <= now

    def clear(self) -> Iterator[InFlightRequest]:
        """Remove and return all requests, oldest first, because their stream is gone. Drop the frames not sent yet."""
        self.outgoing.clear()
        requests, self._requests = self._requests, {}
        self._stream_size = self._bytes = 0
        self.is_full, self._full_since = False, math.inf
        return iter(requests.values())
