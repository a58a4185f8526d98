"""Cost of tapes: gets of 256 tasks without a tape, and with each kind of tape."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from pathlib import Path

import trio

from tests.bench.clients import Job, Kind, collection_of
from tests.bench.parts.bulk import AT_ONCE, DOCUMENTS, in_bulk, in_tasks, keys_of
from tests.bench.servers import memcached
from tests.bench.turns import Effort, Row, Stopwatch, Turn, measure
from triclinium.tapes import DecisionTape, EventTape


def rows(effort: Effort) -> Iterator[Row]:
    """Measure. A turn ends when the client is closed, so it includes the writing of a file."""
    with memcached() as server, tempfile.TemporaryDirectory() as folder:
        turns: Mapping[str, Turn | None] = {"memcached": None}
        if server is not None:
            job, numbers = Job(server, Kind.GET, bytes(100)), count()
            tapes: Mapping[str, Callable[[], DecisionTape | EventTape | None]] = {
                "no tape": lambda: None,
                "ring": DecisionTape.ring,
                "ring with pseudonyms": lambda: DecisionTape.ring(pseudonyms=True),
                "file": lambda: DecisionTape(Path(folder) / str(next(numbers))),
                "event tape": lambda: EventTape(Path(folder) / str(next(numbers))),
            }
            documents = effort.of(DOCUMENTS)
            turns = {name: partial(trio.run, _timed, job, documents, make) for name, make in tapes.items()}
        yield from measure("tapes", f"get of 100 B, {AT_ONCE} tasks", turns, effort)


async def _timed(job: Job, documents: int, make: Callable[[], DecisionTape | EventTape | None]) -> Mapping[str, float]:
    keys = keys_of(documents)
    async with collection_of(job.server) as collection:
        await in_bulk(collection, job._replace(kind=Kind.SET), keys)
    with Stopwatch() as watch:
        async with collection_of(job.server, tape=make()) as collection:
            await in_tasks(collection, job, keys)
    return watch.both(len(keys))
