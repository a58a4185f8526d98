"""A node that has forgotten a prepared statement gets it again, and then the request, without counting a retry."""

from __future__ import annotations

from collections.abc import Sequence

from tests.core.retry.cassandra.policies_for_tests import Always
from tests.core.retry.cassandra.requests import request_cases
from tests.core.retry.cassandra.requests.scripted import Answer, ScriptedCluster, play
from tests.rows import rows
from triclinium_core.retry import cassandra
from triclinium_core.retry.cassandra import ConsistencyLevel as Level, errors
from triclinium_core.retry.cassandra.requests.request_machine import REPREPARATIONS_MAX

idempotent_or_not = rows("idempotent", [True, False])


def preparing(*, idempotent: bool = False) -> cassandra.RequestMachine:
    """Return a request whose statement is being prepared again on n1, as attempt 1."""
    machine = request_cases.submitted(
        request_cases.request(request_cases.NEVER_ASKED, idempotent=idempotent, consistency=Level.ONE)
    )
    request_cases.hear(machine, cassandra.RequestWritten(0))

    assert [cassandra.Reprepare(1, 0, "n1", b"id")] == request_cases.hear(
        machine, cassandra.ErrorReceived(0, request_cases.UNPREPARED)
    )
    assert [] == request_cases.hear(machine, cassandra.RequestWritten(1))
    return machine


def test_another_id() -> None:
    """The application holds an id that names nothing any more."""
    error = request_cases.error_of(request_cases.hear(preparing(), cassandra.StatementPrepared(1, b"other")))

    assert isinstance(error, errors.RepreparationFailed)
    assert "n1 prepared statement b'id' again and calls it b'other' now, as happens after USE; prepare it anew" == str(
        error
    )
    assert error.execution_info is not None
    assert ("n1", 0) == (error.execution_info.coordinator, error.execution_info.successful_execution_index)


def test_a_text_that_nobody_knows() -> None:
    """Without it there is nothing to prepare."""
    error = request_cases.error_of(request_cases.hear(preparing(), cassandra.StatementForgotten(1)))

    assert isinstance(error, errors.RepreparationFailed)
    assert "n1 does not know statement b'id', and neither does the driver; prepare it anew" == str(error)


@rows(
    "error",
    [errors.InvalidQuery("no"), errors.AlreadyExists("no"), errors.FunctionFailure("no"), errors.ProtocolError("no")],
)
def test_the_statement_is_wrong(error: errors.CoordinatorError) -> None:
    """No other node would take it either."""
    assert error is request_cases.error_of(request_cases.hear(preparing(), cassandra.ErrorReceived(1, error)))


@idempotent_or_not
@rows(
    "event",
    [
        cassandra.ErrorReceived(1, request_cases.SERVER),
        cassandra.ErrorReceived(1, errors.Overloaded("no")),
        cassandra.ErrorReceived(1, request_cases.UNPREPARED),
        cassandra.AttemptAborted(1, request_cases.CLOSED),
        cassandra.AttemptAborted(1, request_cases.CLOSED, 0),
        cassandra.AttemptAborted(1, errors.FrameTooLong("17 MiB")),
        cassandra.ConnectionMissed(1),
    ],
)
def test_anything_else(event: cassandra.AttemptEvent, idempotent: bool) -> None:
    """Is the node's: recorded against it, and the next one gets the request, for this one did not execute it."""
    machine = preparing(idempotent=idempotent)
    actions = request_cases.hear(machine, event)
    (complete,) = (action for action in play_on(machine, actions) if isinstance(action, cassandra.Complete))

    assert [cassandra.Send(2, 0, "n2", Level.ONE)] == request_cases.sends(actions)
    assert (["n1"], 0) == ([node for node, _ in complete.info.errors], complete.info.retry_count)


def play_on(
    machine: cassandra.RequestMachine, actions: Sequence[cassandra.CassandraAction]
) -> list[cassandra.CassandraAction]:
    """Let nodes that answer with rows have what is ordered."""
    (order,) = (action for action in actions if isinstance(action, cassandra.Send))
    return [action for event in ScriptedCluster({}).answer(order) for action in machine.handle(event, 200.0)]


def test_the_connection_is_gone_before_the_request_is_sent_again() -> None:
    """If the connection is gone before the resend, the next node gets the request, as for a retry on the same node."""
    machine = preparing()

    assert [cassandra.Send(3, 0, "n2", Level.ONE)] == request_cases.hear(
        machine, cassandra.StatementPrepared(1, b"id"), cassandra.ConnectionMissed(2)
    )


def test_the_connection_is_gone_before_a_retried_request_is_prepared_again() -> None:
    """That is the node's: what comes back to it is the request, and a PREPARE is new to it."""
    machine = request_cases.submitted(request_cases.request(Always(cassandra.RETRY_SAME)))
    request_cases.hear(
        machine,
        cassandra.ErrorReceived(0, request_cases.SERVER),
        cassandra.ErrorReceived(1, request_cases.UNPREPARED),
        cassandra.ConnectionMissed(2),
    )
    error = request_cases.error_of(
        request_cases.hear(machine, cassandra.AttemptAborted(3, errors.FrameTooLong("17 MiB")))
    )

    assert error.execution_info is not None
    assert [("n1", errors.ServerError), ("n1", errors.NodeUnavailable)] == [
        (node, type(met)) for node, met in error.execution_info.errors
    ]


def test_a_node_that_forgets_at_once() -> None:
    """It gets a few chances; then it is recorded, and the next node starts anew."""

    def forgets(order: cassandra.Send | cassandra.Reprepare) -> Answer:
        return request_cases.UNPREPARED if isinstance(order, cassandra.Send) else "prepared"

    run = play(request_cases.request(request_cases.NEVER_ASKED, idempotent=False), {"n1": forgets, "n2": forgets})
    assert isinstance(run.error, errors.AllNodesFailed)

    assert {"n1": (request_cases.UNPREPARED,), "n2": (request_cases.UNPREPARED,)} == run.error.errors
    assert (1 + REPREPARATIONS_MAX,) * 2 == run.cluster.counts("n1", "n2")
    assert 2 * REPREPARATIONS_MAX == sum(isinstance(order, cassandra.Reprepare) for order in run.cluster.sent)
