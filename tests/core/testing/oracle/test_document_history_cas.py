"""What may be the case with the versions of one document, its locks and its life: laws of CAS, each broken and kept."""

from __future__ import annotations

import math

import pytest

from tests.core.testing.asked import Scene, append, at, get, increment, lock, remove, replace, touch, upsert
from tests.rows import rows
from triclinium_core.kv.operation.requests import DocumentOperation, GetAndTouch
from triclinium_core.testing.oracle.submissions import NEVER, Submission, Violation

CAS = 7
OTHER_CAS = 8
WAS_REPLACED = "succeeded with a CAS that operation 3 .* had replaced"
NOT_OUTDATED = "was told that its CAS is outdated, but nobody changed the document"

CHANGES = [
    upsert(),
    replace(),
    append(),
    increment(),
    remove(),
    touch(),
    GetAndTouch(get().keyspace, "ada", 0),
    lock(),
]
each_change = rows("change", CHANGES)


def told() -> tuple[Scene, Submission]:
    """Return a history of one write, which was told its CAS."""
    scene = Scene()
    write = scene.acknowledged(upsert(), 1, 2)
    scene.history.learn_cas(write, CAS, None)
    return scene, write


@each_change
def test_success_with_an_outdated_cas(change: DocumentOperation) -> None:
    """A CAS that was replaced after it had been told does not pass; while it is being replaced it may."""
    scene, _ = told()
    scene.acknowledged(change, 2, 3)
    scene.acknowledged(change, 3, 4)
    scene.history.check_cas_was_current(scene.asked(replace(CAS), 4, 6))

    with pytest.raises(Violation, match=WAS_REPLACED):
        scene.history.check_cas_was_current(scene.asked(replace(CAS), 4.1, 6))


def test_mismatch_though_nobody_changed_anything() -> None:
    """The CAS of the newest write is current, unless somebody else may have changed the document; another may be any."""
    scene, _ = told()
    scene.acknowledged(get(), 3, 4)
    scene.refused(upsert(), 3, 4)
    scene.history.check_cas_is_outdated(scene.asked(replace(OTHER_CAS), 4, 5))
    scene.history.submissions.pop()

    with pytest.raises(Violation, match=NOT_OUTDATED):
        scene.history.check_cas_is_outdated(scene.asked(replace(CAS), 5, 6))


@each_change
def test_mismatch_after_a_change(change: DocumentOperation) -> None:
    """Whatever changes the document makes a CAS outdated, if it may have come after that."""
    scene, _ = told()
    other = scene.asked(change, 3, 4)
    reader = scene.asked(replace(CAS), 5, 6)
    scene.history.check_cas_is_outdated(reader)
    other.over_by = at(1)

    with pytest.raises(Violation, match=NOT_OUTDATED):
        scene.history.check_cas_is_outdated(reader)


@pytest.mark.parametrize("is_read_first", [True, False])
def test_mismatch_with_the_cas_of_a_write_that_was_read(is_read_first: bool) -> None:
    """Whoever else was told the CAS, before the writer or after, it is the writer's."""
    scene = Scene()
    write = scene.acknowledged(upsert(), 1, 4)
    read = scene.acknowledged(get(), 2, 3)
    for submission in (read, write) if is_read_first else (write, read):
        scene.history.learn_cas(submission, CAS, None)

    with pytest.raises(Violation, match=NOT_OUTDATED):
        scene.history.check_cas_is_outdated(scene.asked(replace(CAS), 5, 6))


def test_mismatch_with_a_cas_that_was_only_read() -> None:
    """Whose it is nobody was told, so any write may have replaced it that was not over before it was asked for."""
    scene = Scene()
    write = scene.acknowledged(upsert(), 1, 2.5)
    read = scene.acknowledged(get(), 2, 3)
    scene.history.learn_cas(read, CAS, b"<1>")
    reader = scene.asked(replace(CAS), 5, 6)
    scene.history.check_cas_is_outdated(reader)
    write.over_by = at(2)

    with pytest.raises(Violation, match=NOT_OUTDATED):
        scene.history.check_cas_is_outdated(reader)


def test_two_contents_of_one_cas() -> None:
    """A CAS names one version, so whoever reads it finds the same; who was told it by a write knows no content."""
    scene, _ = told()
    readers = [scene.acknowledged(get(), second, second + 1) for second in range(3, 7)]
    scene.history.learn_cas(readers[0], CAS, b"<1>")
    scene.history.learn_cas(readers[1], CAS, b"<1>")
    scene.history.learn_cas(readers[2], CAS, None)
    scene.history.learn_cas(readers[2], OTHER_CAS, b"<2>")

    with pytest.raises(Violation, match="CAS 7 is that of b'<1>', it cannot be that of b'<2>'"):
        scene.history.learn_cas(readers[3], CAS, b"<2>")


@each_change
def test_two_changes_with_one_cas(change: DocumentOperation) -> None:
    """Every change has a CAS of its own."""
    scene, _ = told()
    other = scene.acknowledged(change, 3, 4)
    scene.history.learn_cas(other, OTHER_CAS, None)

    with pytest.raises(Violation, match=r"was told CAS 7, which is that of operation 1 \(upsert 'ada'\)"):
        scene.history.learn_cas(other, CAS, None)


@pytest.mark.parametrize(
    ("begin", "may_be"), [(3, True), (9, True), (9.1, False)], ids=["held", "at its end", "after its end"]
)
def test_locked(begin: float, may_be: bool) -> None:
    """A lock that was applied at 4 s for 5 s may be held until 9 s."""
    scene = Scene()
    scene.acknowledged(lock(5), 2, 4)

    assert may_be == scene.history.may_be_locked(scene.asked(get(), begin, 20))


@pytest.mark.parametrize(("settled", "may_be"), [(2, False), (2.1, True)])
def test_locked_later(settled: float, may_be: bool) -> None:
    """A lock that was asked for after one was told is no excuse; meanwhile it is."""
    scene = Scene()
    reader = scene.asked(get(), 1, settled)
    scene.waits(lock(), 2)

    assert may_be == scene.history.may_be_locked(reader)


def test_locked_without_an_answer() -> None:
    """A lock of which nobody knows may be held at any time; one that was refused is not, nor is one's own."""
    scene = Scene()
    locker = scene.asked(lock(1), 2, 4)
    scene.acknowledged(upsert(), 2, 4)
    scene.acknowledged(get(), 2, 4)
    reader = scene.waits(get(), 100)

    assert scene.history.may_be_locked(reader)
    locker.is_void = True
    assert not scene.history.may_be_locked(reader)
    assert not scene.history.may_be_locked(scene.waits(lock(), 1))


def test_life_of_a_document() -> None:
    """It is sure to live until the first expiry that may still come to pass."""
    scene = Scene()

    assert math.inf == scene.history.exists_until(at(0))

    scene.acknowledged(upsert(), 0, 1)
    scene.acknowledged(touch(30), 1, 2)
    scene.acknowledged(touch(10), 2, 3)
    scene.refused(touch(1), 2, 3)

    assert 12 == scene.history.exists_until(at(3))
    assert 12 == scene.history.exists_until(at(12.9))
    assert 31 == scene.history.exists_until(at(13))
    assert math.inf == scene.history.exists_until(NEVER)
