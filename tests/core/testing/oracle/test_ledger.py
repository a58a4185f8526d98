"""The ledger: for each thing that a client claims of its operations a scene in which its node saw otherwise."""

from __future__ import annotations

import pytest

from tests.core.testing.asked import HOTELS, exists, get, increment, lock, named, upsert
from tests.core.testing.books import IN_FLIGHT, Books
from triclinium_core.errors import AmbiguousTimeoutException, UnambiguousTimeoutException
from triclinium_core.kv.operation.requests import DocumentOperation
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase.tables.kv_status import Status
from triclinium_core.testing.fakes.faults import AnswerStatus, Delay, DropResponse, Garble, WrongLength
from triclinium_core.testing.fault_catalogue import RETRIED_BY_MAP
from triclinium_core.testing.oracle.ledger import SURVIVABLE_STRIKES
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
    books.ledger.failed(write, UnambiguousTimeoutException())

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
    books.ledger.failed(writes[0], AmbiguousTimeoutException())
    books.ledger.abandoned(writes[1], ambiguous=True)

    with pytest.raises(Violation, match=DENIED):
        books.ledger.failed(writes[2], UnambiguousTimeoutException())
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
