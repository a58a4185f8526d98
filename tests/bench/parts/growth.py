"""Growth of costs with the number of tasks, nodes and collections, and with the size of the cluster map."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping
from functools import partial

import trio

from tests.bench.clients import KEYS, Job, Kind, fill, triclinium
from tests.bench.replay import Rehearsal, ReplayScript
from tests.bench.servers import memcached
from tests.bench.turns import Effort, Row, Stopwatch, Turn, measure
from triclinium_core.kv.operation.document_operations import Get, Keyspace, Upsert
from triclinium_core.kv.topology.cluster_config import parse_cluster_config
from triclinium_core.kv.wire.constants import HelloFeature
from triclinium_core.testing import FakeNodeOptions, FakeNodes
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES
from triclinium_core.testing.fakes.store.config import encode_config

TASKS: Mapping[int, int] = {256: 8_192, 1: 500, 16: 2_000, 1_024: 8_192, 10_000: 20_000}
"""Number of gets that the tasks share, by the number of tasks. The other entries are compared to the first."""
PERCENTILES: Mapping[str, int] = {"p50 in ms": 500, "p99 in ms": 990, "p999 in ms": 999}
NODES = (1, 10, 100)
NODES_OF_A_MAP = (2, 10, 100)
COLLECTIONS = (1, 100, 10_000)
GETS = 2_048
DOCUMENTS = 16_384
"""Number of documents in all collections. Each of 100 collections has 163 or 164, each of 10,000 has 1 or 2."""
AT_ONCE = (1, 256)
CHANGES = 8
BUCKET = "travel"
NOTIFICATIONS = {HelloFeature.CLUSTERMAP_NOTIFICATION, HelloFeature.CLUSTERMAP_NOTIFICATION_BRIEF}


def rows(effort: Effort) -> Iterator[Row]:
    """Measure."""
    yield from tasks(effort)
    for at_once in AT_ONCE:
        turns = {_counted(count, "node"): gets_from_nodes(count, at_once, effort).play for count in NODES}
        yield from measure("growth: nodes", f"a get through the core, {at_once} at once", turns, effort)
    turns = {_counted(count, "collection"): gets_from_collections(count, effort).play for count in COLLECTIONS}
    yield from measure("growth: collections", "a get through the core, 1 at once", turns, effort)
    turns = {_counted(count, "node"): partial(parses, count, effort) for count in NODES_OF_A_MAP}
    yield from measure("growth: a map of 1024 vbuckets", "parsed", turns, effort)
    turns = {_counted(count, "node"): changes(count, effort).play for count in NODES_OF_A_MAP}
    yield from measure("growth: a map of 1024 vbuckets", "parsed and applied", turns, effort)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' if count > 1 else ''}"


def tasks(effort: Effort) -> Iterator[Row]:
    """Measure the costs and the latencies of gets on a memcached, for each number of tasks."""
    with memcached() as server:
        turns: dict[str, Turn | None] = {"memcached": None}
        if server is not None:
            fill(job := Job(server, Kind.GET, bytes(100)))
            turns = {
                _counted(count, "task"): partial(trio.run, waits, job, count, effort.of(gets))
                for count, gets in TASKS.items()
            }
        yield from measure("growth: tasks", "get of 100 B", turns, effort)


async def waits(job: Job, count: int, gets: int) -> Mapping[str, float]:
    """Return the cost and the latencies of a get."""
    each, waited = -(-gets // count), list[float]()
    async with triclinium(job) as get:

        async def work(number: int) -> None:
            key = KEYS[number % len(KEYS)]
            for _ in range(each):
                began = time.perf_counter()
                await get(key)
                waited.append(time.perf_counter() - began)

        await get(KEYS[0])
        with Stopwatch() as watch:
            async with trio.open_nursery() as nursery:
                for number in range(count):
                    nursery.start_soon(work, number)
    cuts = statistics.quantiles(waited, n=1000) if len(waited) > 1 else waited * 1000
    return {**watch.both(each * count), **{unit: cuts[at - 1] * 1e3 for unit, at in PERCENTILES.items()}}


def gets_from_nodes(count: int, at_once: int, effort: Effort) -> ReplayScript:
    """Return the script of gets of documents on all nodes of a cluster."""
    rehearsal = Rehearsal(FakeNodes(FakeNodeOptions(buckets=(BUCKET,)), count))
    keyspace, keys = Keyspace(BUCKET), [f"document-{number:04}" for number in range(GETS)]
    rehearsal.do([Upsert(keyspace, key, b"{}", 0) for key in keys], len(keys))
    rehearsal.begin()
    rehearsal.do([Get(keyspace, key) for key in keys[: effort.of(GETS)]], at_once)
    return rehearsal.script()


def gets_from_collections(count: int, effort: Effort) -> ReplayScript:
    """Return the script of gets of many documents, from all collections of a bucket in turn."""
    count = min(count, effort.of(max(COLLECTIONS)))
    names = {f"collection-{number}": 8 + number for number in range(count)}
    options = FakeNodeOptions(buckets=(BUCKET,), collections={"_default": {"_default": 0}, "inventory": names})
    rehearsal = Rehearsal(FakeNodes(options, 1))
    keyspaces = [Keyspace(BUCKET, "inventory", name) for name in names]
    documents = [(keyspaces[number * 7 % count], f"document-{number}") for number in range(effort.of(DOCUMENTS))]
    # Do not time the first operation of a collection, which requests its id, or of a vbucket, which looks for a route.
    rehearsal.do([Upsert(keyspace, "ada", b"{}", 0) for keyspace in keyspaces], count)
    rehearsal.do([Upsert(*document, b"{}", 0) for document in documents], count)
    rehearsal.begin()
    rehearsal.do([Get(*document) for document in documents], 1)
    return rehearsal.script()


def parses(count: int, effort: Effort) -> Mapping[str, float]:
    """Return the cost of parsing a config."""
    nodes, changes = FakeNodes(FakeNodeOptions(buckets=(BUCKET,)), count), effort.of(CHANGES)
    document = encode_config(nodes.map, nodes[0].cluster.nodes, 0, nodes[0].cluster.buckets[BUCKET])
    with Stopwatch() as watch:
        for _ in range(changes):
            parse_cluster_config(document, host="127.0.0.1")
    return watch.processor(changes)


def changes(count: int, effort: Effort) -> ReplayScript:
    """Return the script of gets of one document. Its vbucket moves before each get, which brings a new map."""
    options = FakeNodeOptions(buckets=(BUCKET,), features=IMPLEMENTED_FEATURES - NOTIFICATIONS)
    nodes = FakeNodes(options, count)
    rehearsal, get = Rehearsal(nodes), Get(Keyspace(BUCKET), "ada")
    rehearsal.do([Upsert(get.keyspace, get.key, b"{}", 0)], 1)
    rehearsal.begin()
    for _ in range(effort.of(CHANGES)):
        owner = nodes.owner_of(get.key) or 0
        nodes.move(nodes.vbuckets_of(owner), to=(owner + 1) % count)
        rehearsal.do([get], 1)
    return rehearsal.script()
