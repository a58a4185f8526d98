"""Laws about the states of one document, with histories that break them and the closest lawful histories."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import nullcontext

import pytest

from tests.core.testing import asked
from tests.rows import rows
from triclinium_core.kv.operation.document_operations import DocumentOperation, GetAndTouch, Increment, Upsert
from triclinium_core.testing.oracle.submissions import NEVER, Submission, Violation
from triclinium_core.transcoding.flags import BINARY_FLAGS

THERE = "found no document"
NOT_THERE = "found a document"
REPLACED = "certainly replaced"


def test_first_there_is_no_document() -> None:
    """Before any write, finding no document is lawful; finding one is a violation, which names the operation."""
    scene = asked.Scene()
    reader = scene.asked(asked.get(), 1, 2)
    scene.history.check_absent(reader)

    with pytest.raises(Violation, match=rf"operation 1 \(get 'ada'\) {NOT_THERE}"):
        scene.history.check_present(reader)


EXPIRING = (asked.upsert(expiry=5), 1, 2)
PRESERVING = asked.upsert(preserve_expiry=True)


@rows(
    ("history", "begin", "settled", "is_lawful"),
    [
        # A document that was certainly created before the read must be found.
        *(
            ([(write, 1, 2)], begin, 4, begin == 2)
            for write in (asked.upsert(), asked.replace(), asked.increment(1 << 48))
            for begin in (2, 2.1)
        ),
        # After its removal it may be missing, until it is certainly created again.
        ([(asked.upsert(), 1, 2), (asked.remove(), 3, 4)], 5, 6, True),
        ([(asked.upsert(), 1, 2), (asked.remove(), 3, 4), (asked.upsert(), 7, 8)], 9, 10, False),
        # With an expiry of 5 s, it exists for 5 s after its write was submitted.
        ([EXPIRING], 3, 5.9, False),
        ([EXPIRING], 3, 6, True),
        # A later write or touch removes the expiry, unless it preserves the expiry.
        ([EXPIRING, (asked.upsert(), 3, 4)], 7, 8, False),
        ([EXPIRING, (asked.touch(), 3, 4)], 7, 8, False),
        ([EXPIRING, (GetAndTouch(asked.HOTELS, "ada", 0), 3, 4)], 7, 8, False),
        ([EXPIRING, (asked.append(), 3, 4)], 7, 8, True),
        ([EXPIRING, (PRESERVING, 3, 4)], 7, 8, True),
        # A touch that may precede the write with the expiry, or follow the expiry, proves nothing.
        ([EXPIRING, (asked.touch(), 2, 4)], 7, 8, True),
        ([EXPIRING, (asked.touch(), 3, 6)], 7, 8, True),
        # A document that was created after a removal does not have the removed document's expiry.
        ([EXPIRING, (asked.remove(), 3, 4), (PRESERVING, 4.5, 5)], 7, 8, False),
        ([EXPIRING, (PRESERVING, 4.5, 5)], 7, 8, True),
        # An expiry that certainly passed before the document was created again explains nothing.
        ([EXPIRING, (PRESERVING, 7, 8)], 9, 10, True),
        ([EXPIRING, (PRESERVING, 7.1, 8.9)], 9, 10, False),
    ],
)
def test_absence(
    history: Sequence[tuple[DocumentOperation, float, float]], begin: float, settled: float, is_lawful: bool
) -> None:
    """A read may find no document only if it may precede the creation, or follow a removal or an expiry."""
    scene = asked.Scene()
    for operation, *times in history:
        submission = scene.acknowledged(operation, *times)
        submission.created |= isinstance(operation, Increment)
    reader = scene.asked(asked.get(), begin, settled)

    with nullcontext() if is_lawful else pytest.raises(Violation, match=THERE):
        scene.history.check_absent(reader)


@rows(("begin", "settled"), [(3, 4), (8, 9)])
def test_absent_in_spite_of_a_void_removal(begin: float, settled: float) -> None:
    """A refused removal, before or after an expiry, does not end the expiry, so the document may be missing later."""
    scene = asked.Scene()
    scene.acknowledged(asked.upsert(expiry=5), 1, 2)
    scene.acknowledged(asked.remove(), begin, settled).is_void = True
    scene.acknowledged(PRESERVING, 4.5, 5)

    scene.history.check_absent(scene.asked(asked.get(), 10, 11))


def test_insert_does_not_contradict_itself() -> None:
    """A first write may find no document, though its own exists afterwards; finding one before it is a violation."""
    scene = asked.Scene()
    scene.history.check_absent(scene.acknowledged(asked.upsert(), 1, 2))

    with pytest.raises(Violation, match=NOT_THERE):
        scene.history.check_present(scene.history.submissions[0])


@pytest.mark.parametrize("end", [{"over_by": asked.at(2)}, {"is_void": True}], ids=["is over", "was refused"])
def test_absent_after_an_unsettled_removal(end: dict[str, object]) -> None:
    """Until a removal with an unknown result is over or refused, it may be applied, so the document may be missing."""
    scene = asked.Scene()
    removal = scene.asked(asked.remove(), 1, 2)
    scene.acknowledged(asked.upsert(), 3, 4)
    reader = scene.asked(asked.get(), 5, 6)
    scene.history.check_absent(reader)
    for name, value in end.items():
        setattr(removal, name, value)

    with pytest.raises(Violation, match=THERE):
        scene.history.check_absent(reader)


@rows("write", [asked.touch(5), GetAndTouch(asked.HOTELS, "ada", 5)])
def test_absent_after_a_touch(write: DocumentOperation) -> None:
    """A document may be missing after a touch with an expiry, unless the touch was not applied."""
    scene = asked.Scene()
    scene.acknowledged(asked.upsert(), 1, 2)
    toucher = scene.asked(write, 2, 3)
    reader = scene.asked(asked.get(), 8, 9)
    scene.history.check_absent(reader)
    toucher.is_void = True

    with pytest.raises(Violation, match=THERE):
        scene.history.check_absent(reader)


def test_present_after_a_removal() -> None:
    """A document certainly removed before a read must be missing; during an open or unsettled removal it may exist."""
    scene = asked.Scene()
    scene.acknowledged(asked.upsert(), 1, 2)
    removal = scene.asked(asked.remove(), 3, 4)
    scene.history.check_present(scene.asked(asked.get(), 5, 6))
    removal.was_applied(asked.at(4))
    scene.history.check_present(scene.asked(asked.get(), 4, 5))

    with pytest.raises(Violation, match=NOT_THERE):
        scene.history.check_present(scene.asked(asked.get(), 4.1, 5))


def test_present_after_a_late_write() -> None:
    """A write with an unknown result may be applied after a later removal, so the document may exist."""
    scene = asked.Scene()
    write = scene.asked(asked.upsert(), 1, 2)
    scene.acknowledged(asked.remove(), 3, 4)
    reader = scene.asked(asked.get(), 5, 6)
    scene.history.check_present(reader)
    write.over_by = asked.at(2)

    with pytest.raises(Violation, match=NOT_THERE):
        scene.history.check_present(reader)


def test_content_of_another_document() -> None:
    """Content that was written to another document is a violation."""
    scene = asked.Scene()
    elsewhere = Submission(9, Upsert(asked.HOTELS, "ada", b"<1>", BINARY_FLAGS), asked.at(1))

    with pytest.raises(Violation, match=r"found operation 9 \(upsert 'ada'\), which was never applied"):
        scene.history.check_content(scene.asked(asked.get(), 5, 6), elsewhere, [])


@pytest.mark.parametrize("newer", [asked.upsert(), asked.remove()], ids=asked.named)
def test_stale_content(newer: DocumentOperation) -> None:
    """Content that was certainly replaced or removed before a read is a violation; during the change it is lawful."""
    scene = asked.Scene()
    root = scene.acknowledged(asked.upsert(), 1, 3)
    scene.acknowledged(newer, 3, 4)
    scene.history.check_content(scene.asked(asked.get(), 4, 5), root, [])
    scene.acknowledged(newer, 3.1, 4)

    with pytest.raises(Violation, match=REPLACED):
        scene.history.check_content(scene.asked(asked.get(), 4.1, 5), root, [])


@pytest.mark.parametrize("operation", [asked.append(), asked.prepend(), asked.increment()], ids=asked.named)
def test_lost_part(operation: DocumentOperation) -> None:
    """A part certainly added before a read must be in the content; a part added during the read may be missing."""
    scene = asked.Scene()
    root = scene.acknowledged(asked.upsert(), 1, 2)
    scene.acknowledged(asked.append(b"<5>"), 2, 3)
    part = scene.acknowledged(operation, 3, 4)
    too_early, reader = scene.asked(asked.get(), 4, 5), scene.asked(asked.get(), 4.1, 5)
    scene.history.check_content(too_early, root, [])
    scene.history.check_content(reader, root, [part])

    with pytest.raises(Violation, match=re.escape(f"did not find {part!r}, which was certainly applied")):
        scene.history.check_content(reader, root, [])


CAS = 7
OTHER_CAS = 8
WAS_REPLACED = "succeeded with a CAS that operation 3 .* had replaced"
NOT_OUTDATED = "CAS .* the document"

CHANGES = [
    asked.upsert(),
    asked.replace(),
    asked.append(),
    asked.increment(),
    asked.remove(),
    asked.touch(),
    GetAndTouch(asked.get().keyspace, "ada", 0),
    asked.lock(),
]
each_change = rows("change", CHANGES)


def reported() -> asked.Scene:
    """Return a history of one write whose caller knows its CAS."""
    scene = asked.Scene()
    scene.history.learn_cas(scene.acknowledged(asked.upsert(), 1, 2), CAS, None)
    return scene


@each_change
def test_success_with_an_outdated_cas(change: DocumentOperation) -> None:
    """Success with a CAS that was certainly replaced before is a violation; while a change is open, it is lawful."""
    scene = reported()
    scene.acknowledged(change, 2, 3)
    scene.acknowledged(change, 3, 4)
    scene.history.check_cas_was_current(scene.asked(asked.replace(CAS), 4, 6))

    with pytest.raises(Violation, match=WAS_REPLACED):
        scene.history.check_cas_was_current(scene.asked(asked.replace(CAS), 4.1, 6))


def test_mismatch_without_a_change() -> None:
    """A mismatch with the newest write's CAS is a violation without another change; any other CAS may mismatch."""
    scene = reported()
    scene.acknowledged(asked.get(), 3, 4)
    scene.refused(asked.upsert(), 3, 4)
    scene.history.check_cas_is_outdated(scene.asked(asked.replace(OTHER_CAS), 4, 5))
    scene.history.submissions.pop()

    with pytest.raises(Violation, match=NOT_OUTDATED):
        scene.history.check_cas_is_outdated(scene.asked(asked.replace(CAS), 5, 6))


