"""The model: what callers are told of counters, versions and locks, each lie beside the truth."""

from __future__ import annotations

import pytest

from tests.core.testing.asked import TRAVEL, get, lock, remove, replace, touch, upsert
from tests.core.testing.callers import Callers, found
from triclinium_core.errors import AmbiguousTimeoutException, CasMismatchException
from triclinium_core.kv.operation.requests import Decrement, DocumentOperation, Increment, Unlock
from triclinium_core.kv.operation.results import Cas, CounterResult, Done, MutationResult, Result
from triclinium_core.testing.fakes.store.documents import LOCKED_CAS
from triclinium_core.testing.oracle.model import Lock
from triclinium_core.testing.oracle.submissions import Place, Violation

PLACE = Place(TRAVEL, "ada")
CAS = 7


def counter() -> tuple[Callers, int]:
    """Return callers of whom one has made a counter, and its number."""
    callers = Callers()
    delta, initial = callers.model.unique_values.counter()
    callers.count(Increment(TRAVEL, "ada", delta, initial), initial)
    return callers, initial


def test_counting() -> None:
    """Each count is told the number with all counts before it, and its own."""
    callers, number = counter()
    up, _ = callers.model.unique_values.counter()
    callers.count(Increment(TRAVEL, "ada", up), number + up)
    down, _ = callers.model.unique_values.counter()
    callers.count(Decrement(TRAVEL, "ada", down), number + up - down)

    callers.find(b"%d" % (number + up - down))


def test_counter_made_anew() -> None:
    """Who counts is told what came of it, and no counter that is there is made again: its first count would be lost."""
    callers, number = counter()
    delta, initial = callers.model.unique_values.counter()

    with pytest.raises(Violation, match=r"operation 2 \(increment 'ada'\) is not in its own result"):
        callers.count(Increment(TRAVEL, "ada", delta, initial), number)
    delta, initial = callers.model.unique_values.counter()
    with pytest.raises(Violation, match=r"operation 3 \(increment 'ada'\) found no document"):
        callers.count(Increment(TRAVEL, "ada", delta, initial), initial)
    delta, _ = callers.model.unique_values.counter()
    with pytest.raises(Violation, match=r"operation 4 \(increment 'ada'\): counter .* has a count twice"):
        callers.count(Increment(TRAVEL, "ada", delta), number + 2 * delta)


def test_success_with_an_outdated_cas() -> None:
    """A CAS that a newer write replaced does not pass; that of the newest does, and an unlock says nothing of it."""
    callers = Callers()
    callers.change(upsert(callers.model.unique_values.fragment()), CAS)
    callers.change(replace(CAS, callers.model.unique_values.fragment()))
    callers.miss(callers.ask(Unlock(TRAVEL, "ada", Cas(CAS))), CasMismatchException())

    with pytest.raises(Violation, match=r"succeeded with a CAS that operation 2 \(replace 'ada'\) had replaced"):
        callers.change(remove(CAS))


def test_lost_count() -> None:
    """A count that was acknowledged is in every number after it; one that is under way may be."""
    callers, number = counter()
    first, _ = callers.model.unique_values.counter()
    callers.ask(Increment(TRAVEL, "ada", first))
    callers.find(b"%d" % number)
    second, _ = callers.model.unique_values.counter()
    callers.count(Increment(TRAVEL, "ada", second), number + second)
    callers.find(b"%d" % (number + second))
    callers.find(b"%d" % (number + first + second))

    with pytest.raises(Violation, match=r"did not find operation 2 \(increment 'ada'\), which was certainly applied"):
        callers.find(b"%d" % (number + second))


def test_count_that_makes_a_counter_is_seen_by_its_result() -> None:
    """Before that nobody knows whether it made one, and a reader may tell."""
    callers = Callers()
    delta, initial = callers.model.unique_values.counter()
    token = callers.ask(Increment(TRAVEL, "ada", delta, initial))

    assert not callers.model.submissions[token].created

    callers.find(b"%d" % initial)

    assert callers.model.submissions[token].created


def test_mismatch_though_nobody_changed_anything() -> None:
    """The newest CAS is current, until somebody asks for a change."""
    callers = Callers()
    callers.change(upsert(callers.model.unique_values.fragment()), CAS)
    tokens = [callers.ask(remove(CAS)) for _ in range(2)]
    callers.miss(tokens[0], CasMismatchException())
    callers.miss(tokens[1], AmbiguousTimeoutException())
    callers.miss(callers.ask(remove(CAS)), CasMismatchException())
    callers.model.quieted()
    callers.change(upsert(callers.model.unique_values.fragment()), CAS + 1)

    with pytest.raises(Violation, match="was told that its CAS is outdated, but nobody changed the document"):
        callers.miss(callers.ask(remove(CAS + 1)), CasMismatchException())


def test_one_cas_for_two_contents() -> None:
    """Who is told a CAS twice finds the same twice."""
    callers = Callers()
    value = callers.upsert()
    callers.find(value, CAS)
    callers.find(value, CAS)
    newer = callers.upsert()
    callers.find(newer, CAS + 1)

    with pytest.raises(Violation, match="CAS 7 is that of b'<1>', it cannot be that of b'<2>'"):
        callers.find(newer, CAS)


@pytest.mark.parametrize("is_counted", [True, False])
def test_one_cas_for_two_writes(is_counted: bool) -> None:
    """Each write is told a CAS of its own."""
    callers, number = counter()
    cas = callers.cas
    operation: DocumentOperation = touch()
    result: Result = MutationResult(Cas(cas))
    if is_counted:
        delta, _ = callers.model.unique_values.counter()
        operation, result = Increment(TRAVEL, "ada", delta), CounterResult(number + delta, Cas(cas))
    token = callers.ask(operation)

    with pytest.raises(Violation, match=rf"was told CAS {cas}, which is that of operation 1 \(increment 'ada'\)"):
        callers.hear(token, result)


def test_known_cas() -> None:
    """Reads, writes and counts tell it, a question and a locked document do not; each document has its own."""
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
    """A lock is certainly held from when it was told until its time is over, counted from when it was asked for."""
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


def test_lock_of_a_document_that_expires() -> None:
    """It is held at most until the document may have expired."""
    callers = Callers()
    callers.change(upsert(value := callers.model.unique_values.fragment(), expiry=5))
    asked = callers.model.now - 1
    callers.hear(callers.ask(lock(15)), found(value, CAS))

    assert {PLACE: Lock(Cas(CAS), asked + 5)} == callers.model.locks


def test_lock_that_is_given_up() -> None:
    """Its holder is who gives its CAS; whoever gives another, or none, waits."""
    callers = Callers()
    value = callers.upsert()
    callers.hear(callers.ask(lock(15)), found(value, CAS))
    callers.ask(remove())
    callers.ask(remove(CAS - 1))

    assert [PLACE] == list(callers.model.locks)

    callers.hear(callers.ask(Unlock(TRAVEL, "ada", Cas(CAS))), Done())

    assert {} == callers.model.locks
