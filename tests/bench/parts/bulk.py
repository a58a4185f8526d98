"""Bulk calls, compared with tasks that make single calls, and with the official client's ``*_multi``."""

from __future__ import annotations

import importlib.util
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module

import trio

from tests.bench.clients import Job, Kind, collection_of, official_options
from tests.bench.servers import fake_node, memcached
from tests.bench.turns import Effort, Row, Stopwatch, Turn, measure
from triclinium import Collection, RawBinaryTranscoder

AT_ONCE = 256
DOCUMENTS = 4_096
OF_OFFICIAL = 1_024
"""Number of documents on the fake node, which is slower than any client."""
RAW = RawBinaryTranscoder()

Work = Callable[[Collection, Job, Sequence[str]], Awaitable[None]]


def rows(effort: Effort) -> Iterator[Row]:
    """Measure."""
    with memcached() as server:
        for kind in Kind:
            turns: Mapping[str, Turn | None] = {"memcached": None}
            if server is not None:
                job, keys = Job(server, kind, bytes(100)), keys_of(effort.of(DOCUMENTS))
                turns = {
                    f"{AT_ONCE} tasks": partial(trio.run, _timed, in_tasks, job, keys),
                    f"{kind.value}s in bulk": partial(trio.run, _timed, in_bulk, job, keys),
                }
            yield from measure("bulk on memcached", f"{kind.value} of 100 B, {AT_ONCE} at once", turns, effort)
    has_official = importlib.util.find_spec("couchbase") is not None
    with fake_node() as server:
        for kind in Kind:
            job, keys = Job(server, kind, bytes(100)), keys_of(effort.of(OF_OFFICIAL))
            turns = {
                "triclinium": partial(trio.run, _timed, in_bulk, job, keys),
                "couchbase, get_multi and upsert_multi": partial(multi, job, keys) if has_official else None,
            }
            yield from measure("bulk on triclinium serve", f"{kind.value} of 100 B", turns, effort)


async def in_tasks(collection: Collection, job: Job, keys: Sequence[str]) -> None:
    """Make a call for each key in one of many tasks."""
    left = iter(keys)

    async def work() -> None:
        for key in left:
            if job.kind is Kind.GET:
                assert len((await collection.get(key, transcoder=RAW)).content_as(bytes)) == len(job.value)
            else:
                await collection.upsert(key, job.value, transcoder=RAW)

    async with trio.open_nursery() as nursery:
        for _ in range(AT_ONCE):
            nursery.start_soon(work)


async def in_bulk(collection: Collection, job: Job, keys: Sequence[str]) -> None:
    """Make one bulk call."""
    if job.kind is Kind.GET:
        async with collection.get_many(keys, concurrency=AT_ONCE, transcoder=RAW) as found:
            async for _, got in found:
                assert len(got.result().content_as(bytes)) == len(job.value)
    else:
        values = ((key, job.value) for key in keys)
        async with collection.upsert_many(values, concurrency=AT_ONCE, transcoder=RAW) as written:
            async for _, done in written:
                done.result()


async def _timed(work: Work, job: Job, keys: Sequence[str]) -> Mapping[str, float]:
    async with collection_of(job.server) as collection:
        await in_bulk(collection, job._replace(kind=Kind.SET), keys)
        with Stopwatch() as watch:
            await work(collection, job, keys)
    return watch.both(len(keys))


def multi(job: Job, keys: Sequence[str]) -> Mapping[str, float]:
    """Make one ``*_multi`` call of the official client. The processor time includes that of its C++ threads."""
    server = job.server
    cluster = import_module("couchbase.cluster").Cluster.connect(server.connection_string, official_options(server))
    collection, values = cluster.bucket(server.bucket).default_collection(), dict.fromkeys(keys, job.value)
    try:
        collection.upsert_multi(values)
        with Stopwatch() as watch:
            if job.kind is Kind.GET:
                found = collection.get_multi(list(keys))
                assert all(len(each.content_as[bytes]) == len(job.value) for each in found.results.values())
            else:
                assert collection.upsert_multi(values).all_ok
    finally:
        cluster.close()
    return watch.both(len(keys))


def keys_of(count: int) -> Sequence[str]:
    """Return keys of documents."""
    return [f"document-{number:05}" for number in range(count)]
