"""One execution on its way over the plan: what is sent where, counted, recorded and told in the end."""

from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.core.retry.cassandra.policies_for_tests import Always
from tests.core.retry.cassandra.requests import request_cases
from tests.core.retry.cassandra.requests.scripted import MISSING, ROWS, UNSENT, Answer, ScriptedCluster, play
from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry import cassandra
from triclinium_core.retry.cassandra import ConsistencyLevel as Level, errors as e
from triclinium_core.retry.cassandra.requests.request_machine import REPREPARATIONS_MAX
from triclinium_core.retry.invalid_event import InvalidEvent


def test_a_result() -> None:
    """What the node answered comes back as it is, with how the request went."""
    machine = cassandra.RequestMachine(request_cases.request(consistency=Level.QUORUM), ["n1", "n2"])
    result = object()

    assert [cassandra.Send(0, 0, "n1", Level.QUORUM)] == request_cases.hear(machine, cassandra.RequestStarted())
    assert [] == request_cases.hear(machine, cassandra.RequestWritten(0))
    assert [cassandra.Complete(result, cassandra.ExecutionInfo("n1", (), 0, 0, Level.QUORUM, 0))] == request_cases.hear(
        machine, cassandra.ResultReceived(0, result)
    )
    assert machine.state is cassandra.RequestState.COMPLETED


def test_an_answer_that_overtakes_the_write() -> None:
    """A driver that hears the answer before it knows that all was written is understood."""
    machine = request_cases.submitted(request_cases.request(Always(cassandra.RETRY_SAME)))

    assert [cassandra.Send(1, 0, "n1", None)] == request_cases.sends(
        request_cases.hear(machine, cassandra.ErrorReceived(0, request_cases.SERVER))
    )
    assert isinstance(request_cases.hear(machine, cassandra.ResultReceived(1))[0], cassandra.Complete)


def test_the_last_node_fails() -> None:
    """A retry on the next node where there is none is no longer the node's own error."""
    run = play(request_cases.request(Always(cassandra.RETRY_NEXT)), {"n1": [request_cases.UNAVAILABLE]})

    assert {"n1": (request_cases.UNAVAILABLE,)} == (
        run.error.errors if isinstance(run.error, e.AllNodesFailed) else None
    )
    assert type(run.error) is e.AllNodesFailed
    assert run.error.__cause__ is request_cases.UNAVAILABLE
    assert cassandra.ExecutionInfo(None, (("n1", request_cases.UNAVAILABLE),), -1, 0, None, 1) == run.info


def test_the_level_of_the_last_node() -> None:
    """Where the plan runs out, the request tells of the level that a verdict had given it."""
    policy = Always(cassandra.RetryVerdict(cassandra.RetryDecision.RETRY_NEXT, Level.TWO))
    run = play(request_cases.request(policy, consistency=Level.QUORUM), {"n1": [request_cases.UNAVAILABLE]})

    assert type(run.error) is e.AllNodesFailed
    assert Level.TWO is run.info.consistency


def test_rethrow() -> None:
    """The error itself is raised; it knows what was met before it, and is not among that."""
    error = e.ReadTimeout(consistency=Level.ONE, block_for=1, received=0, data_present=False)
    met = e.ServerError("no")
    run = play(request_cases.request(), {"n1": [met], "n2": [error]})

    assert run.error is error
    assert cassandra.ExecutionInfo("n2", (("n1", met),), 0, 0, None, 1) == run.info
    assert met.execution_info is None


def test_ignore() -> None:
    """The request is done without rows, and the error that was ignored is not among its errors."""
    run = play(request_cases.request(Always(cassandra.IGNORE)), {"n1": [MISSING], "n2": [request_cases.WRITE]})
    (_, missing), *others = run.info.errors

    assert isinstance(run.end, cassandra.CompleteEmpty)
    assert ("n2", 0, e.NodeUnavailable, []) == (
        run.info.coordinator,
        run.info.successful_execution_index,
        type(missing),
        others,
    )


