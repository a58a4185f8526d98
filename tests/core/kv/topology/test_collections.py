"""Collection ids: asked for once, kept, dropped when a node does not know them."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from triclinium_core.kv.topology.collections import KNOWN_MAX, REVIEW_MIN, CollectionIds

PATH, OTHER = "inventory.hotel", "inventory.airline"


def test_asked_once_for_many() -> None:
    """However many wait, there is one question, and its answer releases all of them in order."""
    ids = CollectionIds()

    assert [True, False, False] == [ids.wait(PATH, waiter, 0.0) for waiter in (1, 2, 3)]
    assert ids.prefix(PATH) is None
    assert [1, 2, 3] == ids.found(PATH, 8)
    assert b"\x08" == ids.prefix(PATH)


def test_outdated() -> None:
    """An id that a node did not know is dropped, and asked for again once (decision C9)."""
    ids = CollectionIds()
    ids.found(PATH, 8)
    ids.outdated(PATH)

    assert ids.prefix(PATH) is None
    assert [True, False] == [ids.wait(PATH, waiter, 0.0) for waiter in (1, 2)]

    ids.outdated(PATH)

    assert not ids.wait(PATH, 3, 0.0)
    assert [1, 2, 3] == ids.found(PATH, 9)
    assert b"\x09" == ids.prefix(PATH)


def test_nothing_is_kept_of_what_is_not_there() -> None:
    """However many names are asked for in vain, or are dropped: a client may live for years."""
    ids = CollectionIds()
    for number in range(100):
        ids.wait(f"a.missing{number}", number, 0.0)
        ids.missing(f"a.missing{number}")
        ids.wait(f"a.lost{number}", number, 0.0)
        ids.connection_lost()
        ids.found(f"a.unknown{number}", number)
        ids.outdated(f"a.unknown{number}")
        ids.found(f"a.dropped{number}", number)
    ids.found("a.kept", 8)
    ids.agree({"a.kept": 8})

    assert 1 == len(ids)


def test_known_ids_are_bounded() -> None:
    """Beyond the limit, the id that was used least recently is dropped, and the collection is asked for again."""
    ids = CollectionIds()
    for number in range(KNOWN_MAX):
        ids.found(f"a.job{number}", number + 8)
    used = ids.prefix("a.job0")
    ids.found("a.later", 8)

    assert KNOWN_MAX == len(ids)
    assert used == ids.prefix("a.job0") is not None
    assert ids.prefix("a.job1") is None
    assert ids.wait("a.job1", 1, 0.0)
    assert [1] == ids.found("a.job1", 9)


def test_a_review_is_due_at_twice_the_number_of_ids() -> None:
    """A manifest is due at each doubling of the ids, and after a review at twice the number that is left."""
    ids = CollectionIds()
    due = list[int]()
    for number in range(4 * REVIEW_MIN):
        ids.found(f"a.job{number}", number + 8)
        if ids.has_to_be_reviewed():
            due.append(len(ids))
    ids.agree({f"a.job{number}": number + 8 for number in range(REVIEW_MIN)})
    left = len(ids)
    for number in range(REVIEW_MIN):
        assert not ids.has_to_be_reviewed()
        ids.found(f"a.new{number}", number + 8)

    assert [REVIEW_MIN, 2 * REVIEW_MIN, 4 * REVIEW_MIN] == due
    assert REVIEW_MIN == left
    assert ids.has_to_be_reviewed()


def test_open_questions_are_not_dropped_for_room() -> None:
    """A full table keeps the questions that have waiters."""
    ids = CollectionIds()
    ids.wait(PATH, 1, 0.0)
    for number in range(KNOWN_MAX + 1):
        ids.found(f"a.job{number}", number + 8)

    assert KNOWN_MAX + 1 == len(ids)
    assert [1] == ids.found(PATH, 8)


def test_a_lost_question_without_waiters_is_dropped() -> None:
    """Names that were asked for and abandoned, of which no answer came, leave nothing behind."""
    ids = CollectionIds()
    for number in range(100):
        ids.wait(f"a.job{number}", number, 0.0)
        ids.stop_waiting(f"a.job{number}", number)
    asked = [ids.ask_again(f"a.job{number}", 0.5) for number in range(100)]

    assert not any(asked)
    assert 0 == len(ids)


def test_what_a_manifest_tells() -> None:
    """Ids of collections that were dropped, or made anew, are forgotten; a question that is open stays open."""
    ids = CollectionIds()
    for path, collection_id in (("a.kept", 8), ("a.dropped", 9), ("a.anew", 10)):
        ids.found(path, collection_id)
    ids.wait("a.asked", 1, 0.0)
    ids.agree({"a.kept": 8, "a.anew": 11, "a.asked": 12})

    assert [b"\x08", None, None] == [ids.prefix(path) for path in ("a.kept", "a.dropped", "a.anew")]
    assert [1] == ids.found("a.asked", 12)


def test_stop_waiting() -> None:
    """Whoever leaves is not released later; leaving twice, or without having waited, is harmless."""
    ids = CollectionIds()
    ids.wait(PATH, 1, 0.0)
    ids.wait(PATH, 2, 0.0)
    ids.stop_waiting(PATH, 1)
    ids.stop_waiting(PATH, 1)
    ids.stop_waiting(PATH, 99)
    ids.stop_waiting(OTHER, 1)

    assert [2] == ids.found(PATH, 8)


def test_asks_again_after_a_while() -> None:
    """A question that got lost does not hold up the collection for as long as the connection lives."""
    ids = CollectionIds()
    ids.wait(PATH, 1, 0.0)
    ids.wait(PATH, 2, 0.0)
    ids.stop_waiting(PATH, 1)

    assert [False, True, False] == [ids.wait(PATH, waiter, now) for waiter, now in ((3, 0.4), (4, 0.5), (5, 0.6))]
    assert [2, 3, 4, 5] == ids.found(PATH, 8)
    assert [] == ids.found(PATH, 8)


def test_asks_again_for_those_who_wait() -> None:
    """The overdue question is repeated, at most once in a while, and only as long as it is open and somebody waits."""
    ids = CollectionIds()
    unknown = ids.ask_again(PATH, 9.0)
    ids.wait(PATH, 1, 0.0)
    asked = [ids.ask_again(PATH, now) for now in (0.4, 0.5, 0.9, 1.0)]
    ids.stop_waiting(PATH, 1)
    without_waiters = ids.ask_again(PATH, 2.0)
    ids.wait(PATH, 2, 2.0)
    ids.connection_lost()
    lost = ids.ask_again(PATH, 3.0)

    assert [False, True, False, True] == asked
    assert [False, False, False] == [unknown, without_waiters, lost]


def test_connection_lost() -> None:
    """Questions are lost with their connection, known ids are not; those who waited come back."""
    ids = CollectionIds()
    ids.found("inventory.known", 7)
    ids.wait(PATH, 1, 0.0)
    ids.wait(OTHER, 2, 0.0)
    ids.wait(PATH, 3, 0.0)

    assert [1, 3, 2] == ids.connection_lost()
    assert [] == ids.connection_lost()
    assert b"\x07" == ids.prefix("inventory.known")
    assert ids.wait(PATH, 4, 0.0)


def test_another_connection_is_lost() -> None:
    """A question stays with the one that was asked last."""
    ids = CollectionIds()
    ids.wait(PATH, 1, 0.0, "first")
    ids.ask_again(PATH, 0.5, "second")
    ids.wait(OTHER, 2, 0.0, "first")

    assert [2] == ids.connection_lost("first")
    assert [1] == ids.connection_lost("second")


class NobodyWaitsForEver(RuleBasedStateMachine):
    """Every waiter is released exactly once, and as long as somebody waits a question is under way."""

    paths = st.sampled_from([PATH, OTHER])

    def __init__(self) -> None:
        super().__init__()
        self.ids = CollectionIds()
        self.waiting: dict[str, list[int]] = {PATH: [], OTHER: []}
        self.questions = {PATH: 0, OTHER: 0}
        self.last = 0

    @rule(path=paths)
    def need(self, path: str) -> None:
        if self.ids.prefix(path) is None:
            self.last += 1
            self.questions[path] += self.ids.wait(path, self.last, 0.0)
            self.waiting[path].append(self.last)

    @rule(path=paths, missing=st.booleans())
    def answer(self, path: str, missing: bool) -> None:
        if self.questions[path]:
            self.questions[path] -= 1
            assert self.waiting[path] == (self.ids.missing(path) if missing else self.ids.found(path, 8))
            self.waiting[path] = []

    @rule(path=paths)
    def give_up(self, path: str) -> None:
        if self.waiting[path]:
            self.ids.stop_waiting(path, self.waiting[path].pop(0))

    @rule(path=paths)
    def outdate(self, path: str) -> None:
        self.ids.outdated(path)

    @rule()
    def lose(self) -> None:
        assert sorted([*self.waiting[PATH], *self.waiting[OTHER]]) == sorted(self.ids.connection_lost())
        self.waiting = {PATH: [], OTHER: []}
        self.questions = {PATH: 0, OTHER: 0}

    @invariant()
    def somebody_was_asked(self) -> None:
        for path, waiters in self.waiting.items():
            assert not waiters or self.questions[path]


TestNobodyWaitsForEver = NobodyWaitsForEver.TestCase
