"""What may be the case with one document: for each law a history that breaks it, and the nearest one that does not."""

from __future__ import annotations

import re

import pytest

from tests.core.testing.asked import (
    HOTELS,
    Scene,
    append,
    at,
    get,
    increment,
    named,
    prepend,
    remove,
    replace,
    touch,
    upsert,
)
from triclinium_core.kv.operation.requests import DocumentOperation, GetAndTouch, Upsert
from triclinium_core.testing.oracle.submissions import Submission, Violation
from triclinium_core.transcoding.flags import BINARY_FLAGS

THERE = "found no document, but one was certainly there"
NOT_THERE = "found a document, but there certainly was none"
NEVER_APPLIED = "which was never applied to this document"
REPLACED = "wrote, but that was certainly replaced"


def test_at_first_there_is_no_document() -> None:
    """Who finds none is right, and who finds one is not; the violation names the operation."""
    scene = Scene()
    reader = scene.asked(get(), 1, 2)
    scene.history.check_absent(reader)

    with pytest.raises(Violation, match=rf"operation 1 \(get 'ada'\) {NOT_THERE}"):
        scene.history.check_present(reader)


@pytest.mark.parametrize("write", [upsert(), replace(), increment(1 << 48)], ids=named)
def test_absent_after_a_write(write: DocumentOperation) -> None:
    """A document that was certainly made before one asks is there; while it is being made it need not be."""
    scene = Scene()
    scene.acknowledged(write, 1, 2).created = True
    scene.history.check_absent(scene.asked(get(), 2, 4))

    with pytest.raises(Violation, match=THERE):
        scene.history.check_absent(scene.asked(get(), 2.1, 4))


def test_a_write_is_no_witness_against_itself() -> None:
    """An insert found no document, although afterwards there is one: its own."""
    scene = Scene()
    scene.history.check_absent(scene.acknowledged(upsert(), 1, 2))

    with pytest.raises(Violation, match=NOT_THERE):
        scene.history.check_present(scene.history.submissions[0])


def test_absent_after_a_removal() -> None:
    """A removal explains that there is none, until the document is certainly made anew."""
    scene = Scene()
    scene.acknowledged(upsert(), 1, 2)
    scene.acknowledged(remove(), 3, 4)
    scene.history.check_absent(scene.asked(get(), 5, 6))
    scene.acknowledged(upsert(), 7, 8)

    with pytest.raises(Violation, match=THERE):
        scene.history.check_absent(scene.asked(get(), 9, 10))


@pytest.mark.parametrize("end", [{"over_by": at(2)}, {"is_void": True}], ids=["is over", "was refused"])
def test_absent_after_a_removal_that_is_still_under_way(end: dict[str, object]) -> None:
    """One of which nobody knows may come to pass at any time, however much was written; once it is over it cannot."""
    scene = Scene()
    removal = scene.asked(remove(), 1, 2)
    scene.acknowledged(upsert(), 3, 4)
    reader = scene.asked(get(), 5, 6)
    scene.history.check_absent(reader)
    for name, value in end.items():
        setattr(removal, name, value)

    with pytest.raises(Violation, match=THERE):
        scene.history.check_absent(reader)


def test_absent_before_the_expiry() -> None:
    """A document that lives for 5 s is there for 5 s after it was asked for, and then need not be."""
    scene = Scene()
    scene.acknowledged(upsert(expiry=5), 1, 2)
    scene.history.check_absent(scene.asked(get(), 3, 6))

    with pytest.raises(Violation, match=THERE):
        scene.history.check_absent(scene.asked(get(), 3, 5.9))


@pytest.mark.parametrize("write", [touch(5), GetAndTouch(HOTELS, "ada", 5)], ids=named)
def test_absent_after_a_touch(write: DocumentOperation) -> None:
    """A touch makes a document expire, where it was applied."""
    scene = Scene()
    scene.acknowledged(upsert(), 1, 2)
    toucher = scene.asked(write, 2, 3)
    reader = scene.asked(get(), 8, 9)
    scene.history.check_absent(reader)
    toucher.is_void = True

    with pytest.raises(Violation, match=THERE):
        scene.history.check_absent(reader)


@pytest.mark.parametrize(
    ("operation", "keeps"),
    [
        (upsert(), False),
        (touch(), False),
        (GetAndTouch(HOTELS, "ada", 0), False),
        (append(), True),
        (upsert(preserve_expiry=True), True),
    ],
    ids=named,
)
def test_absent_after_an_expiry_was_taken_away(operation: DocumentOperation, keeps: bool) -> None:
    """Who gives a document another expiry, or none, before it expires, has it live; who keeps the expiry does not."""
    scene = Scene()
    scene.acknowledged(upsert(expiry=5), 1, 2)
    scene.acknowledged(operation, 3, 4)
    reader = scene.asked(get(), 7, 8)

    if keeps:
        scene.history.check_absent(reader)
    else:
        with pytest.raises(Violation, match=THERE):
            scene.history.check_absent(reader)