def test_one_count_for_all_kinds_of_errors() -> None:
    """A server error on one node uses up the retry that a read timeout on the next would have had."""
    late = e.ReadTimeout(consistency=Level.QUORUM, block_for=2, received=2, data_present=False)

    assert play(request_cases.request(), {"n1": [late]}).result == ROWS
    assert play(request_cases.request(), {"n1": [request_cases.SERVER], "n2": [late]}).error is late


def test_what_a_policy_is_told() -> None:
    """The count grows by verdicts to retry, and by nothing else."""
    policy = Always(cassandra.RETRY_NEXT)
    play(
        request_cases.request(policy),
        {
            "n1": [UNSENT],
            "n2": [request_cases.SERVER],
            "n3": [MISSING],
            "n4": [e.Bootstrapping("joining")],
            "n5": [request_cases.SERVER],
        },
    )

    assert [0, 1] == [asked["retry_count"] for _, asked in policy.asked]


@rows(
    "error",
    [
        request_cases.SERVER,
        request_cases.WRITE,
        request_cases.CLOSED,
        e.ReadFailure("no"),
        e.CasWriteUnknown("perhaps"),
    ],
)
def test_not_idempotent(error: e.CassandraError) -> None:
    """What may have been executed is not repeated, and the policy is not asked."""
    run = play(request_cases.request(request_cases.NEVER_ASKED, idempotent=False), {"n1": [error], "n2": []})

    assert type(error) is run.ending
    assert (1, 0) == run.cluster.counts("n1", "n2")


@rows("error", [request_cases.READ, request_cases.UNAVAILABLE])
def test_not_idempotent_and_not_executed(error: e.CassandraError) -> None:
    """The two kinds that change nothing are the policy's for any statement."""
    assert (
        ROWS
        == play(request_cases.request(Always(cassandra.RETRY_NEXT), idempotent=False), {"n1": [error], "n2": []}).result
    )


@rows("answer", [MISSING, UNSENT, e.Bootstrapping("joining")])
@rows("idempotent", [True, False])
def test_certainly_not_executed(answer: str | e.CassandraError, idempotent: bool) -> None:
    """The next node gets it, whatever the statement; that is recorded and not counted."""
    run = play(request_cases.request(request_cases.NEVER_ASKED, idempotent=idempotent), {"n1": [answer], "n2": []})

    assert ROWS == run.result
    assert (["n1"], 0) == ([node for node, _ in run.info.errors], run.info.retry_count)


def test_an_empty_plan() -> None:
    """There was no node to try."""
    run = play(request_cases.request(), {})

    assert e.NoNodeAvailable is run.ending
    assert cassandra.ExecutionInfo(None, (), -1, 0, None, 0) == run.info


def test_a_pinned_node() -> None:
    """A plan of one: where its node fails, there is no other."""
    assert (
        e.AllNodesFailed is play(request_cases.request(), {"n1": [request_cases.SERVER], "n2": []}, plan=["n1"]).ending
    )


@rows(("handed_over", "is_unsent"), [(0, True), (1, False), (None, False)])
def test_a_write_that_fails(handed_over: int | None, is_unsent: bool) -> None:
    """It is unsent only where not one byte was handed over; begun, it is aborted and may have been executed."""
    machine = request_cases.submitted(request_cases.request(request_cases.NEVER_ASKED, idempotent=False))
    actions = request_cases.hear(machine, cassandra.AttemptAborted(0, request_cases.CLOSED, handed_over))

    assert is_unsent is isinstance(actions[-1], cassandra.Send)
    assert [is_unsent] == [action.is_unsent for action in actions if isinstance(action, cassandra.ReportFailure)]


def test_a_write_that_was_reported_whole() -> None:
    """Whoever said that all was written cannot take it back."""
    machine = request_cases.submitted(request_cases.request(request_cases.NEVER_ASKED, idempotent=False))

    assert isinstance(
        request_cases.hear(machine, cassandra.RequestWritten(0), cassandra.AttemptAborted(0, request_cases.CLOSED, 0))[
            -1
        ],
        cassandra.Fail,
    )


