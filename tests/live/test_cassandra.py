"""Triclinium's Cassandra policies inside ``cassandra-driver``, against a real node of Apache Cassandra."""

from __future__ import annotations

from typing import Any

import cassandra
import pytest
from cassandra.cluster import NoHostAvailable, Session
from cassandra.protocol import SyntaxException

from tests.live.cassandra_session import INSERTION, SELECTION, prepare_failures, start, stored
from tests.live.watched_policy import Question, WatchedPolicy
from triclinium_core.adapters.cassandra_driver import DriverRetryPolicy
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel
from triclinium_core.retry.cassandra.errors import PolicyFailed
from triclinium_core.retry.cassandra.policies import DefaultRetryPolicy
from triclinium_core.retry.cassandra.verdicts import IGNORE, RETHROW, RETRY_NEXT, RetryDecision, RetryVerdict

pytestmark = pytest.mark.live

ONE = ConsistencyLevel.ONE
AT_ONE = RetryVerdict(RetryDecision.RETRY_SAME, ONE)

UNAVAILABLE = [
    (ConsistencyLevel.TWO, 2),
    (ConsistencyLevel.QUORUM, 2),
    (ConsistencyLevel.LOCAL_QUORUM, 2),
    (ConsistencyLevel.THREE, 3),
    (ConsistencyLevel.ALL, 3),
]
"""Consistency levels that need more replicas than are alive, with the number of replicas that they need."""


def asked_about_unavailable(
    level: ConsistencyLevel, required: int, retry_count: int, verdict: RetryVerdict
) -> Question:
    """Return the call and the decision of a policy when only one replica is alive."""
    arguments = {"consistency": level, "required": required, "alive": 1, "retry_count": retry_count}
    return Question("on_unavailable", arguments, verdict)


@pytest.mark.parametrize(("level", "required"), UNAVAILABLE)
def test_downgrading_retries_at_one(
    cassandra_session: Session, downgrading: WatchedPolicy, row_id: int, level: ConsistencyLevel, required: int
) -> None:
    """Under the downgrading policy, a write and a read without enough replicas are retried at ONE, and succeed."""
    for text, rows in ((INSERTION, []), (SELECTION, [("ada",)])):
        downgrading.questions.clear()
        future = start(cassandra_session, downgrading, text, row_id, level=level)

        assert rows == future.result().all()
        assert [asked_about_unavailable(level, required, 0, AT_ONE)] == downgrading.questions
        assert 2 == len(future.attempted_hosts)
        assert ONE == future.message.consistency_level


@pytest.mark.parametrize(("level", "required"), UNAVAILABLE)
def test_default_retries_writes_on_the_next_node(
    cassandra_session: Session, default: WatchedPolicy, row_id: int, level: ConsistencyLevel, required: int
) -> None:
    """The default policy retries a write without enough replicas on the next node; with one node, nothing is stored."""
    future = start(cassandra_session, default, INSERTION, row_id, level=level, is_idempotent=True)
    with pytest.raises(NoHostAvailable) as caught:
        future.result()

    assert [asked_about_unavailable(level, required, 0, RETRY_NEXT)] == default.questions
    (error,) = caught.value.errors.values()
    assert (level, required, 1) == (error.consistency, error.required_replicas, error.alive_replicas)
    assert isinstance(error, cassandra.Unavailable)
    assert 1 == len(future.attempted_hosts)
    assert stored(cassandra_session, row_id) is None


@pytest.mark.parametrize(
    ("text", "level"),
    [(SELECTION, ConsistencyLevel.QUORUM), (INSERTION + " IF NOT EXISTS", ONE)],
    ids=["read", "transaction"],
)
def test_default_retries_on_the_next_node(
    cassandra_session: Session, default: WatchedPolicy, row_id: int, text: str, level: ConsistencyLevel
) -> None:
    """The default policy retries a read or a transaction without a quorum on the next node; with one node, it fails."""
    with pytest.raises(NoHostAvailable):
        start(cassandra_session, default, text, row_id, level=level).result()

    assert [asked_about_unavailable(ConsistencyLevel.QUORUM, 2, 0, RETRY_NEXT)] == default.questions
    assert stored(cassandra_session, row_id) is None


