"""Session of ``cassandra-driver`` with a Cassandra node, and the tables of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, ResponseFuture, Session
from cassandra.policies import FallthroughRetryPolicy, WhiteListRoundRobinPolicy
from cassandra.query import SimpleStatement

from tests.live.cassandra_server import TOMBSTONES_MAX, CassandraServer
from triclinium_core.adapters.cassandra_driver import DriverRetryPolicy
from triclinium_core.retry.cassandra import ConsistencyLevel, RetryPolicy

SAFETY_NET_SECONDS = 300.0
"""Seconds after which a statement without a response has hung, and its test fails."""
CONTROL_SECONDS = 60.0
"""Seconds after which the driver counts a node as unavailable."""

THROWS = "RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE java AS 'throw new RuntimeException();'"

SCHEMA = [
    "CREATE KEYSPACE travel WITH {replication}",
    "CREATE TABLE travel.people (id int PRIMARY KEY, name text)",
    "CREATE TABLE travel.buried (id int, n int, PRIMARY KEY (id, n))",
    f"CREATE FUNCTION travel.throws(x int) {THROWS}",
    "CREATE KEYSPACE unwritable WITH {replication}",
    "CREATE TABLE unwritable.people (id int PRIMARY KEY)",
]

INSERTION = "INSERT INTO travel.people (id, name) VALUES (%s, 'ada')"
SELECTION = "SELECT name FROM travel.people WHERE id = %s"


@contextmanager
def open_session(server: CassandraServer, *, replicas: int) -> Iterator[Session]:
    """Yield a session without retries and with consistency ONE, unless a statement overrides them.

    Args:
        server: only node of the session, even if the cluster has more.
        replicas: number of replicas of the keyspaces.
    """
    replication = f"replication = {{'class': 'SimpleStrategy', 'replication_factor': {replicas}}}"
    profile = ExecutionProfile(
        load_balancing_policy=WhiteListRoundRobinPolicy([server.host]),
        retry_policy=FallthroughRetryPolicy(),
        consistency_level=ConsistencyLevel.ONE.value,
        request_timeout=SAFETY_NET_SECONDS,
    )
    cluster = Cluster(
        [server.host],
        port=server.port,
        protocol_version=5,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        connect_timeout=CONTROL_SECONDS,
        control_connection_timeout=CONTROL_SECONDS,
        # The driver waits in these threads until nodes agree on the schema, and retries requests in them, too.
        executor_threads=8,
    )
    try:
        session = cluster.connect()
        for text in SCHEMA:
            session.execute(text.replace("{replication}", replication))
        yield session
    finally:
        cluster.shutdown()


def stored(session: Session, key: int) -> str | None:
    """Return the name that the one live replica stores."""
    row = session.execute(SELECTION, [key]).one()
    return None if row is None else row.name


def prepare_failures(session: Session, key: int) -> None:
    """Store a row on which functions fail, and so many tombstones that a read of them fails."""
    session.execute(INSERTION, [key])
    for n in range(TOMBSTONES_MAX + 1):
        session.execute("DELETE FROM travel.buried WHERE id = %s AND n = %s", [key, n])


def start(session: Session, policy: RetryPolicy, text: str, key: int, **options: Any) -> ResponseFuture:
    """Start the driver's request for a statement, with the key as its parameter, under a triclinium policy."""
    level = options.pop("level", ConsistencyLevel.ONE).value
    statement = SimpleStatement(text, retry_policy=DriverRetryPolicy(policy), consistency_level=level, **options)
    return session.execute_async(statement, [key] * text.count("%s") or None)
