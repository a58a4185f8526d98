"""Retry machine that records its events and decisions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from triclinium_core.decision_tape import lines
from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import TimeoutException
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.couchbase import RetryReason, RetryRequest, actions, events
from triclinium_core.retry.couchbase.deciders import (
    CAPPING_CLAUSE,
    DECISION_CLAUSES,
    SENT_CLAUSE,
    UNSENT_CLAUSE,
    DecidedBy,
    decided_by,
)
from triclinium_core.retry.couchbase.retry_machine import RequestAnnotation, RetryMachine
from triclinium_core.retry.couchbase.states import RetryState
from triclinium_core.retry.couchbase.strategy import RetryAction
from triclinium_core.retry.couchbase.tables import kv_responses
from triclinium_core.retry.couchbase.tables.error_map import ErrorMapEntry, ErrorMapStore

_NODE, _CLASS_NAME = re.compile(lines.NODE_PATTERN), re.compile(lines.CLASS_NAME_PATTERN)
_name_of = type.__dict__["__name__"].__get__
"""Function that returns the name of a class without running code of its metaclass."""


def node_name(node: str | None) -> str | None:
    """Return the name of a node; None if a line of a tape cannot contain it."""
    return node if node is not None and _NODE.match(node) else None


def class_name(kind: type) -> str:
    """Return the name of a class, or a substitute if a line of a tape cannot contain the name."""
    name: str = _name_of(kind)
    return name if _CLASS_NAME.match(name) else "Unnamed"


class RecordedRetryMachine(RetryMachine):
    """Retry machine that records each event with the decision about it.

    Args:
        sent: attempt in flight for whose failure the machine is created; None without one.
        pseudonym: pseudonym of the key, for the error context; None without one.
    """

    def __init__(
        self,
        annotation: RequestAnnotation,
        *,
        rng: Random,
        error_maps: ErrorMapStore | None,
        state: RetryState,
        sent: lines.Sent | None = None,
        pseudonym: str | None = None,
    ) -> None:
        super().__init__(annotation, rng=rng, error_maps=error_maps, state=state)
        self.steps: list[lines.Step] = [] if sent is None else [sent]
        self.began_in_flight: bool = sent is not None
        self.omitted: int = 0
        """Number of events since ``steps`` reached ``STEPS_MAX`` entries."""
        self._answer: lines.Answer | None = None
        self._pseudonym = pseudonym

    @property
    def is_async(self) -> bool:
        """Whether the machine has consulted an asynchronous strategy."""
        return self._is_async is True

    def handle(self, event: events.RequestEvent, now: float) -> Sequence[actions.RequestAction]:
        """Process ``event``, record it with the decision, and return the actions."""
        self._answer = None
        orders = super().handle(event, now)
        if len(self.steps) < lines.STEPS_MAX:
            step = self._step(event, orders, now)
            if step is not None:
                self.steps.append(step)
        else:
            self.omitted += 1
        return orders

    def error_context(self, now: float) -> ErrorContext:
        """Return the known facts about the request, with the pseudonym of its key if the tape has pseudonyms."""
        context = super().error_context(now)
        return context if self._pseudonym is None else replace(context, key_pseudonym=self._pseudonym)

    def _consult(self, request: RetryRequest, reason: RetryReason) -> object:
        try:
            answer = super()._consult(request, reason)
        except Exception as error:
            self._answer = lines.Answer(raised=class_name(type(error)))
            raise
        self._answer = answer_line(answer)
        return answer

    def _step(
        self, event: events.RequestEvent, orders: Sequence[actions.RequestAction], now: float
    ) -> lines.Step | None:
        """Return the line of an event; None if a tape has no line for it."""
        answer = self._answer
        decision = decision_on(event, orders, self, answer)
        match event:
            case events.Dispatched(node, opaque, _, stream):
                return lines.Sent(at=now, node=node_name(node), stream=stream, opaque=opaque)
            case events.DispatchFailed(reason, _, error, node):
                name = None if error is None else class_name(error)
                return lines.NotSent(
                    at=now,
                    decision=decision,
                    answer=answer,
                    reason=reason,
                    node=node_name(node),
                    error=name,
                )
            case events.SocketClosed(handed_over, _, reason, is_partial):
                return lines.Lost(
                    at=now,
                    decision=decision,
                    answer=answer,
                    handed_over=handed_over,
                    reason=reason,
                    is_partial=is_partial,
                )
            case events.ResponseReceived(events.KvResponse() as response):
                return lines.Responded(
                    at=now,
                    decision=decision,
                    answer=answer,
                    status=response.status,
                    node=node_name(response.node),
                    error=None if response.error is None else class_name(response.error),
                    entry=entry_line(self.response_entry),
                )
            case events.ResponseReceived(events.ServiceResponse() as response):
                verdict = self.service_verdict
                assert verdict is not None, "the machine has classified the response"
                return lines.ServiceResponded(
                    at=now,
                    decision=decision,
                    answer=answer,
                    http_status=response.http_status,
                    code=verdict.code if verdict.code is not None and abs(verdict.code) <= lines.CODE_MAX else None,
                    reason=verdict.reason,
                    error=None if verdict.error is None else class_name(verdict.error),
                    clause=verdict.clause,
                    is_partial=response.is_partial,
                )
            case events.WakeupReached(is_partial=is_partial) if decision.kind != "none":
                return lines.Woken(at=now, decision=decision, is_partial=is_partial)
            case events.StrategyAnswered(action, raised):
                given = answer_line(action) if raised is None else lines.Answer(raised=class_name(type(raised)))
                return lines.StrategyResponded(at=now, decision=decision, answer=given)
        return None


def answer_line(answer: object) -> lines.Answer:
    """Return the line of a strategy's answer, without its texts."""
    if not isinstance(answer, RetryAction):
        return lines.Answer(is_invalid=True)
    error = None if answer.error is None else class_name(answer.error)
    # A duration may be of another type, such as a float of an array library, which a line cannot contain.
    delay, within = (None if each is None else float(each) for each in (answer.delay, answer.within))
    return lines.Answer(delay=delay, error=error, within=within)


