"""One execution on its way over the plan: what is sent where, counted, recorded and told in the end."""

from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.core.retry.cassandra.policies_for_tests import Always
from tests.core.retry.cassandra.requests.request_cases import (
    CLOSED,
    NEVER_ASKED,
    READ,
    SERVER,
    START,
    UNAVAILABLE,
    UNPREPARED,
    WRITE,
    error_of,
    hear,
    prepare,
    request,
    sends,
    submitted,
)
from tests.core.retry.cassandra.requests.scripted import MISSING, ROWS, UNSENT, Answer, ScriptedCluster, play
from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.cassandra import errors as e
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel as Level
from triclinium_core.retry.cassandra.errors import ExecutionInfo
from triclinium_core.retry.cassandra.requests.actions import (
    Cancel,
    CassandraAction,
    Complete,
    CompleteEmpty,
    Fail,
    ReportFailure,
    Reprepare,
    Send,
)
from triclinium_core.retry.cassandra.requests.events import (
    AttemptAborted,
    AttemptEvent,
    CassandraEvent,
    ConnectionMissed,
    ErrorReceived,
    RequestAbandoned,
    RequestStarted,
    RequestWritten,
    ResultReceived,
    StatementForgotten,
    StatementPrepared,
    TimerFired,
)
from triclinium_core.retry.cassandra.requests.request_machine import REPREPARATIONS_MAX, RequestMachine
from triclinium_core.retry.cassandra.requests.states import RequestState
from triclinium_core.retry.cassandra.verdicts import (
    IGNORE,
    RETHROW,
    RETRY_NEXT,
    RETRY_SAME,
    RetryDecision,
    RetryVerdict,
)
from triclinium_core.retry.invalid_event import InvalidEvent


def test_a_result() -> None:
    """What the node answered comes back as it is, with how the request went."""
    machine = RequestMachine(request(consistency=Level.QUORUM), ["n1", "n2"])
    result = object()

    assert [Send(0, 0, "n1", Level.QUORUM)] == hear(machine, RequestStarted())
    assert [] == hear(machine, RequestWritten(0))
    assert [Complete(result, ExecutionInfo("n1", (), 0, 0, Level.QUORUM, 0))] == hear(
        machine, ResultReceived(0, result)
    )
    assert machine.state is RequestState.COMPLETED


def test_an_answer_that_overtakes_the_write() -> None:
    """A driver that hears the answer before it knows that all was written is understood."""
    machine = submitted(request(Always(RETRY_SAME)))

    assert [Send(1, 0, "n1", None)] == sends(hear(machine, ErrorReceived(0, SERVER)))
    assert isinstance(hear(machine, ResultReceived(1))[0], Complete)


def test_the_last_node_fails() -> None:
    """A retry on the next node where there is none is no longer the node's own error."""
    run = play(request(Always(RETRY_NEXT)), {"n1": [UNAVAILABLE]})

    assert {"n1": (UNAVAILABLE,)} == (run.error.errors if isinstance(run.error, e.AllNodesFailed) else None)
    assert type(run.error) is e.AllNodesFailed
    assert run.error.__cause__ is UNAVAILABLE
    assert ExecutionInfo(None, (("n1", UNAVAILABLE),), -1, 0, None, 1) == run.info


def test_the_level_of_the_last_node() -> None:
    """Where the plan runs out, the request tells of the level that a verdict had given it."""
    policy = Always(RetryVerdict(RetryDecision.RETRY_NEXT, Level.TWO))
    run = play(request(policy, consistency=Level.QUORUM), {"n1": [UNAVAILABLE]})

    assert type(run.error) is e.AllNodesFailed
    assert Level.TWO is run.info.consistency


def test_rethrow() -> None:
    """The error itself is raised; it knows what was met before it, and is not among that."""
    error = e.ReadTimeout(consistency=Level.ONE, block_for=1, received=0, data_present=False)
    met = e.ServerError("no")
    run = play(request(), {"n1": [met], "n2": [error]})

    assert run.error is error
    assert ExecutionInfo("n2", (("n1", met),), 0, 0, None, 1) == run.info
    assert met.execution_info is None


def test_ignore() -> None:
    """The request is done without rows, and the error that was ignored is not among its errors."""
    run = play(request(Always(IGNORE)), {"n1": [MISSING], "n2": [WRITE]})
    (_, missing), *others = run.info.errors

    assert isinstance(run.end, CompleteEmpty)
    assert ("n2", 0, e.NodeUnavailable, []) == (
        run.info.coordinator,
        run.info.successful_execution_index,
        type(missing),
        others,
    )


