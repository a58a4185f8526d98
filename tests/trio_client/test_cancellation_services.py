"""Cancellation of queries and management calls at every moment, after which the client still works."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pytest
import trio

from tests.trio_client.cancelling import Ending, Moments, at_every_moment, end_of
from tests.trio_client.recorded_telemetry import RecordingTracer
from triclinium import Cluster
from triclinium.management import CollectionManager, UpdateCollectionSettings
from triclinium.testing import FakeCluster, FakeNodeOptions, open_fake_cluster
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import ErrorMapDocument
from triclinium_core.testing.fakes.services.answers import FakeAnswer
from triclinium_core.testing.fakes.services.request_log import LoggedRequest

Record = Callable[[str, object], None]

STATEMENT = "SELECT hotels"
ANSWER = FakeAnswer(rows=[{"n": number} for number in range(3)], seconds=0.1, seconds_between_rows=0.1)
OPTIONS = FakeNodeOptions(
    buckets=("travel",),
    vbuckets=128,
    error_map=ErrorMapDocument(revision=1, rows=()),
    collections={"_default": {"_default": 0}, "old": {"hotel": 9}},
)
SETTLING_SECONDS = 6.0
"""Seconds until the client has settled: longer than any delay of these tests."""


def collections(cluster: Cluster) -> CollectionManager:
    """Return the manager of the bucket's collections."""
    return cluster.bucket("travel").collections()


async def read_rows(cluster: Cluster) -> object:
    """Read all rows of a statement, and its metadata."""
    async with cluster.query(STATEMENT, row_type=dict) as result:
        rows = await result.rows()
        return rows, (await result.metadata()).status


CALLS: Mapping[str, Callable[[Cluster], Awaitable[object]]] = {
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


@dataclass(frozen=True, slots=True)
class Life:
    """One call, and the state when no request is pending and a later call has succeeded."""

    ending: Ending
    open_operations: int
    changes: int
    """Number of executed requests that may change something."""
    tasks: Mapping[str, int]
    broken_rules: Sequence[str]


async def live(call: Callable[[Cluster], Awaitable[object]], moments: Moments) -> Life:
    """Return the result of a call that ``moments`` may cancel."""
    tracer = RecordingTracer()
    async with open_fake_cluster(options=OPTIONS, nodes=2) as fake, fake.open_client(tracer=tracer) as cluster:
        fake.nodes.script.answer(STATEMENT, ANSWER)
        ending = await end_of(partial(call, cluster), moments)
        await trio.sleep(SETTLING_SECONDS)
        async with cluster.query("SELECT 1 AS one") as result:
            assert [{"one": 1}] == await result.rows()
        await cluster.bucket("travel").default_collection().upsert("ada", 1)
        left = cluster.statistics().open_operations
        return Life(ending, left, changes(fake), moments.tasks, tracer.broken_rules)


def changes(fake: FakeCluster) -> int:
    """Return the number of executed requests that may change something."""
    logged: list[LoggedRequest] = [each for node in fake.nodes for each in node.request_log]
    return sum(each.applied and each.service is Service.MANAGEMENT and each.method != "GET" for each in logged)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_cancelled_at_every_moment(name: str, record_property: Record) -> None:
    """A cancelled call completes or is cancelled, and applies no more changes than one that is not cancelled."""
    runs = at_every_moment(partial(live, CALLS[name]))
    record_property("cancelled", ("services", name, runs.moments, runs.checkpoints))
    undisturbed, first = runs.undisturbed, runs.cancelled[0]

    assert not undisturbed.ending.was_caught
    assert (0, name != "Cluster.query") == (undisturbed.open_operations, bool(undisturbed.changes))
    assert (Ending(None, was_caught=True, is_ambiguous=False), 0) == (first.ending, first.changes)
    # At the last moment, a cancellation has no effect, except on a reader of rows, which it may still cancel.
    assert name == "Cluster.query" or undisturbed.ending == runs.cancelled[-1].ending
    assert any(life.ending.abandoned for life in runs.cancelled)
    for life in runs.cancelled:
        assert life.ending.was_caught == (life.ending.outcome is None)
        assert (0, undisturbed.tasks, []) == (life.open_operations, life.tasks, life.broken_rules)
        assert life.changes <= undisturbed.changes
