"""Cancellation of queries and management calls at every moment, after which the client still works."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pytest
import trio

from tests.trio_client.cancelling import Call, Ending, at_every_moment, live
from triclinium import Cluster
from triclinium.management import CollectionManager, UpdateCollectionSettings
from triclinium.testing import FakeAnswer, FakeCluster, FakeNodeOptions
from triclinium_core.testing import ErrorMapDocument

STATEMENT = "SELECT hotels"
ANSWER = FakeAnswer(rows=[{"n": number} for number in range(3)], seconds=0.1, seconds_between_rows=0.1)
OPTIONS = FakeNodeOptions(
    buckets=("travel",),
    vbuckets=128,
    error_map=ErrorMapDocument(revision=1, rows=()),
    collections={"_default": {"_default": 0}, "old": {"hotel": 9}},
)


def prepare(fake: FakeCluster, nursery: trio.Nursery) -> None:
    """Script the response to the statement."""
    fake.nodes.script.answer(STATEMENT, ANSWER)


def collections(cluster: Cluster) -> CollectionManager:
    """Return the manager of the bucket's collections."""
    return cluster.bucket("travel").collections()


async def read_rows(cluster: Cluster) -> object:
    """Read all rows of a statement, and its metadata."""
    async with cluster.query(STATEMENT, row_type=dict) as result:
        rows = await result.rows()
        return rows, (await result.metadata()).status


async def query(cluster: Cluster) -> None:
    """Send another query."""
    async with cluster.query("SELECT 1 AS one") as result:
        assert [{"one": 1}] == await result.rows()


CALLS: Mapping[str, Call] = {
    "Cluster.query": read_rows,
    "CollectionManager.create_collection": lambda cluster: collections(cluster).create_collection("old", "new"),
    "CollectionManager.create_scope": lambda cluster: collections(cluster).create_scope("new"),
    "CollectionManager.drop_collection": lambda cluster: collections(cluster).drop_collection("old", "hotel"),
    "CollectionManager.drop_scope": lambda cluster: collections(cluster).drop_scope("old"),
    "CollectionManager.update_collection": lambda cluster: collections(cluster).update_collection(
        "old", "hotel", UpdateCollectionSettings(max_expiry=10)
    ),
}
"""Calls that use a service and may change something."""


@pytest.mark.parametrize("name", CALLS)
def test_a_call_cancelled_at_every_moment(name: str, record_property: Callable[[str, object], None]) -> None:
    """A cancelled call completes, or is cancelled and reported as ambiguous if it may have changed something."""
    runs = at_every_moment(partial(live, OPTIONS, prepare, CALLS[name], query))
    record_property("cancelled", ("services", name, runs.moments, runs.checkpoints))
    undisturbed, first = runs.undisturbed, runs.cancelled[0]
    is_query = name == "Cluster.query"
    completed = Ending("tuple" if is_query else "NoneType", was_caught=False)

    assert (completed, 0, int(not is_query)) == (undisturbed.ending, undisturbed.open_operations, undisturbed.changes)
    assert (Ending(None, was_caught=True, is_ambiguous=False), 0) == (first.ending, first.changes)
    # At the last moment, a cancellation has no effect, except on a reader of rows, which it may still cancel.
    assert is_query or completed == runs.cancelled[-1].ending
    assert any(life.ending.abandoned for life in runs.cancelled)
    for life in runs.cancelled:
        if life.ending != completed:
            assert (None, True) == (life.ending.outcome, life.ending.was_caught)
            assert life.changes <= bool(life.ending.is_ambiguous)
        assert (0, undisturbed.tasks, []) == (life.open_operations, life.tasks, life.broken_rules)
        assert life.changes <= undisturbed.changes
