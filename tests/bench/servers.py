"""The servers, started on loopback and ended with the block; None where one is not installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import msgspec
import pytest

from tests.bench.row_clients import Server
from tests.docs.serving import serving
from tests.live.couchbase_mock import CouchbaseMock, find_program
from tests.live.memcached import Memcached


class BenchServer(NamedTuple):
    """Where the documents are: a memcached, or one node of a cluster with one bucket."""

    port: int
    connection_string: str
    bucket: str = ""
    username: str = ""
    password: str = ""
    vbuckets: int = 1


@contextmanager
def memcached() -> Iterator[BenchServer | None]:
    """Give the block a real memcached, of one thread."""
    program = shutil.which("memcached")
    if program is None:
        yield None
        return
    with Memcached(program) as server:
        yield BenchServer(server.port, server.connection_string)


@contextmanager
def couchbase_mock() -> Iterator[BenchServer | None]:
    """Give the block one node of CouchbaseMock, the test server of Couchbase's own clients, which is Java."""
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
    """Give the block ``triclinium serve`` with one node, which is Python."""
    with serving() as said:
        port = int(said["connection_string"].rpartition(":")[2])
        yield BenchServer(
            port, said["connection_string"], said["bucket"], said["username"], said["password"], vbuckets=1024
        )


@contextmanager
def canned_rows() -> Iterator[Server]:
    """Give the block a query service that has every answer ready."""
    command = [sys.executable, "-m", "tests.bench.canned_rows"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            yield msgspec.json.decode(server.stdout.readline(), type=Server)
        finally:
            server.terminate()
