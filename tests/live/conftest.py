"""Servers and clients that are not ours; where one is missing, a skip at a desk and a failure in CI."""

from __future__ import annotations

import importlib.util
import itertools
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import trio
from cassandra.cluster import Session

from tests.environment import missing
from tests.live.cassandra_server import CassandraProgram, CassandraServer, find_cassandra
from tests.live.cassandra_session import open_session
from tests.live.couchbase_mock import CouchbaseMock, MockProgram, find_program
from tests.live.line_process import LineProcess
from tests.live.memcached import Memcached
from tests.live.ports import quiet_ports
from tests.live.watched_policy import WatchedPolicy
from triclinium import Collection, PasswordAuthenticator, TimeoutOptions, open_cluster
from triclinium_core.retry.cassandra import ConsistencyDowngradingRetryPolicy, DefaultRetryPolicy

SAFETY_NET_SECONDS = 60.0


@pytest.fixture
async def safety_net() -> AsyncIterator[None]:
    """End a test that hangs."""
    with trio.fail_after(SAFETY_NET_SECONDS):
        yield


@pytest.fixture
def key(request: pytest.FixtureRequest) -> str:
    """Return a key that no other test has."""
    name = request.node.name
    assert isinstance(name, str)
    return name


@pytest.fixture(scope="session")
def memcached_program() -> str:
    """Return where memcached is."""
    return shutil.which("memcached") or missing("memcached", "on Debian: apt-get install memcached")


@pytest.fixture(scope="session")
def memcached(memcached_program: str) -> Iterator[Memcached]:
    """Give the session one memcached; each test has keys of its own."""
    with Memcached(memcached_program) as server:
        yield server


@pytest.fixture
def mortal_memcached(memcached_program: str) -> Iterator[Memcached]:
    """Give a test a memcached that it may end and start."""
    (port,) = quiet_ports(1)
    with Memcached(memcached_program, port) as server:
        yield server


@pytest.fixture(scope="session")
def mock_program() -> MockProgram:
    """Return where CouchbaseMock is."""
    return find_program()


@pytest.fixture(scope="session")
def common_mock(mock_program: MockProgram) -> Iterator[CouchbaseMock]:
    """Give the session one CouchbaseMock; each test has keys of its own."""
    with CouchbaseMock(mock_program) as server:
        yield server


@pytest.fixture
def couchbase_mock(common_mock: CouchbaseMock) -> Iterator[CouchbaseMock]:
    """Give a test the session's CouchbaseMock, and end afterwards what goes wrong in it."""
    yield common_mock
    common_mock.restore()


@pytest.fixture
def mortal_mock(mock_program: MockProgram) -> Iterator[CouchbaseMock]:
    """Give a test a CouchbaseMock of its own, whose nodes may fail."""
    with CouchbaseMock(mock_program) as server:
        yield server


@pytest.fixture(scope="session")
def cassandra_program() -> CassandraProgram:
    """Return where Cassandra is."""
    return find_cassandra()


@pytest.fixture(scope="session")
def cassandra_server(cassandra_program: CassandraProgram) -> Iterator[CassandraServer]:
    """Give the session one node of Cassandra; each test has keys of its own."""
    with CassandraServer(cassandra_program) as server:
        yield server


@pytest.fixture(scope="session")
def cassandra_session(cassandra_server: CassandraServer) -> Iterator[Session]:
    """Give the session a client of that node; of the three replicas that the keyspaces have it is the one alive."""
    with open_session(cassandra_server, replicas=3) as session:
        yield session


@pytest.fixture
def default() -> WatchedPolicy:
    """Return the default policy of Cassandra's driver, watched."""
    return WatchedPolicy(DefaultRetryPolicy())


@pytest.fixture
def downgrading() -> WatchedPolicy:
    """Return the downgrading policy, watched."""
    return WatchedPolicy(ConsistencyDowngradingRetryPolicy())


ROW_IDS = itertools.count(1)


@pytest.fixture
def row_id() -> int:
    """Return a primary key of the test's own."""
    return next(ROW_IDS)


SERVE = (sys.executable, "-c", "from triclinium._cli import main; main()", "serve", "--json")


@pytest.fixture(scope="module")
def served() -> Iterator[Mapping[str, Any]]:
    """Give a module ``triclinium serve`` with three nodes at work, and return what it says of itself."""
    with LineProcess([*SERVE, "--nodes", "3"], end_with=signal.SIGTERM) as server:
        yield server.hear()


@pytest.fixture
async def ours(served: Mapping[str, Any], safety_net: None) -> AsyncIterator[Collection]:
    """Give the test our client of the nodes that ``served`` tells of: the bucket's default collection."""
    authenticator = PasswordAuthenticator(served["username"], served["password"])
    async with open_cluster(served["connection_string"], authenticator, timeouts=TimeoutOptions(kv=60.0)) as cluster:
        yield cluster.bucket(served["bucket"]).default_collection()


@pytest.fixture(scope="module")
def served_alone() -> Iterator[Mapping[str, Any]]:
    """Give a module ``triclinium serve`` with one node at work, and return what it says of itself."""
    with LineProcess(SERVE, end_with=signal.SIGTERM) as server:
        yield server.hear()


@pytest.fixture(scope="session")
def couchbase_package() -> None:
    """Promise that the official client is there."""
    if importlib.util.find_spec("couchbase") is None:
        missing("the package couchbase", "run: uv sync")


@pytest.fixture(scope="module")
def official(couchbase_package: None, served: Mapping[str, Any]) -> Iterator[LineProcess]:
    """Give a module the official client, connected to ``served``."""
    worker = Path(__file__).with_name("official_worker.py")
    address = [served[name] for name in ("connection_string", "username", "password", "bucket")]
    with LineProcess([sys.executable, str(worker), *address]) as client:
        assert {"result": "connected"} == client.hear()
        yield client
