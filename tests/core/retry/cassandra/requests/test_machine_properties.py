"""Properties that every history of a request has: no wrong action (safety), and always an end (liveness)."""

from __future__ import annotations

import math
from copy import copy
from typing import Any, TypeVar

import pytest
from hypothesis import event as note, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.core.retry.cassandra.policies_for_tests import Always
from tests.core.retry.cassandra.requests.request_cases import CLOSED, READ, SERVER, UNAVAILABLE, WRITE
from tests.core.retry.cassandra.requests.witness import ExecutionWitness
from triclinium_core.retry import cassandra
from triclinium_core.retry.cassandra import errors
from triclinium_core.retry.invalid_event import InvalidEvent

Error = TypeVar("Error", bound=errors.CassandraError)

LEVELS = [None, cassandra.ConsistencyLevel.QUORUM, cassandra.ConsistencyLevel.ONE]
DOWNGRADED = [
    cassandra.RetryVerdict(decision, level)
    for decision in (cassandra.RetryDecision.RETRY_SAME, cassandra.RetryDecision.RETRY_NEXT)
    for level in (cassandra.ConsistencyLevel.ONE, cassandra.ConsistencyLevel.TWO)
]
RETRIES: list[Any] = [cassandra.RETRY_SAME, cassandra.RETRY_NEXT, cassandra.RETRY_NEXT, *DOWNGRADED]
answers: st.SearchStrategy[Any] = st.sampled_from(
    [*RETRIES, *RETRIES, *RETRIES, cassandra.RETHROW, cassandra.IGNORE, None, ZeroDivisionError("raise me")]
)

UNPREPARED = errors.Unprepared(statement_id=b"id")


def fresh(error: Error) -> Error:
    """Return a copy of an error without its execution info, as a driver creates one for each response."""
    twin = copy(error)
    twin.execution_info = None
    return twin


OFTEN: list[errors.CoordinatorError] = [SERVER, READ, UNAVAILABLE, WRITE, UNPREPARED, errors.Bootstrapping("joining")]
node_errors = st.sampled_from(
    [
        *OFTEN,
        *OFTEN,
        errors.Overloaded("busy"),
        errors.CasWriteUnknown("perhaps"),
        errors.InvalidQuery("no"),
        errors.AuthenticationError("no"),
    ]
).map(fresh)
aborts = st.sampled_from(
    [CLOSED, CLOSED, errors.HeartbeatFailure("silent"), errors.RequestAborted("garbled"), errors.FrameTooLong("17 MiB")]
).map(fresh)
handed_over = st.sampled_from([0, 0, 1, None])


