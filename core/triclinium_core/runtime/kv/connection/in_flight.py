"""Unanswered requests of one stream, by opaque, including requests that are still to be sent.

Source: decisions C24 (requests on a closed socket) and C37 (bounds).
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
"""Number of unanswered requests of one stream at which further operations start to wait. More requests in flight would
not increase the throughput."""
BYTES_MAX = 64 * 1024 * 1024
"""Total size in bytes of the unanswered requests of one stream at which further operations start to wait: about three
documents of the largest size."""
OPAQUE_MAX = 0xFFFF_FFFF


@unique
class Purpose(Enum):
    """Purpose of a request that belongs to no open operation."""

    KEEP_ALIVE = "keep_alive"
    CANARY = "canary"
    CONFIG = "config"
    AUTHENTICATION = "authentication"
    SCAN_CANCEL = "scan_cancel"
    MANIFEST = "manifest"
    NOT_NEEDED = "not_needed"
    """Request of an operation whose result its call did not need. Its late response is not an orphan."""


class CollectionQuestion(msgspec.Struct, frozen=True):
    """A GET_COLLECTION_ID request of the client itself."""

    keyspace: Keyspace


class Probe(msgspec.Struct, frozen=True):
    """A NOOP that belongs to the ping with this token."""

    ping: int


class ManifestQuestion(msgspec.Struct, frozen=True):
    """A GET_COLLECTIONS_MANIFEST that belongs to the wait with this token."""

    wait: int


class AbandonedScan(msgspec.Struct, frozen=True):
    """An abandoned request to open a scan. The client must cancel the scan once the node has opened it."""

    vbucket: int
    measured: Measured | None = None
    """Measurements of the request, for the report of the late response; None to report none."""
    is_orphan: bool = True
    """Whether the late response counts as an orphan."""


Owner = LiveOperation | Purpose | CollectionQuestion | Probe | ManifestQuestion | AbandonedScan | Measured | None
"""Recipient of the response: an operation, or a request of the client itself. For an abandoned operation, it is an
``AbandonedScan`` if the operation opens a scan, its measurements if the client reports the late response,
``NOT_NEEDED`` if its call did not need the result, otherwise None."""


def is_last(opcode: int, status: int) -> bool:
    """Return whether no further response with the same opaque follows.

    Source: kv_engine ``docs/range_scans/range_scan_continue.md`` "Response format".
    """
    return opcode != RANGE_SCAN_CONTINUE_OPCODE or status != Status.SUCCESS


class InFlightRequest(msgspec.Struct, gc=False):
    """An unanswered request. ``offset`` is the position of its frame in all bytes that were ordered on the stream."""

    opaque: int
    opcode: int
    owner: Owner
    offset: int
    size: int

    def handed_over(self, byte_count: int) -> HandedOver:
        """Return how much of the frame was sent: nothing, a part or all of it.

        Args:
            byte_count: number of bytes of the stream that the driver began to send.
        """
        if self.offset + self.size <= byte_count:
            return HandedOver.ALL
        return HandedOver.NOTHING if self.offset >= byte_count else HandedOver.PART


class InFlightTable:
    """Unanswered requests of one stream, and the frames to send at the end of the current event.

    Args:
        sending: list to which the table is added when the first frame of an event is ordered; shared by the connections
            of a client.
    """

    def __init__(self, sending: list[InFlightTable]) -> None:
        self.stream: StreamId = StreamId(0)
        """Id of the current stream or, without one, of the last stream; 0 before the first stream."""
        self.is_full: bool = False
        """Whether further operations must wait until the node has responded to earlier requests."""
        self.outgoing: list[bytes] = []
        """Frames to send at the end of the current event."""
        self.next_opaque: int = 1
        """Opaque of the next request. No unanswered request has this opaque."""
        self._sending = sending
        self._requests: dict[int, InFlightRequest] = {}
        self._stream_size = 0
        self._bytes = 0
        self._full_since = math.inf
        """Time at which the current measurement of a wait for capacity began; ``inf`` without one."""

    def __len__(self) -> int:
        return len(self._requests)

    def begin(self, stream: StreamId) -> None:
        """Record the id of a stream that is being opened."""
        self.stream = stream

    def send(self, owner: Owner, frame: bytes) -> None:
        """Order a request that was encoded with ``next_opaque``. It is sent at the end of the current event."""
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
        """Order requests of the bootstrap, which this table does not track. ``opaque`` is their highest opaque."""
        self._stream_size += len(frames)
        self.next_opaque = max(self.next_opaque, opaque + 1)
        if not self.outgoing:
            self._sending.append(self)
        self.outgoing.append(frames)

    def was_made(self, opaque: int) -> bool:
        """Return whether any request of the connection had this opaque since the opaques last wrapped around."""
        return 1 <= opaque < self.next_opaque

    def get(self, opaque: int) -> InFlightRequest | None:
        """Return the unanswered request with this opaque, or None."""
        return self._requests.get(opaque)

    def answered(self, frame: Frame) -> InFlightRequest | None:
        """Return the request to which ``frame`` responds, or None. Remove the request after its last response."""
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
        """Make ``heir`` the recipient of the late response. Until the response, the request counts towards the bounds."""
        request = self._requests.get(opaque)
        if request is not None:
            request.owner = heir

    def lacks_room(self, now: float) -> bool:
        """Record that an operation waits for capacity. Return whether this begins the measurement of the wait."""
        is_first = self._full_since == math.inf
        if is_first:
            self._full_since = now
        return is_first

    def has_lacked_room(self, now: float, seconds: float) -> bool:
        """Return whether operations have waited for capacity for at least ``seconds``. End the measurement."""
        since, self._full_since = self._full_since, math.inf
        return self.is_full and since + seconds <= now

    def clear(self) -> Iterator[InFlightRequest]:
        """Remove and return all requests, oldest first, because their stream is lost. Drop unsent frames."""
        self.outgoing.clear()
        requests, self._requests = self._requests, {}
        self._stream_size = self._bytes = 0
        self.is_full, self._full_since = False, math.inf
        return iter(requests.values())
