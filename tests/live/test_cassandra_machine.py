"""Triclinium's request machine, which decides about the responses of a real node of Apache Cassandra.

The driver sends the statements and retries nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest
from cassandra import protocol
from cassandra.cluster import Session
from cassandra.query import SimpleStatement

from tests.core.adapters.driver_errors import from_driver
from tests.live.cassandra_session import INSERTION, SELECTION, prepare_failures, stored
from triclinium_core.retry import cassandra
from triclinium_core.retry.cassandra import errors

pytestmark = pytest.mark.live

NODE = "the only one"
ONE, QUORUM, ALL = cassandra.ConsistencyLevel.ONE, cassandra.ConsistencyLevel.QUORUM, cassandra.ConsistencyLevel.ALL


@contextmanager
def decoded() -> Iterator[list[protocol.ErrorMessage]]:
    """Yield a list, to which each ERROR frame that the driver decodes during the block is added."""
    frames: list[protocol.ErrorMessage] = []
    decode = protocol.ErrorMessage.recv_body

    def recv_body(*arguments: object) -> protocol.ErrorMessage:
        frames.append(decode(*arguments))
        return frames[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol.ErrorMessage, "recv_body", recv_body)
        yield frames


def carry_out(session: Session, order: cassandra.Send, text: str, row_id: int) -> cassandra.CassandraEvent:
    """Execute a statement once, and return the resulting event."""
    assert order.consistency is not None
    statement = SimpleStatement(text, consistency_level=order.consistency.value)
    with decoded() as frames:
        try:
            return cassandra.ResultReceived(
                order.attempt, session.execute(statement, [row_id] * text.count("%s") or None).all()
            )
        except Exception:
            if not frames:
                raise
            return cassandra.ErrorReceived(order.attempt, from_driver(frames[-1]))


def run(
    session: Session, policy: cassandra.RetryPolicy, text: str, row_id: int, level: cassandra.ConsistencyLevel
) -> tuple[cassandra.Complete | cassandra.Fail, Sequence[cassandra.ConsistencyLevel | None]]:
    """Return the ending of a request with one node in its plan, and the levels at which it was sent."""
    machine = cassandra.RequestMachine(cassandra.CassandraRequest(policy=policy, consistency=level), [NODE])
    events: list[cassandra.CassandraEvent] = [cassandra.RequestStarted()]
    sent = []
    while True:
        for action in machine.handle(events.pop(0), now=0.0):
            match action:
                case cassandra.Send():
                    sent.append(action.consistency)
                    events.append(carry_out(session, action, text, row_id))
                case cassandra.Complete() | cassandra.Fail():
                    return action, sent


@pytest.mark.parametrize(("level", "required"), [(QUORUM, 2), (ALL, 3)])
def test_downgrading(cassandra_session: Session, row_id: int, level: cassandra.ConsistencyLevel, required: int) -> None:
    """Under the downgrading policy, a write and a read are retried on the same node at ONE, and succeed."""
    for text, rows in ((INSERTION, []), (SELECTION, [("ada",)])):
        end, sent = run(cassandra_session, cassandra.ConsistencyDowngradingRetryPolicy(), text, row_id, level)

        assert isinstance(end, cassandra.Complete)
        assert rows == end.result
        assert [level, ONE] == sent
        ((node, error),) = end.info.errors
        assert isinstance(error, errors.Unavailable)
        assert (NODE, level, required, 1) == (node, error.consistency, error.required, error.alive)


@pytest.mark.parametrize(("level", "required"), [(QUORUM, 2), (ALL, 3)])
def test_default_policy(
    cassandra_session: Session, row_id: int, level: cassandra.ConsistencyLevel, required: int
) -> None:
    """Under the default policy, the only node is tried once, and the error has its response."""
    end, sent = run(cassandra_session, cassandra.DefaultRetryPolicy(), INSERTION, row_id, level)

    assert isinstance(end, cassandra.Fail)
    assert isinstance(end.error, errors.AllNodesFailed)
    assert [level] == sent
    assert end.error.execution_info is not None
    ((node, error),) = end.error.execution_info.errors
    assert isinstance(error, errors.Unavailable)
    assert (NODE, level, required, 1) == (node, error.consistency, error.required, error.alive)
    assert stored(cassandra_session, row_id) is None


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("SELECT FROM WHERE", errors.InvalidSyntax, {}),
        ("SELECT * FROM travel.nowhere", errors.InvalidQuery, {}),
        (
            "CREATE TABLE travel.people (id int PRIMARY KEY)",
            errors.AlreadyExists,
            {"keyspace": "travel", "table": "people"},
        ),
        (
            "SELECT travel.throws(id) FROM travel.people WHERE id = %s",
            errors.FunctionFailure,
            {"keyspace": "travel", "function": "throws", "arg_types": ("int",)},
        ),
        (
            "SELECT * FROM travel.buried WHERE id = %s",
            errors.ReadFailure,
            {"consistency": ONE, "block_for": 1, "received": 0, "failures": 1, "data_present": False},
        ),
        (
            "INSERT INTO unwritable.people (id) VALUES (%s)",
            errors.WriteFailure,
            {
                "consistency": ONE,
                "block_for": 1,
                "received": 0,
                "failures": 1,
                "write_type": cassandra.WriteType.SIMPLE,
            },
        ),
    ],
)
def test_an_error_has_all_fields_of_the_response(
    cassandra_session: Session,
    row_id: int,
    text: str,
    kind: type[errors.CoordinatorError],
    expected: Mapping[str, object],
) -> None:
    """An error has the fields of the node's response, and its text contains the message."""
    prepare_failures(cassandra_session, row_id)

    end, _ = run(cassandra_session, cassandra.DefaultRetryPolicy(), text, row_id, ONE)

    assert isinstance(end, cassandra.Fail)
    error = end.error
    assert isinstance(error, kind)
    assert expected == {name: getattr(error, name) for name in expected}
    assert error.message
    assert error.message in str(error)
