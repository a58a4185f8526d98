"""Model of documents: short histories with false results of a client, and the closest lawful ones."""

from __future__ import annotations

import contextlib

import pytest

from tests.core.testing.asked import (
    TRAVEL,
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
from triclinium_core import errors
from triclinium_core.kv.operation import document_operations
from triclinium_core.kv.operation.results import Cas, CounterResult, Done, ExistsResult, MutationResult, Result
from triclinium_core.testing.fakes.store.documents import LOCKED_CAS
from triclinium_core.testing.oracle.model import Lock, Model
from triclinium_core.testing.oracle.submissions import Place, Violation
from triclinium_core.transcoding.flags import BINARY_FLAGS

THERE = "found no document"
NOT_THERE = "found a document"
REPLACED = "certainly replaced"
SEEN = "applied, but"
THERE_IS = ExistsResult(exists=True, cas=Cas(0))
THERE_IS_NONE = ExistsResult(exists=False, cas=Cas(0))
CHANGED = MutationResult(Cas(99))


def insert(value: bytes = b"<1>") -> document_operations.Insert:
    """Return a write that succeeds only without an existing document."""
    return document_operations.Insert(get().keyspace, "ada", value, BINARY_FLAGS)


def test_read_during_a_write() -> None:
    """During a write, reads may find either version; once a read found the newer, finding the older is a violation."""
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
    """A document that was acknowledged must be found until it is removed."""
    callers = Callers()
    callers.upsert()
    read = callers.ask(get())
    callers.change(remove())
    callers.miss(read, errors.DocumentNotFoundException())
    callers.miss(callers.ask(get()), errors.DocumentNotFoundException())
    callers.upsert()

    with pytest.raises(Violation, match=THERE):
        callers.miss(callers.ask(get()), errors.DocumentNotFoundException())


def test_content_without_a_writer() -> None:
    """Finding a value that no caller of this client wrote, or a value twice, is a violation."""
    callers = Callers()
    root, part = callers.upsert(), callers.append()

    with pytest.raises(Violation, match="b'<8>' has b'<8>', which was never written"):
        callers.find(b"<8>")
    with pytest.raises(Violation, match="b'<1>junk' "):
        callers.find(root + b"junk")
    with pytest.raises(Violation, match=r"operation 5 \(get 'ada'\): .* a write twice"):
        callers.find(root + part + part)


def test_order_of_parts() -> None:
    """Prepended parts precede the stored value and appended parts follow it; a store discards earlier parts."""
    callers = Callers()
    older, root = callers.upsert(), callers.upsert()
    callers.change(append(behind := callers.model.unique_values.fragment()))
    callers.change(prepend(before := callers.model.unique_values.fragment()))
    callers.find(before + root + behind)

    for data in (behind + root + before, root + behind + before, before + behind + root, before + behind, before):
        with pytest.raises(Violation, match=" order"):
            callers.find(data)
    with pytest.raises(Violation, match=" order"):
        callers.find(before + older + root + behind)


@pytest.mark.parametrize(
    "error", [errors.UnambiguousTimeoutException(), errors.DocumentExistsException(), None], ids=named
)
def test_finding_a_failed_write(error: errors.CouchbaseException | None) -> None:
    """A write that certainly failed, or was certainly not applied when its caller left, must not be found."""
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
def test_denying_a_write_that_was_found(is_ambiguous: bool, leaves: bool) -> None:
    """Once a write was found, reporting it as not applied is a violation, to waiting and to leaving callers."""
    callers = Callers()
    value = callers.model.unique_values.fragment()
    write = callers.ask(upsert(value))
    callers.find(value)

    with contextlib.nullcontext() if is_ambiguous else pytest.raises(Violation, match=SEEN):
        if leaves:
            callers.leave(write, ambiguous=is_ambiguous)
        else:
            callers.miss(
                write, errors.AmbiguousTimeoutException() if is_ambiguous else errors.UnambiguousTimeoutException()
            )


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
def test_success_without_a_document(operation: document_operations.DocumentOperation, result: Result) -> None:
    """An operation that requires a document must not succeed if there is certainly none."""
    callers = Callers()
    callers.model.unique_values.fragment()
    callers.upsert()
    callers.change(remove())
    token = callers.ask(operation)

    with pytest.raises(Violation, match=NOT_THERE):
        callers.hear(token, result)


@pytest.mark.parametrize(("operation", "result"), [(insert(), CHANGED), (exists(), THERE_IS_NONE)], ids=named)
def test_success_in_spite_of_a_document(operation: document_operations.DocumentOperation, result: Result) -> None:
    """An operation that requires the document's absence must not succeed while it certainly exists."""
    callers = Callers()
    callers.model.unique_values.fragment()
    callers.upsert()
    removal = callers.ask(remove())
    token = callers.ask(operation)
    callers.hear(callers.ask(exists()), THERE_IS_NONE)
    callers.miss(removal, errors.UnambiguousTimeoutException())

    with pytest.raises(Violation, match=THERE):
        callers.hear(token, result)


def test_document_exists() -> None:
    """DocumentExistsException is a violation if the document certainly does not exist."""
    callers = Callers()
    inserts = [callers.ask(insert(callers.model.unique_values.fragment())) for _ in range(3)]
    callers.miss(inserts[0], errors.DocumentExistsException())
    callers.miss(inserts[1], errors.UnambiguousTimeoutException())

    with pytest.raises(Violation, match=NOT_THERE):
        callers.miss(inserts[2], errors.DocumentExistsException())


def test_dropped_collection() -> None:
    """Dropping a collection removes its documents, except that open writes may create some; other collections stay."""
    callers = Callers()
    older = callers.upsert()
    callers.model.dropped(document_operations.Keyspace("travel", "inventory", "another"))
    with pytest.raises(Violation, match=THERE):
        callers.miss(callers.ask(get()), errors.DocumentNotFoundException())
    under_way = callers.ask(upsert(callers.model.unique_values.fragment()))
    callers.model.dropped(get().keyspace)
    callers.miss(callers.ask(get()), errors.DocumentNotFoundException())
    callers.hear(under_way, CHANGED)
    callers.miss(callers.ask(get()), errors.DocumentNotFoundException())

    with pytest.raises(Violation, match=REPLACED):
        callers.find(older)


def test_dropped_collection_releases_its_locks() -> None:
    """Dropping a collection ends the locks on its documents."""
    callers = Callers()
    callers.upsert()
    callers.hear(callers.ask(lock()), found(b"<1>", 5))
    held = len(callers.model.locks)
    callers.model.dropped(get().keyspace)

    assert (1, 0) == (held, len(callers.model.locks))


def test_open_operations() -> None:
    """Open operations are listed in the order of their submission."""
    callers = Callers()
    tokens = [callers.ask(operation) for operation in (get(), exists(), get(), get(), get())]
    callers.hear(tokens[1], THERE_IS_NONE)
    callers.miss(tokens[2], errors.DocumentNotFoundException())
    callers.leave(tokens[3], ambiguous=True)

    assert [tokens[0], tokens[4]] == [submission.token for submission in callers.model.open]
    assert tokens == list(callers.model.submissions)


def test_operations_without_a_document() -> None:
    """The model ignores operations without a document, and unknown tokens."""
    callers = Callers()
    token = callers.ask(document_operations.Noop(get().keyspace))
    callers.hear(token, Done())
    callers.miss(token, errors.DocumentExistsException())
    callers.leave(token, ambiguous=False)

    assert {} == callers.model.submissions
    assert Model().submitted(1, document_operations.Noop(get().keyspace)) is None


def test_instants() -> None:
    """Each instant is later than the one before, whether time passes or not."""
    model = Model()
    instants = [model.instant(), model.instant()]
    model.now = 3.0
    instants.append(model.instant())

    assert sorted(set(instants)) == instants
    assert [0.0, 0.0, 3.0] == [seconds for seconds, _ in instants]


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (upsert(b"old"), "value=b'old' must be new .*submit_document or submit_list"),
        (upsert(b"<1><2>"), "value=b'<1><2>' must be new"),
        (append(b"<1>"), "value=b'<1>' must be new"),
        (increment(delta=4), "delta=4 must be the newest .*submit_count"),
        (increment(delta=3), "delta=3 must be the newest"),
    ],
    ids=named,
)
def test_writes_without_a_unique_value(operation: document_operations.Operation, message: str) -> None:
    """A value or delta that does not identify its write raises ValueError, which names the methods to use instead."""
    callers = Callers()
    callers.upsert()

    with pytest.raises(ValueError, match=message):
        callers.ask(operation)
    assert [] == callers.model.open