class RequestHistories(RuleBasedStateMachine):
    """State machine: nodes respond with anything at any time, and the policy returns arbitrary verdicts."""

    witness: ExecutionWitness

    @initialize(
        nodes=st.integers(0, 5),
        lazily=st.booleans(),
        idempotent=st.booleans(),
        kind=st.sampled_from(
            [cassandra.RequestKind.STATEMENT, cassandra.RequestKind.STATEMENT, cassandra.RequestKind.PREPARE]
        ),
        level=st.sampled_from(LEVELS),
        timeout=st.sampled_from([2.0, 2.0, 0.05, math.inf]),
        executions_max=st.integers(1, 4),
        delay=st.sampled_from([0.0, 0.01, 0.5]),
    )
    def submit(
        self,
        *,
        nodes: int,
        lazily: bool,
        idempotent: bool,
        kind: cassandra.RequestKind,
        level: cassandra.ConsistencyLevel | None,
        timeout: float,
        executions_max: int,
        delay: float,
    ) -> None:
        """Submit a request of a drawn kind with a query plan of at most five nodes."""
        policy = Always(cassandra.RETRY_NEXT)
        request = cassandra.CassandraRequest(
            policy=policy,
            idempotent=idempotent,
            kind=kind,
            consistency=None if kind is cassandra.RequestKind.PREPARE else level,
            timeout=timeout,
            speculation=cassandra.ConstantSpeculativeExecutionPolicy(max_executions=executions_max, delay=delay),
        )
        plan = [f"n{index}" for index in range(nodes)]
        machine = cassandra.RequestMachine(request, iter(plan) if lazily else plan)
        most = executions_max if request.may_speculate else 1
        self.witness = ExecutionWitness(machine, policy, plan, most, 100.0)
        self.witness.feed(cassandra.RequestStarted())

    @property
    def is_open(self) -> bool:
        """Whether the request has not ended."""
        return not self.witness.machine.state.is_final

    def pick(self, data: st.DataObject) -> cassandra.Send | cassandra.Reprepare:
        """Return an attempt that is in flight."""
        return data.draw(st.sampled_from(self.witness.live), label="attempt")

    @precondition(lambda self: self.is_open)
    @rule(data=st.data())
    def write(self, data: st.DataObject) -> None:
        """Report that the driver has written an attempt completely."""
        unwritten = [seen.order for seen in self.witness.executions if seen.order and not seen.is_written]
        if unwritten:
            self.witness.feed(cassandra.RequestWritten(data.draw(st.sampled_from(unwritten), label="attempt").attempt))

    @precondition(lambda self: self.is_open)
    @rule(data=st.data(), error=node_errors, answer=answers, often=st.booleans())
    def answer_with_an_error(
        self, data: st.DataObject, error: errors.CoordinatorError, answer: Any, often: bool
    ) -> None:
        """Report an error response, or often a prepared statement for a PREPARE; the policy returns any verdict."""
        order = self.pick(data)
        if isinstance(order, cassandra.Reprepare) and often:
            self.witness.feed(cassandra.StatementPrepared(order.attempt, order.statement_id))
            return
        self.witness.policy.answer = answer
        self.witness.feed(cassandra.ErrorReceived(order.attempt, error))

    @precondition(lambda self: self.is_open)
    @rule(data=st.data(), error=aborts, handed_over=handed_over, answer=answers)
    def abort(self, data: st.DataObject, error: errors.RequestAborted, handed_over: int | None, answer: Any) -> None:
        """Report that an attempt was aborted, with any number of bytes handed over."""
        self.witness.policy.answer = answer
        self.witness.feed(cassandra.AttemptAborted(self.pick(data).attempt, error, handed_over))

    @precondition(lambda self: self.is_open)
    @rule(data=st.data())
    def miss_the_connection(self, data: st.DataObject) -> None:
        """Report that the driver has no connection to the node, unless the attempt is a Send that was written."""
        order = self.pick(data)
        if not self.witness.executions[order.execution].is_written or isinstance(order, cassandra.Reprepare):
            self.witness.feed(cassandra.ConnectionMissed(order.attempt))

    @precondition(lambda self: self.is_open)
    @rule(data=st.data(), seldom=st.integers(0, 4), right=st.booleans())
    def answer_well(self, data: st.DataObject, seldom: int, right: bool) -> None:
        """Report a result for a Send, but seldom; for a Reprepare, its statement, another id or a missing text."""
        order = self.pick(data)
        if isinstance(order, cassandra.Reprepare):
            good = cassandra.StatementPrepared(order.attempt, order.statement_id)
            bad: list[cassandra.AttemptEvent] = [
                cassandra.StatementPrepared(order.attempt, b"other"),
                cassandra.StatementForgotten(order.attempt),
            ]
            self.witness.feed(good if right or seldom else data.draw(st.sampled_from(bad)))
        elif seldom == 0:
            self.witness.feed(cassandra.ResultReceived(order.attempt, object()))

    @rule(data=st.data())
    def tell_late(self, data: st.DataObject) -> None:
        """Report an event of an attempt that has ended, and check that it changes nothing."""
        over = set(range(len(self.witness.owners))) - {order.attempt for order in self.witness.live}
        if over:
            attempt = data.draw(st.sampled_from(sorted(over)), label="attempt")
            late: list[cassandra.AttemptEvent] = [
                cassandra.ResultReceived(attempt),
                cassandra.ErrorReceived(attempt, SERVER),
                cassandra.AttemptAborted(attempt, CLOSED),
                cassandra.RequestWritten(attempt),
            ]
            self.witness.feed(data.draw(st.sampled_from(late)))

    @rule()
    def tell_nonsense(self) -> None:
        """Report an event of an unknown attempt, and check that the machine refuses it and changes nothing."""
        before = (self.witness.machine.state, self.witness.machine.wakeup)
        with pytest.raises(InvalidEvent, match="never ordered"):
            self.witness.machine.handle(cassandra.ResultReceived(len(self.witness.owners)), self.witness.now)

        assert before == (self.witness.machine.state, self.witness.machine.wakeup)

    @rule(seconds=st.sampled_from([0.0, 0.001, 0.01, 0.3]))
    def let_time_pass(self, seconds: float) -> None:
        """Advance the clock to a time that does not depend on the machine's wakeup."""
        self.witness.now += seconds
        self.witness.feed(cassandra.TimerFired())

    @precondition(lambda self: self.is_open and math.isfinite(self.witness.machine.wakeup))
    @rule(seldom=st.integers(0, 2))
    def wake(self, seldom: int) -> None:
        """Advance the clock to the wakeup; if the wakeup is the deadline, do so only sometimes."""
        wakeup = self.witness.machine.wakeup
        if wakeup < self.witness.deadline or seldom == 0:
            self.witness.now = max(self.witness.now, wakeup)
            self.witness.feed(cassandra.TimerFired())

    @precondition(lambda self: self.is_open)
    @rule(seldom=st.integers(0, 9))
    def leave(self, seldom: int) -> None:
        """Sometimes abandon the request."""
        if seldom == 0:
            self.witness.feed(cassandra.RequestAbandoned())

    def teardown(self) -> None:
        """Run the request to its end: all nodes respond, all nodes fail, or the deadline passes."""
        if not hasattr(self, "witness"):
            return
        witness = self.witness
        note(f"{witness.machine.state.value} after {min(witness.sent, 6)} sent")
        mood = witness.sent % 3 if math.isfinite(witness.deadline) else witness.sent % 2
        steps = 0
        was_open = self.is_open
        while self.is_open:
            steps += 1
            assert steps <= 2 * len(witness.plan) + 10
            (self.end_well, self.end_badly, self.end_late)[mood]()
        if was_open:
            self.judge_end(mood)

    def end_well(self) -> None:
        """Respond with a result, or prepare the statement."""
        order = self.witness.live[0]
        if isinstance(order, cassandra.Reprepare):
            self.witness.feed(cassandra.StatementPrepared(order.attempt, order.statement_id))
        else:
            self.witness.feed(cassandra.ResultReceived(order.attempt, "rows"))

    def end_badly(self) -> None:
        """Respond with an error; if the policy is called, it continues with the next node."""
        self.witness.policy.answer = cassandra.RETRY_NEXT
        self.witness.feed(cassandra.ErrorReceived(self.witness.live[0].attempt, errors.Overloaded("busy")))

    def end_late(self) -> None:
        """Advance the clock to the next wakeup and send no response."""
        self.witness.now = max(self.witness.now, self.witness.machine.wakeup)
        self.witness.feed(cassandra.TimerFired())

    def judge_end(self, mood: int) -> None:
        """Check that the end of the request fits how the nodes behaved."""
        (end,) = self.witness.ends
        timed_out = isinstance(end, cassandra.Fail) and isinstance(end.error, errors.DriverTimeout)
        match mood:
            case 0:
                assert isinstance(end, cassandra.Complete) or timed_out
            case 1:
                assert isinstance(end, cassandra.Fail)
                repeatable = self.witness.machine.request.may_repeat
                assert (
                    isinstance(end.error, errors.AllNodesFailed if repeatable else errors.CassandraError) or timed_out
                )
            case _:
                assert timed_out
                assert self.witness.now >= self.witness.deadline
        assert self.witness.machine.state in {cassandra.RequestState.COMPLETED, cassandra.RequestState.FAILED}


TestRequestHistories = RequestHistories.TestCase
