"""A node that fails and comes back while the drivers of the documentation have operations in flight."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from docs.howto.examples.asyncio_driver import AsyncioClient
from docs.howto.examples.control_through_http import ask
from docs.howto.examples.selectors_driver import SelectorsClient
from tests.hosts.event_loops.clients import SECONDS_MAX, Kind, Server, Step, ending
from triclinium_core.kv.operation.document_operations import Operation

pytestmark = [pytest.mark.hosts, pytest.mark.native]

KEYS = [f"key-{number}" for number in range(30)]
"""Keys of documents on all three nodes."""

QUIET_SECONDS = 0.3
"""Time without a further outcome after which all other operations wait for the failed node."""


def operations(server: Server, kind: Kind, value: bytes = b"") -> Sequence[Operation]:
    """Return one operation for each key."""
    requests = [Step(kind, key, value).request(server.keyspace) for key in KEYS]
    return [request for request in requests if isinstance(request, Operation)]


def command(served: Mapping[str, Any], text: str) -> None:
    """Kill or revive a node."""
    ask(served["control"], "/commands", text)


def test_asyncio_waits_for_a_killed_node(served: Mapping[str, Any]) -> None:
    """Reads of a killed node wait while others return; once it is revived, all return the written value."""
    server = Server.of(served)

    async def main() -> tuple[int, Sequence[object]]:
        async with asyncio.timeout(SECONDS_MAX):
            with AsyncioClient(server.machine()) as client:
                await asyncio.gather(*map(client.perform, operations(server, "upsert", b"asyncio")))
                await asyncio.to_thread(command, served, "@1: kill")
                reads = [asyncio.create_task(client.perform(read)) for read in operations(server, "get")]
                before, done = -1, 0
                while not done or done != before:
                    await asyncio.sleep(QUIET_SECONDS)
                    before, done = done, sum(read.done() for read in reads)
                await asyncio.to_thread(command, served, "@1: revive")
                return done, await asyncio.gather(*reads)

    done, outcomes = asyncio.run(main())
    assert 0 < done < len(KEYS)
    assert ["read b'asyncio'"] * len(KEYS) == list(map(ending, outcomes))


def test_selectors_wait_for_a_killed_node(served: Mapping[str, Any]) -> None:
    """Reads of a killed node wait while others return; once it is revived, all return the written value."""
    server = Server.of(served)
    with SelectorsClient(server.machine()) as client:
        client.perform(*operations(server, "upsert", b"selectors"))
        command(served, "@1: kill")
        reads = client.submit(*operations(server, "get"))
        before, done = -1, 0
        while not done or done != before:
            until = time.monotonic() + QUIET_SECONDS
            while time.monotonic() < until:
                client.turn(QUIET_SECONDS)
            before, done = done, len(client.outcomes)
        command(served, "@1: revive")
        while len(client.outcomes) < len(KEYS):
            client.turn()
        outcomes = [client.outcomes.pop(read) for read in reads]

    assert 0 < done < len(KEYS)
    assert ["read b'selectors'"] * len(KEYS) == list(map(ending, outcomes))