PLACE = Place(TRAVEL, "ada")
CAS = 7


def counter() -> tuple[Callers, int]:
    """Return callers that have created a counter, and its number."""
    callers = Callers()
    delta, initial = callers.model.unique_values.counter()
    callers.count(document_operations.Increment(TRAVEL, "ada", delta, initial), initial)
    return callers, initial


def test_counter_created_again() -> None:
    """A count that is missing or doubled in its own result, or creates an existing counter, is a violation."""
    callers, number = counter()
    delta, initial = callers.model.unique_values.counter()

    with pytest.raises(Violation, match=r"operation 2 \(increment 'ada'\) .*own"):
        callers.count(document_operations.Increment(TRAVEL, "ada", delta, initial), number)
    delta, initial = callers.model.unique_values.counter()
    with pytest.raises(Violation, match=r"operation 3 \(increment 'ada'\) found no document"):
        callers.count(document_operations.Increment(TRAVEL, "ada", delta, initial), initial)
    delta, _ = callers.model.unique_values.counter()
    with pytest.raises(Violation, match=r"operation 4 \(increment 'ada'\): counter .* a count twice"):
        callers.count(document_operations.Increment(TRAVEL, "ada", delta), number + 2 * delta)


def test_lost_count() -> None:
    """A count that was acknowledged or found must be in each later number; another open one may be."""
    callers, number = counter()
    first, _ = callers.model.unique_values.counter()
    callers.ask(document_operations.Increment(TRAVEL, "ada", first))
    callers.find(b"%d" % number)
    second, _ = callers.model.unique_values.counter()
    callers.count(document_operations.Increment(TRAVEL, "ada", second), number + second)
    callers.find(b"%d" % (number + second))
    callers.find(b"%d" % (number + first + second))

    with pytest.raises(Violation, match=r"did not find operation 2 \(increment 'ada'\), which was certainly applied"):
        callers.find(b"%d" % (number + second))


