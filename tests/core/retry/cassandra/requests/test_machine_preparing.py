"""Repreparation: a node without the prepared statement gets a PREPARE and then the request again, without a retry."""

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
    """Return the machine of a request whose statement is being prepared again on n1, as attempt 1."""
    machine = request_cases.submitted(
        request_cases.request(request_cases.NEVER_ASKED, idempotent=idempotent, consistency=Level.ONE)
    )
    request_cases.hear(machine, cassandra.RequestWritten(0))

    assert [cassandra.Reprepare(1, 0, "n1", b"id")] == request_cases.hear(
        machine, cassandra.ErrorReceived(0, request_cases.UNPREPARED)
    )
    assert [] == request_cases.hear(machine, cassandra.RequestWritten(1))
    return machine


def test_a_new_statement_id_fails_the_request() -> None:
    """If the node returns another statement id, the request fails; the application must prepare the statement again."""
    error = request_cases.error_of(request_cases.hear(preparing(), cassandra.StatementPrepared(1, b"other")))

    assert isinstance(error, errors.RepreparationFailed)
    assert "b'id'" in str(error)
    assert "b'other'" in str(error)
    assert error.execution_info is not None
    assert ("n1", 0) == (error.execution_info.coordinator, error.execution_info.successful_execution_index)


def test_an_unknown_statement_fails_the_request() -> None:
    """If the driver lacks the statement's text, the request fails; the application must prepare the statement again."""
    error = request_cases.error_of(request_cases.hear(preparing(), cassandra.StatementForgotten(1)))

    assert isinstance(error, errors.RepreparationFailed)
    assert "nor does the driver" in str(error)
    assert "n1" in str(error)
    assert "b'id'" in str(error)


@rows(
    "error",
    [errors.InvalidQuery("no"), errors.AlreadyExists("no"), errors.FunctionFailure("no"), errors.ProtocolError("no")],
)
def test_an_error_of_the_statement_is_raised(error: errors.CoordinatorError) -> None:
    """If the PREPARE fails with an error of the statement, the error is raised and no other node is tried."""
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
def test_other_errors_try_the_next_node(event: cassandra.AttemptEvent, idempotent: bool) -> None:
    """A PREPARE error that is not an error of the statement is recorded, and the next node gets the request."""
    machine = preparing(idempotent=idempotent)
    actions = request_cases.hear(machine, event)
    (complete,) = (action for action in play_on(machine, actions) if isinstance(action, cassandra.Complete))

    assert [cassandra.Send(2, 0, "n2", Level.ONE)] == request_cases.sends(actions)
    assert (["n1"], 0) == ([node for node, _ in complete.info.errors], complete.info.retry_count)


def play_on(
    machine: cassandra.RequestMachine, actions: Sequence[cassandra.CassandraAction]
) -> list[cassandra.CassandraAction]:
    """Pass the Send action to a cluster that returns rows. Return the actions of the machine."""
    (order,) = (action for action in actions if isinstance(action, cassandra.Send))
    return [action for event in ScriptedCluster({}).answer(order) for action in machine.handle(event, 200.0)]


def test_connection_lost_between_prepare_and_resend() -> None:
    """If the connection closes between the PREPARE and the request, the next node gets the request."""
    machine = preparing()

    assert [cassandra.Send(3, 0, "n2", Level.ONE)] == request_cases.hear(
        machine, cassandra.StatementPrepared(1, b"id"), cassandra.ConnectionMissed(2)
    )


def test_connection_lost_before_prepare_of_a_retry() -> None:
    """If the connection for the PREPARE of a retry is missing, NodeUnavailable is recorded for the node."""
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


def test_a_node_that_always_forgets() -> None:
    """A node that always lacks the statement gets ``REPREPARATIONS_MAX`` PREPAREs, and then the next node is tried."""

    def forgets(order: cassandra.Send | cassandra.Reprepare) -> Answer:
        return request_cases.UNPREPARED if isinstance(order, cassandra.Send) else "prepared"

    run = play(request_cases.request(request_cases.NEVER_ASKED, idempotent=False), {"n1": forgets, "n2": forgets})
    assert isinstance(run.error, errors.AllNodesFailed)

    assert {"n1": (request_cases.UNPREPARED,), "n2": (request_cases.UNPREPARED,)} == run.error.errors
    assert (1 + REPREPARATIONS_MAX,) * 2 == run.cluster.counts("n1", "n2")
    assert 2 * REPREPARATIONS_MAX == sum(isinstance(order, cassandra.Reprepare) for order in run.cluster.sent)
