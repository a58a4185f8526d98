"""Checker of a request machine: it follows the events and actions, and checks each action."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from tests.core.retry.cassandra.policies_for_tests import Always
from triclinium_core.retry import cassandra
from triclinium_core.retry.cassandra.requests.request_machine import REPREPARATIONS_MAX

NOT_EXECUTED = (cassandra.Unavailable, cassandra.ReadTimeout, cassandra.Bootstrapping, cassandra.Unprepared)
"""Error responses which prove that the node changed nothing."""


@dataclass(slots=True)
class Seen:
    """Observed state of one execution."""

    level: cassandra.ConsistencyLevel | None
    node: Hashable = None
    count: int = 0
    """Number of the policy's decisions to retry."""
    order: cassandra.Send | cassandra.Reprepare | None = None
    """Send or Reprepare of the attempt in flight, or None."""
    is_written: bool = False
    returns: bool = False
    repreparations: int = 0


@dataclass(slots=True)
class ExecutionWitness:
    """Checker that passes events to the machine and checks the resulting actions."""

    machine: cassandra.RequestMachine
    policy: Always
    plan: Sequence[Hashable]
    executions_max: int
    now: float
    deadline: float = math.inf
    taken: int = 0
    """Number of nodes of the query plan that were tried."""
    executions: list[Seen] = field(default_factory=list)
    owners: list[Seen] = field(default_factory=list)
    """For each attempt, the execution to which it belongs."""
    errors: list[tuple[Hashable, cassandra.CassandraError | type[cassandra.NodeUnavailable]]] = field(
        default_factory=list
    )
    perhaps_executed: bool = False
    """Whether a node may have executed the request."""
    ends: list[cassandra.CassandraAction] = field(default_factory=list)
    sent: int = 0

    @property
    def live(self) -> list[cassandra.Send | cassandra.Reprepare]:
        """Send and Reprepare actions whose attempts are in flight."""
        return [seen.order for seen in self.executions if seen.order is not None]

    def feed(self, event: cassandra.CassandraEvent) -> None:
        """Pass one event to the machine and check its actions."""
        before, asked_before = self.machine.state, len(self.policy.asked)
        if isinstance(event, cassandra.RequestStarted):
            self.deadline = self.now + self.machine.request.timeout
        execution = self._note(event) if isinstance(event, cassandra.AttemptEvent) and not before.is_final else None
        actions = self.machine.handle(event, self.now)
        if before.is_final or (isinstance(event, cassandra.AttemptEvent) and execution is None):
            assert [cassandra.Ignore()] == actions
            assert before is self.machine.state
            return
        verdict = self._judge_question(execution, asked_before)
        self._note_error(event, execution, actions)
        for action in actions:
            self._judge(action, event, verdict)
        self._judge_afterwards(event, actions)

    def _note(self, event: cassandra.AttemptEvent) -> Seen | None:
        """Record the event. Return the execution of its attempt, or None if the attempt has ended."""
        execution = self.owners[event.attempt]
        order = execution.order
        if order is None or order.attempt != event.attempt:
            return None
        if isinstance(event, cassandra.RequestWritten):
            execution.is_written = True
            return execution
        match event:
            case cassandra.AttemptAborted() if isinstance(order, cassandra.Send):
                self.perhaps_executed |= execution.is_written or event.handed_over != 0
            case cassandra.ErrorReceived(error=error) if isinstance(order, cassandra.Send):
                self.perhaps_executed |= not isinstance(error, NOT_EXECUTED)
        execution.order = None
        return execution

    def _judge_question(self, execution: Seen | None, asked_before: int) -> cassandra.RetryVerdict | None:
        """Check the call of the policy, if there was one, and return the verdict; None if there is no valid one."""
        asked = self.policy.asked[asked_before:]
        assert len(asked) <= 1
        if not asked:
            return None
        assert execution is not None
        ((_, reported),) = asked
        assert execution.count == reported["retry_count"]
        answer = self.policy.answer
        if not isinstance(answer, cassandra.RetryVerdict):
            return None
        execution.count += answer.decision.retries
        if answer.consistency is not None and not self.machine.request.is_prepare:
            execution.level = answer.consistency
        return answer

    def _note_error(
        self, event: cassandra.CassandraEvent, execution: Seen | None, actions: Sequence[cassandra.CassandraAction]
    ) -> None:
        """Record the error if the request then continues, or fails because it has no more nodes or time."""
        if execution is None or not isinstance(
            event, cassandra.ConnectionMissed | cassandra.AttemptAborted | cassandra.ErrorReceived
        ):
            return
        if isinstance(event, cassandra.ConnectionMissed):
            # The machine has already recorded an error of this node if the execution was about to retry on it.
            if not execution.returns:
                self.errors.append((execution.node, cassandra.NodeUnavailable))
            return
        goes_on = all(
            isinstance(
                action, cassandra.Send | cassandra.ReportFailure | cassandra.ReportSpeculation | cassandra.Cancel
            )
            or (
                isinstance(action, cassandra.Fail)
                and isinstance(action.error, cassandra.AllNodesFailed | cassandra.DriverTimeout)
            )
            for action in actions
        )
        if goes_on:
            self.errors.append((execution.node, event.error))

    def _judge(
        self, action: cassandra.CassandraAction, event: cassandra.CassandraEvent, verdict: cassandra.RetryVerdict | None
    ) -> None:
        assert (
            self.machine.request.may_repeat
            or not self.perhaps_executed
            or not isinstance(action, cassandra.Send | cassandra.Reprepare)
        )
        match action:
            case cassandra.Send():
                self._judge_send(action, event, verdict)
            case cassandra.Reprepare():
                execution = self.executions[action.execution]
                execution.repreparations += 1
                assert execution.repreparations <= REPREPARATIONS_MAX
                assert execution.node == action.node
                self._own(action, execution)
                execution.returns = False
            case cassandra.Cancel(attempt):
                execution = self.owners[attempt]
                assert execution.order is not None
                assert attempt == execution.order.attempt
                assert self.machine.state.is_final
                execution.order = None
            case cassandra.Complete(result, info):
                assert isinstance(event, cassandra.ResultReceived)
                assert event.result is result
                self._judge_info(info)
            case cassandra.CompleteEmpty(info):
                assert verdict is not None
                assert verdict.decision is cassandra.RetryDecision.IGNORE
                self._judge_info(info)
            case cassandra.Fail(error):
                assert error.execution_info is not None
                self._judge_info(error.execution_info)
                self._judge_error(error)
            case cassandra.Ignore():
                raise AssertionError("an open request ignored an event")
        if isinstance(action, cassandra.Complete | cassandra.CompleteEmpty | cassandra.Fail):
            self.ends.append(action)

    def _judge_send(
        self, send: cassandra.Send, event: cassandra.CassandraEvent, verdict: cassandra.RetryVerdict | None
    ) -> None:
        assert self.now < self.deadline
        if send.execution == len(self.executions):
            assert isinstance(event, cassandra.RequestStarted if send.execution == 0 else cassandra.TimerFired)
            self.executions.append(Seen(self.machine.request.consistency))
        execution = self.executions[send.execution]
        same = verdict is not None and verdict.decision is cassandra.RetryDecision.RETRY_SAME
        execution.returns = same or isinstance(event, cassandra.StatementPrepared)
        if execution.returns:
            assert execution.node == send.node
        else:
            # All executions take their nodes from one plan, in order and each node once.
            assert self.plan[self.taken] == send.node
            self.taken += 1
            execution.node, execution.repreparations = send.node, 0
        assert execution.level is send.consistency
        self.sent += 1
        self._own(send, execution)

    def _own(self, order: cassandra.Send | cassandra.Reprepare, execution: Seen) -> None:
        assert execution.order is None
        assert len(self.owners) == order.attempt
        execution.order, execution.is_written = order, False
        self.owners.append(execution)

    def _judge_info(self, info: cassandra.ExecutionInfo) -> None:
        assert len(self.errors) == len(info.errors)
        for (node, error), (reported_node, reported) in zip(self.errors, info.errors, strict=True):
            assert node == reported_node
            assert reported is error or (
                error is cassandra.NodeUnavailable and isinstance(reported, cassandra.NodeUnavailable)
            )
            assert reported.execution_info is None
        settled_by = [self.executions[info.successful_execution_index]] if info.coordinator is not None else []
        assert sum(seen.count for seen in settled_by or self.executions) == info.retry_count
        if settled_by:
            assert settled_by[0].node == info.coordinator
            assert settled_by[0].level is info.consistency

    def _judge_error(self, error: cassandra.CassandraError) -> None:
        if isinstance(error, cassandra.DriverTimeout):
            assert self.now >= self.deadline
            assert error.execution_info is not None
            assert self.machine.request.consistency is error.execution_info.consistency
        if isinstance(error, cassandra.AllNodesFailed):
            assert len(self.plan) == self.taken
            assert isinstance(error, cassandra.NoNodeAvailable) is (not self.errors)
            assert len(self.errors) == sum(map(len, error.errors.values()))
            assert list(dict.fromkeys(node for node, _ in self.errors)) == list(error.errors)

    def _judge_afterwards(self, event: cassandra.CassandraEvent, actions: Sequence[cassandra.CassandraAction]) -> None:
        machine = self.machine
        assert len(self.ends) <= 1
        assert (machine.state in {cassandra.RequestState.COMPLETED, cassandra.RequestState.FAILED}) is bool(self.ends)
        assert len(self.live) <= len(self.executions) <= max(self.executions_max, 1)
        if machine.state.is_final:
            assert [] == self.live
            assert math.inf == machine.wakeup
            return
        assert machine.state is cassandra.RequestState.RUNNING
        assert self.live
        assert machine.wakeup <= self.deadline
        if isinstance(event, cassandra.TimerFired):
            assert machine.wakeup > self.now
        assert not isinstance(event, cassandra.RequestAbandoned)