def test_one_count_for_all_kinds_of_errors() -> None:
    """A server error on one node uses up the retry that a read timeout on the next would have had."""
    late = e.ReadTimeout(consistency=Level.QUORUM, block_for=2, received=2, data_present=False)

    assert play(request(), {"n1": [late]}).result == ROWS
    assert play(request(), {"n1": [SERVER], "n2": [late]}).error is late


def test_what_a_policy_is_told() -> None:
    """The count grows by verdicts to retry, and by nothing else."""
    policy = Always(RETRY_NEXT)
    play(
        request(policy),
        {"n1": [UNSENT], "n2": [SERVER], "n3": [MISSING], "n4": [e.Bootstrapping("joining")], "n5": [SERVER]},
    )

    assert [0, 1] == [asked["retry_count"] for _, asked in policy.asked]


@rows("error", [SERVER, WRITE, CLOSED, e.ReadFailure("no"), e.CasWriteUnknown("perhaps")])
def test_not_idempotent(error: e.CassandraError) -> None:
    """What may have been executed is not repeated, and the policy is not asked."""
    run = play(request(NEVER_ASKED, idempotent=False), {"n1": [error], "n2": []})

    assert type(error) is run.ending
    assert (1, 0) == run.cluster.counts("n1", "n2")


@rows("error", [READ, UNAVAILABLE])
def test_not_idempotent_and_not_executed(error: e.CassandraError) -> None:
    """The two kinds that change nothing are the policy's for any statement."""
    assert ROWS == play(request(Always(RETRY_NEXT), idempotent=False), {"n1": [error], "n2": []}).result


@rows("answer", [MISSING, UNSENT, e.Bootstrapping("joining")])
@rows("idempotent", [True, False])
def test_certainly_not_executed(answer: str | e.CassandraError, idempotent: bool) -> None:
    """The next node gets it, whatever the statement; that is recorded and not counted."""
    run = play(request(NEVER_ASKED, idempotent=idempotent), {"n1": [answer], "n2": []})

    assert ROWS == run.result
    assert (["n1"], 0) == ([node for node, _ in run.info.errors], run.info.retry_count)


def test_an_empty_plan() -> None:
    """There was no node to try."""
    run = play(request(), {})

    assert e.NoNodeAvailable is run.ending
    assert ExecutionInfo(None, (), -1, 0, None, 0) == run.info


def test_a_pinned_node() -> None:
    """A plan of one: where its node fails, there is no other."""
    assert e.AllNodesFailed is play(request(), {"n1": [SERVER], "n2": []}, plan=["n1"]).ending


@rows(("handed_over", "is_unsent"), [(0, True), (1, False), (None, False)])
def test_a_write_that_fails(handed_over: int | None, is_unsent: bool) -> None:
    """It is unsent only where not one byte was handed over; begun, it is aborted and may have been executed."""
    machine = submitted(request(NEVER_ASKED, idempotent=False))
    actions = hear(machine, AttemptAborted(0, CLOSED, handed_over))

    assert is_unsent is isinstance(actions[-1], Send)
    assert [is_unsent] == [action.is_unsent for action in actions if isinstance(action, ReportFailure)]


def test_a_write_that_was_reported_whole() -> None:
    """Whoever said that all was written cannot take it back."""
    machine = submitted(request(NEVER_ASKED, idempotent=False))

    assert isinstance(hear(machine, RequestWritten(0), AttemptAborted(0, CLOSED, 0))[-1], Fail)


def test_the_connection_is_gone_before_a_retry_on_the_same_node() -> None:
    """The next node gets it, and that is no error of anybody."""
    machine = submitted(request(Always(RETRY_SAME)))
    hear(machine, RequestWritten(0), ErrorReceived(0, SERVER))
    actions = hear(machine, ConnectionMissed(1))
    (complete,) = hear(machine, ResultReceived(2))

    assert [Send(2, 0, "n2", None)] == actions
    assert isinstance(complete, Complete)
    assert (("n1", SERVER),) == complete.info.errors


@rows("handed_over", [None, 0])
@rows("error", [e.FrameTooLong("17 MiB"), e.RequestThrottled("1,000 in flight")])
def test_nobody_is_asked(error: e.FrameTooLong | e.RequestThrottled, handed_over: int | None) -> None:
    """No node takes a frame that is too long, and a throttle means the request, not the node."""
    raised = error_of(hear(submitted(request(NEVER_ASKED)), AttemptAborted(0, error, handed_over)))

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
    run = play(request(NEVER_ASKED), {"n1": [error], "n2": []})

    assert run.error is error
    assert ExecutionInfo("n1", (), 0, 0, None, 0) == run.info