def test_the_connection_is_gone_before_a_retry_on_the_same_node() -> None:
    """The next node gets it, and that is no error of anybody."""
    machine = request_cases.submitted(request_cases.request(Always(cassandra.RETRY_SAME)))
    request_cases.hear(machine, cassandra.RequestWritten(0), cassandra.ErrorReceived(0, request_cases.SERVER))
    actions = request_cases.hear(machine, cassandra.ConnectionMissed(1))
    (complete,) = request_cases.hear(machine, cassandra.ResultReceived(2))

    assert [cassandra.Send(2, 0, "n2", None)] == actions
    assert isinstance(complete, cassandra.Complete)
    assert (("n1", request_cases.SERVER),) == complete.info.errors


@rows("handed_over", [None, 0])
@rows("error", [e.FrameTooLong("17 MiB"), e.RequestThrottled("1,000 in flight")])
def test_nobody_is_asked(error: e.FrameTooLong | e.RequestThrottled, handed_over: int | None) -> None:
    """No node takes a frame that is too long, and a throttle means the request, not the node."""
    raised = request_cases.error_of(
        request_cases.hear(
            request_cases.submitted(request_cases.request(request_cases.NEVER_ASKED)),
            cassandra.AttemptAborted(0, error, handed_over),
        )
    )

    assert (type(error), error.args) == (type(raised), raised.args)


@rows(
    "error",
    [
        e.InvalidSyntax("no"),
        e.Unauthorized("no"),
        e.AlreadyExists("no"),
        e.FunctionFailure("no"),
        e.ProtocolError("no"),
    ],
)
def test_raised_at_once(error: e.CassandraError) -> None:
    """No other node would answer otherwise."""
    run = play(request_cases.request(request_cases.NEVER_ASKED), {"n1": [error], "n2": []})

    assert run.error is error
    assert cassandra.ExecutionInfo("n1", (), 0, 0, None, 0) == run.info


def test_not_signed_in_any_more() -> None:
    """Bad credentials in the middle of it all are a mistake of the protocol."""
    error = e.AuthenticationError("who are you?")
    run = play(request_cases.request(request_cases.NEVER_ASKED), {"n1": [error]})

    assert e.ProtocolError is run.ending
    assert "AuthenticationError: who are you?" == str(run.error)
    assert run.error.__cause__ is error


def test_one_error_of_a_connection_for_many_requests() -> None:
    """Each request raises a copy of its own, with its own story; the cause is that of all."""
    closed = e.ClosedConnection("closed")
    closed.__cause__ = OSError("reset")
    one = request_cases.error_of(
        request_cases.hear(
            request_cases.submitted(request_cases.request(Always(cassandra.RETHROW)), ["a"]),
            cassandra.AttemptAborted(0, closed),
        )
    )
    other = request_cases.error_of(
        request_cases.hear(
            request_cases.submitted(request_cases.request(Always(cassandra.RETHROW)), ["b"]),
            cassandra.AttemptAborted(0, closed),
        )
    )

    assert ("a", "b") == (
        one.execution_info and one.execution_info.coordinator,
        other.execution_info and other.execution_info.coordinator,
    )
    assert closed.execution_info is None
    assert one.__cause__ is closed.__cause__


def test_reports() -> None:
    """Logs and metrics learn of each failure, what the policy said, and what it was told, before what follows."""
    machine = request_cases.submitted(request_cases.request(Always(cassandra.RETRY_NEXT)))
    (unsent, _) = request_cases.hear(machine, cassandra.AttemptAborted(0, request_cases.CLOSED, 0))
    (asked, _) = request_cases.hear(
        machine, cassandra.RequestWritten(1), cassandra.ErrorReceived(1, request_cases.SERVER)
    )
    (raised, _) = request_cases.hear(
        machine, cassandra.RequestWritten(2), cassandra.ErrorReceived(2, e.InvalidQuery("no"))
    )

    assert cassandra.ReportFailure(0, "n1", request_cases.CLOSED, 0, None, is_unsent=True) == unsent
    assert cassandra.ReportFailure(0, "n2", request_cases.SERVER, 0, cassandra.RETRY_NEXT) == asked
    assert isinstance(raised, cassandra.ReportFailure)
    assert ("n3", 1, None) == (raised.node, raised.retry_count, raised.verdict)


