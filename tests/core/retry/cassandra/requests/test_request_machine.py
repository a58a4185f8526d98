"""One execution of a request over its query plan: its attempts, counts, records and result."""

from __future__ import annotations

import gc
import weakref

from tests.core.retry.cassandra.policies_for_tests import Always
from tests.core.retry.cassandra.requests.request_cases import (
    CLOSED,
    NEVER_ASKED,
    READ,
    SERVER,
    UNAVAILABLE,
    WRITE,
    error_of,
    hear,
    prepare,
    request,
    sends,
    submitted,
)
from tests.core.retry.cassandra.requests.scripted import MISSING, ROWS, UNSENT, play
from tests.rows import rows
from triclinium_core.retry import cassandra
from triclinium_core.retry.cassandra import ConsistencyLevel as Level, errors


def test_a_result() -> None:
    """The request completes with the node's result unchanged, and with the execution info."""
    machine = cassandra.RequestMachine(request(consistency=Level.QUORUM), ["n1", "n2"])
    result = object()

    assert [cassandra.Send(0, 0, "n1", Level.QUORUM)] == hear(machine, cassandra.RequestStarted())
    assert [] == hear(machine, cassandra.RequestWritten(0))
    assert [cassandra.Complete(result, cassandra.ExecutionInfo("n1", (), 0, 0, Level.QUORUM, 0))] == hear(
        machine, cassandra.ResultReceived(0, result)
    )
    assert machine.state is cassandra.RequestState.COMPLETED


def test_a_response_before_the_write_report() -> None:
    """If a response is reported before the completed write, the machine accepts the response."""
    machine = submitted(request(Always(cassandra.RETRY_SAME)))

    assert [cassandra.Send(1, 0, "n1", None)] == sends(hear(machine, cassandra.ErrorReceived(0, SERVER)))
    assert isinstance(hear(machine, cassandra.ResultReceived(1))[0], cassandra.Complete)


def test_the_last_node_fails() -> None:
    """If the policy retries on the next node and the plan has none, AllNodesFailed has the level of that retry."""
    policy = Always(cassandra.RetryVerdict(cassandra.RetryDecision.RETRY_NEXT, Level.TWO))
    run = play(request(policy, consistency=Level.QUORUM), {"n1": [UNAVAILABLE]})

    assert type(run.error) is errors.AllNodesFailed
    assert {"n1": (UNAVAILABLE,)} == run.error.errors
    assert run.error.__cause__ is UNAVAILABLE
    assert cassandra.ExecutionInfo(None, (("n1", UNAVAILABLE),), -1, 0, Level.TWO, 1) == run.info


def test_rethrow() -> None:
    """The execution info of a rethrown error has the earlier errors but not the rethrown error."""
    error = errors.ReadTimeout(consistency=Level.ONE, block_for=1, received=0, data_present=False)
    met = errors.ServerError("no")
    run = play(request(), {"n1": [met], "n2": [error]})

    assert run.error is error
    assert cassandra.ExecutionInfo("n2", (("n1", met),), 0, 0, None, 1) == run.info
    assert met.execution_info is None


def test_ignore() -> None:
    """If the policy ignores an error, the request completes without rows, and the error is not on record."""
    run = play(request(Always(cassandra.IGNORE)), {"n1": [MISSING], "n2": [WRITE]})
    (_, missing), *others = run.info.errors

    assert isinstance(run.end, cassandra.CompleteEmpty)
    assert ("n2", 0, errors.NodeUnavailable, []) == (
        run.info.coordinator,
        run.info.successful_execution_index,
        type(missing),
        others,
    )


def test_one_count_for_all_kinds_of_errors() -> None:
    """A retry after a server error on one node uses up the retry for a read timeout on the next node."""
    late = errors.ReadTimeout(consistency=Level.QUORUM, block_for=2, received=2, data_present=False)

    assert play(request(), {"n1": [late]}).result == ROWS
    assert play(request(), {"n1": [SERVER], "n2": [late]}).error is late


def test_only_verdicts_increase_the_retry_count() -> None:
    """The retry count that the policy gets increases only when the policy decides to retry."""
    policy = Always(cassandra.RETRY_NEXT)
    play(
        request(policy),
        {"n1": [UNSENT], "n2": [SERVER], "n3": [MISSING], "n4": [errors.Bootstrapping("joining")], "n5": [SERVER]},
    )

    assert [0, 1] == [asked["retry_count"] for _, asked in policy.asked]


