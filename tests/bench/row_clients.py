"""``python -m tests.bench.row_clients CLIENT SERVER STATEMENT ROWS``: one client reads the rows of one query, and ends.

Each client runs in a separate process, so that its cost and memory can be measured alone; on Linux, it runs on one
core. Connecting and a first small query are not measured. The output is JSON with the cost of a row by unit and, on
Linux, the memory of the query.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import msgspec
import trio

from tests.bench.canned_rows import BLOCK_ROWS, statement
from tests.bench.turns import Stopwatch

MEMORY = "MB of memory"
"""Growth of the process at its peak, compared with its memory before the query."""
PAGE_MB = 4096 / 1e6
STATUS, RESET_PEAK = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Server(msgspec.Struct):
    """Server of the rows."""

    connection_string: str
    username: str
    password: str
    query_port: int

    @property
    def url(self) -> str:
        """URL of the query service."""
        return f"http://127.0.0.1:{self.query_port}/query/service"


class Job(NamedTuple):
    """Server, statement and number of rows."""

    server: Server
    statement: str
    rows: int


class Person(msgspec.Struct):
    """Row type."""

    id: int
    name: str
    age: int
    active: bool
    score: float
    bio: str


def triclinium(job: Job, row_type: type | None = None) -> Mapping[str, float]:
    """Read with triclinium: ``async for`` over the rows as they arrive."""
    from triclinium import PasswordAuthenticator, open_cluster  # noqa: PLC0415 - the other clients do not need it

    async def main() -> Mapping[str, float]:
        authenticator = PasswordAuthenticator(job.server.username, job.server.password)
        async with open_cluster(job.server.connection_string, authenticator) as cluster:

            async def read(asked: str) -> int:
                count = 0
                async with cluster.query(asked, row_type=row_type) as result:
                    async for _ in result:
                        count += 1
                return count

            await read(statement(BLOCK_ROWS))
            return await measured_async(job, read)

    return trio.run(main)


def couchbase(job: Job) -> Mapping[str, float]:
    """Read with the official client's blocking API."""
    authenticator = import_module("couchbase.auth").PasswordAuthenticator(job.server.username, job.server.password)
    options = import_module("couchbase.options").ClusterOptions(authenticator)
    with closing(import_module("couchbase.cluster").Cluster.connect(job.server.connection_string, options)) as cluster:

        def read(asked: str) -> int:
            return sum(1 for _ in cluster.query(asked))

        read(statement(BLOCK_ROWS))
        return measured(job, read)


def httpx(job: Job) -> Mapping[str, float]:
    """Read the complete body with httpx, and parse it with ``json.loads``."""
    with import_module("httpx").Client(auth=(job.server.username, job.server.password)) as client:

        def read(asked: str) -> int:
            return len(json.loads(client.post(job.server.url, json={"statement": asked}).content)["results"])

        read(statement(BLOCK_ROWS))
        return measured(job, read)


CLIENTS: Mapping[str, Callable[[Job], Mapping[str, float]]] = {
    "triclinium": triclinium,
    "triclinium, row_type": lambda job: triclinium(job, Person),
    "triclinium, bytes": lambda job: triclinium(job, bytes),
    "couchbase": couchbase,
    "httpx, json.loads": httpx,
}
"""Clients by name; the word before a comma is the required package."""


def measured(job: Job, read: Callable[[str], int]) -> Mapping[str, float]:
    """Return the cost of a row."""
    before = memory_now()
    with Stopwatch() as watch:
        found = read(job.statement)
    return said(job, found, watch, before)


async def measured_async(job: Job, read: Callable[[str], Awaitable[int]]) -> Mapping[str, float]:
    """Return the cost of a row."""
    before = memory_now()
    with Stopwatch() as watch:
        found = await read(job.statement)
    return said(job, found, watch, before)


def said(job: Job, found: int, watch: Stopwatch, before: float | None) -> Mapping[str, float]:
    """Return the cost of a row and, if the system reports it, the memory of the query."""
    if found != job.rows:
        raise AssertionError(f"number of rows read: {found}; expected: {job.rows}")
    if before is None:
        return watch.both(found)
    # Report one page if the peak did not grow, because the query's memory was too small to measure.
    return {**watch.both(found), MEMORY: max(PAGE_MB, memory("VmHWM") - before)}


def memory_now() -> float | None:
    """Return the memory of the process, and reset its peak; None if the system cannot reset it."""
    try:
        # Reset the peak of the resident set to its current size by writing 5 (Linux, proc(5)).
        RESET_PEAK.write_text("5", encoding="ascii")
        return memory("VmRSS")
    except OSError:
        return None


def memory(what: str) -> float:
    """Return megabytes of the resident set: ``VmRSS`` for the current size, ``VmHWM`` for its peak."""
    found = re.search(rf"^{what}:\s+(\d+) kB$", STATUS.read_text(encoding="ascii"), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024 / 1e6


def main(client: str, server: str, asked: str, rows: str) -> None:
    """Measure, on one core if the system supports it, and print the results."""
    if sys.platform == "linux":
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    job = Job(msgspec.json.decode(server, type=Server), asked, int(rows))
    sys.stdout.write(json.dumps(CLIENTS[client](job)))


if __name__ == "__main__":
    main(*sys.argv[1:])
