"""Servers and clients of other projects.

If one is missing, its tests are skipped locally and fail in CI. If Maven's repository does not respond, the tests that
need a server from it are skipped everywhere.
"""

from __future__ import annotations

import importlib.util
import itertools
import shutil
import signal
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest
import trio
from cassandra.cluster import Session

from tests.environment import missing
from tests.live.cassandra_server import CassandraServer, find_cassandra
from tests.live.cassandra_session import open_session
from tests.live.couchbase_mock import CouchbaseMock, find_program
from tests.live.line_process import SERVE, LineProcess
from tests.live.maven import JavaProgram
from tests.live.memcached import Memcached
from tests.live.official import connected
from tests.live.ports import quiet_ports
from tests.live.watched_policy import WatchedPolicy
from triclinium import Cluster, Collection, PasswordAuthenticator, TimeoutOptions, open_cluster
from triclinium_core.retry.cassandra import ConsistencyDowngradingRetryPolicy, DefaultRetryPolicy

SAFETY_NET_SECONDS = 300.0


@pytest.fixture
async def safety_net() -> AsyncIterator[None]:
    """Cancel a test that hangs."""
    with trio.fail_after(SAFETY_NET_SECONDS):
        yield


@pytest.fixture
def key(request: pytest.FixtureRequest) -> str:
    """Return a key that is unique to the test."""
    name = request.node.name
    assert isinstance(name, str)
    return name


@pytest.fixture(scope="session")
def memcached_program() -> str:
    """Return the path of memcached."""
    return shutil.which("memcached") or missing("memcached", "on Debian: apt-get install memcached")


@pytest.fixture(scope="session")
def memcached(memcached_program: str) -> Iterator[Memcached]:
    """Yield the session's memcached; each test has its own keys."""
    with Memcached(memcached_program) as server:
        yield server


@pytest.fixture
def mortal_memcached(memcached_program: str) -> Iterator[Memcached]:
    """Yield a memcached that a test may stop and start."""
    (port,) = quiet_ports(1)
    with Memcached(memcached_program, port) as server:
        yield server


@pytest.fixture(scope="session")
def mock_program() -> JavaProgram:
    """Return the paths of Java and CouchbaseMock."""
    return find_program()


@pytest.fixture(scope="session")
def common_mock(mock_program: JavaProgram) -> Iterator[CouchbaseMock]:
    """Yield the session's CouchbaseMock; each test has its own keys."""
    with CouchbaseMock(mock_program) as server:
        yield server


@pytest.fixture
def couchbase_mock(common_mock: CouchbaseMock) -> Iterator[CouchbaseMock]:
    """Yield the session's CouchbaseMock, and reset its faults after the test."""
    yield common_mock
    common_mock.restore()


@pytest.fixture
async def cluster(couchbase_mock: CouchbaseMock, safety_net: None) -> AsyncIterator[Cluster]:
    """Yield a client of ``couchbase_mock``. Modules about other servers have another fixture with this name."""
    async with couchbase_mock.open_client() as (opened, _):
        yield opened


@pytest.fixture
def store(couchbase_mock: CouchbaseMock, cluster: Cluster) -> Collection:
    """Return the only collection of ``couchbase_mock``."""
    return cluster.bucket(couchbase_mock.bucket).default_collection()


@pytest.fixture
def mortal_mock(mock_program: JavaProgram) -> Iterator[CouchbaseMock]:
    """Yield a separate CouchbaseMock whose nodes may fail."""
    with CouchbaseMock(mock_program) as server:
        yield server


@pytest.fixture(scope="session")
def cassandra_program() -> JavaProgram:
    """Return the paths of Java and Cassandra."""
    return find_cassandra()


@pytest.fixture(scope="session")
def cassandra_server(cassandra_program: JavaProgram) -> Iterator[CassandraServer]:
    """Yield the session's Cassandra node; each test has its own keys."""
    with CassandraServer(cassandra_program) as server:
        yield server


@pytest.fixture(scope="session")
def cassandra_session(cassandra_server: CassandraServer) -> Iterator[Session]:
    """Yield a client of the session's Cassandra node, the only live one of three replicas of the keyspaces."""
    with open_session(cassandra_server, replicas=3) as session:
        yield session


@pytest.fixture
def default() -> WatchedPolicy:
    """Return the default Cassandra policy, watched."""
    return WatchedPolicy(DefaultRetryPolicy())


@pytest.fixture
def downgrading() -> WatchedPolicy:
    """Return the downgrading Cassandra policy, watched."""
    return WatchedPolicy(ConsistencyDowngradingRetryPolicy())


ROW_IDS = itertools.count(1)


@pytest.fixture
def row_id() -> int:
    """Return a primary key that is unique to the test."""
    return next(ROW_IDS)


@pytest.fixture(scope="module")
def served() -> Iterator[Mapping[str, Any]]:
    """Yield the connection data of ``triclinium serve`` with three nodes."""
    with LineProcess([*SERVE, "--nodes", "3"], end_with=signal.SIGTERM) as server:
        yield server.hear()


@pytest.fixture
async def ours(served: Mapping[str, Any], safety_net: None) -> AsyncIterator[Collection]:
    """Yield the default collection of a triclinium client of the ``served`` nodes."""
    authenticator = PasswordAuthenticator(served["username"], served["password"])
    async with open_cluster(served["connection_string"], authenticator, timeouts=TimeoutOptions(kv=60.0)) as cluster:
        yield cluster.bucket(served["bucket"]).default_collection()


@pytest.fixture(scope="module")
def served_alone() -> Iterator[Mapping[str, Any]]:
    """Yield the connection data of ``triclinium serve`` with one node."""
    with LineProcess(SERVE, end_with=signal.SIGTERM) as server:
        yield server.hear()


@pytest.fixture(scope="session")
def couchbase_package() -> None:
    """Require the official client."""
    if importlib.util.find_spec("couchbase") is None:
        missing("the package couchbase", "run: uv sync")


@pytest.fixture(scope="module")
def official(couchbase_package: None, served: Mapping[str, Any]) -> Iterator[LineProcess]:
    """Yield the official client, connected to ``served``."""
    with connected("official_worker", served) as client:
        yield client
