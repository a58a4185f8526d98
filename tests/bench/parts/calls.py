"""Own Python calls of one get, counted and not timed: how straight its way is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial

from tests.bench.own_calls import GETS, of_fake_cluster, of_memcached, own_calls
from tests.bench.servers import memcached
from tests.bench.turns import Effort, Row, measure
from triclinium import Collection


def rows(_: Effort) -> Iterator[Row]:
    """Count."""
    with memcached() as server:
        turns = {
            "memcached": None if server is None else partial(calls, partial(of_memcached, server.connection_string)),
            "a bucket of the fake cluster": partial(calls, of_fake_cluster),
        }
        yield from measure("own calls", "get, 64 tasks", turns, Effort(rounds=1))


def calls(open_collection: Callable[[], AbstractAsyncContextManager[Collection]]) -> Mapping[str, float]:
    """Return how many functions of ours a get enters."""
    return {"calls": own_calls(open_collection()).of.total() / GETS}
