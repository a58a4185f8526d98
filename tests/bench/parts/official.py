"""Benchmark of the same documents with the official client, on one node with a bucket, vbuckets and, if supported,
collections.

With many concurrent operations, the servers are slower than any client: the time of the bare loop is the servers' time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.bench.clients import BARE_LOOP, OFFICIAL, OURS, Job, Kind, fill, turns_of
from tests.bench.servers import BenchServer, couchbase_mock, fake_node
from tests.bench.turns import Effort, Row, measure

TASKS: Mapping[int, int] = {1: 200, 16: 600, 256: 1_536}
"""Number of concurrent tasks, and the number of operations that they share."""


def rows(effort: Effort) -> Iterator[Row]:
    """Measure."""
    # Three rounds are enough, because there are many contenders, whose figures differ greatly.
    effort = effort._replace(rounds=min(effort.rounds, 3))
    with couchbase_mock() as server:
        yield from _on("CouchbaseMock", server, effort)
    with fake_node() as server:
        yield from _on("triclinium serve", server, effort)


def _on(name: str, server: BenchServer | None, effort: Effort) -> Iterator[Row]:
    for kind in Kind:
        table = f"official client: {kind.value}s on {name}"
        if server is None:
            yield from measure(table, "100 B", {name: None}, effort)
            continue
        fill(job := Job(server, kind, bytes(100)))
        for tasks, operations in TASKS.items():
            turns = turns_of({**OURS, **OFFICIAL, **BARE_LOOP}, job, tasks=tasks, operations=effort.of(operations))
            yield from measure(table, f"{tasks} {'task' if tasks == 1 else 'tasks'}", turns, effort)