@pytest.mark.parametrize(("begin", "settled"), [(2, 4), (3, 6)], ids=["before it", "after it"])
def test_absent_after_an_expiry_was_taken_away_perhaps(begin: float, settled: float) -> None:
    """A write that may have come before the one with the expiry, or after the document expired, explains nothing."""
    scene = Scene()
    scene.acknowledged(upsert(expiry=5), 1, 2)
    scene.acknowledged(touch(), begin, settled)

    scene.history.check_absent(scene.asked(get(), 7, 8))


def test_absent_after_the_expiring_document_was_removed() -> None:
    """The document that was made since has an expiry of its own, or none."""
    scene = Scene()
    scene.acknowledged(upsert(expiry=5), 1, 2)
    removal = scene.acknowledged(remove(), 3, 4)
    scene.acknowledged(upsert(preserve_expiry=True), 4.5, 5)
    reader = scene.asked(get(), 7, 8)

    with pytest.raises(Violation, match=THERE):
        scene.history.check_absent(reader)

    removal.is_void = True
    scene.history.check_absent(reader)


def test_absent_after_a_document_was_made_anew() -> None:
    """What has certainly expired explains nothing of the document that was made after that."""
    scene = Scene()
    scene.acknowledged(upsert(expiry=5), 1, 2)
    scene.acknowledged(upsert(preserve_expiry=True), 7, 8)
    reader = scene.asked(get(), 9, 10)
    scene.history.check_absent(reader)
    scene.acknowledged(upsert(preserve_expiry=True), 7.1, 8.9)

    with pytest.raises(Violation, match=THERE):
        scene.history.check_absent(reader)


def test_present_after_a_removal() -> None:
    """What was removed before one asked is there no more; while it is being removed, or perhaps is not, it may be."""
    scene = Scene()
    scene.acknowledged(upsert(), 1, 2)
    removal = scene.asked(remove(), 3, 4)
    scene.history.check_present(scene.asked(get(), 5, 6))
    removal.was_applied(at(4))
    scene.history.check_present(scene.asked(get(), 4, 5))

    with pytest.raises(Violation, match=NOT_THERE):
        scene.history.check_present(scene.asked(get(), 4.1, 5))


def test_present_after_a_write_that_came_late() -> None:
    """A write of which nobody knows may be applied after the removal that was asked for after it."""
    scene = Scene()
    write = scene.asked(upsert(), 1, 2)
    scene.acknowledged(remove(), 3, 4)
    reader = scene.asked(get(), 5, 6)
    scene.history.check_present(reader)
    write.over_by = at(2)

    with pytest.raises(Violation, match=NOT_THERE):
        scene.history.check_present(reader)


def test_content_of_another_document() -> None:
    """What was written elsewhere is not found here."""
    scene = Scene()
    elsewhere = Submission(9, Upsert(HOTELS, "ada", b"<1>", BINARY_FLAGS), at(1))

    with pytest.raises(Violation, match=r"found operation 9 \(upsert 'ada'\), which was never applied"):
        scene.history.check_content(scene.asked(get(), 5, 6), elsewhere, [])


@pytest.mark.parametrize("newer", [upsert(), remove()], ids=named)
def test_stale_content(newer: DocumentOperation) -> None:
    """What was certainly replaced or removed before one asked is not found; while that goes on it may be."""
    scene = Scene()
    root = scene.acknowledged(upsert(), 1, 3)
    scene.acknowledged(newer, 3, 4)
    scene.history.check_content(scene.asked(get(), 4, 5), root, [])
    scene.acknowledged(newer, 3.1, 4)

    with pytest.raises(Violation, match=REPLACED):
        scene.history.check_content(scene.asked(get(), 4.1, 5), root, [])


@pytest.mark.parametrize("operation", [append(), prepend(), increment()], ids=named)
def test_lost_part(operation: DocumentOperation) -> None:
    """What was certainly added since the document was written, and before one asked, is in it; else it need not be."""
    scene = Scene()
    root = scene.acknowledged(upsert(), 1, 2)
    scene.acknowledged(append(b"<5>"), 2, 3)
    part = scene.acknowledged(operation, 3, 4)
    too_early, reader = scene.asked(get(), 4, 5), scene.asked(get(), 4.1, 5)
    scene.history.check_content(too_early, root, [])
    scene.history.check_content(reader, root, [part])

    with pytest.raises(Violation, match=re.escape(f"did not find {part!r}, which was certainly applied")):
        scene.history.check_content(reader, root, [])