def test_not_signed_in_any_more() -> None:
    """Bad credentials in the middle of it all are a mistake of the protocol."""
    error = e.AuthenticationError("who are you?")
    run = play(request(NEVER_ASKED), {"n1": [error]})

    assert e.ProtocolError is run.ending
    assert "AuthenticationError: who are you?" == str(run.error)
    assert run.error.__cause__ is error


def test_one_error_of_a_connection_for_many_requests() -> None:
    """Each request raises a copy of its own, with its own story; the cause is that of all."""
    closed = e.ClosedConnection("closed")
    closed.__cause__ = OSError("reset")
    one = error_of(hear(submitted(request(Always(RETHROW)), ["a"]), AttemptAborted(0, closed)))
    other = error_of(hear(submitted(request(Always(RETHROW)), ["b"]), AttemptAborted(0, closed)))

    assert ("a", "b") == (
        one.execution_info and one.execution_info.coordinator,
        other.execution_info and other.execution_info.coordinator,
    )
    assert closed.execution_info is None
    assert one.__cause__ is closed.__cause__


def test_reports() -> None:
    """Logs and metrics learn of each failure, what the policy said, and what it was told, before what follows."""
    machine = submitted(request(Always(RETRY_NEXT)))
    (unsent, _) = hear(machine, AttemptAborted(0, CLOSED, 0))
    (asked, _) = hear(machine, RequestWritten(1), ErrorReceived(1, SERVER))
    (raised, _) = hear(machine, RequestWritten(2), ErrorReceived(2, e.InvalidQuery("no")))

    assert ReportFailure(0, "n1", CLOSED, 0, None, is_unsent=True) == unsent
    assert ReportFailure(0, "n2", SERVER, 0, RETRY_NEXT) == asked
    assert isinstance(raised, ReportFailure)
    assert ("n3", 1, None) == (raised.node, raised.retry_count, raised.verdict)


@rows("error", [e.ServerError("no"), e.Overloaded("no"), CLOSED, e.CdcWriteFailure("no")])
def test_prepare_is_idempotent(error: e.CassandraError) -> None:
    """Nobody needs to say so, and the policy decides."""
    assert ROWS == play(prepare(Always(RETRY_NEXT)), {"n1": [error], "n2": []}).result


def test_prepare_cannot_be_ignored() -> None:
    """There would be no statement."""
    run = play(prepare(Always(IGNORE)), {"n1": [SERVER]})

    assert e.PolicyFailed is run.ending
    assert "ServerError of a PREPARE" in str(run.error)
    assert run.error.__cause__ is SERVER
    assert [IGNORE] == [action.verdict for action in run.actions if isinstance(action, ReportFailure)]


@rows("error", [READ, WRITE, UNAVAILABLE, e.AlreadyExists("no"), e.TruncateError("no"), e.Unprepared()])
def test_what_no_prepare_can_meet(error: e.CassandraError) -> None:
    """An answer to something else is told as such."""
    run = play(prepare(NEVER_ASKED), {"n1": [error], "n2": []})

    assert e.UnexpectedAnswer is run.ending
    assert f"n1 answered a PREPARE with {type(error).__name__}" in str(run.error)
    assert run.error.__cause__ is error


class Unspeakable(Exception):
    """What cannot be shown."""

    def __repr__(self) -> str:
        raise ZeroDivisionError("raise me")


@rows("answer", [ZeroDivisionError("raise me"), Unspeakable(), None, "RETRY_SAME", RetryDecision.RETRY_SAME, True])
def test_a_policy_that_fails(answer: object) -> None:
    """What it raises, or answers instead of a verdict, fails the request, and never leaves the machine by itself."""
    run = play(request(Always(answer)), {"n1": [SERVER]})

    assert (e.PolicyFailed, RequestState.FAILED) == (run.ending, run.machine.state)
    assert (type(answer) if isinstance(answer, Exception) else TypeError) is type(run.error.__cause__)
    assert "ServerError of n1" in str(run.error)


# -- A node that has forgotten a prepared statement gets it again, and then the request; nothing is counted.


idempotent_or_not = rows("idempotent", [True, False])


def preparing(*, idempotent: bool = False) -> RequestMachine:
    """Return a request whose statement is being prepared again on n1, as attempt 1."""
    machine = submitted(request(NEVER_ASKED, idempotent=idempotent, consistency=Level.ONE))
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

    assert [Send(2, 0, "n2", Level.ONE)] == sends(actions)
    assert (["n1"], 0) == ([node for node, _ in complete.info.errors], complete.info.retry_count)


