"""Ledger of a client's reports and its node's commands, which finds reports that the commands contradict."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from tests.core.testing.asked import HOTELS, at, exists, get, increment, lock, named, upsert
from tests.core.testing.books import BUSY, DIALECT, IN_FLIGHT, STREAM, Books, refused
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.document_operations import DocumentOperation
from triclinium_core.kv.operation.operation_codec import encode_operation
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.frame import encode_request, encode_response
from triclinium_core.kv.wire.leb128 import encode_unsigned
from triclinium_core.retry.couchbase import RetryReason, Status
from triclinium_core.testing.fakes.faults import AnswerStatus, Delay, DropResponse, Garble, WrongLength
from triclinium_core.testing.fault_catalogue import RETRIED_BY_MAP
from triclinium_core.testing.oracle.ledger import NEEDS_A_FRAME, SURVIVABLE_STRIKES
from triclinium_core.testing.oracle.submissions import Violation

DENIED = "was applied, "


def test_write_is_applied_twice() -> None:
    """Applying one write twice is a violation."""
    books = Books()
    write = books.ask(upsert())
    books.apply(write)

    with pytest.raises(Violation, match="SET.* b'ada' was applied more often than submitted: 2 > 1"):
        books.apply(write)


def test_two_writes_are_applied() -> None:
    """Two writes may both be applied, even if they are equal and the ledger therefore counts them together."""
    for other in (upsert(b"<2>"), upsert(), upsert(keyspace=HOTELS)):
        books = Books()
        for write in (books.ask(upsert()), books.ask(other)):
            books.apply(write)
            books.ledger.completed(write)
        books.ledger.check_frames()


def test_read_is_sent_twice() -> None:
    """A read may be sent again, because it changes nothing."""
    books = Books()
    read, question = books.ask(get()), books.ask(exists())
    books.apply(read)
    books.retry(read, IN_FLIGHT)
    books.apply(read)
    books.ledger.completed(read)
    books.take_up(question.operation.opcode, books.send(question))
    books.ledger.completed(question)

    books.ledger.check_frames()


@pytest.mark.parametrize("write", [upsert(), increment(), lock()], ids=named)
def test_acknowledged_and_lost(write: DocumentOperation) -> None:
    """A success that the node has not applied is a violation."""
    books = Books()
    submission = books.ask(write)
    books.take_up(write.opcode, books.send(submission))

    with pytest.raises(Violation, match="the node has not applied it"):
        books.ledger.completed(submission)


def test_timeout_of_an_unapplied_write() -> None:
    """An unambiguous timeout is a violation if the node applies the write later."""
    books = Books()
    write = books.ask(upsert())
    opaque = books.send(write)
    books.ledger.failed(write, errors.UnambiguousTimeoutException())

    with pytest.raises(Violation, match=f"SET.* {DENIED}"):
        books.take_up(Opcode.SET, opaque, applied=True)


def test_one_of_two_equal_writes_is_denied() -> None:
    """If one of two equal writes was applied, one of them may be denied or succeed, but not both."""
    books, happy = Books(), Books()
    for each in (books, happy):
        first, second = each.ask(upsert()), each.ask(upsert())
        each.apply(first)
        if each is books:
            each.ledger.abandoned(first, ambiguous=False)
            with pytest.raises(Violation, match=DENIED):
                each.ledger.abandoned(second, ambiguous=False)
        else:
            each.ledger.completed(second)
            with pytest.raises(Violation, match="the node has not applied it"):
                each.ledger.completed(first)


def test_applied_write_is_ambiguous() -> None:
    """Reporting an applied write as unambiguously not applied is a violation, to waiting and to leaving callers."""
    books = Books()
    writes = [books.ask(upsert(b"<%d>" % number)) for number in range(4)]
    for write in writes:
        books.apply(write)
    books.ledger.failed(writes[0], errors.AmbiguousTimeoutException())
    books.ledger.abandoned(writes[1], ambiguous=True)

    with pytest.raises(Violation, match=DENIED):
        books.ledger.failed(writes[2], errors.UnambiguousTimeoutException())
    with pytest.raises(Violation, match=DENIED):
        books.ledger.abandoned(writes[3], ambiguous=False)


def test_struck() -> None:
    """A fault counts for every operation whose request equals its command and that was submitted before the fault."""
    books = Books()
    read, other = books.ask(get()), books.ask(exists())
    books.strike(read, Delay(0.1))
    later = books.ask(get())

    assert [True, False, False] == [books.ledger.was_struck(each) for each in (read, other, later)]
    assert not books.ledger.is_struck_down(read)


def test_struck_down() -> None:
    """An operation is struck down by one fault that no retry survives, or by too many since its submission."""
    books = Books()
    read = books.ask(get())
    books.strike(read, DropResponse())
    later = books.ask(get())

    assert (True, False) == (books.ledger.is_struck_down(read), books.ledger.is_struck_down(later))

    for _ in range(SURVIVABLE_STRIKES):
        books.strike(later, Delay(0.1))

    assert not books.ledger.is_struck_down(later)

    books.strike(later, Delay(0.1))

    assert books.ledger.is_struck_down(later)


def test_struck_without_an_error_map() -> None:
    """Without an error map, a status that only the map makes retryable strikes an operation down."""
    books = Books()
    for code, fault, is_struck_down in (
        (RETRIED_BY_MAP[0], None, False),
        (RETRIED_BY_MAP[0], Garble(), True),
        (Status.TEMPORARY_FAILURE, None, False),
    ):
        books.take_up(Opcode.GET_ERROR_MAP, 0, fault=fault)
        read = books.ask(get())
        books.strike(read, AnswerStatus(code))

        assert is_struck_down == books.ledger.is_struck_down(read)


def test_forged() -> None:
    """A reply with a wrong length may be decoded as anything, so it excuses the operations that were open then."""
    books = Books()
    write = books.ask(upsert())
    books.apply(write, Garble())

    assert not books.ledger.was_forged(write)

    books.retry(write)
    books.strike(write, WrongLength())
    later = books.ask(upsert())

    assert (True, False) == (books.ledger.was_forged(write), books.ledger.was_forged(later))


def test_bytes_without_a_frame() -> None:
    """A client that sends something other than a request violates the laws."""
    books = Books()
    books.ledger.ordered(STREAM, encode_request(Opcode.NOOP, opaque=1))

    with pytest.raises(Violation, match="stream 1: .*malformed frame"):
        books.ledger.ordered(STREAM, encode_response(Opcode.NOOP, opaque=1))


def test_bytes_in_pieces() -> None:
    """The ledger counts a frame when it is complete, however it is cut, and separately for each stream."""
    books = Books()
    write = books.ask(upsert())
    data = encode_operation(write.operation, DIALECT, opaque=7, vbucket=0, prefix=b"\0")
    for position in range(len(data)):
        books.ledger.ordered(STREAM + 1, encode_request(Opcode.NOOP, opaque=position))
        books.ledger.ordered(STREAM, data[position : position + 1])
    books.ledger.left(STREAM, 1)
    books.take_up(Opcode.SET, 7, applied=True)
    books.ledger.completed(write)

    books.ledger.check_frames()


def test_commands_of_the_client_itself() -> None:
    """The ledger counts no commands that the client sends for itself."""
    books = Books()
    books.ledger.ordered(STREAM, encode_request(Opcode.GET_COLLECTION_ID, opaque=9))
    books.ledger.left(STREAM, 100)
    for opcode in (Opcode.GET_COLLECTION_ID, Opcode.SET):
        books.take_up(opcode, 9, applied=True)

    books.ledger.check_frames()


def test_two_frames_with_one_opaque() -> None:
    """Two frames with the same opaque both count, even if neither was sent before the second was ordered."""
    books = Books()
    read = books.ask(get())
    data = encode_operation(read.operation, DIALECT, opaque=7, vbucket=0, prefix=b"\0")
    books.ledger.ordered(STREAM, data + data)
    books.ledger.left(STREAM, 2 * len(data))

    with pytest.raises(
        Violation, match="the number of frames of GET b'ada' is 2; its results and retries imply 0 to 1"
    ):
        books.ledger.check_frames()


def test_result_without_a_frame() -> None:
    """A result that only a server can give needs a sent frame, or a request for the collection id."""
    asked, late = Books(), Books()
    elsewhere = late.ask(get(HOTELS))
    late.retry(elsewhere)
    late.ledger.failed(elsewhere, refused(BUSY, retries=1))
    late.ledger.failed(late.ask(get(HOTELS)), errors.DocumentNotFoundException("", ErrorContext(status=1)))
    late.ledger.check_frames()
    asked.ledger.failed(asked.ask(get()), errors.DocumentNotFoundException("", ErrorContext(status=1)))
    successful = Books()
    successful.ledger.completed(successful.ask(get()))

    for books in (asked, successful):
        with pytest.raises(
            Violation, match="the number of frames of GET b'ada' is 0; its results and retries imply 1 to 1"
        ):
            books.ledger.check_frames()


def test_frame_that_was_not_sent() -> None:
    """A frame counts as sent once its first byte is sent; a later frame does not."""
    books = Books()
    first, second = books.ask(upsert()), books.ask(upsert(b"<2>"))
    books.order(first)
    left = books.size
    books.order(second)
    books.ledger.left(STREAM, left)
    books.ledger.failed(first, refused(IN_FLIGHT))
    books.ledger.abandoned(second, ambiguous=False)
    books.ledger.check_frames()
    books.retry(second)

    with pytest.raises(
        Violation, match="the number of frames of SET b'ada' is 0; its results and retries imply 1 to 2"
    ):
        books.ledger.check_frames()

    books.ledger.left(STREAM, left + 1)
    books.ledger.left(STREAM, left + 1)
    books.ledger.check_frames()


def test_unreported_retry() -> None:
    """Each repeated frame needs a reported retry; a retry that was cut to the deadline permits no frame."""
    books = Books()
    read = books.ask(get())
    books.send(read)
    books.ledger.check_frames()
    books.send(read)

    with pytest.raises(
        Violation, match="the number of frames of GET b'ada' is 2; its results and retries imply 0 to 1"
    ):
        books.ledger.check_frames()
    books.retry(read, dispatches=False)
    with pytest.raises(Violation, match="is 2; its results and retries imply 1 to 1"):
        books.ledger.check_frames()
    books.retry(read)
    books.ledger.check_frames()


@rows("reason", RetryReason)
def test_reasons_that_need_a_frame(reason: RetryReason) -> None:
    """A retry reason that comes from a response, or from a lost response, needs a sent frame; other reasons do not."""
    retried, failed = Books(), Books()
    retried.retry(retried.ask(get()), reason)
    failed.ledger.failed(failed.ask(get()), refused(reason))

    assert (reason in NEEDS_A_FRAME) == (reason.startswith("KV_") or reason in (IN_FLIGHT, RetryReason.UNKNOWN))
    for books, most in ((retried, 2), (failed, 1)):
        message = f"is 0; its results and retries imply 1 to {most}"
        with pytest.raises(Violation, match=message) if reason in NEEDS_A_FRAME else nullcontext():
            books.ledger.check_frames()


@rows("reason", RetryReason)
@rows("operation", [get(), upsert(), lock()])
def test_forbidden_retry(operation: DocumentOperation, reason: RetryReason) -> None:
    """Retrying an operation that may have been applied is a violation unless the operation changes nothing."""
    books = Books()
    submission = books.ask(operation)
    is_lawful = operation == get() or reason.allows_non_idempotent_retry

    broken = pytest.raises(Violation, match=f"is retried for {reason}: it may have been applied")
    with nullcontext() if is_lawful else broken:
        books.retry(submission, reason)


def test_retry_of_a_settled_operation() -> None:
    """Retrying an operation after its result is a violation."""
    books = Books()
    read = books.ask(get())
    books.retry(read)
    read.settled = at(9)

    with pytest.raises(Violation, match="is retried after it was settled"):
        books.retry(read)


@pytest.mark.parametrize(
    ("now", "delay", "dispatches", "is_lawful"),
    [
        (2.0, 0.4, True, True),
        (2.0, 0.5, True, False),
        (2.0, 0.5, False, True),
        (2.0, 0.6, False, False),
        (2.0, 0.6, True, False),
        (2.5, 0.0, False, True),
    ],
)
def test_retry_at_the_deadline(now: float, delay: float, dispatches: bool, is_lawful: bool) -> None:
    """A retry at the deadline must not be sent, and a delay that passes the deadline is a violation."""
    books = Books()
    read = books.ask(get())

    broken = pytest.raises(Violation, match=r"at 2\.[56]00000 s, .*deadline .* 2\.500000 s")
    with nullcontext() if is_lawful else broken:
        books.retry(read, now=now, delay=delay, dispatches=dispatches)


def test_wrong_number_of_retries() -> None:
    """An error gives the number of its operation's retries, without one whose delay was cut to the deadline."""
    books = Books()
    reads = [books.ask(get()), books.ask(get())]
    for read in (*reads, reads[1]):
        books.retry(read, RetryReason.CIRCUIT_BREAKER_OPEN)
    books.retry(reads[0], RetryReason.CIRCUIT_BREAKER_OPEN, now=2.0, delay=0.5, dispatches=False)
    books.ledger.failed(reads[0], errors.DocumentNotFoundException("", ErrorContext(retry_attempts=1)))

    with pytest.raises(Violation, match="reports retry_attempts=1, .* 2"):
        books.ledger.failed(reads[1], errors.DocumentNotFoundException("", ErrorContext(retry_attempts=1)))


def test_collection_that_is_created_again() -> None:
    """The ledger counts frames with a recreated collection's new id together with those that have its old id."""
    books = Books()
    old, new = books.ask(upsert(value=b"<1>", keyspace=HOTELS)), books.ask(upsert(value=b"<2>", keyspace=HOTELS))
    books.send(old)
    books.ledger.renamed(HOTELS, 77)
    books.opaque += 1
    frame = encode_operation(new.operation, DIALECT, opaque=books.opaque, vbucket=0, prefix=encode_unsigned(77))
    books.ledger.ordered(STREAM, frame)
    books.ledger.left(STREAM, books.size + len(frame))
    books.take_up(Opcode.SET, books.opaque, applied=True)
    books.ledger.completed(new)

    books.ledger.check_frames()
