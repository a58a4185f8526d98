"""Gets and sets on a real memcached, compared with the minimum that trio needs and with other clients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.bench import clients
from tests.bench.servers import memcached
from tests.bench.turns import Effort, Row, measure

SIZES: Mapping[int, str] = {100: "100 B", 10_240: "10 KiB"}
ONE_TASK_OPERATIONS = 300
TASKS: Mapping[int, int] = {16: 1_000, 64: 2_048, 256: 4_096, 1024: 4_096}
"""Number of concurrent tasks, and the number of operations that they share."""


def rows(effort: Effort) -> Iterator[Row]:
    """Measure."""
    one_at_a_time = {
        **clients.OURS,
        **clients.BARE_STREAM,
        **clients.BARE_LOOP,
        **clients.OF_MEMCACHED,
        **clients.OF_MEMCACHED_BLOCKING,
    }
    many = {**clients.OURS, **clients.BARE_LOOP, **clients.OF_MEMCACHED}
    with memcached() as server:
        if server is None:
            yield from measure("end to end: one task", "get of 100 B", {"memcached": None}, effort)
            return
        for size, name in SIZES.items():
            for kind in clients.Kind:
                clients.fill(job := clients.Job(server, kind, bytes(size)))
                turns = clients.turns_of(one_at_a_time, job, tasks=1, operations=effort.of(ONE_TASK_OPERATIONS))
                yield from measure("end to end: one task", f"{kind.value} of {name}", turns, effort)
                for tasks, operations in TASKS.items():
                    turns = clients.turns_of(many, job, tasks=tasks, operations=effort.of(operations))
                    yield from measure(f"end to end: {kind.value}s of {name}", f"{tasks} tasks", turns, effort)