def play_on(machine: RequestMachine, actions: Sequence[CassandraAction]) -> list[CassandraAction]:
    """Let nodes that answer with rows have what is ordered."""
    (order,) = (action for action in actions if isinstance(action, Send))
    return [action for event in ScriptedCluster({}).answer(order) for action in machine.handle(event, 200.0)]


def test_the_connection_is_gone_before_the_request_is_sent_again() -> None:
    """The next node gets it, and that is nobody's error, as for a retry on the same node."""
    machine = preparing()

    assert [Send(3, 0, "n2", Level.ONE)] == hear(machine, StatementPrepared(1, b"id"), ConnectionMissed(2))


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


# -- Time, leaving, late reports and mistakes: a request settles once, and a mistake changes nothing.


def test_one_timeout_for_the_whole_call() -> None:
    """It counts from the submission, whatever was tried in between."""
    downgrading = Always(RetryVerdict(RetryDecision.RETRY_NEXT, Level.ONE))
    machine = submitted(request(downgrading, consistency=Level.QUORUM, timeout=2.0))
    hear(machine, RequestWritten(0), ErrorReceived(0, SERVER), at=START + 1.9)
    assert START + 2.0 == machine.wakeup
    assert [] == hear(machine, TimerFired(), at=START + 1.99)
    cancel, fail = hear(machine, TimerFired(), at=START + 2.0)

    assert Cancel(1) == cancel
    assert isinstance(fail, Fail)
    assert isinstance(fail.error, e.DriverTimeout)
    assert "no answer within 2.0 s" == str(fail.error)
    assert ExecutionInfo(None, (("n1", SERVER),), -1, 0, Level.QUORUM, 1) == fail.error.execution_info
    assert math.inf == machine.wakeup


@rows(
    ("events", "expected"),
    [
        ([], True),
        ([RequestWritten(0)], True),
        ([ConnectionMissed(0), ConnectionMissed(1), ConnectionMissed(2)], False),
        ([AttemptAborted(0, CLOSED)], True),
        ([AttemptAborted(0, CLOSED, handed_over=1)], True),
        ([AttemptAborted(0, CLOSED, handed_over=0), ConnectionMissed(1), ConnectionMissed(2)], False),
        ([RequestWritten(0), AttemptAborted(0, CLOSED, handed_over=0)], True),
        ([AttemptAborted(0, e.RequestThrottled("full"))], False),
        ([RequestWritten(0), AttemptAborted(0, e.FrameTooLong("the answer"))], True),
        ([RequestWritten(0), ResultReceived(0)], False),
        ([RequestWritten(0), ErrorReceived(0, UNAVAILABLE)], False),
        ([RequestWritten(0), ErrorReceived(0, e.InvalidQuery("no"))], False),
        ([RequestWritten(0), ErrorReceived(0, WRITE)], True),
        ([RequestWritten(0), ErrorReceived(0, SERVER)], True),
        ([RequestWritten(0), ErrorReceived(0, e.CoordinatorError("news"))], True),
        ([RequestWritten(0), ErrorReceived(0, e.AuthenticationError("who"))], False),
        ([RequestWritten(0), ErrorReceived(0, e.Bootstrapping("not yet"))], True),
        ([RequestWritten(0), ErrorReceived(0, UNPREPARED)], False),
        ([RequestWritten(0), ErrorReceived(0, UNPREPARED), RequestWritten(1)], False),
        ([RequestWritten(0), ErrorReceived(0, UNPREPARED), AttemptAborted(1, CLOSED), ConnectionMissed(2)], True),
        ([RequestWritten(0), ErrorReceived(0, UNPREPARED), StatementPrepared(1, b"id")], True),
        ([RequestWritten(0), TimerFired()], True),
        ([RequestWritten(0), RequestAbandoned()], True),
    ],
)
def test_ambiguity(events: Sequence[CassandraEvent], expected: bool) -> None:
    """A statement is ambiguous from its order on until nothing of it was sent, or an answer shows that nothing was done."""
    asked = request(Always(RETHROW), idempotent=False)
    machine, idempotent, preparing = submitted(asked), submitted(request(Always(RETHROW))), submitted(prepare())
    for event in events:
        hear(machine, event, at=START + 2.0 * isinstance(event, TimerFired))
        hear(idempotent, event, at=START + 2.0 * isinstance(event, TimerFired))

    assert (expected, False, False) == (machine.is_ambiguous, idempotent.is_ambiguous, preparing.is_ambiguous)


def test_nothing_is_ambiguous_before_the_first_order() -> None:
    """A statement that is not submitted, or that finds no node, was not applied."""
    machine = RequestMachine(request(idempotent=False), [])
    before = machine.is_ambiguous
    hear(machine, RequestStarted())

    assert (False, False) == (before, machine.is_ambiguous)


