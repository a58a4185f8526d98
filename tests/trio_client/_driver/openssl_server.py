"""``openssl s_server``, which requests new keys and new handshakes on command."""

from __future__ import annotations

import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import trio

from tests.environment import missing
from tests.trio_client._driver.tls_peer import HOST, authority, client_context
from triclinium._driver.tls_stream import TlsStream

PATIENCE = 200.0


class OpensslServer:
    """Server that sends the lines of its standard input and writes what it receives to its standard output."""

    def __init__(self, process: trio.Process, port: int, stream: TlsStream) -> None:
        self.port = port
        self.stream = stream
        self._process = process

    async def order(self, line: str) -> None:
        """Write a line: data to send, or a command."""
        assert self._process.stdin is not None
        await self._process.stdin.send_all(line.encode() + b"\n")

    async def command(self, letter: str) -> None:
        """Send a command, and wait for its TLS record: the server treats all that it reads together as one command."""
        before = self.unread()
        await self.order(letter)
        while self.unread() == before:
            await trio.lowlevel.checkpoint()

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the server."""
        self._process.send_signal(number)

    def unread(self) -> int:
        """Return the number of bytes that wait in the client's socket."""
        try:
            return len(self.stream._socket.recv(2**20, socket.MSG_PEEK))
        except BlockingIOError:
            return 0

    async def wait_output(self, text: bytes) -> None:
        """Wait until the server has written ``text``."""
        assert self._process.stdout is not None
        output = b""
        while text not in output:
            output += await self._process.stdout.receive_some()


@asynccontextmanager
async def open_openssl(folder: Path, version: ssl.TLSVersion) -> AsyncIterator[OpensslServer]:
    """Yield a server, and a stream to it whose handshake is complete."""
    program = shutil.which("openssl") or missing("openssl", "on Debian: apt-get install openssl")
    certificate = folder / "server.pem"
    authority().issue_cert(HOST).private_key_and_cert_chain_pem.write_to_path(str(certificate))
    name = "-tls1_2" if version is ssl.TLSVersion.TLSv1_2 else "-tls1_3"
    command = [program, "s_server", "-accept", "127.0.0.1:0", "-cert", str(certificate), "-naccept", "1", name]
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            process = await nursery.start(
                partial(
                    trio.run_process,
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    check=False,
                )
            )
            output = b""
            while not output.endswith(b"\n") or b"ACCEPT" not in output:
                output += await process.stdout.receive_some()
            port = int(output.split(b"ACCEPT", 1)[1].split(b"\n")[0].rpartition(b":")[2])
            stream = TlsStream(await trio.open_tcp_stream("127.0.0.1", port), client_context(), HOST.encode())
            try:
                await stream.do_handshake()
                yield OpensslServer(process, port, stream)
            finally:
                await trio.aclose_forcefully(stream)
            nursery.cancel_scope.cancel()
