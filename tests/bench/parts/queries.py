"""Rows of a query end to end, and concurrent queries: triclinium, the official client, and httpx with ``json.loads``.

The server has every response prepared, and affects only the wall clock.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module

import msgspec
import trio

from tests.bench.canned_rows import statement
from tests.bench.row_clients import CLIENTS, Server
from tests.bench.servers import canned_rows
from tests.bench.turns import Effort, Row, Stopwatch, Turn, measure
from triclinium import PasswordAuthenticator, open_cluster

ROWS = (100_000, 1_000_000)
WITH_VARIANTS = 100_000
"""Number of rows for which all variants of triclinium are measured."""
STREAMED = ("triclinium", "couchbase", "httpx, json.loads")
AT_ONCE = 1_000
ROWS_OF_EACH = 10
CONNECTIONS = 64
"""Default number of triclinium's connections to the service, which is also the limit for httpx."""

Query = Callable[[], Awaitable[int]]


def rows(effort: Effort) -> Iterator[Row]:
    """Measure."""
    # One round is enough for a million rows, for rows in chunks, and for a thousand queries.
    once = effort._replace(rounds=1)
    with canned_rows() as server:
        for full in ROWS:
            count, clients = effort.of(full), list(CLIENTS) if full == WITH_VARIANTS else STREAMED
            rounds = effort.long if full <= WITH_VARIANTS else once
            yield from _rows_of_a_query(server, f"{count:,} rows", count, clients, rounds)
        count = effort.of(WITH_VARIANTS)
        what = f"{count:,} rows, in chunks of 4 KiB"
        yield from _rows_of_a_query(server, what, count, STREAMED, once, chunked=True)
        yield from _at_once(server, effort.of(AT_ONCE), once)


def _rows_of_a_query(
    server: Server, what: str, count: int, clients: Sequence[str], effort: Effort, *, chunked: bool = False
) -> Iterator[Row]:
    asked = statement(count, chunked=chunked)
    turns = {name: partial(process, name, server, asked, count) if _is_there(name) else None for name in clients}
    yield from measure("queries: rows of a query", what, turns, effort)


def _is_there(client: str) -> bool:
    return importlib.util.find_spec(client.partition(",")[0]) is not None


def process(client: str, server: Server, asked: str, count: int) -> Mapping[str, float]:
    """Return the cost of a row, as reported by a separate process."""
    command = [sys.executable, "-m", "tests.bench.row_clients", client, msgspec.json.encode(server).decode(), asked]
    ran = subprocess.run([*command, str(count)], check=True, stdout=subprocess.PIPE)
    return msgspec.json.decode(ran.stdout, type=dict[str, float])


def _at_once(server: Server, count: int, effort: Effort) -> Iterator[Row]:
    contenders: Mapping[str, Turn] = {
        "triclinium": lambda: trio.run(triclinium, server, count),
        "couchbase, asyncio": lambda: asyncio.run(couchbase(server, count)),
        "httpx, trio": lambda: trio.run(httpx, server, count),
    }
    turns = {name: turn if _is_there(name) else None for name, turn in contenders.items()}
    yield from measure("queries: many at once", f"{count:,} queries of {ROWS_OF_EACH} rows", turns, effort)


async def triclinium(server: Server, count: int) -> Mapping[str, float]:
    """Query with triclinium, with one task per query."""
    authenticator = PasswordAuthenticator(server.username, server.password)
    asked = statement(ROWS_OF_EACH)
    async with open_cluster(server.connection_string, authenticator) as cluster:

        async def query() -> int:
            async with cluster.query(asked) as result:
                return len([row async for row in result])

        return await measured_at_once(in_nursery, query, count)


async def couchbase(server: Server, count: int) -> Mapping[str, float]:
    """Query with the official client's asyncio API."""
    authenticator = import_module("couchbase.auth").PasswordAuthenticator(server.username, server.password)
    options = import_module("couchbase.options").ClusterOptions(authenticator)
    cluster = await import_module("acouchbase.cluster").Cluster.connect(server.connection_string, options)
    asked = statement(ROWS_OF_EACH)

    async def query() -> int:
        return len([row async for row in cluster.query(asked)])

    try:
        return await measured_at_once(gathered, query, count)
    finally:
        await cluster.close()


AtOnce = Callable[[Query, int], Awaitable[Sequence[int]]]


async def httpx(server: Server, count: int) -> Mapping[str, float]:
    """Query with httpx, and parse the complete body with ``json.loads``."""
    theirs = import_module("httpx")
    limits = theirs.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
    asked = {"statement": statement(ROWS_OF_EACH)}
    # Turn off the timeout, because the last queries wait for a connection until nearly all others are complete.
    async with theirs.AsyncClient(auth=(server.username, server.password), limits=limits, timeout=None) as client:

        async def query() -> int:
            return len(json.loads((await client.post(server.url, json=asked)).content)["results"])

        return await measured_at_once(in_nursery, query, count)


async def measured_at_once(at_once: AtOnce, query: Query, count: int) -> Mapping[str, float]:
    """Open the connections with some queries, and then return the cost of each of ``count`` queries."""
    await at_once(query, CONNECTIONS)
    with Stopwatch() as watch:
        found = await at_once(query, count)
    if list(found) != [ROWS_OF_EACH] * count:
        raise AssertionError(f"{found!r} rows were read; expected for each query: {ROWS_OF_EACH}")
    return watch.both(count)


async def in_nursery(query: Query, count: int) -> Sequence[int]:
    """Run queries in trio tasks."""
    found: list[int] = []

    async def one() -> None:
        found.append(await query())

    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(one)
    return found


async def gathered(query: Query, count: int) -> Sequence[int]:
    """Run queries in asyncio tasks."""
    return await asyncio.gather(*(query() for _ in range(count)))
