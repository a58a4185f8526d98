"""Triclinium's Cassandra policies inside the driver, against two real nodes, of which the second is stopped.

The first node still considers it alive, so a request that needs both replicas times out after one response.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import cassandra
import pytest
from cassandra.cluster import Session
from cassandra.query import SimpleStatement

from tests.live.cassandra_server import CassandraServer
from tests.live.cassandra_session import INSERTION, SELECTION, open_session, start, stored
from tests.live.maven import JavaProgram
from tests.live.watched_policy import WatchedPolicy
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel, WriteType
from triclinium_core.retry.cassandra.verdicts import IGNORE, RETHROW, RETRY_SAME, RetryDecision, RetryVerdict

pytestmark = pytest.mark.live

ONE, TWO, QUORUM, ALL = (
    ConsistencyLevel.ONE,
    ConsistencyLevel.TWO,
    ConsistencyLevel.QUORUM,
    ConsistencyLevel.ALL,
)
AT_ONE = RetryVerdict(RetryDecision.RETRY_SAME, ONE)

INSERTIONS = f"{INSERTION} {INSERTION.replace('%s', '-%s')}"
BATCH = f"BEGIN BATCH {INSERTIONS} APPLY BATCH"
UNLOGGED_BATCH = f"BEGIN UNLOGGED BATCH {INSERTIONS} APPLY BATCH"

AGREE_SECONDS = 300.0
"""Seconds after which two nodes that do not work together have failed."""


class CassandraPair(NamedTuple):
    """Two nodes that each have a replica of everything, and a client of the first."""

    second: CassandraServer
    session: Session


@pytest.fixture(scope="module")
def pair(cassandra_program: JavaProgram) -> Iterator[CassandraPair]:
    """Yield two nodes for the tests of the module."""
    with (
        CassandraServer(cassandra_program) as first,
        CassandraServer(cassandra_program, host="127.0.0.2", seed=first) as second,
        open_session(first, replicas=2) as session,
    ):
        yield CassandraPair(second, session)


@pytest.fixture
def session(pair: CassandraPair) -> Iterator[Session]:
    """Yield the client, with the second node stopped during the test."""
    deadline = time.monotonic() + AGREE_SECONDS
    while not both_take_part(pair.session):
        assert time.monotonic() < deadline, "the two nodes do not work together"
        time.sleep(0.1)
    with pair.second.stopped():
        yield pair.session


def both_take_part(session: Session) -> bool:
    """Return whether both nodes accept a write and respond to a read."""
    try:
        for text in (INSERTION, SELECTION):
            session.execute(SimpleStatement(text, consistency_level=ALL.value), [0])
    except (cassandra.Unavailable, cassandra.Timeout, cassandra.CoordinationFailure):
        return False
    return True


def verdicts(policy: WatchedPolicy) -> Sequence[tuple[str, ConsistencyLevel, RetryVerdict]]:
    """Return the policy's calls with their levels, and check that one replica of two has responded each time."""
    figures = [(question.arguments["received"], question.arguments["block_for"]) for question in policy.questions]
    assert [(1, 2)] * len(figures) == figures
    return [(question.method, question.arguments["consistency"], question.verdict) for question in policy.questions]


def test_downgrading_reads(session: Session, downgrading: WatchedPolicy, row_id: int) -> None:
    """Under the downgrading policy, a read with one of two responses is retried at ONE and returns its row."""
    session.execute(INSERTION, [row_id])

    future = start(session, downgrading, SELECTION, row_id, level=QUORUM)

    assert "ada" == future.result().one().name
    assert [("on_read_timeout", QUORUM, AT_ONE)] == verdicts(downgrading)
    assert ONE == future.message.consistency_level


def test_default_reads(session: Session, default: WatchedPolicy, row_id: int) -> None:
    """Under the default policy, a read with one of two responses fails without a retry."""
    with pytest.raises(cassandra.ReadTimeout):
        start(session, default, SELECTION, row_id, level=QUORUM).result()

    assert [("on_read_timeout", QUORUM, RETHROW)] == verdicts(default)


def test_downgrading_writes(session: Session, downgrading: WatchedPolicy, row_id: int) -> None:
    """Under the downgrading policy, a write to one of two replicas counts as a success, and is stored there."""
    future = start(session, downgrading, INSERTION, row_id, level=ALL, is_idempotent=True)

    assert [] == future.result().all()
    assert [("on_write_timeout", ALL, IGNORE)] == verdicts(downgrading)
    assert WriteType.SIMPLE is downgrading.questions[0].arguments["write_type"]
    assert "ada" == stored(session, row_id)


def test_writes_that_are_not_idempotent(session: Session, downgrading: WatchedPolicy, row_id: int) -> None:
    """A write that is not idempotent fails without consulting the policy, although one replica has stored it."""
    with pytest.raises(cassandra.WriteTimeout):
        start(session, downgrading, INSERTION, row_id, level=ALL).result()

    assert [] == downgrading.questions
    assert "ada" == stored(session, row_id)


def test_downgrading_unlogged_batches(session: Session, downgrading: WatchedPolicy, row_id: int) -> None:
    """Under the downgrading policy, an unlogged batch is retried at ONE and stored completely."""
    future = start(session, downgrading, UNLOGGED_BATCH, row_id, level=ALL, is_idempotent=True)
    future.result()

    assert [("on_write_timeout", ALL, AT_ONE)] == verdicts(downgrading)
    assert WriteType.UNLOGGED_BATCH is downgrading.questions[0].arguments["write_type"]
    assert ["ada", "ada"] == [stored(session, row_id), stored(session, -row_id)]


def test_the_batch_log(session: Session, default: WatchedPolicy, row_id: int) -> None:
    """If the write to the batch log times out at level TWO, the default policy retries it once; then it fails."""
    future = start(session, default, BATCH, row_id, level=ALL, is_idempotent=True)
    with pytest.raises(cassandra.WriteTimeout):
        future.result()

    assert [("on_write_timeout", TWO, RETRY_SAME), ("on_write_timeout", TWO, RETHROW)] == verdicts(default)
    assert WriteType.BATCH_LOG is default.questions[0].arguments["write_type"]
    assert 2 == len(future.attempted_hosts)
