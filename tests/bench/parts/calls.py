"""Number of function calls and bytecodes of one get."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial

from tests.bench.bytecodes import LAYERS, LOOP, bytecodes_of_a_get
from tests.bench.clients import Job, Kind, bare_trio_loop, bare_trio_stream, triclinium
from tests.bench.own_calls import GETS, of_fake_cluster, of_memcached, own_calls
from tests.bench.servers import memcached
from tests.bench.turns import Effort, Row, measure
from triclinium import Collection

TASKS = 64
CONTENDERS = {
    f"triclinium, {TASKS} tasks": (triclinium, TASKS),
    f"bare trio loop, {TASKS} tasks": (bare_trio_loop, TASKS),
    "triclinium, 1 task": (triclinium, 1),
    "bare trio stream, 1 task": (bare_trio_stream, 1),
}


def rows(_: Effort) -> Iterator[Row]:
    """Count calls and bytecodes, and yield a row for each figure."""
    once = Effort(rounds=1)
    with memcached() as server:
        turns = {
            "memcached": None if server is None else partial(calls, partial(of_memcached, server.connection_string)),
            "a bucket of the fake cluster": partial(calls, of_fake_cluster),
        }
        yield from measure("own calls", "get, 64 tasks", turns, once)
        if server is None:
            yield from measure("bytecodes of a get", "", dict.fromkeys(CONTENDERS), once)
            return
        job = Job(server, Kind.GET, b"x" * 100)
        found = {name: bytecodes_of_a_get(client, job, tasks) for name, (client, tasks) in CONTENDERS.items()}
    for layer in dict.fromkeys((*LAYERS.values(), LOOP)):
        counted = {name: partial(lambda of: {"bytecodes": of}, layers[layer]) for name, layers in found.items()}
        yield from measure("bytecodes of a get", layer, counted, once)


def calls(open_collection: Callable[[], AbstractAsyncContextManager[Collection]]) -> Mapping[str, float]:
    """Return the number of triclinium's function calls per get."""
    return {"calls": own_calls(open_collection()).of.total() / GETS}
