"""Comparison of a client's reports with the frames and commands that the nodes saw.

A frame does not name its operation. Operations that look alike on the wire, such as two gets of one key, share one
*account*: what the client reports about these operations must agree with what the node observed of them. An operation
that writes a value has a unique one, and therefore a separate account.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from struct import Struct
from typing import NamedTuple

from triclinium_core import errors
from triclinium_core.contract.couchbase import ReportRetry
from triclinium_core.kv.operation.codec_parts import Body
from triclinium_core.kv.operation.document_operations import DocumentOperation, Keyspace, Store
from triclinium_core.kv.operation.operation_codec import CODECS
from triclinium_core.kv.wire.constants import HEADER_SIZE, Opcode
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.kv.wire.frame_buffer import SERVER_ACCEPTS, FrameBuffer
from triclinium_core.kv.wire.leb128 import decode_unsigned
from triclinium_core.retry.backoff import RESOLUTION
from triclinium_core.retry.couchbase import RetryReason, Status, may_be_applied
from triclinium_core.testing.fakes.cluster.command_log import LoggedCommand
from triclinium_core.testing.fakes.commands.index import CHANGING_OPCODES, DATA_OPCODES
from triclinium_core.testing.fakes.faults import AnswerNotMyVbucket, AnswerStatus, CommandFault, Delay, WrongLength
from triclinium_core.testing.fault_catalogue import RETRIED_BY_MAP, RETRIED_STATUSES
from triclinium_core.testing.oracle.submissions import Instant, Submission, Violation

SURVIVABLE_DELAY = 0.5
"""Maximum delay in seconds of a response that still arrives before the deadline."""

SURVIVABLE_STRIKES = 5
"""Maximum number of survivable faults that leave an operation enough time for a response."""

NEEDS_A_FRAME = frozenset(
    reason
    for reason in RetryReason
    if reason.startswith("KV_") or reason in (RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT, RetryReason.UNKNOWN)
)
"""Retry reasons that can occur only after the client has sent the attempt."""

_DOCUMENT_EXTRAS = Struct(">II")
"""Flags, expiry."""


class _Look(NamedTuple):
    """Features of an operation that are visible on the wire."""

    opcode: int
    collection_id: int
    key: bytes
    cas: int
    extras: bytes
    value: bytes


@dataclass(slots=True)
class _Account:
    operations: int = 0
    completed: int = 0
    void: int = 0
    """Number of operations reported as not applied."""
    applied: int = 0
    """Number of commands that the node applied."""
    strikes: list[tuple[Instant, bool]] = field(default_factory=list)
    """For each fault that struck a command, its time, and whether a patient client survives it."""
    forged_at: Instant = (-1.0, 0)
    """Time of the last fault that forged the length of a reply, so that the client may misread it as another reply."""
    frames_left: int = 0
    frames_least: int = 0
    """Minimum number of frames that the client sent, according to results and reported retries."""
    frames_most: int = 0


@dataclass(slots=True)
class _Stream:
    """Data that the client ordered to send on one stream."""

    frames: FrameBuffer = field(default_factory=lambda: FrameBuffer(SERVER_ACCEPTS))
    size: int = 0
    unsent: list[tuple[_Look, int]] = field(default_factory=list)
    """Features and offset of each frame of a data command that has not left the client."""
    looks: dict[int, _Look] = field(default_factory=dict)


class Ledger:
    """Accounts of all clients. A method that records an event raises ``Violation`` if the event contradicts an account.

    ``collection_ids`` covers all collections that operations may name.
    """

    def __init__(self, collection_ids: Mapping[Keyspace, int]) -> None:
        self._collection_ids = collection_ids
        self._first_ids: dict[int, int] = {}
        """Original id of each collection that was dropped and created again, by its current id."""
        self._accounts: defaultdict[_Look, _Account] = defaultdict(_Account)
        self._account_of: dict[int, _Account] = {}
        self._streams: defaultdict[int, _Stream] = defaultdict(_Stream)
        self._retries: defaultdict[int, list[ReportRetry]] = defaultdict(list)
        self._deadlines: dict[int, float] = {}
        self._has_error_map = True

    def submitted(self, submission: Submission, deadline: float) -> None:
        """Open an account for an operation, or add the operation to the account of operations that look alike."""
        account = self._accounts[self._look_of(submission.operation)]
        account.operations += 1
        account.frames_most += 1
        self._account_of[submission.token] = account
        self._deadlines[submission.token] = deadline

    def renamed(self, keyspace: Keyspace, collection_id: int) -> None:
        """Record that a collection was dropped and created again with another id."""
        self._first_ids[collection_id] = self._collection_ids[keyspace]

    def ordered(self, stream: int, data: bytes) -> None:
        """Record bytes that the client ordered to send."""
        known = self._streams[stream]
        for frame in known.frames.receive(data):
            if frame.opcode in DATA_OPCODES:
                known.looks[frame.opaque] = look = self._look_at(frame)
                known.unsent.append((look, known.size))
            known.size += frame_size(frame)
        if known.frames.malformed is not None:
            raise Violation(f"stream {stream}: the client sent a malformed frame: {known.frames.malformed}")

    def left(self, stream: int, handed_over: int) -> None:
        """Record the total number of bytes of a stream that have left the client."""
        known = self._streams[stream]
        for look, offset in known.unsent:
            if offset < handed_over:
                self._accounts[look].frames_left += 1
        known.unsent = [(look, offset) for look, offset in known.unsent if offset >= handed_over]

    def commanded(self, command: LoggedCommand, instant: Instant) -> None:
        """Record a command at the node.

        Raises:
            Violation: a write was applied too often, or although the client reported it as not applied.
        """
        if command.opcode == Opcode.GET_ERROR_MAP and command.fault is not None:
            self._has_error_map = False
        look = self._streams[command.connection].looks.get(command.opaque)
        if look is None:
            return
        account = self._accounts[look]
        if command.fault is not None:
            account.strikes.append((instant, self._is_survivable(command, command.fault)))
        if isinstance(command.fault, WrongLength):
            account.forged_at = instant
        if command.applied and command.opcode in CHANGING_OPCODES:
            account.applied += 1
            self._check_applied(account, f"{Opcode(command.opcode).name} {command.key!r}")

    def retried(self, submission: Submission, report: ReportRetry, now: float) -> None:
        """Record a retry that the client reports. The rules must permit it, and it must begin before the deadline."""
        account, deadline = self._account_of[submission.token], self._deadlines[submission.token]
        if not submission.is_open:
            raise Violation(f"{submission} is retried after it was settled")
        if submission.may_change and not report.reason.allows_non_idempotent_retry:
            raise Violation(f"{submission} is retried for {report.reason}: it may have been applied")
        due = now + report.delay
        if due > deadline + RESOLUTION or (report.dispatches and due >= deadline):
            raise Violation(f"{submission} is due for a retry at {due:.6f} s, but its deadline is {deadline:.6f} s")
        self._retries[submission.token].append(report)
        # Outside the default collection, a failed request for the collection id may cause the retry, without a frame
        # of the operation.
        if report.reason in NEEDS_A_FRAME and submission.place.keyspace.is_default_collection:
            account.frames_least += 1
        account.frames_most += report.dispatches

    def completed(self, submission: Submission) -> None:
        """Record a success; the node must have applied the operation if it changes the document."""
        account = self._account_of[submission.token]
        account.completed += 1
        account.frames_least += 1
        if submission.may_change and account.completed > account.applied:
            raise Violation(f"{submission} succeeded, but the node has not applied it")

    def failed(self, submission: Submission, error: errors.CouchbaseException) -> None:
        """Record a failure. The error must report the retries, and whether the operation may have been applied."""
        account, reports = self._account_of[submission.token], self._retries[submission.token]
        ordered = sum(report.dispatches for report in reports)
        if error.context.retry_attempts != ordered:
            raise Violation(
                f"{submission} reports retry_attempts={error.context.retry_attempts}, but the number of retries is {ordered}"
            )
        if _needs_a_frame(error) and submission.place.keyspace.is_default_collection:
            account.frames_least += 1
        if not may_be_applied(error):
            self._void(submission)

    def abandoned(self, submission: Submission, *, ambiguous: bool) -> None:
        """Record that a caller left; ``ambiguous`` means that the client reports the operation as possibly applied."""
        if not ambiguous:
            self._void(submission)

    def was_struck(self, submission: Submission) -> bool:
        """Return whether, since its submission, a fault struck a command that looks like this operation."""
        return any(instant > submission.begin for instant, _ in self._account_of[submission.token].strikes)

    def is_struck_down(self, submission: Submission) -> bool:
        """Return whether the faults that struck an operation are more than a patient client must survive."""
        strikes = [
            survivable
            for instant, survivable in self._account_of[submission.token].strikes
            if instant > submission.begin
        ]
        return not all(strikes) or len(strikes) > SURVIVABLE_STRIKES

    def was_forged(self, submission: Submission) -> bool:
        """Return whether the client may have misread a reply to this operation, so that the result is meaningless."""
        return self._account_of[submission.token].forged_at > submission.begin

    def check_frames(self) -> None:
        """Check, when nothing is in progress, that each operation was sent as often as its retries imply."""
        for look, account in self._accounts.items():
            if not account.frames_least <= account.frames_left <= account.frames_most:
                raise Violation(
                    f"the number of frames of {Opcode(look.opcode).name} {look.key!r} is {account.frames_left}; its results "
                    f"and retries imply {account.frames_least} to {account.frames_most}"
                )

    def _is_survivable(self, command: LoggedCommand, fault: CommandFault) -> bool:
        """Return whether a patient client gets a response even if ``fault`` strikes the command a few times."""
        match fault:
            case AnswerNotMyVbucket():
                return True
            case Delay(seconds):
                return seconds <= SURVIVABLE_DELAY
            case AnswerStatus(code):
                is_final = (command.opcode, code) == (Opcode.UNLOCK, Status.LOCKED)
                is_by_map = code in RETRIED_BY_MAP and self._has_error_map
                return is_by_map or (code in RETRIED_STATUSES and not is_final)
            case _:
                return False

    def _void(self, submission: Submission) -> None:
        account = self._account_of[submission.token]
        account.void += 1
        self._check_applied(account, repr(submission))

    def _check_applied(self, account: _Account, name: str) -> None:
        if account.applied > account.operations:
            raise Violation(f"{name} was applied more often than submitted: {account.applied} > {account.operations}")
        if account.applied > account.operations - account.void:
            raise Violation(f"{name} was applied, but its error rules that out")

    def _look_of(self, operation: DocumentOperation) -> _Look:
        collection_id, key = self._collection_ids[operation.keyspace], operation.key.encode()
        if isinstance(operation, Store):
            extras = _DOCUMENT_EXTRAS.pack(operation.flags, operation.expiry)
            return _Look(operation.opcode, collection_id, key, operation.cas, extras, operation.value)
        encode = CODECS[type(operation)].encode
        body = encode(operation) if callable(encode) else Body()
        return _Look(operation.opcode, collection_id, key, body.cas, body.extras, body.value)

    def _look_at(self, frame: Frame) -> _Look:
        collection_id, prefix_size = decode_unsigned(frame.key)
        known_id = self._first_ids.get(collection_id, collection_id)
        return _Look(frame.opcode, known_id, frame.key[prefix_size:], frame.cas, frame.extras, frame.value)


def _needs_a_frame(error: errors.CouchbaseException) -> bool:
    """Return whether an error implies that the client sent a frame for the last attempt."""
    context = error.context
    if context.refused_reason is not None:
        return context.refused_reason in NEEDS_A_FRAME
    return context.status is not None and not isinstance(error, errors.TimeoutException)


def frame_size(frame: Frame) -> int:
    """Return the size in bytes of a frame on the wire."""
    return HEADER_SIZE + len(frame.framing_extras) + len(frame.extras) + len(frame.key) + len(frame.value)
