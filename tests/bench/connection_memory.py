"""Memory of a TLS connection, measured as the resident memory of a process that has opened and used several.

``tracemalloc`` does not see the allocations of OpenSSL.
"""

from __future__ import annotations

import ssl
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from socket import create_server, socket

import trio
import trustme

from tests.bench.row_clients import memory
from tests.bench.turns import Turn
from triclinium._driver.connector import TcpConnector
from triclinium._driver.streams import Stream
from triclinium_core.contract import neutral

KIB = "KiB"
EXCHANGED = 1_000_000
"""Number of bytes that each connection sends and receives."""
PIECE_SIZE = 250_000
HOST = "127.0.0.1"


def memory_of_connections(count: int) -> Mapping[str, Turn]:
    """Return the turns that measure connections with TLS and without."""
    return {"TLS": lambda: {KIB: weigh(count, tls=True)}, "plain": lambda: {KIB: weigh(count, tls=False)}}


def weigh(count: int, *, tls: bool) -> float:
    """Return the average memory of ``count`` connections in KiB, measured in a separate process."""
    with tempfile.TemporaryDirectory() as folder, _echo(Path(folder), tls=tls) as port:
        command = [sys.executable, "-m", "tests.bench.connection_memory", str(port), str(count), folder * tls]
        return float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


@contextmanager
def _echo(folder: Path, *, tls: bool) -> Iterator[int]:
    """Yield the port of a server that sends all received bytes back."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(HOST).configure_cert(context)

    def serve(accepted: socket) -> None:
        with context.wrap_socket(accepted, server_side=True) if tls else accepted as peer:
            while data := peer.recv(65_536):
                peer.sendall(data)

    def accept() -> None:
        while True:
            try:
                accepted, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=[accepted], daemon=True).start()

    with create_server((HOST, 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]


async def _exchange(port: int, count: int, folder: str) -> float:
    """Open connections, use them one after the other, and return the average memory that one adds, in KiB."""
    context = ssl.create_default_context(cafile=f"{folder}/ca.pem") if folder else None
    connector = TcpConnector(context)
    before = 0.0
    async with trio.open_nursery() as nursery:
        # Do not count the first connection, which loads modules and tables that all connections share.
        for number in range(count + 1):
            exchange = _Exchange(neutral.OpenStream(neutral.StreamId(number), HOST, port, tls=bool(folder)), connector)
            nursery.start_soon(exchange.stream.run)
            await exchange.done.wait()
            before = before or memory("VmRSS")
        weight = (memory("VmRSS") - before) / count * 1e6 / 1024
        nursery.cancel_scope.cancel()
    return weight


class _Exchange:
    """Connection that sends its bytes as soon as it is open, and counts the returned bytes."""

    def __init__(self, order: neutral.OpenStream, connector: TcpConnector) -> None:
        self.stream = Stream(order, connector=connector, feed=self._feed)
        self.done = trio.Event()
        self._received = 0

    def _feed(self, event: object) -> None:
        if isinstance(event, neutral.StreamOpened):
            for _ in range(EXCHANGED // PIECE_SIZE):
                self.stream.send(bytes(PIECE_SIZE))
        elif isinstance(event, neutral.BytesReceived):
            self._received += len(event.data)
            if self._received == EXCHANGED:
                self.done.set()


if __name__ == "__main__":
    sys.stdout.write(str(trio.run(_exchange, int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])))