@rows(
    ("events", "words"),
    [
        ([RequestWritten(0)], "may have been applied"),
        ([RequestWritten(0), ErrorReceived(0, UNPREPARED)], "certainly not applied"),
    ],
)
def test_a_timeout_says_whether_it_is_ambiguous(events: Sequence[CassandraEvent], words: str) -> None:
    """The error of the client's own timeout says whether the statement may have been applied."""
    machine = submitted(request(idempotent=False))
    hear(machine, *events)
    error = error_of(hear(machine, TimerFired(), at=START + 2.0))

    assert type(error) is e.DriverTimeout
    assert words in str(error)


def test_nothing_is_sent_when_time_is_up() -> None:
    """A retry that is decided too late is not made, also where nobody has said yet that time is up."""
    machine = submitted(request(Always(RETRY_NEXT)))
    hear(machine, RequestWritten(0))
    actions = hear(machine, ErrorReceived(0, SERVER), at=START + 2.0)

    assert isinstance(error_of(actions), e.DriverTimeout)
    assert not [action for action in actions if isinstance(action, Send)]


def test_a_result_that_has_come_counts() -> None:
    """A result in hand is not thrown away because the clock was quicker."""
    machine = submitted(request())

    assert isinstance(hear(machine, ResultReceived(0), at=START + 9)[0], Complete)


@rows("attempt", [1, 7, -1, None, "0", 0.5])
@rows("settled", [True, False])
def test_an_attempt_that_was_never_ordered(attempt: Any, settled: bool) -> None:
    """Is a mistake of the driver, also when all is over."""
    machine = submitted(request())
    if settled:
        hear(machine, ResultReceived(0))
    with pytest.raises(InvalidEvent, match="was never ordered; use the number that came with the order"):
        hear(machine, ResultReceived(attempt))


@rows(
    "event",
    [None, "RequestWritten", RequestWritten, object(), CompleteEmpty(ExecutionInfo(None, (), 0, 0, Level.ONE, 0))],
)
def test_what_is_no_event(event: Any) -> None:
    """Nothing else is heard, an order of the machine's own neither, and nothing was changed."""
    machine = submitted(request())
    with pytest.raises(InvalidEvent):
        hear(machine, event)

    assert RequestState.RUNNING is machine.state


@rows("now", [START - 1, math.nan, math.inf, -math.inf, None, "now", True])
def test_a_clock_that_makes_no_sense(now: Any) -> None:
    """An instant is a number, and none lies before the last; nothing was changed."""
    machine = submitted(request())
    with pytest.raises(ArgumentError, match=f"now={now!r} must be") as caught:
        machine.handle(ResultReceived(0), now)

    assert "now" == caught.value.parameter
    assert isinstance(hear(machine, ResultReceived(0))[0], Complete)


def test_a_mistake_does_not_move_the_clock() -> None:
    """An event that was refused has not happened, so its instant has not come."""
    machine = submitted(request())
    hear(machine, RequestWritten(0))
    with pytest.raises(InvalidEvent):
        hear(machine, RequestWritten(0), at=START + 1)

    assert isinstance(hear(machine, ResultReceived(0), at=START)[0], Complete)


def test_a_plan_that_fails() -> None:
    """A generator that raises on the way fails the request, with what it raised as the cause."""

    def plan() -> Iterator[str]:
        yield "n1"
        raise ZeroDivisionError("raise me")

    machine = RequestMachine(request(NEVER_ASKED), plan())
    hear(machine, RequestStarted())
    closed = e.ClosedConnection("closed")
    error = error_of(hear(machine, AttemptAborted(0, closed, 0)))

    assert isinstance(error, e.PolicyFailed)
    assert ExecutionInfo(None, (("n1", closed),), -1, 0, None, 0) == error.execution_info
    assert "the query plan failed: ZeroDivisionError('raise me')" == str(error)
    assert isinstance(error.__cause__, ZeroDivisionError)


def test_a_plan_that_fails_at_once() -> None:
    """Then the submission fails."""
    nodes: Any = iter([["n1"]])
    machine = RequestMachine(request(), nodes)

    assert isinstance(error_of(hear(machine, RequestStarted())), e.PolicyFailed)
    assert machine.state is RequestState.FAILED


def test_a_request_that_is_over_leaves_nothing() -> None:
    """Its machine goes with whoever refers to it last, and waits for no collector of garbage."""
    machine = submitted(request())
    hear(machine, ResultReceived(0))
    seen = weakref.ref(machine)
    gc.disable()
    try:
        del machine

        assert seen() is None
    finally:
        gc.enable()