@rows("error", [SERVER, WRITE, CLOSED, errors.ReadFailure("no"), errors.CasWriteUnknown("perhaps")])
def test_not_idempotent(error: errors.CassandraError) -> None:
    """If a non-idempotent request may have been executed, it is not retried and the policy is not called."""
    run = play(request(NEVER_ASKED, idempotent=False), {"n1": [error], "n2": []})

    assert type(error) is run.ending
    assert (1, 0) == run.cluster.counts("n1", "n2")


@rows("error", [READ, UNAVAILABLE])
def test_not_idempotent_and_not_executed(error: errors.CassandraError) -> None:
    """The policy decides about a read timeout and Unavailable even if the statement is not idempotent."""
    assert ROWS == play(request(Always(cassandra.RETRY_NEXT), idempotent=False), {"n1": [error], "n2": []}).result


@rows("answer", [MISSING, UNSENT, errors.Bootstrapping("joining")])
@rows("idempotent", [True, False])
def test_certainly_not_executed(answer: str | errors.CassandraError, idempotent: bool) -> None:
    """A request that was certainly not executed goes to the next node; its error is recorded, but not as a retry."""
    run = play(request(NEVER_ASKED, idempotent=idempotent), {"n1": [answer], "n2": []})

    assert ROWS == run.result
    assert (["n1"], 0) == ([node for node, _ in run.info.errors], run.info.retry_count)


def test_an_empty_plan() -> None:
    """A request with an empty plan fails with NoNodeAvailable."""
    run = play(request(), {})

    assert errors.NoNodeAvailable is run.ending
    assert cassandra.ExecutionInfo(None, (), -1, 0, None, 0) == run.info


def test_a_pinned_node() -> None:
    """A request whose plan has one node fails with AllNodesFailed if that node fails."""
    assert errors.AllNodesFailed is play(request(), {"n1": [SERVER], "n2": []}, plan=["n1"]).ending


@rows(("handed_over", "is_unsent"), [(0, True), (1, False), (None, False)])
def test_a_write_that_fails(handed_over: int | None, is_unsent: bool) -> None:
    """An attempt is unsent only if no byte was handed over; otherwise the node may have executed it."""
    machine = submitted(request(NEVER_ASKED, idempotent=False))
    actions = hear(machine, cassandra.AttemptAborted(0, CLOSED, handed_over))

    assert is_unsent is isinstance(actions[-1], cassandra.Send)
    assert [is_unsent] == [action.is_unsent for action in actions if isinstance(action, cassandra.ReportFailure)]


def test_a_completed_write_stays_sent() -> None:
    """After the driver reports a complete write, a later report of zero bytes does not allow a retry."""
    machine = submitted(request(NEVER_ASKED, idempotent=False))

    assert isinstance(
        hear(machine, cassandra.RequestWritten(0), cassandra.AttemptAborted(0, CLOSED, 0))[-1], cassandra.Fail
    )


def test_connection_lost_before_a_retry() -> None:
    """If the connection closes before a retry on the same node, the next node gets the retry and no error is added."""
    machine = submitted(request(Always(cassandra.RETRY_SAME)))
    hear(machine, cassandra.RequestWritten(0), cassandra.ErrorReceived(0, SERVER))
    actions = hear(machine, cassandra.ConnectionMissed(1))
    (complete,) = hear(machine, cassandra.ResultReceived(2))

    assert [cassandra.Send(2, 0, "n2", None)] == actions
    assert isinstance(complete, cassandra.Complete)
    assert (("n1", SERVER),) == complete.info.errors


@rows("handed_over", [None, 0])
@rows("error", [errors.FrameTooLong("17 MiB"), errors.RequestThrottled("1,000 in flight")])
def test_client_side_errors_bypass_the_policy(
    error: errors.FrameTooLong | errors.RequestThrottled, handed_over: int | None
) -> None:
    """A frame that is too long and a throttled request raise their errors, and the policy is not called."""
    raised = error_of(hear(submitted(request(NEVER_ASKED)), cassandra.AttemptAborted(0, error, handed_over)))

    assert (type(error), error.args) == (type(raised), raised.args)


@rows(
    "error",
    [
        errors.InvalidSyntax("no"),
        errors.Unauthorized("no"),
        errors.AlreadyExists("no"),
        errors.FunctionFailure("no"),
        errors.ProtocolError("no"),
    ],
)
def test_final_errors_bypass_the_policy(error: errors.CassandraError) -> None:
    """An error that every node would return is raised, and the policy is not called."""
    run = play(request(NEVER_ASKED), {"n1": [error], "n2": []})

    assert run.error is error
    assert cassandra.ExecutionInfo("n1", (), 0, 0, None, 0) == run.info


