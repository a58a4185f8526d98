"""Official client in a separate process."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import trio

from tests.live.line_process import LineProcess
from triclinium.testing import FakeCluster
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing import FakeNodes


def worker(module: str, *arguments: str) -> LineProcess:
    """Return the process of a worker, a module of this folder."""
    return LineProcess([sys.executable, "-m", f"tests.live.{module}", *arguments])


@contextmanager
def connected(module: str, served: Mapping[str, Any]) -> Iterator[LineProcess]:
    """Yield a worker that is connected to ``triclinium serve``."""
    address = [served[name] for name in ("connection_string", "username", "password", "bucket")]
    with worker(module, *address) as client:
        assert {"result": "connected"} == client.hear()
        yield client


class Official:
    """Official client of nodes in this process, which continue while a task waits for the client."""

    def __init__(self, process: LineProcess, first: Mapping[str, Any]) -> None:
        self._process = process
        self.first = first
        """First line of its output."""

    async def ask(self, **question: Any) -> Mapping[str, Any]:
        """Return the answer to one question."""
        return await trio.to_thread.run_sync(partial(self._process.ask, **question))


@asynccontextmanager
async def in_background(process: LineProcess) -> AsyncIterator[Official]:
    """Yield the official client of a worker, connected or refused."""
    await trio.to_thread.run_sync(process.__enter__)
    try:
        yield Official(process, await trio.to_thread.run_sync(process.hear))
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(process.__exit__)


@asynccontextmanager
async def official_client(fake: FakeCluster, *, poll_seconds: float = 2.5) -> AsyncIterator[Official]:
    """Yield the official client, connected to ``fake``.

    Args:
        poll_seconds: interval at which the client polls for a new config, unless nodes push their configs.
    """
    options = fake.node.options
    address = (fake.connection_string, options.username, options.password, options.buckets[0], str(poll_seconds))
    async with in_background(worker("official_worker", *address)) as official:
        assert {"result": "connected"} == official.first
        yield official


def written(nodes: FakeNodes) -> list[set[tuple[str, int]]]:
    """Return the keys and collection ids that each node has stored, and clear the command logs."""
    found = []
    for node in nodes:
        stored = [each for each in node.command_log if (each.opcode, each.status) == (Opcode.SET, Status.SUCCESS)]
        found.append({(each.key.decode(), each.collection_id) for each in stored})
        node.command_log.clear()
    return found


def placed(nodes: FakeNodes, keys: Sequence[str], collection_id: int = 0) -> list[set[tuple[str, int]]]:
    """Return the result of ``written`` if each document was stored by the node of its vbucket only."""
    return [{(key, collection_id) for key in keys if nodes.owner_of(key) == index} for index in range(len(nodes))]
