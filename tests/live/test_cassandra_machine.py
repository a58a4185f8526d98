"""Our request machine, fed with what a real node of Apache Cassandra answers.

The driver carries the statements, and retries nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import cassandra
import pytest
from cassandra.cluster import Session
from cassandra.query import SimpleStatement

from tests.live.cassandra_session import INSERTION, SELECTION, stored
from triclinium_core.retry.cassandra import errors
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel
from triclinium_core.retry.cassandra.policies import ConsistencyDowngradingRetryPolicy, DefaultRetryPolicy
from triclinium_core.retry.cassandra.policy import RetryPolicy
from triclinium_core.retry.cassandra.requests.actions import Complete, Fail, Send
from triclinium_core.retry.cassandra.requests.events import (
    CassandraEvent,
    ErrorReceived,
    RequestSubmitted,
    ResultReceived,
)
from triclinium_core.retry.cassandra.requests.machine import RequestMachine
from triclinium_core.retry.cassandra.requests.request import CassandraRequest

pytestmark = pytest.mark.live

NODE = "the only one"
ONE, QUORUM, ALL = ConsistencyLevel.ONE, ConsistencyLevel.QUORUM, ConsistencyLevel.ALL


def carry_out(session: Session, order: Send, text: str, key: int) -> CassandraEvent:
    """Execute a statement once, and return what came of it."""
    assert order.consistency is not None
    statement = SimpleStatement(text, consistency_level=order.consistency.value)
    try:
        return ResultReceived(order.attempt, session.execute(statement, [key]).all())
    except cassandra.Unavailable as raised:
        error = errors.Unavailable(
            consistency=ConsistencyLevel(raised.consistency),
            required=raised.required_replicas,
            alive=raised.alive_replicas,
        )
        return ErrorReceived(order.attempt, error)


def run(
    session: Session, policy: RetryPolicy, text: str, key: int, level: ConsistencyLevel
) -> tuple[Complete | Fail, Sequence[ConsistencyLevel | None]]:
    """Return how a request ended whose plan is the one node, and at which levels it was sent."""
    machine = RequestMachine(CassandraRequest(policy=policy, consistency=level), [NODE])
    events: list[CassandraEvent] = [RequestSubmitted()]
    sent = []
    while True:
        for action in machine.handle(events.pop(0), now=0.0):
            match action:
                case Send():
                    sent.append(action.consistency)
                    events.append(carry_out(session, action, text, key))
                case Complete() | Fail():
                    return action, sent


@pytest.mark.parametrize(("level", "required"), [(QUORUM, 2), (ALL, 3)])
def test_downgrading(cassandra_session: Session, key: int, level: ConsistencyLevel, required: int) -> None:
    """A write that too few replicas can take is sent to the same node again, at ONE, and is stored."""
    end, sent = run(cassandra_session, ConsistencyDowngradingRetryPolicy(), INSERTION, key, level)

    assert isinstance(end, Complete)
    assert [level, ONE] == sent
    ((node, error),) = end.info.errors
    assert isinstance(error, errors.Unavailable)
    assert (NODE, level, required, 1) == (node, error.consistency, error.required, error.alive)
    assert "ada" == stored(cassandra_session, key)


def test_downgrading_reads(cassandra_session: Session, key: int) -> None:
    """Such a read gets the row of the one replica."""
    cassandra_session.execute(INSERTION, [key])

    end, sent = run(cassandra_session, ConsistencyDowngradingRetryPolicy(), SELECTION, key, QUORUM)

    assert isinstance(end, Complete)
    assert [("ada",)] == end.result
    assert [QUORUM, ONE] == sent


@pytest.mark.parametrize(("level", "required"), [(QUORUM, 2), (ALL, 3)])
def test_by_default(cassandra_session: Session, key: int, level: ConsistencyLevel, required: int) -> None:
    """By default the next node is asked; there is none, and the error has what the one node answered."""
    end, sent = run(cassandra_session, DefaultRetryPolicy(), INSERTION, key, level)

    assert isinstance(end, Fail)
    assert isinstance(end.error, errors.AllNodesFailed)
    assert [level] == sent
    assert end.error.execution_info is not None
    ((node, error),) = end.error.execution_info.errors
    assert isinstance(error, errors.Unavailable)
    assert (NODE, level, required, 1) == (node, error.consistency, error.required, error.alive)
    assert stored(cassandra_session, key) is None