@rows("error", [e.ServerError("no"), e.Overloaded("no"), request_cases.CLOSED, e.CdcWriteFailure("no")])
def test_prepare_is_idempotent(error: e.CassandraError) -> None:
    """Nobody needs to say so, and the policy decides."""
    assert ROWS == play(request_cases.prepare(Always(cassandra.RETRY_NEXT)), {"n1": [error], "n2": []}).result


def test_prepare_cannot_be_ignored() -> None:
    """There would be no statement."""
    run = play(request_cases.prepare(Always(cassandra.IGNORE)), {"n1": [request_cases.SERVER]})

    assert e.PolicyFailed is run.ending
    assert "ServerError of a PREPARE" in str(run.error)
    assert run.error.__cause__ is request_cases.SERVER
    assert [cassandra.IGNORE] == [
        action.verdict for action in run.actions if isinstance(action, cassandra.ReportFailure)
    ]


@rows(
    "error",
    [
        request_cases.READ,
        request_cases.WRITE,
        request_cases.UNAVAILABLE,
        e.AlreadyExists("no"),
        e.TruncateError("no"),
        e.Unprepared(),
    ],
)
def test_what_no_prepare_can_meet(error: e.CassandraError) -> None:
    """An answer to something else is told as such."""
    run = play(request_cases.prepare(request_cases.NEVER_ASKED), {"n1": [error], "n2": []})

    assert e.UnexpectedAnswer is run.ending
    assert f"n1 answered a PREPARE with {type(error).__name__}" in str(run.error)
    assert run.error.__cause__ is error


class Unspeakable(Exception):
    """What cannot be shown."""

    def __repr__(self) -> str:
        raise ZeroDivisionError("raise me")


@rows(
    "answer",
    [ZeroDivisionError("raise me"), Unspeakable(), None, "RETRY_SAME", cassandra.RetryDecision.RETRY_SAME, True],
)
def test_a_policy_that_fails(answer: object) -> None:
    """What it raises, or answers instead of a verdict, fails the request, and never leaves the machine by itself."""
    run = play(request_cases.request(Always(answer)), {"n1": [request_cases.SERVER]})

    assert (e.PolicyFailed, cassandra.RequestState.FAILED) == (run.ending, run.machine.state)
    assert (type(answer) if isinstance(answer, Exception) else TypeError) is type(run.error.__cause__)
    assert "ServerError of n1" in str(run.error)


# -- A node that has forgotten a prepared statement gets it again, and then the request; nothing is counted.


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

    assert isinstance(error, e.RepreparationFailed)
    assert "n1 prepared statement b'id' again and calls it b'other' now, as happens after USE; prepare it anew" == str(
        error
    )
    assert error.execution_info is not None
    assert ("n1", 0) == (error.execution_info.coordinator, error.execution_info.successful_execution_index)


def test_a_text_that_nobody_knows() -> None:
    """Without it there is nothing to prepare."""
    error = request_cases.error_of(request_cases.hear(preparing(), cassandra.StatementForgotten(1)))

    assert isinstance(error, e.RepreparationFailed)
    assert "n1 does not know statement b'id', and neither does the driver; prepare it anew" == str(error)


@rows("error", [e.InvalidQuery("no"), e.AlreadyExists("no"), e.FunctionFailure("no"), e.ProtocolError("no")])
def test_the_statement_is_wrong(error: e.CoordinatorError) -> None:
    """No other node would take it either."""
    assert error is request_cases.error_of(request_cases.hear(preparing(), cassandra.ErrorReceived(1, error)))