@each_change
def test_mismatch_after_a_change(change: DocumentOperation) -> None:
    """A change makes a CAS outdated if it may follow the write of that CAS."""
    scene = reported()
    other = scene.asked(change, 3, 4)
    reader = scene.asked(asked.replace(CAS), 5, 6)
    scene.history.check_cas_is_outdated(reader)
    other.over_by = asked.at(1)

    with pytest.raises(Violation, match=NOT_OUTDATED):
        scene.history.check_cas_is_outdated(reader)


@pytest.mark.parametrize("is_read_first", [True, False])
def test_mismatch_with_the_cas_of_a_write(is_read_first: bool) -> None:
    """A CAS belongs to the write that returned it, even if a read returned it earlier."""
    scene = asked.Scene()
    write = scene.acknowledged(asked.upsert(), 1, 4)
    read = scene.acknowledged(asked.get(), 2, 3)
    for submission in (read, write) if is_read_first else (write, read):
        scene.history.learn_cas(submission, CAS, None)

    with pytest.raises(Violation, match=NOT_OUTDATED):
        scene.history.check_cas_is_outdated(scene.asked(asked.replace(CAS), 5, 6))


def test_mismatch_with_a_cas_that_was_only_read() -> None:
    """A CAS from a read has no known writer: each write that may end after the read began may have replaced it."""
    scene = asked.Scene()
    write = scene.acknowledged(asked.upsert(), 1, 2.5)
    read = scene.acknowledged(asked.get(), 2, 3)
    scene.history.learn_cas(read, CAS, b"<1>")
    reader = scene.asked(asked.replace(CAS), 5, 6)
    scene.history.check_cas_is_outdated(reader)
    write.over_by = asked.at(2)

    with pytest.raises(Violation, match=NOT_OUTDATED):
        scene.history.check_cas_is_outdated(reader)