def test_an_authentication_error_becomes_a_protocol_error() -> None:
    """An authentication error in response to a request is raised as a ProtocolError."""
    error = errors.AuthenticationError("who are you?")
    run = play(request(NEVER_ASKED), {"n1": [error]})

    assert errors.ProtocolError is run.ending
    assert "AuthenticationError: who are you?" == str(run.error)
    assert run.error.__cause__ is error


def test_requests_of_one_connection_raise_copies() -> None:
    """Each request of a closed connection raises a copy of the error with its own info and the original cause."""
    closed = errors.ClosedConnection("closed")
    closed.__cause__ = OSError("reset")
    one, other = (
        error_of(hear(submitted(request(Always(cassandra.RETHROW)), [node]), cassandra.AttemptAborted(0, closed)))
        for node in "ab"
    )

    assert ["a", "b"] == [error.execution_info and error.execution_info.coordinator for error in (one, other)]
    assert closed.execution_info is None
    assert one.__cause__ is closed.__cause__


def test_reports() -> None:
    """Each failure is reported before the next action, with the policy's decision if the policy was called."""
    machine = submitted(request(Always(cassandra.RETRY_NEXT)))
    (unsent, _) = hear(machine, cassandra.AttemptAborted(0, CLOSED, 0))
    (asked, _) = hear(machine, cassandra.RequestWritten(1), cassandra.ErrorReceived(1, SERVER))
    (raised, _) = hear(machine, cassandra.RequestWritten(2), cassandra.ErrorReceived(2, errors.InvalidQuery("no")))

    assert cassandra.ReportFailure(0, "n1", CLOSED, 0, None, is_unsent=True) == unsent
    assert cassandra.ReportFailure(0, "n2", SERVER, 0, cassandra.RETRY_NEXT) == asked
    assert isinstance(raised, cassandra.ReportFailure)
    assert ("n3", 1, None) == (raised.node, raised.retry_count, raised.verdict)


@rows("error", [errors.ServerError("no"), errors.Overloaded("no"), CLOSED, errors.CdcWriteFailure("no")])
def test_prepare_is_idempotent(error: errors.CassandraError) -> None:
    """A PREPARE counts as idempotent, so the policy decides about its server errors and closed connections."""
    assert ROWS == play(prepare(Always(cassandra.RETRY_NEXT)), {"n1": [error], "n2": []}).result


def test_an_error_of_a_prepare_is_not_ignored() -> None:
    """If the policy ignores an error of a PREPARE, the request fails with PolicyFailed."""
    run = play(prepare(Always(cassandra.IGNORE)), {"n1": [SERVER]})

    assert errors.PolicyFailed is run.ending
    assert "ServerError of a PREPARE" in str(run.error)
    assert run.error.__cause__ is SERVER
    assert [cassandra.IGNORE] == [
        action.verdict for action in run.actions if isinstance(action, cassandra.ReportFailure)
    ]


@rows("error", [READ, WRITE, UNAVAILABLE, errors.AlreadyExists("no"), errors.TruncateError("no"), errors.Unprepared()])
def test_an_impossible_error_of_a_prepare(error: errors.CassandraError) -> None:
    """An error that no PREPARE can cause fails the request with UnexpectedAnswer, and is its cause."""
    run = play(prepare(NEVER_ASKED), {"n1": [error], "n2": []})

    assert errors.UnexpectedAnswer is run.ending
    assert f"PREPARE with {type(error).__name__}" in str(run.error)
    assert run.error.__cause__ is error


class Unspeakable(Exception):
    """An exception whose repr raises."""

    def __repr__(self) -> str:
        raise ZeroDivisionError("raise me")


@rows(
    "answer",
    [ZeroDivisionError("raise me"), Unspeakable(), None, "RETRY_SAME", cassandra.RetryDecision.RETRY_SAME, True],
)
def test_a_policy_that_fails(answer: object) -> None:
    """If the policy raises or returns an invalid value, the request fails and the exception does not propagate."""
    run = play(request(Always(answer)), {"n1": [SERVER]})

    assert (errors.PolicyFailed, cassandra.RequestState.FAILED) == (run.ending, run.machine.state)
    assert (type(answer) if isinstance(answer, Exception) else TypeError) is type(run.error.__cause__)
    assert "ServerError of n1" in str(run.error)


def test_a_completed_machine_is_freed() -> None:
    """After its request has completed, the machine is freed with its last reference, without garbage collection."""
    machine = submitted(request())
    hear(machine, cassandra.ResultReceived(0))
    seen = weakref.ref(machine)
    gc.disable()
    try:
        del machine

        assert seen() is None
    finally:
        gc.enable()
