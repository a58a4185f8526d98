"""Durable writes that are prepared: how replication, death, the map and time end them."""

from __future__ import annotations

import math

import pytest

from tests.rows import rows
from triclinium_core.retry.kv_status import Status
from triclinium_core.testing.fakes.answers import Refused
from triclinium_core.testing.fakes.cluster_map import NO_NODE, ConfigVersion, FakeMap
from triclinium_core.testing.fakes.documents import Address, FakeDocuments
from triclinium_core.testing.fakes.sync_writes import SyncWrite, SyncWrites, check_possible, majority_of

ADDRESS = Address("travel", 0, 0, b"ada")
VERSION = ConfigVersion(1, 1)


def of(*chain: int) -> FakeMap:
    """Return a map of one vbucket."""
    owner, *replicas = chain
    return FakeMap(VERSION, (0, 1, 2, 3), (owner,), tuple((replica,) for replica in replicas))


class Prepared:
    """One write of node 0, due after five seconds, and what may become of it."""

    def __init__(self) -> None:
        self.documents = FakeDocuments(vbuckets=128, wall_seconds_at_zero=0.0)
        self.writes = SyncWrites(self.documents)
        with self.documents.hiding() as written:
            self.documents.write(ADDRESS, b"2", flags=0, expires_at=math.inf)
        (document,) = written
        self.write = SyncWrite(ADDRESS, document, active=0, due=5.0)
        self.writes.add(self.write)

    def review(self, *chain: int, dead: set[int] | None = None, held: set[int] | None = None) -> None:
        """Have it go on with a map of this chain."""
        self.writes.review(of(*chain), dead=dead or set(), held=held or set())

    @property
    def end(self) -> str:
        """What became of it."""
        if self.documents.find(ADDRESS) is not None:
            return "committed"
        return "aborted" if self.writes.due_of(self.write.active) == math.inf and not self.write.is_left else "pending"


@rows(
    ("chain", "unreachable", "end"),
    [
        ((0,), set(), "committed"),
        ((0, 1), set(), "committed"),
        ((0, 1), {1}, "pending"),
        ((0, 1, 2), {1}, "committed"),
        ((0, 1, 2), {2}, "committed"),
        ((0, 1, 2), {1, 2}, "pending"),
        ((0, NO_NODE, 2), set(), "committed"),
        ((0, NO_NODE, 2), {2}, "pending"),
        ((0, NO_NODE, NO_NODE), set(), "aborted"),
        ((0, NO_NODE), set(), "aborted"),
    ],
)
@rows("how", ["dead", "held"])
def test_replication(chain: tuple[int, ...], unreachable: set[int], end: str, how: str) -> None:
    """Most of the copies that there are to be have to have it; too few nodes for that end it."""
    prepared = Prepared()
    prepared.review(*chain, **{how: unreachable})

    assert end == prepared.end
    assert {"committed": Status.SUCCESS, "aborted": Status.SYNC_WRITE_AMBIGUOUS, "pending": None}[
        end
    ] == prepared.write.told


def test_acknowledgements_add_up() -> None:
    """A node that had it counts, also when it is dead by now."""
    prepared = Prepared()
    prepared.review(0, 1, 2, dead={1, 2})
    prepared.write.holders.add(2)
    prepared.review(0, 1, 2, dead={1, 2})

    assert "committed" == prepared.end


def test_time() -> None:
    """At the very instant at which it is due."""
    prepared = Prepared()
    prepared.review(0, 1, held={1})
    prepared.writes.expire(math.nextafter(5.0, 0.0))
    before = prepared.end, prepared.writes.due_of(0), prepared.writes.due_of(1)
    prepared.writes.expire(5.0)

    assert ("pending", 5.0, math.inf) == before
    assert ("aborted", Status.SYNC_WRITE_AMBIGUOUS) == (prepared.end, prepared.write.told)
    assert prepared.documents.get_prepared("travel", "ada") is None


def test_nobody_is_told_twice() -> None:
    """The vbucket moves, so the client is told that it is ambiguous, and stays told so when it is committed."""
    prepared = Prepared()
    prepared.review(1, 2, held={2})
    moved = prepared.end, prepared.write.told, prepared.write.is_left
    prepared.writes.expire(1e9)
    prepared.review(1, 2)

    assert ("pending", Status.SYNC_WRITE_AMBIGUOUS, True) == moved
    assert ("committed", Status.SYNC_WRITE_AMBIGUOUS) == (prepared.end, prepared.write.told)


@pytest.mark.parametrize(("owner", "end"), [(1, "aborted"), (2, "pending")])
def test_failover(owner: int, end: str) -> None:
    """Left to the node that takes over where that one has it."""
    prepared = Prepared()
    prepared.write.holders.add(2)
    prepared.writes.lose(3, [owner])
    untouched = prepared.end
    prepared.writes.lose(0, [owner])

    assert ("pending", end) == (untouched, prepared.end)


def test_who_has_to_wait() -> None:
    """Writers while it is prepared, readers too while it is left; nobody before and after, and not for other documents."""
    prepared = Prepared()
    said: list[list[Status | None]] = []
    for change in (None, {0}, set[int]()):
        if change is not None:
            prepared.review(0, 1, dead=change)
        said.append([refusal(prepared.writes, ADDRESS, to_write=to_write) for to_write in (False, True)])

    again = Status.SYNC_WRITE_RE_COMMIT_IN_PROGRESS
    assert [[None, Status.SYNC_WRITE_IN_PROGRESS], [again, again], [None, None]] == said
    assert refusal(Prepared().writes, ADDRESS._replace(key=b"bob"), to_write=True) is None


def refusal(writes: SyncWrites, address: Address, *, to_write: bool) -> Status | None:
    """Return what somebody is told who wants a document; None where nothing is in the way."""
    try:
        writes.check_free(address, to_write=to_write)
    except Refused as refused:
        return refused.status
    return None


@pytest.mark.parametrize(
    ("chain", "majority", "possible"),
    [
        ([0], 1, True),
        ([0, 1], 2, True),
        ([0, NO_NODE], 2, False),
        ([0, 1, 2], 2, True),
        ([0, NO_NODE, 2], 2, True),
        ([0, NO_NODE, NO_NODE], 2, False),
        ([0, 1, 2, 3], 3, False),
    ],
)
def test_how_many_copies_it_takes(chain: list[int], majority: int, possible: bool) -> None:
    """Most of those that there are to be; with three replicas there is none."""
    found = True
    try:
        check_possible(chain)
    except Refused as refused:
        assert Status.DURABILITY_IMPOSSIBLE == refused.status
        found = False

    assert (majority, possible) == (majority_of(chain), found)
