"""The ledger: for each thing that a client claims of its operations a scene in which its node saw otherwise."""

from __future__ import annotations

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

DENIED = "was applied, and is said not to have been"


def test_write_is_applied_twice() -> None:
    """A write that was asked for once is applied once."""
    books = Books()
    write = books.ask(upsert())
    books.apply(write)

    with pytest.raises(Violation, match="SET.* b'ada' was applied 2 times, and asked for 1 times"):
        books.apply(write)


def test_two_writes_are_applied() -> None:
    """Two of them are two; each has its own mark, or else they are one account together."""
    for other in (upsert(b"<2>"), upsert(), upsert(keyspace=HOTELS)):
        books = Books()
        for write in (books.ask(upsert()), books.ask(other)):
            books.apply(write)
            books.ledger.completed(write)
        books.ledger.check_frames()


def test_read_is_answered_twice() -> None:
    """A read changes nothing, so it may be sent again, and there is nothing to be applied."""
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
    """Success is told only of what the node has applied."""
    books = Books()
    submission = books.ask(write)
    books.take_up(write.opcode, books.send(submission))

    with pytest.raises(Violation, match="is acknowledged, but the node has not applied it"):
        books.ledger.completed(submission)


def test_timeout_of_what_was_not_applied() -> None:
    """It may be called unambiguous, as long as it is not applied later."""
    books = Books()
    write = books.ask(upsert())
    opaque = books.send(write)
    books.ledger.failed(write, errors.UnambiguousTimeoutException())

    with pytest.raises(Violation, match=f"SET.* {DENIED}"):
        books.take_up(Opcode.SET, opaque, applied=True)


def test_one_of_two_is_denied() -> None:
    """Of two that look alike one may be denied, where one was applied, and not both; one may succeed, and not both."""
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
            with pytest.raises(Violation, match="is acknowledged, but"):
                each.ledger.completed(first)


def test_what_was_applied_is_ambiguous() -> None:
    """Who calls its timeout unambiguous lies, and so does who says that to those who leave."""
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
    """A fault excuses the operations that look like its command, and were submitted before it struck."""
    books = Books()
    read, other = books.ask(get()), books.ask(exists())
    books.strike(read, Delay(0.1))
    later = books.ask(get())

    assert [True, False, False] == [books.ledger.was_struck(each) for each in (read, other, later)]
    assert not books.ledger.is_struck_down(read)


def test_struck_down() -> None:
    """A fault that nobody survives, or too many others, since the operation was submitted."""
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
    """A status that only the map permits to retry is survived by whoever has one; others without it too."""
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
    """A reply of another length than it says may be read as anything by those who wait for it then."""
    books = Books()
    write = books.ask(upsert())
    books.apply(write, Garble())

    assert not books.ledger.was_forged(write)

    books.retry(write)
    books.strike(write, WrongLength())
    later = books.ask(upsert())

    assert (True, False) == (books.ledger.was_forged(write), books.ledger.was_forged(later))


def test_bytes_that_are_no_frame() -> None:
    """What a client sends is requests."""
    books = Books()
    books.ledger.ordered(STREAM, encode_request(Opcode.NOOP, opaque=1))

    with pytest.raises(Violation, match="stream 1: the client sent no frame: "):
        books.ledger.ordered(STREAM, encode_response(Opcode.NOOP, opaque=1))


def test_bytes_in_pieces() -> None:
    """A frame counts once it is whole, wherever it is cut, and each stream has its own."""
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


def test_command_that_is_no_operation() -> None:
    """What the client asks for itself is nobody's account."""
    books = Books()
    books.ledger.ordered(STREAM, encode_request(Opcode.GET_COLLECTION_ID, opaque=9))
    books.ledger.left(STREAM, 100)
    for opcode in (Opcode.GET_COLLECTION_ID, Opcode.SET):
        books.take_up(opcode, 9, applied=True)

    books.ledger.check_frames()


def test_two_frames_with_one_opaque() -> None:
    """Each of them counts, also where none has left before the other is ordered."""
    books = Books()
    read = books.ask(get())
    data = encode_operation(read.operation, DIALECT, opaque=7, vbucket=0, prefix=b"\0")
    books.ledger.ordered(STREAM, data + data)
    books.ledger.left(STREAM, 2 * len(data))

    with pytest.raises(Violation, match="GET b'ada' was sent 2 times; by its results and retries 0 to 1 times"):
        books.ledger.check_frames()


