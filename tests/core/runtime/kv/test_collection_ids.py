"""Collection ids: one request for all waiters of an id, and the reasons to repeat it or to drop the id."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from triclinium_core.kv.operation.document_operations import Keyspace
from triclinium_core.runtime.kv.collection_ids import KNOWN_MAX, REVIEW_MIN, CollectionIds

BUCKET = "travel"
HOTEL, AIRLINE = Keyspace(BUCKET, "inventory", "hotel"), Keyspace(BUCKET, "inventory", "airline")


def named(collection: str) -> Keyspace:
    """Return a collection of the scope ``a``."""
    return Keyspace(BUCKET, "a", collection)


def test_missing_collections_are_not_stored() -> None:
    """The table keeps no entry for a collection that is missing, lost, outdated or dropped."""
    ids = CollectionIds(BUCKET)
    for number in range(100):
        ids.wait(named(f"missing{number}"), number, 0.0)
        ids.missing(named(f"missing{number}"))
        ids.wait(named(f"lost{number}"), number, 0.0)
        ids.connection_lost()
        ids.found(named(f"unknown{number}"), number)
        ids.outdated(named(f"unknown{number}"))
        ids.found(named(f"dropped{number}"), number)
    ids.found(named("kept"), 8)
    ids.agree({("a", "kept"): 8})

    assert 1 == len(ids)


def test_known_ids_are_bounded() -> None:
    """A full table drops its oldest id, which is requested again when needed, but never the default collection."""
    ids = CollectionIds(BUCKET)
    for number in range(KNOWN_MAX):
        ids.found(named(f"job{number}"), number + 8)
    ids.found(named("job0"), 8)
    ids.found(named("later"), 8)

    assert KNOWN_MAX == len(ids)
    assert b"\x08" == ids.prefixes[named("job0")]
    assert b"\x00" == ids.prefixes[Keyspace(BUCKET)]
    assert named("job1") not in ids.prefixes
    assert ids.wait(named("job1"), 1, 0.0)
    assert [1] == ids.found(named("job1"), 9)


def test_the_default_collection_keeps_its_id() -> None:
    """If a node or a manifest does not have the default collection, the table keeps the id of that collection."""
    ids, default = CollectionIds(BUCKET), Keyspace(BUCKET)
    ids.outdated(default)
    ids.agree({})
    ids.found(HOTEL, 8)

    assert {HOTEL: b"\x08", default: b"\x00"} == ids.prefixes
    assert {default: b""} == ids.no_prefixes


def test_reviews_are_due_at_each_doubling() -> None:
    """A manifest is due whenever the number of ids has doubled since the start or since the last manifest."""
    ids = CollectionIds(BUCKET)
    due = list[int]()
    for number in range(4 * REVIEW_MIN):
        ids.found(named(f"job{number}"), number + 8)
        if ids.has_to_be_reviewed():
            due.append(len(ids))
    ids.agree({("a", f"job{number}"): number + 8 for number in range(REVIEW_MIN)})
    left = len(ids)
    for number in range(REVIEW_MIN):
        assert not ids.has_to_be_reviewed()
        ids.found(named(f"new{number}"), number + 8)

    assert [REVIEW_MIN, 2 * REVIEW_MIN, 4 * REVIEW_MIN] == due
    assert REVIEW_MIN == left
    assert ids.has_to_be_reviewed()


def test_open_questions_are_not_dropped_for_room() -> None:
    """A full table keeps each pending request that has waiters."""
    ids = CollectionIds(BUCKET)
    ids.wait(HOTEL, 1, 0.0)
    for number in range(KNOWN_MAX + 1):
        ids.found(named(f"job{number}"), number + 8)

    assert KNOWN_MAX + 1 == len(ids)
    assert [1] == ids.found(HOTEL, 8)


def test_a_lost_question_without_waiters_is_dropped() -> None:
    """If a pending request has no waiters and no response, the table drops it."""
    ids = CollectionIds(BUCKET)
    for number in range(100):
        ids.wait(named(f"job{number}"), number, 0.0)
        ids.stop_waiting(named(f"job{number}"), number)
    asked = [ids.request_again(named(f"job{number}"), 0.5) for number in range(100)]

    assert not any(asked)
    assert 0 == len(ids)


def test_a_manifest_drops_outdated_ids() -> None:
    """A manifest drops the ids of collections that it lacks or that have another id in it; pending requests stay."""
    ids = CollectionIds(BUCKET)
    for keyspace, collection_id in ((named("kept"), 8), (named("dropped"), 9), (named("anew"), 10)):
        ids.found(keyspace, collection_id)
    ids.wait(named("asked"), 1, 0.0)
    ids.agree({("a", "kept"): 8, ("a", "anew"): 11, ("a", "asked"): 12})

    assert [b"\x08", None, None] == [
        ids.prefixes.get(keyspace) for keyspace in (named("kept"), named("dropped"), named("anew"))
    ]
    assert [1] == ids.found(named("asked"), 12)


def test_a_late_waiter_repeats_the_request() -> None:
    """If a request has had no response for half a second, the next waiter repeats it; an outdated id does not."""
    ids = CollectionIds(BUCKET)
    ids.wait(HOTEL, 1, 0.0)
    ids.wait(HOTEL, 2, 0.0)
    ids.outdated(HOTEL)
    # Only the first of these waits for the id. The others change nothing.
    for waiter in (1, 1, 99):
        ids.stop_waiting(HOTEL, waiter)

    assert [False, True, False] == [ids.wait(HOTEL, waiter, now) for waiter, now in ((3, 0.4), (4, 0.5), (5, 0.6))]
    assert [2, 3, 4, 5] == ids.found(HOTEL, 8)
    assert [] == ids.found(HOTEL, 8)


def test_an_overdue_request_is_repeated() -> None:
    """An overdue request is repeated once per interval, until it has a response or no waiters."""
    ids = CollectionIds(BUCKET)
    unknown = ids.request_again(HOTEL, 9.0)
    ids.wait(HOTEL, 1, 0.0)
    asked = [ids.request_again(HOTEL, now) for now in (0.4, 0.5, 0.9, 1.0)]
    ids.stop_waiting(HOTEL, 1)
    without_waiters = ids.request_again(HOTEL, 2.0)
    ids.wait(HOTEL, 2, 2.0)
    ids.connection_lost()
    lost = ids.request_again(HOTEL, 3.0)

    assert [False, True, False, True] == asked
    assert [False, False, False] == [unknown, without_waiters, lost]


def test_connection_lost() -> None:
    """When their connection is lost, pending requests are dropped and their waiters returned; known ids stay."""
    ids = CollectionIds(BUCKET)
    ids.found(named("known"), 7)
    ids.wait(HOTEL, 1, 0.0)
    ids.wait(AIRLINE, 2, 0.0)
    ids.wait(HOTEL, 3, 0.0)

    assert [1, 3, 2] == ids.connection_lost()
    assert [] == ids.connection_lost()
    assert b"\x07" == ids.prefixes.get(named("known"))
    assert ids.wait(HOTEL, 4, 0.0)


def test_another_connection_is_lost() -> None:
    """A pending request is dropped only with the connection on which it was sent last."""
    ids = CollectionIds(BUCKET)
    ids.wait(HOTEL, 1, 0.0, "first")
    ids.request_again(HOTEL, 0.5, "second")
    ids.wait(AIRLINE, 2, 0.0, "first")

    assert [2] == ids.connection_lost("first")
    assert [1] == ids.connection_lost("second")


class EveryWaitEnds(RuleBasedStateMachine):
    """Model of the table: it releases each waiter once, and a request is in flight while there are waiters."""

    keyspaces = st.sampled_from([HOTEL, AIRLINE])

    def __init__(self) -> None:
        super().__init__()
        self.ids = CollectionIds(BUCKET)
        self.waiting: dict[Keyspace, list[int]] = {HOTEL: [], AIRLINE: []}
        self.questions = {HOTEL: 0, AIRLINE: 0}
        self.last = 0

    @rule(keyspace=keyspaces)
    def need(self, keyspace: Keyspace) -> None:
        if self.ids.prefixes.get(keyspace) is None:
            self.last += 1
            self.questions[keyspace] += self.ids.wait(keyspace, self.last, 0.0)
            self.waiting[keyspace].append(self.last)

    @rule(keyspace=keyspaces, missing=st.booleans())
    def answer(self, keyspace: Keyspace, missing: bool) -> None:
        if self.questions[keyspace]:
            self.questions[keyspace] -= 1
            assert self.waiting[keyspace] == (self.ids.missing(keyspace) if missing else self.ids.found(keyspace, 8))
            self.waiting[keyspace] = []

    @rule(keyspace=keyspaces)
    def give_up(self, keyspace: Keyspace) -> None:
        if self.waiting[keyspace]:
            self.ids.stop_waiting(keyspace, self.waiting[keyspace].pop(0))

    @rule(keyspace=keyspaces)
    def outdate(self, keyspace: Keyspace) -> None:
        self.ids.outdated(keyspace)

    @rule()
    def lose(self) -> None:
        assert sorted([*self.waiting[HOTEL], *self.waiting[AIRLINE]]) == sorted(self.ids.connection_lost())
        self.waiting = {HOTEL: [], AIRLINE: []}
        self.questions = {HOTEL: 0, AIRLINE: 0}

    @invariant()
    def an_id_was_requested(self) -> None:
        for keyspace, waiters in self.waiting.items():
            assert not waiters or self.questions[keyspace]


TestEveryWaitEnds = EveryWaitEnds.TestCase
