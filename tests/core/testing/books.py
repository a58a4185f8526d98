"""Ledger whose client and node the test plays."""

from __future__ import annotations

from msgspec.structs import replace

from tests.core.testing.asked import HOTELS, HOTELS_ID, TRAVEL, at
from triclinium_core import errors
from triclinium_core.contract.couchbase import ReportRetry
from triclinium_core.contract.neutral import Token
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.codec_parts import Dialect
from triclinium_core.kv.operation.document_operations import DocumentOperation
from triclinium_core.kv.operation.operation_codec import encode_operation
from triclinium_core.kv.wire.constants import HelloFeature
from triclinium_core.kv.wire.leb128 import encode_unsigned
from triclinium_core.retry.couchbase import RetryReason, RetryRequest, Service
from triclinium_core.testing.fakes.cluster.command_log import LoggedCommand
from triclinium_core.testing.fakes.faults import CommandFault
from triclinium_core.testing.oracle.excuses import Excuses
from triclinium_core.testing.oracle.ledger import Ledger
from triclinium_core.testing.oracle.submissions import Instant, Submission, Violation
from triclinium_core.testing.simulation import MIDPOINT

STREAM = 1
DEADLINE = 2.5
COLLECTION_IDS = {TRAVEL: 0, HOTELS: HOTELS_ID}
DIALECT = Dialect(frozenset((HelloFeature.COLLECTIONS, HelloFeature.PRESERVE_TTL, HelloFeature.ALT_REQUEST)))
IN_FLIGHT = RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT
BUSY = RetryReason.KV_TEMPORARY_FAILURE


def logged(opcode: int, fault: CommandFault | None, opaque: int = 1) -> LoggedCommand:
    """Return a command on the stream, as logged by a node that does not apply it."""
    return LoggedCommand(
        connection=STREAM,
        opcode=opcode,
        key=b"ada",
        opaque=opaque,
        cas=0,
        now=0.0,
        fault=fault,
        status=None,
        applied=False,
        bucket="travel",
        collection_id=0,
        vbucket=0,
    )


class Books:
    """Client and node of a test. Most methods perform an action of one of the two, which the ledger records."""

    def __init__(self) -> None:
        self.ledger = Ledger(COLLECTION_IDS)
        self.opaque = 0
        self.size = 0
        self.second = 0.0

    def ask(self, operation: DocumentOperation) -> Submission:
        """Submit an operation a second after the last event."""
        submission = Submission(self.opaque + 100, operation, self.pass_second())
        self.opaque += 1
        self.ledger.submitted(submission, DEADLINE)
        return submission

    def pass_second(self) -> Instant:
        """Let a second pass, and return the instant."""
        self.second += 1
        return at(self.second)

    def order(self, submission: Submission) -> int:
        """Record that the client orders a frame of an operation; return its opaque."""
        self.opaque += 1
        operation = submission.operation
        prefix = encode_unsigned(COLLECTION_IDS[operation.keyspace])
        data = encode_operation(operation, DIALECT, opaque=self.opaque, vbucket=0, prefix=prefix)
        self.ledger.ordered(STREAM, data)
        self.size += len(data)
        return self.opaque

    def send(self, submission: Submission) -> int:
        """Record that the client sends a frame of an operation; return its opaque."""
        opaque = self.order(submission)
        self.ledger.left(STREAM, self.size)
        return opaque

    def take_up(self, opcode: int, opaque: int, *, applied: bool = False, fault: CommandFault | None = None) -> None:
        """Record that the node processes a frame."""
        command = logged(opcode, fault, opaque)
        self.ledger.commanded(replace(command, applied=applied, now=self.second), self.pass_second())

    def apply(self, submission: Submission, fault: CommandFault | None = None) -> None:
        """Record that the client sends an operation and the node applies it."""
        self.take_up(submission.operation.opcode, self.send(submission), applied=True, fault=fault)

    def strike(self, submission: Submission, fault: CommandFault) -> None:
        """Record that the client sends an operation, and that a fault strikes it before the node applies it."""
        self.take_up(submission.operation.opcode, self.send(submission), fault=fault)

    def retry(
        self,
        submission: Submission,
        reason: RetryReason = BUSY,
        *,
        now: float = 1.0,
        delay: float = 0.1,
        dispatches: bool = True,
    ) -> None:
        """Record that the client reports a retry."""
        request = RetryRequest(
            service=Service.KV, operation=submission.operation.name, idempotent=True, rng=MIDPOINT, remaining=1.0
        )
        report = ReportRetry(Token(submission.token), request, reason, delay, dispatches, None)
        self.ledger.retried(submission, report, now)


def refused(reason: RetryReason, retries: int = 0) -> errors.CouchbaseException:
    """Return the error of an operation whose retry was refused."""
    return errors.RequestCanceledException("", ErrorContext(refused_reason=reason, retry_attempts=retries))


def is_suspect(excuses: Excuses, stream: int = STREAM) -> bool:
    """Return whether the client may close a stream."""
    try:
        excuses.check_end(stream, "because")
    except Violation:
        return False
    return True
