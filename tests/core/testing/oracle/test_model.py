"""The model: for each lie that a client may tell its callers the shortest history with it, and the nearest true one."""

from __future__ import annotations

import contextlib

import pytest

from tests.core.testing.asked import (
    append,
    exists,
    get,
    increment,
    lock,
    named,
    prepend,
    remove,
    replace,
    touch,
    upsert,
)
from tests.core.testing.callers import Callers, found
from triclinium_core.errors import (
    AmbiguousTimeoutException,
    CouchbaseException,
    DocumentExistsException,
    DocumentNotFoundException,
    UnambiguousTimeoutException,
)
from triclinium_core.kv.operation.requests import DocumentOperation, Insert, Keyspace
from triclinium_core.kv.operation.results import Cas, ExistsResult, MutationResult, Result
from triclinium_core.testing.oracle.submissions import Violation
from triclinium_core.transcoding.flags import BINARY_FLAGS

THERE = "found no document, but one was certainly there"
NOT_THERE = "found a document, but there certainly was none"
REPLACED = "wrote, but that was certainly replaced"
SEEN = "is said not to have been applied, but somebody has seen it"
THERE_IS = ExistsResult(exists=True, cas=Cas(0))
THERE_IS_NONE = ExistsResult(exists=False, cas=Cas(0))
CHANGED = MutationResult(Cas(99))


def insert(value: bytes = b"<1>") -> Insert:
    """Return a write that needs that there is no document."""
    return Insert(get().keyspace, "ada", value, BINARY_FLAGS)


def test_read_beside_a_write() -> None:
    """While the newer one is under way, both may be found; once it was found, the older one is gone."""
    callers = Callers()
    older = callers.upsert()
    reads = [callers.ask(get()) for _ in range(2)]
    newer = callers.model.unique_values.fragment()
    callers.ask(upsert(newer))
    callers.find(older)
    callers.find(newer)
    callers.hear(reads[0], found(older))
    callers.hear(reads[1], found(newer))

    with pytest.raises(Violation, match=REPLACED):
        callers.find(older)


def test_lost_write() -> None:
    """What was acknowledged is found, until it is removed."""
    callers = Callers()
    callers.upsert()
    read = callers.ask(get())
    callers.change(remove())
    callers.miss(read, DocumentNotFoundException())
    callers.miss(callers.ask(get()), DocumentNotFoundException())
    callers.upsert()

    with pytest.raises(Violation, match=THERE):
        callers.miss(callers.ask(get()), DocumentNotFoundException())


def test_what_nobody_wrote() -> None:
    """A document holds what callers of this client wrote, and each write once."""
    callers = Callers()
    root, part = callers.upsert(), callers.append()

    with pytest.raises(Violation, match="b'<8>' has b'<8>', which nobody wrote"):
        callers.find(b"<8>")
    with pytest.raises(Violation, match="b'<1>junk' is not what was written"):
        callers.find(root + b"junk")
    with pytest.raises(Violation, match=r"operation 5 \(get 'ada'\): .* has a write twice"):
        callers.find(root + part + part)


def test_order_of_parts() -> None:
    """What was prepended stands in front of what was stored, and what was appended behind; a store adds nothing."""
    callers = Callers()
    older, root = callers.upsert(), callers.upsert()
    callers.change(append(behind := callers.model.unique_values.fragment()))
    callers.change(prepend(before := callers.model.unique_values.fragment()))
    callers.find(before + root + behind)

    for data in (behind + root + before, root + behind + before, before + behind + root, before + behind, before):
        with pytest.raises(Violation, match="is in an order that cannot come about"):
            callers.find(data)
    with pytest.raises(Violation, match="is in an order that cannot come about"):
        callers.find(before + older + root + behind)


@pytest.mark.parametrize("error", [UnambiguousTimeoutException(), DocumentExistsException(), None], ids=named)
def test_failure_of_what_is_found(error: CouchbaseException | None) -> None:
    """A write that failed for certain, or was certainly not applied when its caller left, is not found afterwards."""
    callers = Callers()
    root = callers.upsert()
    value = callers.model.unique_values.fragment()
    write = callers.ask(insert(value))
    if error is None:
        callers.leave(write, ambiguous=False)
    else:
        callers.miss(write, error)
    callers.find(root)

    with pytest.raises(Violation, match=r"found operation 2 \(insert 'ada'\), which was never applied"):
        callers.find(value)


