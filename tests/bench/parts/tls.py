"""Costs of TLS: gets and sets through stunnel in front of a memcached, compared with gets and sets without TLS.

memcached supports TLS itself, but version 1.6.18 stalls on bursts of sets, with any client. Each row is measured in a
separate process.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager

import msgspec

from tests.bench import clients
from tests.bench.connection_memory import memory_of_connections
from tests.bench.servers import BenchServer, TlsServer, memcached, stunnel
from tests.bench.turns import Effort, Row, Turn, measure
from triclinium._driver.connector import TcpConnector
from triclinium.abc import ConnectedStream

SIZES: Mapping[int, str] = {100: "100 B", 10_240: "10 KiB"}
TASKS: Mapping[int, int] = {1: 2_000, 16: 8_192, 256: 16_384}
"""Number of concurrent tasks, and the number of operations that they share."""
ROUNDS_MIN = 5
CONNECTIONS = 40
"""Number of connections whose memory is measured together."""


class RowOfTls(msgspec.Struct, frozen=True):
    """Row of the table, as passed to the process that measures it."""

    plain: BenchServer
    tls: TlsServer
    kind: clients.Kind
    size: int
    tasks: int
    operations: int
    rounds: int


class ThroughTls:
    """Connector that always uses TLS, because the client uses no TLS with ``memcached://``."""

    def __init__(self, server: TlsServer) -> None:
        self._server = server
        self._connector = TcpConnector(server.client_context())

    async def connect(self, host: str, port: int, *, tls: bool) -> ConnectedStream:
        """Return a stream to stunnel."""
        return await self._connector.connect(host, self._server.port, tls=True)


def rows(effort: Effort) -> Iterator[Row]:
    """Measure."""
    rounds = max(effort.rounds, ROUNDS_MIN) if effort.scale == 1 else effort.rounds
    with memcached() as plain, stunnel(plain) as tls:
        if plain is None or tls is None:
            missing = {"memcached": None} if plain is None else {"stunnel": None}
            yield from measure("TLS: gets of 100 B", "1 task", missing, effort)
            return
        for size, name in SIZES.items():
            for kind in clients.Kind:
                clients.fill(clients.Job(plain, clients.Kind.SET, bytes(size)))
                for tasks, operations in TASKS.items():
                    one = RowOfTls(plain, tls, kind, size, tasks, effort.of(operations), rounds)
                    yield from in_a_process(one, f"TLS: {kind.value}s of {name}")
        yield from measure("TLS: memory", "after 1 MB both ways", memory_of_connections(effort.of(CONNECTIONS)), effort)


def in_a_process(one: RowOfTls, table: str) -> Iterator[Row]:
    """Measure one row in a separate process."""
    command = [sys.executable, "-m", "tests.bench.parts.tls", table]
    found = subprocess.run(command, input=msgspec.json.encode(one), stdout=subprocess.PIPE, check=True)
    yield from msgspec.json.decode(found.stdout, type=list[Row])


def turns_of(one: RowOfTls) -> Mapping[str, Turn]:
    """Return the contenders of a row: triclinium and the bare loop, each without TLS and with TLS."""
    job = clients.Job(one.plain, one.kind, bytes(one.size))

    @asynccontextmanager
    async def ours(job: clients.Job) -> AsyncIterator[clients.Operate]:
        async with clients.triclinium(job, connector=ThroughTls(one.tls)) as operate:
            yield operate

    @asynccontextmanager
    async def bare(job: clients.Job) -> AsyncIterator[clients.Operate]:
        async with clients.bare_trio_loop_over_tls(job, one.tls) as operate:
            yield operate

    contenders = {
        "triclinium": clients.triclinium,
        "triclinium, TLS": ours,
        "bare trio loop": clients.bare_trio_loop,
        "bare trio loop, SSLStream": bare,
    }
    return {name: clients.on_trio(opened)(job, one.tasks, one.operations) for name, opened in contenders.items()}


def main() -> None:
    """Measure the row that standard input describes, and write it to standard output."""
    one = msgspec.json.decode(sys.stdin.buffer.read(), type=RowOfTls)
    what = f"{one.tasks} {'task' if one.tasks == 1 else 'tasks'}"
    found = list(measure(sys.argv[1], what, turns_of(one), Effort(one.rounds)))
    sys.stdout.buffer.write(msgspec.json.encode(found))


if __name__ == "__main__":
    main()