def test_two_contents_of_one_cas() -> None:
    """All reads that return the same CAS must return the same content; a write's result gives no content."""
    scene = reported()
    readers = [scene.acknowledged(asked.get(), second, second + 1) for second in range(3, 7)]
    scene.history.learn_cas(readers[0], CAS, b"<1>")
    scene.history.learn_cas(readers[1], CAS, b"<1>")
    scene.history.learn_cas(readers[2], CAS, None)
    scene.history.learn_cas(readers[2], OTHER_CAS, b"<2>")

    with pytest.raises(Violation, match="CAS 7 .* b'<1>', .* b'<2>'"):
        scene.history.learn_cas(readers[3], CAS, b"<2>")


@each_change
def test_two_changes_with_one_cas(change: DocumentOperation) -> None:
    """Two changes with the same CAS are a violation."""
    scene = reported()
    other = scene.acknowledged(change, 3, 4)
    scene.history.learn_cas(other, OTHER_CAS, None)

    with pytest.raises(Violation, match=r"CAS 7, which .* operation 1 \(upsert 'ada'\)"):
        scene.history.learn_cas(other, CAS, None)


@rows(("begin", "may_be"), [(3, True), (9, True), (9.1, False)])
def test_locked(begin: float, may_be: bool) -> None:
    """A lock of 5 s that may have been applied at 4 s may be held until 9 s."""
    scene = asked.Scene()
    scene.acknowledged(asked.lock(5), 2, 4)

    assert may_be == scene.history.may_be_locked(scene.asked(asked.get(), begin, 20))


