"""Start-up time of processes that only import, that also connect, and that also read one document."""

from __future__ import annotations

import importlib.util
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from tempfile import TemporaryDirectory
from unittest.mock import patch

import trio

from tests.bench.clients import collection_of
from tests.bench.servers import BenchServer, fake_node
from tests.bench.turns import Effort, Row, measure

KEY = "ada"
MS, WALL_MS = "ms of processor time", "ms of wall clock"

IMPORTS: Mapping[str, str] = {
    "triclinium": "from triclinium import open_cluster",
    "no import": "",
    "trio": "import trio",
    "couchbase": "import couchbase.cluster, couchbase.options, couchbase.auth",
}

CONNECT: Mapping[str, str] = {
    "triclinium": """
import sys, trio
from triclinium import PasswordAuthenticator, open_cluster
connection_string, username, password, bucket, *keys = sys.argv[1:]
async def main():
    async with open_cluster(connection_string, PasswordAuthenticator(username, password)) as cluster:
        await cluster.bucket(bucket).wait_until_ready()
        for key in keys:
            (await cluster.bucket(bucket).default_collection().get(key)).content
trio.run(main)
""",
    "couchbase": """
import sys
from couchbase.auth import PasswordAuthenticator
from couchbase.cluster import Cluster
from couchbase.options import ClusterOptions
connection_string, username, password, bucket, *keys = sys.argv[1:]
cluster = Cluster.connect(connection_string, ClusterOptions(PasswordAuthenticator(username, password)))
collection = cluster.bucket(bucket).default_collection()
for key in keys:
    collection.get(key).value
cluster.close()
""",
}


def rows(effort: Effort) -> Iterator[Row]:
    """Measure."""
    # Run at most three rounds, because each turn starts a complete process.
    effort = effort._replace(rounds=min(effort.rounds, 3))
    with TemporaryDirectory() as bytecode, fake_node() as server, patch.dict(os.environ, PYTHONPYCACHEPREFIX=bytecode):
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        yield from _measured("import", IMPORTS, (), effort)
        trio.run(_write, server)
        address = (server.connection_string, server.username, server.password, server.bucket)
        yield from _measured("import and connect to a bucket", CONNECT, address, effort)
        yield from _measured("import, connect, first get", CONNECT, (*address, KEY), effort)


async def _write(server: BenchServer) -> None:
    async with collection_of(server) as collection:
        await collection.upsert(KEY, {})


def _measured(what: str, programs: Mapping[str, str], arguments: Sequence[str], effort: Effort) -> Iterator[Row]:
    turns = {
        name: None if name == "couchbase" and importlib.util.find_spec(name) is None else partial(process, *command)
        for name, program in programs.items()
        for command in [(sys.executable, "-c", program, *arguments)]
    }
    for turn in turns.values():
        if turn is not None:
            # Compile all modules before the measurement, as pip does when it installs them.
            turn()
    yield from measure("start-up", what, turns, effort)


def process(*command: str) -> Mapping[str, float]:
    """Return the cost of a process from its start to its end."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {MS: processor * 1e3, WALL_MS: wall * 1e3}
