"""What went wrong between a client and its node, and when: the excuses that a client has. Without one it must succeed.

A stream is *suspect* once a fault struck it or its bytes were withheld: the client may close it. It is *stuck* while what
was delivered ends within a frame: the client waits for the rest, or comes to close it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from triclinium_core.kv.wire.constants import HEADER_SIZE, Opcode
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.kv.wire.header import MalformedFrame, scan_headers
from triclinium_core.retry.couchbase.tables.kv_status import Status
from triclinium_core.testing.fakes.cluster.command_log import LoggedCommand
from triclinium_core.testing.fakes.faults import (
    DATA_OPCODES,
    AnswerNotMyVbucket,
    AnswerStatus,
    CommandFault,
    Delay,
    DropResponse,
)
from triclinium_core.testing.oracle.submissions import Instant, Violation

RETRIED_STATUSES: tuple[int, ...] = (
    Status.LOCKED,
    Status.TEMPORARY_FAILURE,
    Status.UNKNOWN_COLLECTION,
    Status.SYNC_WRITE_IN_PROGRESS,
    Status.SYNC_WRITE_RE_COMMIT_IN_PROGRESS,
)
"""Statuses that every client retries."""

RETRIED_BY_MAP: tuple[int, ...] = (
    Status.WOULD_THROTTLE,
    Status.CANCELLED,
    Status.OUT_OF_MEMORY,
    Status.BUSY,
    0x7FF0,
    0x7FF1,
    0x7FF2,
)
"""Statuses that a client retries because the error map says so."""

HARMLESS_STATUSES: tuple[int, ...] = (
    *RETRIED_STATUSES,
    *RETRIED_BY_MAP,
    Status.NOT_SUPPORTED,
    Status.INTERNAL_ERROR,
    Status.DURABILITY_IMPOSSIBLE,
    Status.SYNC_WRITE_AMBIGUOUS,
    0x7ABC,
)
"""Statuses that say nothing of the document and leave the connection as it is; nobody knows the last one."""

INVALIDATING_STATUSES: tuple[int, ...] = (Status.NO_BUCKET, Status.AUTH_STALE, Status.NOT_INITIALIZED)
"""Statuses after which the connection is of no more use."""

LONG_AGO: Instant = (-1.0, 0)

SURVIVABLE_DELAY = 0.5
"""Seconds by which an answer may be late and still be in time."""


class Excuses:
    """The excuses of one client."""

    def __init__(self) -> None:
        self._newest: dict[int | None, Instant] = {}
        """When something went wrong last that an operation may notice which was not struck itself; by the node where it
        did, None for all of them."""
        self._suspect: set[int] = set()
        self._received: defaultdict[int, bytearray] = defaultdict(bytearray)
        """What came on each stream behind its last whole frame."""
        self._broken: set[int] = set()
        self._withholds = False

    @property
    def newest(self) -> Instant:
        """When something went wrong last, at whatever node."""
        return max(self._newest.values(), default=LONG_AGO)

    def newest_at(self, nodes: Iterable[int]) -> Instant:
        """Return when something went wrong last at one of these nodes, or at all of them together."""
        return max(self._newest.get(node, LONG_AGO) for node in (None, *nodes))

    def struck(self, command: LoggedCommand, instant: Instant, node: int | None = None) -> None:
        """Take note of a command that was struck by a fault, and of the node that took it up."""
        if command.fault is None or command.opcode not in DATA_OPCODES or not _is_of_one_operation(command.fault):
            self._newest[node] = instant
            self._suspect.add(command.connection)

    def lost(self, instant: Instant, node: int | None = None) -> None:
        """Take note of a stream that is gone, whoever ended it, and of the node that it led to."""
        self._newest[node] = instant

    def out_of_order(self, node: int, streams: Iterable[int], instant: Instant) -> None:
        """Take note that a node is not as it should be now, or was until now, and of the streams to it."""
        self._newest[node] = instant
        self._suspect.update(streams)

    def withholding(self, instant: Instant) -> None:
        """Take note that from now on time passes while bytes are withheld."""
        self._newest[None] = instant
        self._withholds = True

    def withheld(self, streams: Iterable[int], instant: Instant) -> None:
        """Take note that the bytes of these streams were withheld up to now."""
        self._newest[None] = instant
        self._withholds = False
        self._suspect.update(streams)

    def delivered(self, stream: int, data: bytes) -> None:
        """Take note of bytes that the client received."""
        received = self._received[stream]
        received += data
        try:
            if fields := scan_headers(received, 0, len(received)):
                del received[: fields[-1]]
            scan_headers(received, 0, len(received))
        except MalformedFrame:
            self._broken.add(stream)

    def is_broken(self, stream: int) -> bool:
        """Tell whether the client has received what begins no frame."""
        return stream in self._broken

    def is_stuck(self, stream: int) -> bool:
        """Tell whether the client has received part of a frame."""
        return bool(self._received[stream])

    def check_end(self, stream: int, reason: str) -> None:
        """Raise ``Violation`` where a client closes, or a node hangs up, for no reason."""
        if stream not in self._suspect and not self._withholds:
            raise Violation(f"stream {stream} was ended though nothing was wrong with it: {reason}")


def _is_of_one_operation(fault: CommandFault) -> bool:
    """Tell whether a fault that strikes a command on a document leaves its connection, and all others on it, alone."""
    if isinstance(fault, AnswerStatus):
        return fault.code in HARMLESS_STATUSES
    return isinstance(fault, Delay | DropResponse | AnswerNotMyVbucket)


def frame_size(frame: Frame) -> int:
    """Return how many bytes a frame has on the wire."""
    return HEADER_SIZE + len(frame.framing_extras) + len(frame.extras) + len(frame.key) + len(frame.value)


def is_survivable(fault: CommandFault, opcode: int) -> bool:
    """Tell whether a patient client gets its answer although ``fault`` strikes the command a few times.

    Statuses that only an error map permits to retry need a client that has one.
    """
    match fault:
        case AnswerNotMyVbucket():
            return True
        case Delay(seconds):
            return seconds <= SURVIVABLE_DELAY
        case AnswerStatus(code):
            return code in RETRIED_STATUSES + RETRIED_BY_MAP and (opcode, code) != (Opcode.UNLOCK, Status.LOCKED)
        case _:
            return False