@rows(("settled", "may_be"), [(2, False), (2.1, True)])
def test_locked_later(settled: float, may_be: bool) -> None:
    """An open lock that was requested after a read's end does not explain what the read found; an earlier one may."""
    scene = asked.Scene()
    reader = scene.asked(asked.get(), 1, settled)
    scene.waits(asked.lock(), 2)

    assert may_be == scene.history.may_be_locked(reader)


def test_locked_without_a_response() -> None:
    """A lock with an unknown result may be held at any time, but not a refused one or the operation's own."""
    scene = asked.Scene()
    locker = scene.asked(asked.lock(1), 2, 4)
    scene.acknowledged(asked.upsert(), 2, 4)
    scene.acknowledged(asked.get(), 2, 4)
    reader = scene.waits(asked.get(), 100)

    assert scene.history.may_be_locked(reader)
    locker.is_void = True
    assert not scene.history.may_be_locked(reader)
    assert not scene.history.may_be_locked(scene.waits(asked.lock(), 1))


def test_life_of_a_document() -> None:
    """A document certainly exists until the first expiry that may still apply."""
    scene = asked.Scene()

    assert math.inf == scene.history.exists_until(asked.at(0))

    scene.acknowledged(asked.upsert(), 0, 1)
    scene.acknowledged(asked.touch(30), 1, 2)
    scene.acknowledged(asked.touch(10), 2, 3)
    scene.refused(asked.touch(1), 2, 3)

    assert 12 == scene.history.exists_until(asked.at(3))
    assert 12 == scene.history.exists_until(asked.at(12.9))
    assert 31 == scene.history.exists_until(asked.at(13))
    assert math.inf == scene.history.exists_until(NEVER)