def entry_line(entry: ErrorMapEntry | None) -> lines.MapEntry | None:
    """Return the line of an entry of an error map, without its texts."""
    if entry is None:
        return None
    attributes, unknown = tuple(sorted(entry.attributes)), entry.unknown_algorithm is not None
    retry = entry.retry
    if retry is None:
        return lines.MapEntry(attributes, has_unknown_algorithm=unknown)
    return lines.MapEntry(
        attributes, retry.algorithm, retry.interval_ms, retry.after_ms, retry.max_duration_ms, retry.ceil_ms, unknown
    )


def decision_on(
    event: events.RequestEvent,
    orders: Sequence[actions.RequestAction],
    machine: RetryMachine,
    answer: lines.Answer | None,
) -> lines.Decision:
    """Return the decision of a machine about an event, from the actions that it returned."""
    facts: dict[str, object] = {"kind": "none"}
    times_out = False
    for order in orders:
        match order:
            case actions.RetryAfter(delay, dispatches):
                facts |= {"kind": "retry" if dispatches else "expire", "delay": float(delay)}
            case actions.Fail(error):
                facts |= {"kind": "fail", "error": class_name(type(error))}
                times_out = isinstance(error, TimeoutException)
            case actions.Complete():
                facts["kind"] = "complete"
            case actions.AskStrategy():
                facts["kind"] = "consult"
            case actions.Dispatch():
                facts["kind"] = "dispatch"
            case actions.ReportRetry(reason=reason) | actions.ReportRefusal(reason=reason):
                facts["reason"] = reason
            case actions.RefreshTopology():
                facts["refresh_topology"] = True
            case actions.RefreshCollection():
                facts["refresh_collection"] = True
            case actions.CloseConnection():
                facts["close_connection"] = True
    kind = str(facts["kind"])
    if kind not in ("none", "dispatch"):
        facts["clause"] = _clause(event, kind, machine, answer, times_out=times_out)
    return lines.Decision(**facts)  # type: ignore[arg-type]  # each value has the type of its field


def _clause(
    event: events.RequestEvent, kind: str, machine: RetryMachine, answer: lines.Answer | None, *, times_out: bool
) -> str:
    """Return the clause for the meaning of an event, and that for the decision about it."""
    if isinstance(event, events.WakeupReached):
        return DECISION_CLAUSES[DecidedBy.DEADLINE] if times_out else CAPPING_CLAUSE
    clauses: list[str] = []
    reason = machine.last_reason
    match event:
        case events.ResponseReceived(events.KvResponse(status=status)):
            entry = machine.response_entry
            verdict = kv_responses.classify(machine.annotation.operation, status, entry)
            clauses, reason = [verdict.clause], verdict.reason
        case events.ResponseReceived(events.ServiceResponse()):
            service_verdict = machine.service_verdict
            assert service_verdict is not None, "the machine has classified the response"
            clauses, reason = [service_verdict.clause], service_verdict.reason
        case events.SocketClosed(handed_over) if handed_over is not events.HandedOver.NOTHING:
            clauses = [SENT_CLAUSE]
        case events.SocketClosed() | events.DispatchFailed():
            clauses = [UNSENT_CLAUSE]
    decider = decided_by(
        reason,
        retries=kind in ("retry", "expire"),
        was_consulted=answer is not None or kind == "consult" or isinstance(event, events.StrategyAnswered),
        would_retry=answer is not None and answer.delay is not None,
        times_out=times_out,
    )
    clauses.append(DECISION_CLAUSES[decider])
    if kind == "expire":
        clauses.append(CAPPING_CLAUSE)
    return "; ".join(clauses)
