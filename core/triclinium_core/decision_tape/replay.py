"""Replay of a decision tape: feed the recorded events to retry machines again, and compare every decision.

The strategies in ``STATELESS`` run again if they have their default backoff. The answers of others come from the tape.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

from triclinium_core import errors
from triclinium_core.decision_tape import lines
from triclinium_core.decision_tape.encoding import STATELESS
from triclinium_core.decision_tape.retry_recording import RecordedRetryMachine
from triclinium_core.retry.backoff import ConstantRandom
from triclinium_core.retry.couchbase import (
    AnyRetryStrategy,
    ErrorMap,
    ErrorMapEntry,
    RetryAction,
    RetryReason,
    RetryRequest,
    Service,
    events,
)
from triclinium_core.retry.couchbase.retry_machine import RequestAnnotation
from triclinium_core.retry.couchbase.states import RetryState
from triclinium_core.retry.couchbase.tables.error_map import ErrorMapStore, RetrySpecification
from triclinium_core.retry.couchbase.tables.service_responses import ServiceVerdict
from triclinium_core.retry.invalid_event import InvalidEvent


@dataclass(frozen=True, slots=True)
class Difference:
    """First event of an operation for which the decision differs from the recorded one."""

    token: int
    step: int
    """Index of the event among the steps of the operation."""
    recorded: lines.Step
    replayed: lines.Step | None
    """The same event with the decision of this version; None if the event is impossible or changes nothing."""


def replay(operation: lines.Operation) -> Difference | None:
    """Feed the steps of an operation to a new retry machine. Return the first difference, or None if all agree."""
    tape = _Tape()
    error_maps = ErrorMapStore()
    sent = operation.steps[0] if operation.began_in_flight and operation.steps else None
    machine = RecordedRetryMachine(
        RequestAnnotation(
            operation=operation.name,
            idempotent=operation.idempotent,
            strategy=_strategy(operation.strategy, tape),
            submitted_at=operation.submitted_at,
            deadline=math.inf if operation.deadline is None else operation.deadline,
            service=operation.service,
        ),
        rng=_UNUSED,
        error_maps=error_maps,
        state=RetryState.PENDING if sent is None else RetryState.IN_FLIGHT,
        sent=sent if isinstance(sent, lines.Sent) else None,
    )
    for index, step in enumerate(operation.steps):
        if index == 0 and sent is not None:
            continue
        tape.answer = None if isinstance(step, lines.Sent) else step.answer
        if isinstance(step, lines.Responded):
            error_maps.load(
                step.node or _NODE, ErrorMap(2, 1, {} if step.entry is None else {step.status: _entry(step.entry)})
            )
        try:
            machine.handle(_event(step, operation.service), step.at)
        except InvalidEvent:
            return Difference(operation.token, index, step, None)
        replayed = machine.steps[index] if len(machine.steps) > index else None
        if replayed != step:
            return Difference(operation.token, index, step, replayed)
    return None


_UNUSED = ConstantRandom(0.0)
"""Random source for strategies without jitter."""
_NODE = "node"
"""Name of a node whose name is not on the tape."""


class _Tape:
    """Strategy that gives the recorded answers."""

    answer: lines.Answer | None = None
    """Answer that the current step has recorded; None if the strategy was not consulted."""

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return the recorded answer, or raise the recorded exception."""
        answer = self.answer
        if answer is None:
            raise LookupError("the strategy was not consulted when the tape was recorded")
        if answer.raised is not None:
            raise _exception(answer.raised)
        return _action(answer)


class _AsyncTape:
    """Asynchronous strategy, whose recorded answers arrive as events."""

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Raise, because the retry machine only orders this call, and a replay does not execute the order."""
        raise AssertionError("a replay awaits no strategy")


def _strategy(facts: lines.StrategyFacts, tape: _Tape) -> AnyRetryStrategy:
    if facts.is_default and facts.name in STATELESS:
        return STATELESS[facts.name]()
    return _AsyncTape() if facts.is_async else tape


def _action(answer: lines.Answer) -> RetryAction:
    if answer.is_invalid:
        return None  # type: ignore[return-value]  # a strategy that returns no RetryAction
    return RetryAction(answer.delay, None if answer.error is None else _error(answer.error), answer.within)


@cache
def _exception(name: str) -> type[Exception]:
    return type(name, (Exception,), {})


_ERRORS = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.CouchbaseException)
}


def _error(name: str) -> type[errors.CouchbaseException]:
    """Return the exception class with a name, or a substitute for a class of a user."""
    return _ERRORS.get(name) or type(name, (errors.CouchbaseException,), {})


def _entry(entry: lines.MapEntry) -> ErrorMapEntry:
    retry = None
    if entry.algorithm is not None:
        retry = RetrySpecification(
            entry.algorithm, entry.interval_ms, entry.after_ms, entry.max_duration_ms, entry.ceil_ms
        )
    unknown = "unknown" if entry.has_unknown_algorithm else None
    return ErrorMapEntry("", "", frozenset(entry.attributes), retry, unknown)


def _event(step: lines.Step, service: Service) -> events.RequestEvent:
    """Return the event of a step."""
    match step:
        case lines.Sent():
            return events.Dispatched(step.node, step.opaque, None, step.stream)
        case lines.NotSent():
            return events.DispatchFailed(step.reason, None, _error(step.error) if step.error else None, step.node)
        case lines.Lost():
            return events.SocketClosed(step.handed_over, None, step.reason, step.is_partial)
        case lines.Responded():
            node = step.node or (None if step.entry is None else _NODE)
            error = None if step.error is None else _error(step.error)
            return events.ResponseReceived(events.KvResponse(step.status, node, error=error))
        case lines.ServiceResponded():
            error = None if step.error is None else _error(step.error)
            verdict = ServiceVerdict(step.reason, error, step.clause or "", code=step.code)
            return events.ResponseReceived(
                events.ServiceResponse(service, step.http_status, is_partial=step.is_partial, verdict=verdict)
            )
        case lines.Woken():
            return events.WakeupReached(is_partial=step.is_partial)
        case lines.StrategyResponded():
            answer = step.answer or lines.Answer()
            if answer.raised is not None:
                return events.StrategyAnswered(None, _exception(answer.raised)())
            return events.StrategyAnswered(_action(answer))
