"""A node that has forgotten a prepared statement gets it again, and then the request; nothing is counted."""

from __future__ import annotations

from collections.abc import Sequence

from tests.core.retry.cassandra.policies_for_tests import Always
from tests.core.retry.cassandra.requests.request_cases import (
    CLOSED,
    NEVER_ASKED,
    SERVER,
    UNPREPARED,
    error_of,
    hear,
    request,
    sends,
    submitted,
)
from tests.core.retry.cassandra.requests.scripted import Answer, Cluster, play
from tests.rows import rows
from triclinium_core.retry.cassandra import errors as e
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel
from triclinium_core.retry.cassandra.requests.actions import CassandraAction, Complete, Reprepare, Send
from triclinium_core.retry.cassandra.requests.events import (
    AttemptAborted,
    AttemptEvent,
    ConnectionMissed,
    ErrorReceived,
    RequestWritten,
    StatementForgotten,
    StatementPrepared,
)
from triclinium_core.retry.cassandra.requests.machine import REPREPARATIONS_MAX, RequestMachine
from triclinium_core.retry.cassandra.verdicts import RETRY_SAME

idempotent_or_not = rows("idempotent", [True, False])


def preparing(*, idempotent: bool = False) -> RequestMachine:
    """Return a request whose statement is being prepared again on n1, as attempt 1."""
    machine = submitted(request(NEVER_ASKED, idempotent=idempotent, consistency=ConsistencyLevel.ONE))
    hear(machine, RequestWritten(0))

    assert [Reprepare(1, 0, "n1", b"id")] == hear(machine, ErrorReceived(0, UNPREPARED))
    assert [] == hear(machine, RequestWritten(1))
    return machine


def test_another_id() -> None:
    """The application holds an id that names nothing any more."""
    error = error_of(hear(preparing(), StatementPrepared(1, b"other")))

    assert isinstance(error, e.RepreparationFailed)
    assert "n1 prepared statement b'id' again and calls it b'other' now, as happens after USE; prepare it anew" == str(
        error
    )
    assert error.execution_info is not None
    assert ("n1", 0) == (error.execution_info.coordinator, error.execution_info.successful_execution_index)


def test_a_text_that_nobody_knows() -> None:
    """Without it there is nothing to prepare."""
    error = error_of(hear(preparing(), StatementForgotten(1)))

    assert isinstance(error, e.RepreparationFailed)
    assert "n1 does not know statement b'id', and neither does the driver; prepare it anew" == str(error)


@rows("error", [e.InvalidQuery("no"), e.AlreadyExists("no"), e.FunctionFailure("no"), e.ProtocolError("no")])
def test_the_statement_is_wrong(error: e.CoordinatorError) -> None:
    """No other node would take it either."""
    assert error is error_of(hear(preparing(), ErrorReceived(1, error)))


@idempotent_or_not
@rows(
    "event",
    [
        ErrorReceived(1, SERVER),
        ErrorReceived(1, e.Overloaded("no")),
        ErrorReceived(1, UNPREPARED),
        AttemptAborted(1, CLOSED),
        AttemptAborted(1, CLOSED, 0),
        AttemptAborted(1, e.FrameTooLong("17 MiB")),
        ConnectionMissed(1),
    ],
)
def test_anything_else(event: AttemptEvent, idempotent: bool) -> None:
    """Is the node's: recorded against it, and the next one gets the request, for this one did not execute it."""
    machine = preparing(idempotent=idempotent)
    actions = hear(machine, event)
    (complete,) = (action for action in play_on(machine, actions) if isinstance(action, Complete))

    assert [Send(2, 0, "n2", ConsistencyLevel.ONE)] == sends(actions)
    assert (["n1"], 0) == ([node for node, _ in complete.info.errors], complete.info.retry_count)


def play_on(machine: RequestMachine, actions: Sequence[CassandraAction]) -> list[CassandraAction]:
    """Let nodes that answer with rows have what is ordered."""
    (order,) = (action for action in actions if isinstance(action, Send))
    return [action for event in Cluster({}).answer(order) for action in machine.handle(event, 200.0)]


def test_the_connection_is_gone_before_the_request_is_sent_again() -> None:
    """The next node gets it, and that is nobody's error, as for a retry on the same node."""
    machine = preparing()

    assert [Send(3, 0, "n2", ConsistencyLevel.ONE)] == hear(machine, StatementPrepared(1, b"id"), ConnectionMissed(2))


def test_the_connection_is_gone_before_a_retried_request_is_prepared_again() -> None:
    """That is the node's: what comes back to it is the request, and a PREPARE is new to it."""
    machine = submitted(request(Always(RETRY_SAME)))
    hear(machine, ErrorReceived(0, SERVER), ErrorReceived(1, UNPREPARED), ConnectionMissed(2))
    error = error_of(hear(machine, AttemptAborted(3, e.FrameTooLong("17 MiB"))))

    assert error.execution_info is not None
    assert [("n1", e.ServerError), ("n1", e.NodeUnavailable)] == [
        (node, type(met)) for node, met in error.execution_info.errors
    ]


def test_a_node_that_forgets_at_once() -> None:
    """It gets a few chances; then it is recorded, and the next node starts anew."""

    def forgets(order: Send | Reprepare) -> Answer:
        return UNPREPARED if isinstance(order, Send) else "prepared"

    run = play(request(NEVER_ASKED, idempotent=False), {"n1": forgets, "n2": forgets})
    assert isinstance(run.error, e.AllNodesFailed)

    assert {"n1": (UNPREPARED,), "n2": (UNPREPARED,)} == run.error.errors
    assert (1 + REPREPARATIONS_MAX,) * 2 == run.cluster.counts("n1", "n2")
    assert 2 * REPREPARATIONS_MAX == sum(isinstance(order, Reprepare) for order in run.cluster.sent)
