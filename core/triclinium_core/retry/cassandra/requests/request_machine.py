"""Request machine, which sends one request to the nodes of its query plan: events in, ordered actions out.

The machine has no clock and no connection: the driver passes the current time with each event, and executes the
actions. ``judgement`` decides what follows an error, and consults the policy. ``states`` has the theory of operation.

Source: the retry page of the Cassandra Java driver; where the page is silent, the driver's request handlers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from triclinium_core.argument_error import ArgumentError
from triclinium_core.checks import is_number
from triclinium_core.retry.cassandra.errors import (
    AllNodesFailed,
    CassandraError,
    DriverTimeout,
    NodeUnavailable,
    NoNodeAvailable,
    PolicyFailed,
    RepreparationFailed,
    Unprepared,
)
from triclinium_core.retry.cassandra.requests import events, states
from triclinium_core.retry.cassandra.requests.actions import (
    CassandraAction,
    Complete,
    CompleteEmpty,
    Fail,
    Ignore,
    ReportFailure,
    ReportSpeculation,
    Reprepare,
    Send,
)
from triclinium_core.retry.cassandra.requests.cassandra_request import CassandraRequest
from triclinium_core.retry.cassandra.requests.history import NO_ATTEMPT, Execution, History
from triclinium_core.retry.cassandra.requests.judgement import (
    Judgement,
    Route,
    Step,
    aftermath,
    judge,
    may_be_applied,
    route_of,
)
from triclinium_core.retry.cassandra.requests.query_plan import QueryPlan
from triclinium_core.retry.cassandra.requests.speculation import next_delay
from triclinium_core.retry.cassandra.verdicts import RetryVerdict
from triclinium_core.retry.invalid_event import InvalidEvent
from triclinium_core.shown import shown, total_repr

REPREPARATIONS_MAX = 3
"""Maximum number of PREPAREs of a statement on one node before the machine tries the next node. A node that forgets the
statement so often, each time right after preparing it, is unlikely to keep it (decision A10)."""


class _Speculation(NamedTuple):
    """Next speculative execution: when it starts, and which slow node caused it."""

    due: float
    slow_node: Hashable


class RequestMachine:
    """State machine of one request, from its submission to its result or error.

    The driver must pass ``RequestStarted`` first, never let ``now`` decrease, execute the actions in order, and pass
    ``TimerFired`` when ``wakeup`` is reached.

    Args:
        request: properties of the request.
        plan: nodes for the request, in order; see ``QueryPlan``.

    Raises:
        ArgumentError: ``QueryPlan`` does not accept ``plan``.
    """

    def __init__(self, request: CassandraRequest, plan: Iterable[Hashable]) -> None:
        self.request: CassandraRequest = request
        self._plan = QueryPlan(plan)
        self.state: states.RequestState = states.RequestState.NEW
        self._now = -math.inf
        self._deadline = math.inf
        self._history = History(request.consistency)
        self._speculation: _Speculation | None = None
        self._may_be_applied = False
        """Whether the newest attempt may have executed the statement. One attempt is enough, because ``is_ambiguous``
        ignores the value for idempotent requests, and only these have several attempts at the same time."""

    @total_repr
    def __repr__(self) -> str:
        return f"<RequestMachine {self.request.kind}: {self.state.name}>"

    @property
    def wakeup(self) -> float:
        """Time at which ``TimerFired`` is due; ``inf`` for never."""
        if self.state is not states.RequestState.RUNNING:
            return math.inf
        return min(self._deadline, self._speculation.due) if self._speculation else self._deadline

    @property
    def is_ambiguous(self) -> bool:
        """Whether the request, if abandoned now, may have been or may still be applied.

        The value is True from each ``Send`` until the node responds or the driver reports that it handed nothing to the
        socket. It stays True after an error that leaves the outcome open. It is always False for an idempotent request
        and for a PREPARE. It does not change after the end of the request.
        """
        return self._may_be_applied and not self.request.may_repeat

    def handle(self, event: events.CassandraEvent, now: float) -> Sequence[CassandraAction]:
        """Process ``event`` and return the actions, in order. If this method raises, it has changed nothing.

        Raises:
            InvalidEvent: the event is impossible in this state, or names an attempt that the machine never ordered.
            ArgumentError: ``now`` is not finite, or is less than in an earlier call.
        """
        is_event = isinstance(event, events.AttemptEvent) or type(event) in _HANDLERS
        state = states.REQUEST_TRANSITIONS[self.state].get(type(event)) if is_event else None
        if state is None:
            raise InvalidEvent(f"{type(event).__name__} cannot happen to a request that is {self.state.value}")
        self._require_instant(now)
        if isinstance(event, events.AttemptEvent):
            return self._handle_of_attempt(event, now)
        if self.state.is_final:
            return [Ignore()]
        self.state, self._now = state, now
        return _HANDLERS[type(event)](self, now)

    def _handle_of_attempt(self, event: events.AttemptEvent, now: float) -> Sequence[CassandraAction]:
        execution = self._history.execution_of(event.attempt)
        if execution.attempt != event.attempt:
            return [Ignore()]
        if type(event) not in states.EXECUTION_TRANSITIONS[execution.state]:
            raise InvalidEvent(
                f"{type(event).__name__} cannot happen to attempt {event.attempt}, which is {execution.state.value}"
            )
        self._now = now
        if not isinstance(event, events.RequestWritten):
            if execution.state is not states.ExecutionState.PREPARING:
                self._may_be_applied = _may_be_applied_after(event, execution)
            execution.attempt = NO_ATTEMPT
        execution.follow(type(event))
        return _HANDLERS_OF_ATTEMPTS[type(event)](self, event, execution)

    def _require_instant(self, now: float) -> None:
        if not (is_number(now) and math.isfinite(now) and now >= self._now):
            raise ArgumentError(
                f"now={shown(now)} must be a finite number of monotonic seconds, not before the last time, {self._now}",
                parameter="now",
            )

    # -- The request.

    def _on_request_submitted(self, now: float) -> Sequence[CassandraAction]:
        self._deadline = now + self.request.timeout
        return self._start()

    def _on_time_passed(self, now: float) -> Sequence[CassandraAction]:
        if now >= self._deadline:
            return self._time_out()
        speculation = self._speculation
        if speculation is None or now < speculation.due:
            return []
        self._speculation = None
        report = ReportSpeculation(self._history.executions, speculation.slow_node)
        return [report, *self._start()]

    def _on_request_abandoned(self, now: float) -> Sequence[CassandraAction]:
        return self._history.end()

    def _start(self) -> Sequence[CassandraAction]:
        return self._send_to_next(self._history.start())

    # -- One attempt: until it is written.

    def _on_connection_missed(self, event: events.ConnectionMissed, execution: Execution) -> Sequence[CassandraAction]:
        if execution.returns and execution.state is states.ExecutionState.SENDING:
            return self._send_to_next(execution)
        return self._go_on(execution, NodeUnavailable(f"no connection to {execution.node}"), unsent=True)

    def _on_request_written(self, event: events.RequestWritten, execution: Execution) -> Sequence[CassandraAction]:
        return [] if execution.state is states.ExecutionState.PREPARING else self._note_first_write(execution)

    def _note_first_write(self, execution: Execution) -> Sequence[CassandraAction]:
        """Schedule the next speculative execution if no attempt of ``execution`` was written before."""
        is_first, execution.is_first_attempt = execution.is_first_attempt, False
        if not is_first or not self.request.may_speculate:
            return []
        policy, running = self.request.speculation, execution.index + 1
        try:
            delay = next_delay(policy, node=execution.node, running=running)
        except Exception as raised:
            return self._fail(
                PolicyFailed(f"the speculative execution policy failed: {shown(raised)}"), execution, raised
            )
        if delay is not None:
            self._speculation = _Speculation(self._now + delay, execution.node)
        return []

    # -- One attempt: its end.

    def _on_attempt_aborted(self, event: events.AttemptAborted, execution: Execution) -> Sequence[CassandraAction]:
        is_written = execution.state is states.ExecutionState.WAITING
        if event.is_unsent and not is_written and not self._is_raised(execution, event.error):
            return self._go_on(execution, event.error, unsent=True)
        return self._judge(execution, event.error)

    def _on_result_received(self, event: events.ResultReceived, execution: Execution) -> Sequence[CassandraAction]:
        return self._settle(Complete(event.result, self._history.info(execution)))

    def _on_error_received(self, event: events.ErrorReceived, execution: Execution) -> Sequence[CassandraAction]:
        # A response proves that the request was written completely, even if ``RequestWritten`` has not arrived yet.
        actions = self._note_first_write(execution)
        return actions if self.state.is_final else self._judge(execution, event.error)

    def _is_raised(self, execution: Execution, error: CassandraError) -> bool:
        preparing = execution.state is states.ExecutionState.PREPARING
        return route_of(self.request, error, preparing=preparing) is Route.RAISE

    def _judge(self, execution: Execution, error: CassandraError) -> Sequence[CassandraAction]:
        """Decide what follows ``error``, and return the actions for it."""
        judgement = judge(
            self.request,
            error,
            node=execution.node,
            retry_count=execution.retry_count,
            preparing=execution.state is states.ExecutionState.PREPARING,
        )
        report = self._report(execution, error, judgement.verdict)
        match judgement.step:
            case Step.RETRY_SAME | Step.RETRY_NEXT:
                return [report, *self._retry(execution, error, judgement)]
            case Step.GO_ON:
                return self._go_on(execution, error)
            case Step.REPREPARE:
                return self._reprepare(execution, error)
            case Step.IGNORE:
                return [report, *self._settle(CompleteEmpty(self._history.info(execution)))]
            case Step.RAISE:
                return [report, *self._fail(judgement.error, execution)]

    def _retry(self, execution: Execution, error: CassandraError, judgement: Judgement) -> Sequence[CassandraAction]:
        self._history.record(execution, error)
        execution.retry_count += 1
        execution.is_first_attempt = False  # The attempt may have failed before it was written completely.
        if judgement.verdict and judgement.verdict.consistency is not None and not self.request.is_prepare:
            execution.consistency = judgement.verdict.consistency
        if judgement.step is Step.RETRY_SAME:
            return self._send(execution, returns=True)
        return self._send_to_next(execution)

    # -- Preparing again.

    def _reprepare(self, execution: Execution, error: CassandraError) -> Sequence[CassandraAction]:
        if execution.repreparations == REPREPARATIONS_MAX:
            return self._go_on(execution, error)
        execution.repreparations += 1
        execution.follow(Reprepare)
        execution.statement_id = error.statement_id if isinstance(error, Unprepared) else b""
        attempt = self._history.next_attempt(execution)
        return [Reprepare(attempt, execution.index, execution.node, execution.statement_id)]

    def _on_statement_prepared(
        self, event: events.StatementPrepared, execution: Execution
    ) -> Sequence[CassandraAction]:
        if event.statement_id == execution.statement_id:
            return self._send(execution, returns=True)
        text = (
            f"{execution.node} prepared statement {shown(execution.statement_id)} again with the new id "
            f"{shown(event.statement_id)}, which happens after USE; prepare it again"
        )
        return self._fail(RepreparationFailed(text), execution)

    def _on_statement_forgotten(
        self, event: events.StatementForgotten, execution: Execution
    ) -> Sequence[CassandraAction]:
        text = (
            f"{execution.node} does not know statement {shown(execution.statement_id)}, nor does the driver; "
            "prepare it again"
        )
        return self._fail(RepreparationFailed(text), execution)

    # -- Sending.

    def _go_on(self, execution: Execution, error: CassandraError, *, unsent: bool = False) -> Sequence[CassandraAction]:
        """Record ``error``, and send the request to the next node without counting a retry."""
        report = self._report(execution, error, unsent=unsent)
        self._history.record(execution, error)
        return [report, *self._send_to_next(execution)]

    def _send_to_next(self, execution: Execution) -> Sequence[CassandraAction]:
        try:
            node = self._plan.take()
        except Exception as raised:
            # No node caused this error, so ``_fail`` must not attribute it to the last node of the execution.
            text = f"the query plan failed: {shown(raised)}{aftermath(self.request, ambiguous=self.is_ambiguous)}"
            return self._fail(PolicyFailed(text), cause=raised)
        if node is None:
            return self._run_out(execution)
        execution.node, execution.repreparations = node, 0
        return self._send(execution, returns=False)

    def _send(self, execution: Execution, *, returns: bool) -> Sequence[CassandraAction]:
        if self._now >= self._deadline:
            return self._time_out()
        execution.follow(Send)
        self._may_be_applied = True
        execution.returns = returns
        return [Send(self._history.next_attempt(execution), execution.index, execution.node, execution.consistency)]

    # -- Ends and reports.

    def _run_out(self, execution: Execution) -> Sequence[CassandraAction]:
        """End an execution that found the plan empty. If all executions have ended, fail the request."""
        execution.follow(states.PlanExhausted)
        if not self._history.is_over:
            return []
        errors = self._history.errors
        failure = AllNodesFailed(errors) if errors else NoNodeAvailable()
        return self._fail(failure, cause=errors[-1][1] if errors else None, ran_out=execution)

    def _time_out(self) -> Sequence[CassandraAction]:
        left = aftermath(self.request, ambiguous=self.is_ambiguous)
        return self._fail(DriverTimeout(f"no response within {self.request.timeout} s{left}"))

    def _fail(
        self,
        error: CassandraError,
        execution: Execution | None = None,
        cause: BaseException | None = None,
        *,
        ran_out: Execution | None = None,
    ) -> Sequence[CassandraAction]:
        if cause is not None:
            error.__cause__ = cause
        error.execution_info = info = self._history.info(execution, ran_out=ran_out)
        return self._settle(Fail(error, info))

    def _settle(self, order: Complete | CompleteEmpty | Fail) -> Sequence[CassandraAction]:
        """End the request: return the actions that cancel all current attempts, and then ``order``."""
        self.state = states.REQUEST_TRANSITIONS[self.state][type(order)]
        return [*self._history.end(), order]

    def _report(
        self, execution: Execution, error: CassandraError, verdict: RetryVerdict | None = None, *, unsent: bool = False
    ) -> ReportFailure:
        return ReportFailure(execution.index, execution.node, error, execution.retry_count, verdict, unsent)


def _may_be_applied_after(event: events.AttemptEvent, execution: Execution) -> bool:
    """Return whether an attempt that ended with ``event`` may have executed the statement."""
    match event:
        case events.AttemptAborted(error=error):
            is_unsent = event.is_unsent and execution.state is not states.ExecutionState.WAITING
            return not is_unsent and may_be_applied(error)
        case events.ErrorReceived(error=error):
            return may_be_applied(error)
        case _:
            return False


# A machine with bound methods as attributes would form a reference cycle, which only the garbage collector frees.
_HANDLERS: Mapping[type, Callable[[RequestMachine, float], Sequence[CassandraAction]]] = {
    events.RequestStarted: RequestMachine._on_request_submitted,
    events.TimerFired: RequestMachine._on_time_passed,
    events.RequestAbandoned: RequestMachine._on_request_abandoned,
}
_HANDLERS_OF_ATTEMPTS: Mapping[type, Callable[..., Sequence[CassandraAction]]] = {
    events.ConnectionMissed: RequestMachine._on_connection_missed,
    events.RequestWritten: RequestMachine._on_request_written,
    events.AttemptAborted: RequestMachine._on_attempt_aborted,
    events.ResultReceived: RequestMachine._on_result_received,
    events.ErrorReceived: RequestMachine._on_error_received,
    events.StatementPrepared: RequestMachine._on_statement_prepared,
    events.StatementForgotten: RequestMachine._on_statement_forgotten,
}
