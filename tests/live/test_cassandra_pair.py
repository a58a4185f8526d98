"""Our Cassandra policies inside the driver, against two real nodes, the second of which stands still.

The first goes on to count on it, so that whatever needs both replicas times out after one has answered.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import cassandra
import pytest
from cassandra.cluster import Session
from cassandra.query import SimpleStatement

from tests.live.cassandra_server import CassandraProgram, CassandraServer
from tests.live.cassandra_session import INSERTION, SELECTION, open_session, start, stored
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

AGREE_SECONDS = 60.0
"""Two nodes that do not work together by then never will."""


class CassandraPair(NamedTuple):
    """Two nodes that have each a replica of everything, and a client of the first."""

    second: CassandraServer
    session: Session


@pytest.fixture(scope="module")
def pair(cassandra_program: CassandraProgram) -> Iterator[CassandraPair]:
    """Give the module two nodes of its own."""
    with (
        CassandraServer(cassandra_program) as first,
        CassandraServer(cassandra_program, host="127.0.0.2", seed=first) as second,
        open_session(first, replicas=2) as session,
    ):
        yield CassandraPair(second, session)


@pytest.fixture
def session(pair: CassandraPair) -> Iterator[Session]:
    """Give a test the client, and have the second node stand still meanwhile."""
    deadline = time.monotonic() + AGREE_SECONDS
    while not both_take_part(pair.session):
        assert time.monotonic() < deadline, "the two nodes do not work together"
        time.sleep(0.1)
    with pair.second.stopped():
        yield pair.session


def both_take_part(session: Session) -> bool:
    """Tell whether both nodes take a write and answer a read: they know of each other, and have the same tables."""
    try:
        for text in (INSERTION, SELECTION):
            session.execute(SimpleStatement(text, consistency_level=ALL.value), [0])
    except (cassandra.Unavailable, cassandra.Timeout, cassandra.CoordinationFailure):
        return False
    return True


def verdicts(policy: WatchedPolicy) -> Sequence[tuple[str, ConsistencyLevel, RetryVerdict]]:
    """Return what a policy was asked, and at which levels; one replica of two has answered each time."""
    figures = [(question.arguments["received"], question.arguments["block_for"]) for question in policy.questions]
    assert [(1, 2)] * len(figures) == figures
    return [(question.method, question.arguments["consistency"], question.verdict) for question in policy.questions]


def test_downgrading_reads(session: Session, downgrading: WatchedPolicy, row_id: int) -> None:
    """A read that one of two replicas has answered in time is sent again at ONE, and gets its row."""
    session.execute(INSERTION, [row_id])

    future = start(session, downgrading, SELECTION, row_id, level=QUORUM)

    assert "ada" == future.result().one().name
    assert [("on_read_timeout", QUORUM, AT_ONE)] == verdicts(downgrading)
    assert ONE == future.message.consistency_level


def test_default_reads(session: Session, default: WatchedPolicy, row_id: int) -> None:
    """By default such a read fails: a second one would have to wait for the same replica."""
    with pytest.raises(cassandra.ReadTimeout):
        start(session, default, SELECTION, row_id, level=QUORUM).result()

    assert [("on_read_timeout", QUORUM, RETHROW)] == verdicts(default)


def test_downgrading_writes(session: Session, downgrading: WatchedPolicy, row_id: int) -> None:
    """A write that one of two replicas has taken counts as done, and is stored there."""
    future = start(session, downgrading, INSERTION, row_id, level=ALL, is_idempotent=True)

    assert [] == future.result().all()
    assert [("on_write_timeout", ALL, IGNORE)] == verdicts(downgrading)
    assert WriteType.SIMPLE is downgrading.questions[0].arguments["write_type"]
    assert "ada" == stored(session, row_id)


def test_writes_that_are_not_idempotent(session: Session, downgrading: WatchedPolicy, row_id: int) -> None:
    """Nobody is asked about such a write, which is stored at one replica all the same."""
    with pytest.raises(cassandra.WriteTimeout):
        start(session, downgrading, INSERTION, row_id, level=ALL).result()

    assert [] == downgrading.questions
    assert "ada" == stored(session, row_id)


def test_downgrading_unlogged_batches(session: Session, downgrading: WatchedPolicy, row_id: int) -> None:
    """A batch that may be half-done is sent again at ONE, and is stored as a whole."""
    future = start(session, downgrading, UNLOGGED_BATCH, row_id, level=ALL, is_idempotent=True)
    future.result()

    assert [("on_write_timeout", ALL, AT_ONE)] == verdicts(downgrading)
    assert WriteType.UNLOGGED_BATCH is downgrading.questions[0].arguments["write_type"]
    assert ["ada", "ada"] == [stored(session, row_id), stored(session, -row_id)]


def test_the_batch_log(session: Session, default: WatchedPolicy, row_id: int) -> None:
    """The batch log times out at a level of its own; by default it is tried once more, and then the write fails."""
    future = start(session, default, BATCH, row_id, level=ALL, is_idempotent=True)
    with pytest.raises(cassandra.WriteTimeout):
        future.result()

    assert [("on_write_timeout", TWO, RETRY_SAME), ("on_write_timeout", TWO, RETHROW)] == verdicts(default)
    assert WriteType.BATCH_LOG is default.questions[0].arguments["write_type"]
    assert 2 == len(future.attempted_hosts)
