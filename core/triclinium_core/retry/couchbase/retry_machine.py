"""Retry machine, which decides when one request is sent again: events in, ordered actions out.

The machine has no clock and no socket: the driver passes the current time with each event, and executes the actions.
The request's strategy decides about retries. The tables in ``kv_responses`` and ``service_responses`` give the meaning
of a response. ``states`` has the theory of operation.

Source: SDK-RFC 0049 "Retry Orchestration".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from triclinium_core import errors
from triclinium_core.error_context import ErrorContext
from triclinium_core.retry.backoff import DELAY_LEAST, RESOLUTION, Random
from triclinium_core.retry.couchbase import events, failures
from triclinium_core.retry.couchbase.actions import (
    AskStrategy,
    CloseConnection,
    Complete,
    Dispatch,
    Fail,
    Ignore,
    RefreshCollection,
    RefreshTopology,
    ReportRefusal,
    ReportRetry,
    RequestAction,
    RetryAfter,
)
from triclinium_core.retry.couchbase.orchestrator import Refuse, Retry, Verdict, decide_without_strategy, judge
from triclinium_core.retry.couchbase.states import RetryState, Ruling, permitted_events
from triclinium_core.retry.couchbase.strategy import AnyRetryStrategy, AsyncRetryStrategy, RetryRequest, is_async
from triclinium_core.retry.couchbase.tables import kv_responses, service_responses
from triclinium_core.retry.couchbase.tables.error_map import ErrorMapEntry, ErrorMapStore
from triclinium_core.retry.couchbase.tables.kv_status import ErrorClass
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.invalid_event import InvalidEvent
from triclinium_core.retry.values import lean
from triclinium_core.shown import total_repr


@lean
@dataclass(frozen=True, slots=True, kw_only=True)
class RequestAnnotation:
    """Properties that a request has from its submission to its end. Times are in monotonic seconds.

    Source: SDK-RFC 0049 "Request Annotation".
    """

    operation: str
    idempotent: bool
    strategy: AnyRetryStrategy
    submitted_at: float
    deadline: float
    service: Service = Service.KV
    client_context: Mapping[str, object] = field(default_factory=dict)
    error_context: ErrorContext = field(default_factory=ErrorContext)
    """Facts about the request that are known when the machine is created, such as bucket, scope, collection and key."""


_Ruled = tuple[Ruling, Sequence[RequestAction]]
"""Ruling of an event handler, which determines the next state, and the actions that the handler returns."""


class RetryMachine:
    """State machine of one request, from its submission or its first failure to its result or error.

    The driver must never let ``now`` decrease, must execute the actions in order, and must pass ``WakeupReached`` when
    ``wakeup`` is reached.

    Args:
        annotation: properties of the request.
        rng: random source for backoffs with jitter.
        error_maps: error maps of all nodes, which all machines of a client share. With None, the default, the machine
            creates a store when it receives the first map. HTTP services have no error maps.
        state: initial state. PENDING, the default; or IN_FLIGHT for a machine that is created during or after an
            attempt that was made without a machine.
        retry_attempts: number of retries that were made before this machine was created. Default: 0.
        first_failure_at: time of the first failure, if it happened before this machine was created. Default: None.
    """

    def __init__(
        self,
        annotation: RequestAnnotation,
        *,
        rng: Random,
        error_maps: ErrorMapStore | None = None,
        state: RetryState = RetryState.PENDING,
        retry_attempts: int = 0,
        first_failure_at: float | None = None,
    ) -> None:
        self.annotation: RequestAnnotation = annotation
        self.wakeup: float = annotation.deadline
        """Time at which ``WakeupReached`` is due; ``inf`` for never."""
        self._is_async: bool | None = None
        """Whether the strategy is asynchronous; None before the machine has checked this."""
        self._rng = rng
        self._error_maps = error_maps
        self.state: RetryState = state
        self._unanswered = state is RetryState.IN_FLIGHT
        self.retry_attempts: int = retry_attempts
        """Number of retries: those before this machine was created, and those for which it has ordered a dispatch."""
        self.retry_reasons: frozenset[RetryReason] = frozenset()
        """Reasons for which a retry was granted so far."""
        self.last_reason: RetryReason | None = None
        """Reason of the newest failure; None before the first failure with a reason."""
        self._attempts_this_status = retry_attempts
        self._last_status: int | None = None
        self._first_failure_at = first_failure_at
        self._this_status_since = first_failure_at
        """Time of the first response since the status last changed; before the first change, ``first_failure_at`` if
        given."""
        self._node = annotation.error_context.last_dispatched_to
        """Node to which the newest attempt was sent or should have been sent."""
        self._dispatched: events.Dispatched | None = None
        """Newest attempt that was handed to a connection since this machine was created; None before the first."""
        self._kv_answer: tuple[events.KvResponse, ErrorMapEntry | None] | None = None
        """Newest response and the entry for its status in the node's error map; None unless it is a key-value
        response."""
        self._service_answer: tuple[int, service_responses.ServiceVerdict] | None = None
        """HTTP status and classification of the newest response; None unless an HTTP service sent it."""
        self._dispatch_error = annotation.error_context.last_dispatch_error
        self._load: events.Load | None = None
        self._error: ErrorClass | None = None
        """Exception class that a response or ``DispatchFailed`` prescribes for the newest failure; None without one."""
        self._entry: ErrorMapEntry | None = None
        """Entry in the node's error map for the status of the newest failure; None without one."""
        self._resume_at = math.inf
        self.is_answered: bool = False
        """Whether a response ended the request, with a success or with a failure that is never retried."""
        self._times_out = True
        """Whether the request fails with a timeout if it is not sent again after the current delay."""

    @total_repr
    def __repr__(self) -> str:
        return f"<RetryMachine {self.annotation.operation}: {self.state.name} retry_attempts={self.retry_attempts}>"

    @property
    def is_ambiguous(self) -> bool:
        """Whether the request, if abandoned now, may have been or may still be applied (decision C25).

        False for an idempotent request.
        """
        return self._unanswered and not self.annotation.idempotent

    @property
    def response_entry(self) -> ErrorMapEntry | None:
        """Entry in the node's error map for the status of the newest key-value response; None without one."""
        return None if self._kv_answer is None else self._kv_answer[1]

    @property
    def service_verdict(self) -> service_responses.ServiceVerdict | None:
        """Classification of the newest response; None unless an HTTP service sent it."""
        return None if self._service_answer is None else self._service_answer[1]

    def handle(self, event: events.RequestEvent, now: float) -> Sequence[RequestAction]:
        """Process ``event`` and return the actions, in order.

        Raises:
            InvalidEvent: the event is impossible in this state. The machine has not changed.
        """
        row = _HANDLERS[self.state].get(type(event))
        if row is None:
            raise InvalidEvent(f"{type(event).__name__} cannot happen to a request that is {self.state.value}")
        handler, following = row
        ruling, actions = handler(self, event, now)
        self.state = following[ruling]
        return actions

    def snapshot(self, now: float, entry: ErrorMapEntry | None = None) -> RetryRequest:
        """Return the facts about the request at ``now`` that a strategy receives."""
        annotation, first, this_status = self.annotation, self._first_failure_at, self._this_status_since
        # Assigning the attributes is faster than passing them to the constructor, with which a retry takes 15 % more
        # instructions: 57700 instead of 50200 (callgrind, ``tests.bench --only core``).
        request: Any = object.__new__(RetryRequest)
        request.service = annotation.service
        request.operation = annotation.operation
        request.idempotent = annotation.idempotent
        request.rng = self._rng
        request.key = annotation.error_context.key
        request.retry_attempts = self.retry_attempts
        request.retry_reasons = self.retry_reasons
        request.age = now - annotation.submitted_at
        request.remaining = annotation.deadline - now
        request.since_first_failure = 0.0 if first is None else now - first
        request.since_this_status = None if this_status is None or this_status == first else now - this_status
        request.attempts_this_status = self._attempts_this_status
        request.error_map_entry = entry
        request.client_context = annotation.client_context
        request.retry_strategy = annotation.strategy
        made: RetryRequest = request
        return made

    def _on_dispatched(self, event: events.Dispatched, now: float) -> _Ruled:
        self._unanswered = True
        self._node = event.node
        self._dispatched = event
        return Ruling.NONE, ()

    def _on_dispatch_failed(self, event: events.DispatchFailed, now: float) -> _Ruled:
        if event.detail is not None:
            self._dispatch_error = event.detail
        self._load = event.load or self._load
        self._node = event.node
        return self._maybe_retry(event.reason, event.error, None, now)

    def _on_socket_closed(self, event: events.SocketClosed, now: float) -> _Ruled:
        if event.detail is not None:
            self._dispatch_error = event.detail
        reason = RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT
        if event.is_partial:
            # The caller has received rows, so it makes no difference how much of the request was sent.
            self._note_failure(reason, None, None, now)
            return self._report_refusal(reason, failures.rows_lost(self.error_context(now), reason), now)
        if event.handed_over is events.HandedOver.NOTHING:
            self._unanswered = False
            return self._maybe_retry(event.reason, None, None, now)
        return self._maybe_retry(reason, None, None, now)

    def _on_response_received(self, event: events.ResponseReceived, now: float) -> _Ruled:
        self._unanswered = False
        response = event.response
        if not isinstance(response, events.KvResponse):
            answer = response.verdict or service_responses.classify(
                response.service,
                response.http_status,
                response.body,
                response.operation,
                has_query_context=self.annotation.error_context.scope is not None,
            )
            self._count_status(response.http_status, now)
            self._service_answer, self._kv_answer = (response.http_status, answer), None
            if answer.reason is None:
                return self._settle(event, answer.error, now)
            if response.is_partial:
                return self._refuse_partial(answer.reason, answer.error, now)
            return self._maybe_retry(answer.reason, answer.error, None, now)
        maps = self._error_maps
        entry = maps.entry(response.node, response.status) if maps is not None else None
        verdict = kv_responses.classify(self.annotation.operation, response.status, entry)
        self._count_status(response.status, now)
        self._kv_answer, self._service_answer = (response, entry), None
        reason, error = verdict.reason, verdict.error
        ruling, actions = (
            self._settle(event, error, now) if reason is None else self._maybe_retry(reason, error, entry, now)
        )
        if verdict.refresh_collection:
            actions = [RefreshCollection(), *actions]
        if verdict.refresh_topology:
            actions = [RefreshTopology(), *actions]
        if verdict.close_connection is not None:
            # Decision C31: end or retry the request first, then close the connection.
            actions = [*actions, CloseConnection(verdict.close_connection)]
        return ruling, actions

    def _settle(self, event: events.ResponseReceived, error: ErrorClass | None, now: float) -> _Ruled:
        self.is_answered = True
        if error is None:
            self._end()
            return Ruling.COMPLETE, [Complete(event.response)]
        response, failed_path = event.response, None
        if isinstance(response, events.KvResponse):
            error, failed_path = response.error or error, response.failed_path
        return self._fail(failures.surfaced(error, self.error_context(now), failed_path))

    def _on_error_map_loaded(self, event: events.ErrorMapLoaded, now: float) -> _Ruled:
        if self._error_maps is None:
            self._error_maps = ErrorMapStore()
        self._error_maps.load(event.node, event.error_map)
        return Ruling.NONE, ()

    def _on_time_passed(self, event: events.WakeupReached, now: float) -> _Ruled:
        if now >= self._resume_at - RESOLUTION:
            return self._resume(now)
        if now >= self.annotation.deadline:
            self._load = event.load or self._load
            self._dispatch_error = event.obstacle or self._dispatch_error
            if self.state is RetryState.CONSULTING:
                # Decision C30: the strategy has not decided before the deadline, which counts as a refused retry.
                return self._report_refusal(cast(RetryReason, self.last_reason), self._timeout(now), now)
            return self._fail(self._timeout(now, is_partial=event.is_partial))
        return Ruling.NONE, ()

    def _on_abandoned(self, event: events.Abandoned, now: float) -> _Ruled:
        self._end()
        return Ruling.NONE, ()

    def _on_anything_late(self, event: events.RequestEvent, now: float) -> _Ruled:
        return Ruling.NONE, [Ignore()]

    def _maybe_retry(
        self, reason: RetryReason, error: ErrorClass | None, entry: ErrorMapEntry | None, now: float
    ) -> _Ruled:
        """Decide whether to retry after a failure, and return the actions; this is the RFC's ``maybeRetry``."""
        self._note_failure(reason, error, entry, now)
        request = self.snapshot(now, entry)
        verdict = decide_without_strategy(request, reason)
        if verdict is None:
            strategy = self.annotation.strategy
            try:
                if self._is_async is None:
                    self._is_async = is_async(strategy)
                if self._is_async:
                    return Ruling.CONSULT, [AskStrategy(cast(AsyncRetryStrategy, strategy), request, reason)]
                verdict = judge(request, reason, self._consult(request, reason))
            except Exception as raised:
                return self._refuse(reason, now, None, raised)
        return self._carry_out(verdict, reason, request, now)

    def _consult(self, request: RetryRequest, reason: RetryReason) -> object:
        """Return the answer of the synchronous strategy."""
        return self.annotation.strategy.retry_after(request, reason)

    def _note_failure(
        self, reason: RetryReason, error: ErrorClass | None, entry: ErrorMapEntry | None, now: float
    ) -> None:
        self.last_reason, self._error, self._entry = reason, error, entry
        if self._first_failure_at is None:
            self._first_failure_at = now

    def _refuse_partial(self, reason: RetryReason, error: ErrorClass | None, now: float) -> _Ruled:
        """Fail a request whose caller has received rows, because a retry would deliver these rows again."""
        self._note_failure(reason, error, None, now)
        context = replace(self.error_context(now), refused_reason=str(reason))
        return self._report_refusal(reason, failures.surfaced(error or errors.CouchbaseException, context), now)

    def _on_strategy_decided(self, event: events.StrategyAnswered, now: float) -> _Ruled:
        reason = cast(RetryReason, self.last_reason)
        if event.raised is not None:
            return self._refuse(reason, now, None, event.raised)
        request = self.snapshot(now, self._entry)
        try:
            verdict = judge(request, reason, event.answer)
        except TypeError as error:
            return self._refuse(reason, now, None, error)
        return self._carry_out(verdict, reason, request, now)

    def _carry_out(self, verdict: Verdict, reason: RetryReason, request: RetryRequest, now: float) -> _Ruled:
        if not isinstance(verdict, Retry):
            if isinstance(verdict, Refuse):
                return self._refuse(reason, now, verdict.error, because=verdict.because)
            return self._report_refusal(reason, self._timeout(now), now)
        if reason not in self.retry_reasons:
            self.retry_reasons |= {reason}
        delay, dispatches = verdict.delay, verdict.dispatches
        self._times_out = dispatches or verdict.times_out
        if dispatches and delay < DELAY_LEAST:
            delay = DELAY_LEAST
        self._resume_at = now + delay
        # DELAY_LEAST may have made the delay longer than the time to the deadline.
        deadline = self.annotation.deadline
        self.wakeup = deadline if deadline < self._resume_at else self._resume_at
        return (
            Ruling.RETRY if dispatches else Ruling.EXPIRE,
            [ReportRetry(request, reason, delay, dispatches, self._node), RetryAfter(delay, dispatches)],
        )

    def _refuse(
        self,
        reason: RetryReason,
        now: float,
        given: ErrorClass | None,
        cause: BaseException | None = None,
        because: str | None = None,
    ) -> _Ruled:
        error = (given or self._error) if cause is None else None
        context = self.error_context(now)
        try:
            exception = failures.refused(error, reason, context, cause, because)
        except Exception as raised:  # A class of the application may refuse the arguments of CouchbaseException.
            exception = failures.refused(None, reason, context, raised)
        return self._report_refusal(reason, exception, now)

    def _report_refusal(self, reason: RetryReason, error: errors.CouchbaseException, now: float) -> _Ruled:
        request = self.snapshot(now, self._entry)
        return self._fail(error, ReportRefusal(request, reason, type(error).__name__, self._node))

    def _resume(self, now: float) -> _Ruled:
        self._resume_at, self.wakeup = math.inf, self.annotation.deadline
        if self.state is RetryState.WAITING and now < self.annotation.deadline:
            self.retry_attempts += 1
            # Decision C17: retries before the first response do not count towards the schedule of its status.
            self._attempts_this_status += self._last_status is not None
            return Ruling.RESUME, [Dispatch()]
        if self._times_out:
            return self._fail(self._timeout(now))
        # Decision C15: once ``within`` is over, as at the end of an error map's schedule, fail with the newest error.
        reason = cast(RetryReason, self.last_reason)
        return self._fail(failures.refused(self._error, reason, self.error_context(now)))

    def _timeout(self, now: float, *, is_partial: bool = False) -> errors.CouchbaseException:
        context, last_reason = self.error_context(now), None if is_partial else self.last_reason
        return failures.timeout(context, ambiguous=self.is_ambiguous, last_reason=last_reason)

    def _fail(self, error: errors.CouchbaseException, *earlier: RequestAction) -> _Ruled:
        self._end()
        return Ruling.FAIL, [*earlier, Fail(error)]

    def _end(self) -> None:
        self._resume_at = self.wakeup = math.inf

    def _count_status(self, status: int, now: float) -> None:
        # RFC 0013 §Questions: a different status resets the number of retries and the start of the schedule.
        if status != self._last_status:
            if self._last_status is not None:
                self._attempts_this_status, self._this_status_since = 0, None
            self._last_status = status
        if self._this_status_since is None:
            self._this_status_since = now

    def error_context(self, now: float) -> ErrorContext:
        """Return the known facts about the request at ``now``, for an error."""
        annotation, sent, load = self.annotation, self._dispatched, self._load
        reasons = self.retry_reasons if self.last_reason is None else self.retry_reasons | {self.last_reason}
        known: dict[str, Any] = {
            "service": str(annotation.service),
            "operation": annotation.operation,
            "idempotent": annotation.idempotent,
            "retry_attempts": self.retry_attempts,
            "retry_reasons": frozenset(map(str, reasons)),
            "elapsed": now - annotation.submitted_at,
            "timeout": annotation.deadline - annotation.submitted_at if math.isfinite(annotation.deadline) else None,
            "last_dispatch_error": self._dispatch_error,
        }
        if sent is not None:
            known |= {"last_dispatched_to": sent.node, "last_dispatched_from": sent.sender, "opaque": sent.opaque}
        if load is not None:
            known |= {"in_flight": load.in_flight, "waiting": load.waiting}
        if self._kv_answer is not None:
            known |= failures.kv_response_fields(*self._kv_answer)
        if self._service_answer is not None:
            known |= failures.service_response_fields(*self._service_answer)
        return replace(annotation.error_context, **known)


_ON: Mapping[type[events.RequestEvent], Callable[..., _Ruled]] = {
    events.Dispatched: RetryMachine._on_dispatched,
    events.DispatchFailed: RetryMachine._on_dispatch_failed,
    events.SocketClosed: RetryMachine._on_socket_closed,
    events.ResponseReceived: RetryMachine._on_response_received,
    events.ErrorMapLoaded: RetryMachine._on_error_map_loaded,
    events.StrategyAnswered: RetryMachine._on_strategy_decided,
    events.WakeupReached: RetryMachine._on_time_passed,
    events.Abandoned: RetryMachine._on_abandoned,
}

# A machine with bound methods as attributes would form a reference cycle, which only the garbage collector frees.
_HANDLERS: Mapping[
    RetryState, Mapping[type[events.RequestEvent], tuple[Callable[..., _Ruled], Mapping[Ruling, RetryState]]]
] = {
    state: {
        kind: (RetryMachine._on_anything_late if state.is_final else _ON[kind], following)
        for kind, following in permitted_events(state).items()
    }
    for state in RetryState
}
"""Handler for each event in each state, with the next state for each ruling of the handler."""