@idempotent_or_not
@rows(
    "event",
    [
        cassandra.ErrorReceived(1, request_cases.SERVER),
        cassandra.ErrorReceived(1, e.Overloaded("no")),
        cassandra.ErrorReceived(1, request_cases.UNPREPARED),
        cassandra.AttemptAborted(1, request_cases.CLOSED),
        cassandra.AttemptAborted(1, request_cases.CLOSED, 0),
        cassandra.AttemptAborted(1, e.FrameTooLong("17 MiB")),
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
    """The next node gets it, and that is nobody's error, as for a retry on the same node."""
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
    error = request_cases.error_of(request_cases.hear(machine, cassandra.AttemptAborted(3, e.FrameTooLong("17 MiB"))))

    assert error.execution_info is not None
    assert [("n1", e.ServerError), ("n1", e.NodeUnavailable)] == [
        (node, type(met)) for node, met in error.execution_info.errors
    ]


def test_a_node_that_forgets_at_once() -> None:
    """It gets a few chances; then it is recorded, and the next node starts anew."""

    def forgets(order: cassandra.Send | cassandra.Reprepare) -> Answer:
        return request_cases.UNPREPARED if isinstance(order, cassandra.Send) else "prepared"

    run = play(request_cases.request(request_cases.NEVER_ASKED, idempotent=False), {"n1": forgets, "n2": forgets})
    assert isinstance(run.error, e.AllNodesFailed)

    assert {"n1": (request_cases.UNPREPARED,), "n2": (request_cases.UNPREPARED,)} == run.error.errors
    assert (1 + REPREPARATIONS_MAX,) * 2 == run.cluster.counts("n1", "n2")
    assert 2 * REPREPARATIONS_MAX == sum(isinstance(order, cassandra.Reprepare) for order in run.cluster.sent)


# -- Time, leaving, late reports and mistakes: a request settles once, and a mistake changes nothing.


def test_one_timeout_for_the_whole_call() -> None:
    """It counts from the submission, whatever was tried in between."""
    downgrading = Always(cassandra.RetryVerdict(cassandra.RetryDecision.RETRY_NEXT, Level.ONE))
    machine = request_cases.submitted(request_cases.request(downgrading, consistency=Level.QUORUM, timeout=2.0))
    request_cases.hear(
        machine,
        cassandra.RequestWritten(0),
        cassandra.ErrorReceived(0, request_cases.SERVER),
        at=request_cases.START + 1.9,
    )
    assert request_cases.START + 2.0 == machine.wakeup
    assert [] == request_cases.hear(machine, cassandra.TimerFired(), at=request_cases.START + 1.99)
    cancel, fail = request_cases.hear(machine, cassandra.TimerFired(), at=request_cases.START + 2.0)

    assert cassandra.Cancel(1) == cancel
    assert isinstance(fail, cassandra.Fail)
    assert isinstance(fail.error, e.DriverTimeout)
    assert "no answer within 2.0 s" == str(fail.error)
    assert (
        cassandra.ExecutionInfo(None, (("n1", request_cases.SERVER),), -1, 0, Level.QUORUM, 1)
        == fail.error.execution_info
    )
    assert math.inf == machine.wakeup


@rows(
    ("events", "expected"),
    [
        ([], True),
        ([cassandra.RequestWritten(0)], True),
        ([cassandra.ConnectionMissed(0), cassandra.ConnectionMissed(1), cassandra.ConnectionMissed(2)], False),
        ([cassandra.AttemptAborted(0, request_cases.CLOSED)], True),
        ([cassandra.AttemptAborted(0, request_cases.CLOSED, handed_over=1)], True),
        (
            [
                cassandra.AttemptAborted(0, request_cases.CLOSED, handed_over=0),
                cassandra.ConnectionMissed(1),
                cassandra.ConnectionMissed(2),
            ],
            False,
        ),
        ([cassandra.RequestWritten(0), cassandra.AttemptAborted(0, request_cases.CLOSED, handed_over=0)], True),
        ([cassandra.AttemptAborted(0, e.RequestThrottled("full"))], False),
        ([cassandra.RequestWritten(0), cassandra.AttemptAborted(0, e.FrameTooLong("the answer"))], True),
        ([cassandra.RequestWritten(0), cassandra.ResultReceived(0)], False),
        ([cassandra.RequestWritten(0), cassandra.ErrorReceived(0, request_cases.UNAVAILABLE)], False),
        ([cassandra.RequestWritten(0), cassandra.ErrorReceived(0, e.InvalidQuery("no"))], False),
        ([cassandra.RequestWritten(0), cassandra.ErrorReceived(0, request_cases.WRITE)], True),
        ([cassandra.RequestWritten(0), cassandra.ErrorReceived(0, request_cases.SERVER)], True),
        ([cassandra.RequestWritten(0), cassandra.ErrorReceived(0, e.CoordinatorError("news"))], True),
        ([cassandra.RequestWritten(0), cassandra.ErrorReceived(0, e.AuthenticationError("who"))], False),
        ([cassandra.RequestWritten(0), cassandra.ErrorReceived(0, e.Bootstrapping("not yet"))], True),
        ([cassandra.RequestWritten(0), cassandra.ErrorReceived(0, request_cases.UNPREPARED)], False),
        (
            [
                cassandra.RequestWritten(0),
                cassandra.ErrorReceived(0, request_cases.UNPREPARED),
                cassandra.RequestWritten(1),
            ],
            False,
        ),
        (
            [
                cassandra.RequestWritten(0),
                cassandra.ErrorReceived(0, request_cases.UNPREPARED),
                cassandra.AttemptAborted(1, request_cases.CLOSED),
                cassandra.ConnectionMissed(2),
            ],
            True,
        ),
        (
            [
                cassandra.RequestWritten(0),
                cassandra.ErrorReceived(0, request_cases.UNPREPARED),
                cassandra.StatementPrepared(1, b"id"),
            ],
            True,
        ),
        ([cassandra.RequestWritten(0), cassandra.TimerFired()], True),
        ([cassandra.RequestWritten(0), cassandra.RequestAbandoned()], True),
    ],
)
def test_ambiguity(events: Sequence[cassandra.CassandraEvent], expected: bool) -> None:
    """A statement is ambiguous from its order on until nothing of it was sent, or an answer shows that nothing was done."""
    asked = request_cases.request(Always(cassandra.RETHROW), idempotent=False)
    machine, idempotent, preparing = (
        request_cases.submitted(asked),
        request_cases.submitted(request_cases.request(Always(cassandra.RETHROW))),
        request_cases.submitted(request_cases.prepare()),
    )
    for event in events:
        request_cases.hear(machine, event, at=request_cases.START + 2.0 * isinstance(event, cassandra.TimerFired))
        request_cases.hear(idempotent, event, at=request_cases.START + 2.0 * isinstance(event, cassandra.TimerFired))

    assert (expected, False, False) == (machine.is_ambiguous, idempotent.is_ambiguous, preparing.is_ambiguous)


def test_nothing_is_ambiguous_before_the_first_order() -> None:
    """A statement that is not submitted, or that finds no node, was not applied."""
    machine = cassandra.RequestMachine(request_cases.request(idempotent=False), [])
    before = machine.is_ambiguous
    request_cases.hear(machine, cassandra.RequestStarted())

    assert (False, False) == (before, machine.is_ambiguous)


@rows(
    ("events", "words"),
    [
        ([cassandra.RequestWritten(0)], "may have been applied"),
        ([cassandra.RequestWritten(0), cassandra.ErrorReceived(0, request_cases.UNPREPARED)], "certainly not applied"),
    ],
)
def test_a_timeout_says_whether_it_is_ambiguous(events: Sequence[cassandra.CassandraEvent], words: str) -> None:
    """The error of the client's own timeout says whether the statement may have been applied."""
    machine = request_cases.submitted(request_cases.request(idempotent=False))
    request_cases.hear(machine, *events)
    error = request_cases.error_of(request_cases.hear(machine, cassandra.TimerFired(), at=request_cases.START + 2.0))

    assert type(error) is e.DriverTimeout
    assert words in str(error)


def test_nothing_is_sent_when_time_is_up() -> None:
    """A retry that is decided too late is not made, also where nobody has said yet that time is up."""
    machine = request_cases.submitted(request_cases.request(Always(cassandra.RETRY_NEXT)))
    request_cases.hear(machine, cassandra.RequestWritten(0))
    actions = request_cases.hear(
        machine, cassandra.ErrorReceived(0, request_cases.SERVER), at=request_cases.START + 2.0
    )

    assert isinstance(request_cases.error_of(actions), e.DriverTimeout)
    assert not [action for action in actions if isinstance(action, cassandra.Send)]


def test_a_result_that_has_come_counts() -> None:
    """A result in hand is not thrown away because the clock was quicker."""
    machine = request_cases.submitted(request_cases.request())

    assert isinstance(
        request_cases.hear(machine, cassandra.ResultReceived(0), at=request_cases.START + 9)[0], cassandra.Complete
    )


@rows("attempt", [1, 7, -1, None, "0", 0.5])
@rows("settled", [True, False])
def test_an_attempt_that_was_never_ordered(attempt: Any, settled: bool) -> None:
    """Is a mistake of the driver, also when all is over."""
    machine = request_cases.submitted(request_cases.request())
    if settled:
        request_cases.hear(machine, cassandra.ResultReceived(0))
    with pytest.raises(InvalidEvent, match="was never ordered; use the number that came with the order"):
        request_cases.hear(machine, cassandra.ResultReceived(attempt))


@rows(
    "event",
    [
        None,
        "RequestWritten",
        cassandra.RequestWritten,
        object(),
        cassandra.CompleteEmpty(cassandra.ExecutionInfo(None, (), 0, 0, Level.ONE, 0)),
    ],
)
def test_what_is_no_event(event: Any) -> None:
    """Nothing else is heard, an order of the machine's own neither, and nothing was changed."""
    machine = request_cases.submitted(request_cases.request())
    with pytest.raises(InvalidEvent):
        request_cases.hear(machine, event)

    assert cassandra.RequestState.RUNNING is machine.state


@rows("now", [request_cases.START - 1, math.nan, math.inf, -math.inf, None, "now", True])
def test_a_clock_that_makes_no_sense(now: Any) -> None:
    """An instant is a number, and none lies before the last; nothing was changed."""
    machine = request_cases.submitted(request_cases.request())
    with pytest.raises(ArgumentError, match=f"now={now!r} must be") as caught:
        machine.handle(cassandra.ResultReceived(0), now)

    assert "now" == caught.value.parameter
    assert isinstance(request_cases.hear(machine, cassandra.ResultReceived(0))[0], cassandra.Complete)


def test_a_mistake_does_not_move_the_clock() -> None:
    """An event that was refused has not happened, so its instant has not come."""
    machine = request_cases.submitted(request_cases.request())
    request_cases.hear(machine, cassandra.RequestWritten(0))
    with pytest.raises(InvalidEvent):
        request_cases.hear(machine, cassandra.RequestWritten(0), at=request_cases.START + 1)

    assert isinstance(
        request_cases.hear(machine, cassandra.ResultReceived(0), at=request_cases.START)[0], cassandra.Complete
    )


def test_a_plan_that_fails() -> None:
    """A generator that raises on the way fails the request, with what it raised as the cause."""

    def plan() -> Iterator[str]:
        yield "n1"
        raise ZeroDivisionError("raise me")

    machine = cassandra.RequestMachine(request_cases.request(request_cases.NEVER_ASKED), plan())
    request_cases.hear(machine, cassandra.RequestStarted())
    closed = e.ClosedConnection("closed")
    error = request_cases.error_of(request_cases.hear(machine, cassandra.AttemptAborted(0, closed, 0)))

    assert isinstance(error, e.PolicyFailed)
    assert cassandra.ExecutionInfo(None, (("n1", closed),), -1, 0, None, 0) == error.execution_info
    assert "the query plan failed: ZeroDivisionError('raise me')" == str(error)
    assert isinstance(error.__cause__, ZeroDivisionError)


def test_a_plan_that_fails_at_once() -> None:
    """Then the submission fails."""
    nodes: Any = iter([["n1"]])
    machine = cassandra.RequestMachine(request_cases.request(), nodes)

    assert isinstance(request_cases.error_of(request_cases.hear(machine, cassandra.RequestStarted())), e.PolicyFailed)
    assert machine.state is cassandra.RequestState.FAILED


def test_a_request_that_is_over_leaves_nothing() -> None:
    """Its machine goes with whoever refers to it last, and waits for no collector of garbage."""
    machine = request_cases.submitted(request_cases.request())
    request_cases.hear(machine, cassandra.ResultReceived(0))
    seen = weakref.ref(machine)
    gc.disable()
    try:
        del machine

        assert seen() is None
    finally:
        gc.enable()
