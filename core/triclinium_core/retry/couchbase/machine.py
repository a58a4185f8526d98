"""The retry machine: one request, events in, ordered actions out.

It owns no clock, no socket and no policy: ``now`` comes with every event, answers come from the strategy, and what a
response means stands in the tables of ``kv_responses`` and ``service_responses``. ``states`` has the theory of
operation.

Source: SDK-RFC 0049 "Retry Orchestration".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import CouchbaseException
from triclinium_core.retry.backoff import DELAY_LEAST, RESOLUTION, Random
from triclinium_core.retry.couchbase import failures
from triclinium_core.retry.couchbase.actions import (
    CloseConnection,
    Complete,
    ConsultStrategy,
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
from triclinium_core.retry.couchbase.annotation import RequestAnnotation
from triclinium_core.retry.couchbase.events import (
    Abandoned,
    Dispatched,
    DispatchFailed,
    ErrorMapLoaded,
    HandedOver,
    KvResponse,
    Load,
    RequestEvent,
    ResponseReceived,
    ServiceResponse,
    SocketClosed,
    StrategyDecided,
    TimePassed,
)
from triclinium_core.retry.couchbase.orchestrator import (
    Refuse,
    Retry,
    TimeOut,
    Verdict,
    decide,
    decide_without_strategy,
    judge,
)
from triclinium_core.retry.couchbase.request import RetryRequest
from triclinium_core.retry.couchbase.states import REQUEST_TRANSITIONS, RequestState
from triclinium_core.retry.couchbase.strategy import RetryStrategy, is_async
from triclinium_core.retry.couchbase.tables import kv_responses, service_responses
from triclinium_core.retry.couchbase.tables.error_map import ErrorMapEntry, ErrorMapStore
from triclinium_core.retry.couchbase.tables.kv_status import ErrorClass
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service_responses import ServiceVerdict
from triclinium_core.retry.invalid_event import InvalidEvent


@dataclass(slots=True)
class _Failure:
    """The failure that the machine is busy with."""

    reason: RetryReason
    error: ErrorClass | None
    """The class that a response stands for; None where there was none."""
    entry: ErrorMapEntry | None = None


class RetryMachine:
    """One request, from its submission, or from its first failure, to its settlement.

    Contract: ``now`` never goes back; carry out the actions in order; feed ``TimePassed`` when ``wakeup`` has come.

    Args:
        annotation: what is fixed about the request.
        rng: randomness for jittered backoffs.
        error_maps: the maps of all nodes, shared by all machines of a client; an own store unless given.
        state: PENDING, or IN_FLIGHT for a machine that is made only when the first attempt has failed.
        retry_attempts: retries that were already done elsewhere.
        first_failure_at: instant of the first failure, where it was noticed elsewhere.
    """

    def __init__(
        self,
        annotation: RequestAnnotation,
        *,
        rng: Random,
        error_maps: ErrorMapStore | None = None,
        state: RequestState = RequestState.PENDING,
        retry_attempts: int = 0,
        first_failure_at: float | None = None,
    ) -> None:
        self.annotation: RequestAnnotation = annotation
        self._rng = rng
        self._error_maps = error_maps if error_maps is not None else ErrorMapStore()
        self._state = state
        self._unanswered = state is RequestState.IN_FLIGHT
        self._retry_attempts = retry_attempts
        self._retry_reasons: frozenset[RetryReason] = frozenset()
        self._attempts_this_status = retry_attempts
        self._last_status: int | None = None
        self._last_reason: RetryReason | None = None
        self._first_failure_at = first_failure_at
        self._node = annotation.error_context.last_dispatched_to
        """Where the newest attempt went, or was to go."""
        self._dispatched: Dispatched | None = None
        """The newest attempt that was handed over here."""
        self._kv_answer: tuple[KvResponse, ErrorMapEntry | None] | None = None
        """The newest response, and what the error map of its node says of the status."""
        self._service_answer: tuple[int, ServiceVerdict] | None = None
        """HTTP status of the newest response, and what it means."""
        self._dispatch_error = annotation.error_context.last_dispatch_error
        self._load: Load | None = None
        self._failure: _Failure | None = None
        self._resume_at = math.inf
        self._verdict: Retry | None = None

    def __repr__(self) -> str:
        return f"<RetryMachine {self.annotation.operation}: {self._state.name} retry_attempts={self._retry_attempts}>"

    @property
    def state(self) -> RequestState:
        """Where the request stands."""
        return self._state

    @property
    def retry_attempts(self) -> int:
        """Retries ordered so far."""
        return self._retry_attempts

    @property
    def retry_reasons(self) -> frozenset[RetryReason]:
        """Reasons of the retries ordered so far."""
        return self._retry_reasons

    @property
    def last_reason(self) -> RetryReason | None:
        """Reason of the newest failure; None as long as no failure had one."""
        return self._last_reason

    @property
    def wakeup(self) -> float:
        """When ``TimePassed`` is due; ``inf`` for never."""
        if self._state.is_final:
            return math.inf
        return min(self._resume_at, self.annotation.deadline)

    @property
    def is_ambiguous(self) -> bool:
        """Whether the request, given up now, may still be applied or have been (decision C25)."""
        return self._unanswered and not self.annotation.idempotent

    def handle(self, event: RequestEvent, now: float) -> Sequence[RequestAction]:
        """Take note of ``event`` and return what to do, in order.

        Raises:
            InvalidEvent: the event cannot happen in this state; nothing was changed.
        """
        allowed = REQUEST_TRANSITIONS[self._state].get(type(event))
        if allowed is None:
            raise InvalidEvent(f"{type(event).__name__} cannot happen to a request that is {self._state.value}")
        if self._state.is_final:
            return [Ignore()]
        actions = _HANDLERS[type(event)](self, event, now)
        assert self._state in allowed, f"{type(event).__name__} led to {self._state.value}"
        return actions

    def snapshot(self, now: float, entry: ErrorMapEntry | None = None) -> RetryRequest:
        """Return the request as a strategy sees it at ``now``."""
        first = self._first_failure_at if self._first_failure_at is not None else now
        return RetryRequest(
            service=self.annotation.service,
            operation=self.annotation.operation,
            idempotent=self.annotation.idempotent,
            rng=self._rng,
            key=self.annotation.error_context.key,
            retry_attempts=self._retry_attempts,
            retry_reasons=self._retry_reasons,
            age=now - self.annotation.submitted_at,
            remaining=self.annotation.deadline - now,
            since_first_failure=now - first,
            attempts_this_status=self._attempts_this_status,
            error_map_entry=entry,
            client_context=self.annotation.client_context,
        )

    def _on_dispatched(self, event: Dispatched, now: float) -> Sequence[RequestAction]:
        self._state = RequestState.IN_FLIGHT
        self._unanswered = True
        self._node = event.node
        self._dispatched = event
        return ()

    def _on_dispatch_failed(self, event: DispatchFailed, now: float) -> Sequence[RequestAction]:
        if event.detail is not None:
            self._dispatch_error = event.detail
        self._load = event.load or self._load
        self._node = event.node
        return self._maybe_retry(_Failure(event.reason, event.error), now)

    def _on_socket_closed(self, event: SocketClosed, now: float) -> Sequence[RequestAction]:
        if event.detail is not None:
            self._dispatch_error = event.detail
        if event.handed_over is HandedOver.NOTHING:
            self._unanswered = False
            return self._maybe_retry(_Failure(event.reason, None), now)
        return self._maybe_retry(_Failure(RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT, None), now)

    def _on_response_received(self, event: ResponseReceived, now: float) -> Sequence[RequestAction]:
        match event.response:
            case KvResponse() as response:
                return self._on_response_received_from_kv(event, response, now)
            case ServiceResponse() as response:
                return self._on_response_received_from_service(event, response, now)

    def _on_response_received_from_kv(
        self, event: ResponseReceived, response: KvResponse, now: float
    ) -> Sequence[RequestAction]:
        entry = self._error_maps.entry(response.node, response.status)
        verdict = kv_responses.classify(self.annotation.operation, response.status, entry)
        self._unanswered = False
        self._note_status(response.status)
        self._kv_answer, self._service_answer = (response, entry), None
        actions: list[RequestAction] = []
        if verdict.refresh_topology:
            actions.append(RefreshTopology())
        if verdict.refresh_collection:
            actions.append(RefreshCollection())
        if verdict.reason is not None:
            actions += self._maybe_retry(_Failure(verdict.reason, verdict.error, entry), now)
        elif verdict.error is not None:
            error = response.error or verdict.error
            actions += self._fail(failures.surfaced(error, self.error_context(now), response.failed_path))
        else:
            actions += self._complete(event)
        if verdict.close_connection is not None:
            # RFC 0013 §Processing Chain: settle or retry the request first, then close the connection.
            actions.append(CloseConnection(verdict.close_connection))
        return actions

    def _on_response_received_from_service(
        self, event: ResponseReceived, response: ServiceResponse, now: float
    ) -> Sequence[RequestAction]:
        self._unanswered = False
        verdict = service_responses.classify(response.service, response.http_status, response.body)
        self._note_status(response.http_status)
        self._service_answer, self._kv_answer = (response.http_status, verdict), None
        if verdict.reason is not None:
            return self._maybe_retry(_Failure(verdict.reason, verdict.error), now)
        if verdict.error is not None:
            return self._fail(failures.surfaced(verdict.error, self.error_context(now)))
        return self._complete(event)

    def _on_error_map_loaded(self, event: ErrorMapLoaded, now: float) -> Sequence[RequestAction]:
        self._error_maps.load(event.node, event.error_map)
        return ()

    def _on_time_passed(self, event: TimePassed, now: float) -> Sequence[RequestAction]:
        if now >= self._resume_at - RESOLUTION:
            return self._resume(now)
        if now >= self.annotation.deadline:
            self._load = event.load or self._load
            return self._time_out(now)
        return ()

    def _on_abandoned(self, event: Abandoned, now: float) -> Sequence[RequestAction]:
        self._state = RequestState.ABANDONED
        return ()

    def _maybe_retry(self, failure: _Failure, now: float) -> Sequence[RequestAction]:
        """Ask whoever decides about ``failure``; the RFC's ``maybeRetry``."""
        self._failure = failure
        self._last_reason = failure.reason
        if self._first_failure_at is None:
            self._first_failure_at = now
        request = self.snapshot(now, failure.entry)
        strategy = self.annotation.strategy
        verdict: Verdict | None
        try:
            if is_async(strategy):
                verdict = decide_without_strategy(request, failure.reason)
                if verdict is None:
                    self._state = RequestState.CONSULTING
                    return [ConsultStrategy(strategy, request, failure.reason)]
            else:
                verdict = decide(request, failure.reason, cast(RetryStrategy, strategy))
        except Exception as error:
            return self._refuse(failure, now, None, error)
        return self._carry_out(verdict, failure, request, now)

    def _on_strategy_decided(self, event: StrategyDecided, now: float) -> Sequence[RequestAction]:
        failure = cast(_Failure, self._failure)
        request = self.snapshot(now, failure.entry)
        if event.raised is not None:
            return self._refuse(failure, now, None, event.raised)
        try:
            verdict = judge(request, failure.reason, event.answer)
        except TypeError as error:
            return self._refuse(failure, now, None, error)
        return self._carry_out(verdict, failure, request, now)

    def _carry_out(
        self, verdict: Verdict, failure: _Failure, request: RetryRequest, now: float
    ) -> Sequence[RequestAction]:
        match verdict:
            case TimeOut():
                return self._report_refusal(failure, self._timeout(now), now)
            case Refuse(error):
                return self._refuse(failure, now, error)
            case Retry(delay, dispatches):
                self._retry_attempts += 1
                # Decision C17: what was retried before any status came is no part of a status's schedule.
                self._attempts_this_status += self._last_status is not None
                self._retry_reasons |= {failure.reason}
                self._verdict = verdict
                delay = max(delay, DELAY_LEAST) if dispatches else delay
                self._resume_at = now + delay
                self._state = RequestState.WAITING if dispatches else RequestState.EXPIRING
                report = ReportRetry(request, failure.reason, delay, dispatches, self._node)
                return [report, RetryAfter(delay, dispatches)]

    def _refuse(
        self, failure: _Failure, now: float, asked: ErrorClass | None, cause: BaseException | None = None
    ) -> Sequence[RequestAction]:
        error = (asked or failure.error) if cause is None else None
        context = self.error_context(now)
        try:
            exception = failures.refused(error, failure.reason, context, cause)
        except Exception as raised:  # an application's own class may not take what all our errors take
            exception = failures.refused(None, failure.reason, context, raised)
        return self._report_refusal(failure, exception, now)

    def _report_refusal(self, failure: _Failure, error: CouchbaseException, now: float) -> Sequence[RequestAction]:
        request = self.snapshot(now, failure.entry)
        return [ReportRefusal(request, failure.reason, type(error).__name__, self._node), *self._fail(error)]

    def _resume(self, now: float) -> Sequence[RequestAction]:
        verdict, self._verdict, self._resume_at = cast(Retry, self._verdict), None, math.inf
        if verdict.dispatches and now < self.annotation.deadline:
            self._state = RequestState.PENDING
            return [Dispatch()]
        if verdict.times_out or verdict.dispatches:
            return self._time_out(now)
        # Decision C15: the end of the map's schedule fails the request with its own error.
        failure = cast(_Failure, self._failure)
        return self._fail(failures.refused(failure.error, failure.reason, self.error_context(now)))

    def _time_out(self, now: float) -> Sequence[RequestAction]:
        return self._fail(self._timeout(now))

    def _timeout(self, now: float) -> CouchbaseException:
        context = self.error_context(now)
        return failures.timeout(context, ambiguous=self.is_ambiguous, last_reason=self._last_reason)

    def _fail(self, error: CouchbaseException) -> Sequence[RequestAction]:
        self._state = RequestState.FAILED
        self._resume_at = math.inf
        return [Fail(error)]

    def _complete(self, event: ResponseReceived) -> Sequence[RequestAction]:
        self._state = RequestState.COMPLETED
        return [Complete(event.response)]

    def _note_status(self, status: int) -> None:
        # RFC 0013 §Questions: the retry count of the schedule is reset when a different error code is received.
        if self._last_status is not None and status != self._last_status:
            self._attempts_this_status = 0
        self._last_status = status

    def error_context(self, now: float) -> ErrorContext:
        """Return what is known of the request at ``now``. It is written when an error needs it, not before."""
        annotation = self.annotation
        context = replace(
            annotation.error_context,
            service=str(annotation.service),
            operation=annotation.operation,
            idempotent=annotation.idempotent,
            retry_attempts=self._retry_attempts,
            retry_reasons=frozenset(str(reason) for reason in self._retry_reasons),
            elapsed=now - annotation.submitted_at,
            timeout=annotation.deadline - annotation.submitted_at if math.isfinite(annotation.deadline) else None,
            last_dispatch_error=self._dispatch_error,
        )
        if self._dispatched is not None:
            context = failures.dispatched(context, self._dispatched)
        if self._load is not None:
            context = failures.loaded(context, self._load)
        if self._kv_answer is not None:
            context = failures.answered(context, *self._kv_answer)
        if self._service_answer is not None:
            context = failures.answered_by_service(context, *self._service_answer)
        return context


# Bound methods in the machine itself would be a cycle, and each request that failed once would wait for a collector.
_HANDLERS: Mapping[type, Callable[..., Sequence[RequestAction]]] = {
    Dispatched: RetryMachine._on_dispatched,
    DispatchFailed: RetryMachine._on_dispatch_failed,
    SocketClosed: RetryMachine._on_socket_closed,
    ResponseReceived: RetryMachine._on_response_received,
    ErrorMapLoaded: RetryMachine._on_error_map_loaded,
    StrategyDecided: RetryMachine._on_strategy_decided,
    TimePassed: RetryMachine._on_time_passed,
    Abandoned: RetryMachine._on_abandoned,
}