@pytest.mark.parametrize(
    ("serial", "named"),
    [
        (ConsistencyLevel.SERIAL, ConsistencyLevel.QUORUM),
        (ConsistencyLevel.LOCAL_SERIAL, ConsistencyLevel.LOCAL_QUORUM),
    ],
)
def test_transactions_are_not_downgraded(
    cassandra_session: Session,
    downgrading: WatchedPolicy,
    row_id: int,
    serial: ConsistencyLevel,
    named: ConsistencyLevel,
) -> None:
    """A transaction without a quorum fails with the quorum's level; a retry at ONE keeps the serial level and fails."""
    future = start(
        cassandra_session, downgrading, INSERTION + " IF NOT EXISTS", row_id, serial_consistency_level=serial.value
    )
    with pytest.raises(cassandra.Unavailable):
        future.result()

    assert [
        asked_about_unavailable(named, 2, 0, AT_ONE),
        asked_about_unavailable(named, 2, 1, RETHROW),
    ] == downgrading.questions
    assert stored(cassandra_session, row_id) is None


def test_serial_reads_are_downgraded(cassandra_session: Session, downgrading: WatchedPolicy, row_id: int) -> None:
    """A serial read without a quorum fails with level QUORUM; the retry at ONE is not serial, and succeeds."""
    cassandra_session.execute(INSERTION, [row_id])

    future = start(cassandra_session, downgrading, SELECTION, row_id, level=ConsistencyLevel.SERIAL)

    assert "ada" == future.result().one().name
    assert [asked_about_unavailable(ConsistencyLevel.QUORUM, 2, 0, AT_ONE)] == downgrading.questions
    assert ONE == future.message.consistency_level


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
def test_fatal_errors_are_not_retried(
    cassandra_session: Session, default: WatchedPolicy, row_id: int, text: str, error: type[Exception]
) -> None:
    """A fatal error is raised immediately, without consulting the policy."""
    prepare_failures(cassandra_session, row_id)

    future = start(cassandra_session, default, text, row_id, is_idempotent=True)
    with pytest.raises(error):
        future.result()
    assert [] == default.questions
    assert 1 == len(future.attempted_hosts)


def test_a_forgotten_statement_is_prepared_again(
    cassandra_session: Session, default: WatchedPolicy, row_id: int
) -> None:
    """A statement that the node has forgotten is prepared again and executed, without consulting the policy."""
    cassandra_session.execute(INSERTION, [row_id])
    prepared = cassandra_session.prepare("SELECT name FROM travel.people WHERE id = ?")
    prepared.retry_policy = DriverRetryPolicy(default)
    cassandra_session.execute(f"ALTER TABLE travel.people ADD forgets_{row_id} int")

    future = cassandra_session.execute_async(prepared, [row_id])

    assert "ada" == future.result().one().name
    # The driver sends EXECUTE, PREPARE and EXECUTE.
    assert 3 == len(future.attempted_hosts)
    assert [] == default.questions


class Ignoring(DefaultRetryPolicy):
    """Custom policy, which ignores failures of unavailable replicas."""

    def on_unavailable(self, **arguments: Any) -> RetryVerdict:
        """Ignore the failure."""
        return IGNORE


def test_a_custom_policy(cassandra_session: Session, row_id: int) -> None:
    """A failure that a custom policy ignores is a success without rows."""
    future = start(cassandra_session, Ignoring(), INSERTION, row_id, level=ConsistencyLevel.ALL)

    assert [] == future.result().all()
    assert stored(cassandra_session, row_id) is None


class Broken(DefaultRetryPolicy):
    """Policy with a bug: it returns an object of a wrong type."""

    def on_unavailable(self, **arguments: Any) -> Any:
        """Return an object that is not a decision."""
        return "RETRY_NEXT"


def test_a_policy_with_a_bug(cassandra_session: Session, row_id: int) -> None:
    """If a policy returns an invalid decision, the error names the policy and has the node's response as a note."""
    with pytest.raises(PolicyFailed, match="on_unavailable of Broken .*'RETRY_NEXT'") as caught:
        start(cassandra_session, Broken(), INSERTION, row_id, level=ConsistencyLevel.ALL).result()

    assert "ALL needs 3 of the replicas; 1 is alive" in caught.value.__notes__[0]