@pytest.mark.parametrize("is_ambiguous", [True, False])
@pytest.mark.parametrize("leaves", [True, False])
def test_failure_of_what_was_found(is_ambiguous: bool, leaves: bool) -> None:
    """Nor can it be denied once somebody has found it, to those who wait or to those who leave."""
    callers = Callers()
    value = callers.model.unique_values.fragment()
    write = callers.ask(upsert(value))
    callers.find(value)

    with contextlib.nullcontext() if is_ambiguous else pytest.raises(Violation, match=SEEN):
        if leaves:
            callers.leave(write, ambiguous=is_ambiguous)
        else:
            callers.miss(write, AmbiguousTimeoutException() if is_ambiguous else UnambiguousTimeoutException())


def test_late_write() -> None:
    """What nobody knows of may be applied at any time until nothing is under way; what is waited for is under way."""
    callers = Callers()
    late, awaited = callers.model.unique_values.fragment(), callers.model.unique_values.fragment()
    callers.leave(callers.ask(upsert(late)), ambiguous=True)
    callers.ask(upsert(awaited))
    callers.upsert()
    callers.find(late)
    callers.find(callers.upsert())
    callers.model.quieted()
    callers.upsert()
    callers.find(awaited)

    with pytest.raises(Violation, match=REPLACED):
        callers.find(late)


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        (get(), found(b"<1>")),
        (exists(), THERE_IS),
        (replace(value=b"<1>"), CHANGED),
        (append(b"<1>"), CHANGED),
        (remove(), CHANGED),
        (touch(), CHANGED),
        (increment(), CHANGED),
    ],
    ids=named,
)
def test_success_without_a_document(operation: DocumentOperation, result: Result) -> None:
    """What needs a document does not succeed where certainly none is."""
    callers = Callers()
    callers.model.unique_values.fragment()
    callers.upsert()
    callers.change(remove())
    token = callers.ask(operation)

    with pytest.raises(Violation, match=NOT_THERE):
        callers.hear(token, result)


@pytest.mark.parametrize(("operation", "result"), [(insert(), CHANGED), (exists(), THERE_IS_NONE)], ids=named)
def test_success_that_needs_that_there_is_none(operation: DocumentOperation, result: Result) -> None:
    """What needs that there is no document does not succeed where certainly one is; beside its removal it may."""
    callers = Callers()
    callers.model.unique_values.fragment()
    callers.upsert()
    removal = callers.ask(remove())
    token = callers.ask(operation)
    callers.hear(callers.ask(exists()), THERE_IS_NONE)
    callers.miss(removal, UnambiguousTimeoutException())

    with pytest.raises(Violation, match=THERE):
        callers.hear(token, result)


def test_document_exists() -> None:
    """An insert is refused only where a document may be."""
    callers = Callers()
    inserts = [callers.ask(insert(callers.model.unique_values.fragment())) for _ in range(3)]
    callers.miss(inserts[0], DocumentExistsException())
    callers.miss(inserts[1], UnambiguousTimeoutException())

    with pytest.raises(Violation, match=NOT_THERE):
        callers.miss(inserts[2], DocumentExistsException())


def test_a_collection_that_is_dropped() -> None:
    """What was in it is gone, and never comes back; what was under way may be there or not. Others stay."""
    callers = Callers()
    older = callers.upsert()
    callers.model.dropped(Keyspace("travel", "inventory", "another"))
    with pytest.raises(Violation, match=THERE):
        callers.miss(callers.ask(get()), DocumentNotFoundException())
    under_way = callers.ask(upsert(callers.model.unique_values.fragment()))
    callers.model.dropped(get().keyspace)
    callers.miss(callers.ask(get()), DocumentNotFoundException())
    callers.hear(under_way, CHANGED)
    callers.miss(callers.ask(get()), DocumentNotFoundException())

    with pytest.raises(Violation, match=REPLACED):
        callers.find(older)


def test_a_lock_is_dropped_with_its_collection() -> None:
    """Its holder has nothing left to hold."""
    callers = Callers()
    callers.upsert()
    callers.hear(callers.ask(lock()), found(b"<1>", 5))
    held = len(callers.model.locks)
    callers.model.dropped(get().keyspace)

    assert (1, 0) == (held, len(callers.model.locks))