def test_answer_without_a_frame() -> None:
    """What only a server can know needs a question, or that for the collection; what the client knows does not."""
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
        with pytest.raises(Violation, match="GET b'ada' was sent 0 times; by its results and retries 1 to 1 times"):
            books.ledger.check_frames()


def test_frame_beyond_what_left() -> None:
    """A frame has left when its first byte has; the one behind it has not."""
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

    with pytest.raises(Violation, match="SET b'ada' was sent 0 times; by its results and retries 1 to 2 times"):
        books.ledger.check_frames()

    books.ledger.left(STREAM, left + 1)
    books.ledger.left(STREAM, left + 1)
    books.ledger.check_frames()


def test_sent_twice_in_silence() -> None:
    """What is sent again is reported; a retry that the deadline cuts permits no frame."""
    books = Books()
    read = books.ask(get())
    books.send(read)
    books.ledger.check_frames()
    books.send(read)

    with pytest.raises(Violation, match="GET b'ada' was sent 2 times; by its results and retries 0 to 1 times"):
        books.ledger.check_frames()
    books.retry(read, dispatches=False)
    with pytest.raises(Violation, match="was sent 2 times; by its results and retries 1 to 1 times"):
        books.ledger.check_frames()
    books.retry(read)
    books.ledger.check_frames()


@rows("reason", RetryReason)
def test_reason_without_a_frame(reason: RetryReason) -> None:
    """Some reasons come with an answer, or of waiting for one, others before anything is sent."""
    retried, failed = Books(), Books()
    retried.retry(retried.ask(get()), reason)
    failed.ledger.failed(failed.ask(get()), refused(reason))

    assert (reason in NEEDS_A_FRAME) == (reason.startswith("KV_") or reason in (IN_FLIGHT, RetryReason.UNKNOWN))
    for books, most in ((retried, 2), (failed, 1)):
        if reason in NEEDS_A_FRAME:
            with pytest.raises(Violation, match=f"was sent 0 times; by its results and retries 1 to {most} times"):
                books.ledger.check_frames()
        else:
            books.ledger.check_frames()


@rows("reason", RetryReason)
@rows("operation", [get(), upsert(), lock()])
def test_forbidden_retry(operation: DocumentOperation, reason: RetryReason) -> None:
    """What may have been applied is not sent again, unless it changes nothing."""
    books = Books()
    submission = books.ask(operation)

    if operation == get() or reason.allows_non_idempotent_retry:
        books.retry(submission, reason)
    else:
        with pytest.raises(Violation, match=f"is retried for {reason}: it may have been applied"):
            books.retry(submission, reason)


def test_retry_of_what_was_settled() -> None:
    """Nobody waits for it any more."""
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
    """At the deadline nothing is sent again, and beyond it nobody waits."""
    books = Books()
    read = books.ask(get())

    if is_lawful:
        books.retry(read, now=now, delay=delay, dispatches=dispatches)
    else:
        with pytest.raises(Violation, match=r"is to be sent again at 2\.[56]00000 s, its deadline is 2\.500000 s"):
            books.retry(read, now=now, delay=delay, dispatches=dispatches)


def test_wrong_number_of_attempts() -> None:
    """An error gives the number of its operation's retries, without one whose delay was cut to the deadline."""
    books = Books()
    reads = [books.ask(get()), books.ask(get())]
    for read in (*reads, reads[1]):
        books.retry(read, RetryReason.CIRCUIT_BREAKER_OPEN)
    books.retry(reads[0], RetryReason.CIRCUIT_BREAKER_OPEN, now=2.0, delay=0.5, dispatches=False)
    books.ledger.failed(reads[0], errors.DocumentNotFoundException("", ErrorContext(retry_attempts=1)))

    with pytest.raises(Violation, match="reports 1 retries, 2 were ordered"):
        books.ledger.failed(reads[1], errors.DocumentNotFoundException("", ErrorContext(retry_attempts=1)))


def test_a_collection_that_is_made_anew() -> None:
    """Frames under its new id belong to the same accounts as those under the old one."""
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