def test_creation_of_a_counter_shows_in_results() -> None:
    """The model knows that a count has created its counter once a read proves it."""
    callers = Callers()
    delta, initial = callers.model.unique_values.counter()
    token = callers.ask(document_operations.Increment(TRAVEL, "ada", delta, initial))

    assert not callers.model.submissions[token].created

    callers.find(b"%d" % initial)

    assert callers.model.submissions[token].created


def test_mismatch_without_a_change() -> None:
    """A mismatch with the newest CAS is a violation unless a change was submitted since."""
    callers = Callers()
    callers.change(upsert(callers.model.unique_values.fragment()), CAS)
    tokens = [callers.ask(remove(CAS)) for _ in range(2)]
    callers.miss(tokens[0], errors.CasMismatchException())
    callers.miss(tokens[1], errors.AmbiguousTimeoutException())
    callers.miss(callers.ask(remove(CAS)), errors.CasMismatchException())
    callers.model.quieted()
    callers.change(upsert(callers.model.unique_values.fragment()), CAS + 1)

    with pytest.raises(Violation, match="CAS .* the document"):
        callers.miss(callers.ask(remove(CAS + 1)), errors.CasMismatchException())


@pytest.mark.parametrize("is_counted", [True, False])
def test_one_cas_for_two_writes(is_counted: bool) -> None:
    """Two writes with the same CAS are a violation."""
    callers, number = counter()
    cas = callers.cas
    operation: document_operations.DocumentOperation = touch()
    result: Result = MutationResult(Cas(cas))
    if is_counted:
        delta, _ = callers.model.unique_values.counter()
        operation, result = document_operations.Increment(TRAVEL, "ada", delta), CounterResult(number + delta, Cas(cas))
    token = callers.ask(operation)

    with pytest.raises(Violation, match=rf"CAS {cas}, which .* operation 1 \(increment 'ada'\)"):
        callers.hear(token, result)


def test_known_cas() -> None:
    """Reads and writes give a document's CAS; the CAS of a locked document is not known."""
    callers = Callers()
    callers.change(upsert(value := callers.model.unique_values.fragment()), 5)
    callers.find(value, 5)
    callers.hear(callers.ask(get()), found(value, LOCKED_CAS))
    callers.hear(callers.ask(get()), found(value, LOCKED_CAS))
    callers.change(touch(), 6)
    callers.find(value, 6)

    assert [5, 6] == callers.model.known_cas(PLACE)
    assert [] == callers.model.known_cas(Place(TRAVEL, "bob"))


def test_locks() -> None:
    """A lock is certainly held from its result until its time, counted from its submission, is over."""
    callers = Callers()
    value = callers.upsert()
    began = callers.model.now + 1
    token = callers.ask(lock(5))

    assert {} == callers.model.locks

    callers.hear(token, found(value, CAS))

    assert {PLACE: Lock(Cas(CAS), began + 5)} == callers.model.locks

    callers.model.now = began + 4.9

    assert [PLACE] == list(callers.model.locks)

    callers.model.now = began + 5

    assert {} == callers.model.locks


def test_lock_of_an_expiring_document() -> None:
    """A lock is certainly held at most until the document may expire."""
    callers = Callers()
    callers.change(upsert(value := callers.model.unique_values.fragment(), expiry=5))
    asked = callers.model.now - 1
    callers.hear(callers.ask(lock(15)), found(value, CAS))

    assert {PLACE: Lock(Cas(CAS), asked + 5)} == callers.model.locks


def test_lock_that_is_released() -> None:
    """An unlock with the CAS of a lock ends the lock; removals with another CAS, or without a CAS, do not."""
    callers = Callers()
    value = callers.upsert()
    callers.hear(callers.ask(lock(15)), found(value, CAS))
    callers.ask(remove())
    callers.ask(remove(CAS - 1))

    assert [PLACE] == list(callers.model.locks)

    callers.hear(callers.ask(document_operations.Unlock(TRAVEL, "ada", Cas(CAS))), Done())

    assert {} == callers.model.locks
