"""Servers that run on loopback for the duration of a block.

The block of an external server yields None if that server, or one that it needs, is not installed.
"""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
import trustme

from tests.bench.row_clients import Server
from tests.docs.serving import serving
from tests.live.couchbase_mock import CouchbaseMock, find_program
from tests.live.memcached import Memcached


class BenchServer(NamedTuple):
    """Server of the documents: a memcached, or one node of a cluster with one bucket."""

    port: int
    connection_string: str
    bucket: str = ""
    username: str = ""
    password: str = ""
    vbuckets: int = 1


class TlsServer(msgspec.Struct, frozen=True):
    """Server with TLS."""

    port: int
    authority: str
    """Certificate of the authority that has signed the server's certificate, as PEM."""

    def client_context(self) -> ssl.SSLContext:
        """Return a context that trusts the authority."""
        return ssl.create_default_context(cadata=self.authority)


@contextmanager
def memcached() -> Iterator[BenchServer | None]:
    """Yield a real memcached with one thread."""
    program = shutil.which("memcached")
    if program is None:
        yield None
        return
    with Memcached(program) as server:
        yield BenchServer(server.port, server.connection_string)


STUNNEL = """
foreground = yes
pid =
debug = warning
socket = l:TCP_NODELAY=1
socket = r:TCP_NODELAY=1
[memcached]
accept = 127.0.0.1:{accept}
connect = 127.0.0.1:{connect}
cert = {certificate}
"""
STUNNEL_SECONDS = 20.0
"""Seconds after which a stunnel that does not listen has failed."""


@contextmanager
def stunnel(server: BenchServer | None) -> Iterator[TlsServer | None]:
    """Yield a stunnel that adds TLS to ``server``."""
    program = shutil.which("stunnel4") or shutil.which("stunnel")
    if program is None or server is None:
        yield None
        return
    authority = trustme.CA()
    with tempfile.TemporaryDirectory(prefix="stunnel-") as folder:
        certificate, settings = Path(folder, "certificate.pem"), Path(folder, "stunnel.conf")
        authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(certificate))
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        settings.write_text(STUNNEL.format(accept=port, connect=server.port, certificate=certificate))
        with subprocess.Popen([program, str(settings)], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                _wait_for(port, process)
                yield TlsServer(port, authority.cert_pem.bytes().decode())
            finally:
                process.kill()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Return once a process listens on ``port``."""
    deadline = time.monotonic() + STUNNEL_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            assert process.poll() is None, f"stunnel ended with status {process.returncode}"
            assert time.monotonic() < deadline, "stunnel does not listen"
            time.sleep(0.01)
        else:
            return


@contextmanager
def couchbase_mock() -> Iterator[BenchServer | None]:
    """Yield one node of CouchbaseMock, the Java test server of Couchbase's own clients."""
    try:
        program = find_program()
    except pytest.skip.Exception:
        yield None
        return
    with CouchbaseMock(program, nodes=1) as mock:
        user = mock.authenticator
        yield BenchServer(mock.ports[0], mock.connection_string, mock.bucket, user.username, user.password, vbuckets=64)


@contextmanager
def fake_node() -> Iterator[BenchServer]:
    """Yield ``triclinium serve`` with one node, which is written in Python."""
    with serving() as said:
        port = int(said["connection_string"].rpartition(":")[2])
        yield BenchServer(
            port, said["connection_string"], said["bucket"], said["username"], said["password"], vbuckets=1024
        )


@contextmanager
def canned_rows() -> Iterator[Server]:
    """Yield a query service that has every response prepared."""
    command = [sys.executable, "-m", "tests.bench.canned_rows"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            yield msgspec.json.decode(server.stdout.readline(), type=Server)
        finally:
            server.terminate()
