"""Our Cassandra policies inside the driver that people use, against a real node of Apache Cassandra.

The keyspace ``travel`` has three replicas and the cluster one node: one replica is alive, for whatever statement.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import cassandra
import pytest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable, ResponseFuture, Session
from cassandra.policies import FallthroughRetryPolicy, RoundRobinPolicy
from cassandra.protocol import SyntaxException
from cassandra.query import SimpleStatement

from tests.live.cassandra_server import SLOW_ROWS, TOMBSTONES_MAX, CassandraServer
from tests.live.watched_policy import Question, WatchedPolicy
from triclinium_core.adapters.cassandra_driver import DriverRetryPolicy
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel, WriteType
from triclinium_core.retry.cassandra.errors import PolicyFailed
from triclinium_core.retry.cassandra.policies import ConsistencyDowngradingRetryPolicy, DefaultRetryPolicy
from triclinium_core.retry.cassandra.policy import RetryPolicy
from triclinium_core.retry.cassandra.verdicts import IGNORE, RETHROW, RETRY_NEXT, RetryDecision, RetryVerdict

pytestmark = pytest.mark.live

ONE = ConsistencyLevel.ONE
AT_ONE = RetryVerdict(RetryDecision.RETRY_SAME, ONE)

SAFETY_NET_SECONDS = 60.0
"""A statement that has no answer by then has hung, and its test fails."""

UNAVAILABLE = [
    (ConsistencyLevel.TWO, 2),
    (ConsistencyLevel.QUORUM, 2),
    (ConsistencyLevel.LOCAL_QUORUM, 2),
    (ConsistencyLevel.THREE, 3),
    (ConsistencyLevel.ALL, 3),
]
"""Levels that need more replicas than are alive, with how many."""

REPLICATION = "replication = {'class': 'SimpleStrategy', 'replication_factor': 3}"
VIEW = "SELECT * FROM travel.viewed WHERE id IS NOT NULL AND n IS NOT NULL PRIMARY KEY (n, id)"
THROWS = "RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE java AS 'throw new RuntimeException();'"

SCHEMA = [
    f"CREATE KEYSPACE travel WITH {REPLICATION}",
    "CREATE TABLE travel.people (id int PRIMARY KEY, name text)",
    "CREATE TABLE travel.slow (id int, n int, PRIMARY KEY (id, n))",
    "CREATE TABLE travel.buried (id int, n int, PRIMARY KEY (id, n))",
    "CREATE TABLE travel.viewed (id int PRIMARY KEY, n int)",
    f"CREATE MATERIALIZED VIEW travel.viewing AS {VIEW}",
    f"CREATE FUNCTION travel.throws(x int) {THROWS}",
    f"CREATE KEYSPACE unwritable WITH {REPLICATION}",
    "CREATE TABLE unwritable.people (id int PRIMARY KEY)",
]

INSERTION = "INSERT INTO travel.people (id, name) VALUES (%s, 'ada')"
SELECTION = "SELECT name FROM travel.people WHERE id = %s"
VIEWED = "INSERT INTO travel.viewed (id, n) VALUES (%s, 1)"


@pytest.fixture(scope="module")
def session(cassandra_server: CassandraServer) -> Iterator[Session]:
    """Give the module a session of the driver, keyspaces and tables."""
    profile = ExecutionProfile(
        load_balancing_policy=RoundRobinPolicy(),
        retry_policy=FallthroughRetryPolicy(),
        consistency_level=ONE.value,
        request_timeout=SAFETY_NET_SECONDS,
    )
    cluster = Cluster(
        [cassandra_server.host],
        port=cassandra_server.port,
        protocol_version=5,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
    )
    try:
        session = cluster.connect()
        for text in SCHEMA:
            session.execute(text)
        yield session
    finally:
        cluster.shutdown()


KEYS = itertools.count()


@pytest.fixture
def key() -> int:
    """Return a key of its own."""
    return next(KEYS)


@pytest.fixture
def default() -> WatchedPolicy:
    """Return the default policy, watched."""
    return WatchedPolicy(DefaultRetryPolicy())


@pytest.fixture
def downgrading() -> WatchedPolicy:
    """Return the downgrading policy, watched."""
    return WatchedPolicy(ConsistencyDowngradingRetryPolicy())


def start(session: Session, policy: RetryPolicy, text: str, key: int, **options: Any) -> ResponseFuture:
    """Return the driver's request of a statement with a policy of ours; the key is the statement's parameter."""
    level = options.pop("level", ONE).value
    statement = SimpleStatement(text, retry_policy=DriverRetryPolicy(policy), consistency_level=level, **options)
    return session.execute_async(statement, [key] if "%s" in text else None)


def stored(session: Session, key: int) -> str | None:
    """Return who is stored at the one replica."""
    row = session.execute(SELECTION, [key]).one()
    return None if row is None else row.name


def asked_about_unavailable(
    level: ConsistencyLevel, required: int, retry_count: int, verdict: RetryVerdict
) -> Question:
    """Return the question that the one live replica gives rise to."""
    arguments = {"consistency": level, "required": required, "alive": 1, "retry_count": retry_count}
    return Question("on_unavailable", arguments, verdict)


@pytest.mark.parametrize(("level", "required"), UNAVAILABLE)
def test_downgrading_writes(
    session: Session, downgrading: WatchedPolicy, key: int, level: ConsistencyLevel, required: int
) -> None:
    """A write that too few replicas can take is sent once more, at ONE, and is stored."""
    future = start(session, downgrading, INSERTION, key, level=level)
    future.result()

    assert [asked_about_unavailable(level, required, 0, AT_ONE)] == downgrading.questions
    assert 2 == len(future.attempted_hosts)
    assert ONE == future.message.consistency_level
    assert "ada" == stored(session, key)


@pytest.mark.parametrize(("level", "required"), UNAVAILABLE)
def test_downgrading_reads(
    session: Session, downgrading: WatchedPolicy, key: int, level: ConsistencyLevel, required: int
) -> None:
    """A read that too few replicas can answer gets the row of the one that can."""
    session.execute(INSERTION, [key])

    future = start(session, downgrading, SELECTION, key, level=level)

    assert "ada" == future.result().one().name
    assert [asked_about_unavailable(level, required, 0, AT_ONE)] == downgrading.questions
    assert ONE == future.message.consistency_level


@pytest.mark.parametrize(("level", "required"), UNAVAILABLE)
def test_default_writes(
    session: Session, default: WatchedPolicy, key: int, level: ConsistencyLevel, required: int
) -> None:
    """By default such a write goes to the next node; there is none, and nothing is stored."""
    future = start(session, default, INSERTION, key, level=level, is_idempotent=True)
    with pytest.raises(NoHostAvailable) as caught:
        future.result()

    assert [asked_about_unavailable(level, required, 0, RETRY_NEXT)] == default.questions
    (error,) = caught.value.errors.values()
    assert (level, required, 1) == (error.consistency, error.required_replicas, error.alive_replicas)
    assert isinstance(error, cassandra.Unavailable)
    assert 1 == len(future.attempted_hosts)
    assert stored(session, key) is None


def test_default_reads(session: Session, default: WatchedPolicy, key: int) -> None:
    """By default such a read fails as well."""
    session.execute(INSERTION, [key])

    with pytest.raises(NoHostAvailable):
        start(session, default, SELECTION, key, level=ConsistencyLevel.QUORUM).result()
    assert [asked_about_unavailable(ConsistencyLevel.QUORUM, 2, 0, RETRY_NEXT)] == default.questions


@pytest.mark.parametrize(
    ("serial", "named"),
    [
        (ConsistencyLevel.SERIAL, ConsistencyLevel.QUORUM),
        (ConsistencyLevel.LOCAL_SERIAL, ConsistencyLevel.LOCAL_QUORUM),
    ],
)
def test_transactions_are_not_downgraded(
    session: Session, downgrading: WatchedPolicy, key: int, serial: ConsistencyLevel, named: ConsistencyLevel
) -> None:
    """A transaction names a quorum when it fails: the retry at ONE leaves its serial level alone, and fails too."""
    future = start(session, downgrading, INSERTION + " IF NOT EXISTS", key, serial_consistency_level=serial.value)
    with pytest.raises(cassandra.Unavailable):
        future.result()

    assert [
        asked_about_unavailable(named, 2, 0, AT_ONE),
        asked_about_unavailable(named, 2, 1, RETHROW),
    ] == downgrading.questions
    assert stored(session, key) is None


def test_serial_reads_are_downgraded(session: Session, downgrading: WatchedPolicy, key: int) -> None:
    """A serial read names a quorum too, and comes back as a read at ONE that is serial no more."""
    session.execute(INSERTION, [key])

    future = start(session, downgrading, SELECTION, key, level=ConsistencyLevel.SERIAL)

    assert "ada" == future.result().one().name
    assert [asked_about_unavailable(ConsistencyLevel.QUORUM, 2, 0, AT_ONE)] == downgrading.questions
    assert ONE == future.message.consistency_level


def test_transactions_by_default(session: Session, default: WatchedPolicy, key: int) -> None:
    """By default a transaction goes to the next node, of which there is none."""
    with pytest.raises(NoHostAvailable):
        start(session, default, INSERTION + " IF NOT EXISTS", key).result()

    assert [asked_about_unavailable(ConsistencyLevel.QUORUM, 2, 0, RETRY_NEXT)] == default.questions
    assert stored(session, key) is None


def test_read_timeouts(session: Session, downgrading: WatchedPolicy, key: int) -> None:
    """The policy hears of a read for which the replica was too slow, with its figures, for any statement."""
    for n in range(SLOW_ROWS):
        session.execute("INSERT INTO travel.slow (id, n) VALUES (%s, %s)", [key, n])

    with pytest.raises(cassandra.ReadTimeout):
        start(session, downgrading, "SELECT * FROM travel.slow WHERE id = %s", key).result()
    arguments = {"consistency": ONE, "block_for": 1, "received": 0, "data_present": False, "retry_count": 0}
    assert [Question("on_read_timeout", arguments, RETHROW)] == downgrading.questions


@pytest.mark.parametrize(
    ("text", "write_type"),
    [(VIEWED, WriteType.SIMPLE), (f"BEGIN BATCH {VIEWED}; {VIEWED.replace('%s', '-1')}; APPLY BATCH", WriteType.BATCH)],
)
def test_write_timeouts(
    session: Session, downgrading: WatchedPolicy, key: int, text: str, write_type: WriteType
) -> None:
    """The policy hears of a write for which the replica was too slow, with its figures and its type."""
    with pytest.raises(cassandra.WriteTimeout):
        start(session, downgrading, text, key, is_idempotent=True).result()

    arguments = {"consistency": ONE, "write_type": write_type, "block_for": 1, "received": 0, "retry_count": 0}
    assert [Question("on_write_timeout", arguments, RETHROW)] == downgrading.questions


def test_writes_that_are_not_idempotent(session: Session, downgrading: WatchedPolicy, key: int) -> None:
    """Nobody is asked about a write that timed out and must not be repeated."""
    with pytest.raises(cassandra.WriteTimeout):
        start(session, downgrading, VIEWED, key).result()

    assert [] == downgrading.questions


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("SELECT FROM WHERE", SyntaxException),
        ("SELECT * FROM travel.nowhere", cassandra.InvalidRequest),
        ("CREATE TABLE travel.people (id int PRIMARY KEY)", cassandra.AlreadyExists),
        ("SELECT travel.throws(id) FROM travel.people WHERE id = %s", cassandra.FunctionFailure),
        ("SELECT * FROM travel.buried WHERE id = %s", cassandra.ReadFailure),
        ("INSERT INTO unwritable.people (id) VALUES (%s)", cassandra.WriteFailure),
    ],
)
def test_what_is_never_retried(
    session: Session, default: WatchedPolicy, key: int, text: str, error: type[Exception]
) -> None:
    """The driver raises at once what no node would answer otherwise, and asks nobody."""
    session.execute(INSERTION, [key])
    for n in range(TOMBSTONES_MAX + 1):
        session.execute("DELETE FROM travel.buried WHERE id = %s AND n = %s", [key, n])

    future = start(session, default, text, key, is_idempotent=True)
    with pytest.raises(error):
        future.result()
    assert [] == default.questions
    assert 1 == len(future.attempted_hosts)


def test_preparing_anew(session: Session, default: WatchedPolicy, key: int) -> None:
    """A statement that the node has forgotten is prepared again and executed; nobody is asked."""
    session.execute(INSERTION, [key])
    prepared = session.prepare("SELECT name FROM travel.people WHERE id = ?")
    prepared.retry_policy = DriverRetryPolicy(default)
    session.execute(f"ALTER TABLE travel.people ADD forgets_{key} int")

    future = session.execute_async(prepared, [key])

    assert "ada" == future.result().one().name
    # EXECUTE, PREPARE, EXECUTE.
    assert 3 == len(future.attempted_hosts)
    assert [] == default.questions


class Ignoring(DefaultRetryPolicy):
    """A policy of one's own."""

    def on_unavailable(self, **arguments: Any) -> RetryVerdict:
        """Pretend that all is well."""
        return IGNORE


def test_a_policy_of_ones_own(session: Session, key: int) -> None:
    """A failure that a policy ignores is a success without rows."""
    future = start(session, Ignoring(), INSERTION, key, level=ConsistencyLevel.ALL)

    assert [] == future.result().all()
    assert stored(session, key) is None


class Broken(DefaultRetryPolicy):
    """A policy with a bug."""

    def on_unavailable(self, **arguments: Any) -> Any:
        """Answer what is no verdict."""
        return "RETRY_NEXT"


def test_a_policy_with_a_bug(session: Session, key: int) -> None:
    """An answer that is no verdict is not taken for one: the caller gets an error that names it, and the failure."""
    with pytest.raises(PolicyFailed, match="on_unavailable of Broken answered 'RETRY_NEXT'") as caught:
        start(session, Broken(), INSERTION, key, level=ConsistencyLevel.ALL).result()

    assert ["what the node answered: ALL needs 3 replicas, 1 are alive"] == caught.value.__notes__
