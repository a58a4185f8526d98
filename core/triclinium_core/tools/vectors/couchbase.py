"""Questions about Couchbase: the fields of each, the function that answers it, and the clauses that decide the answer.

::

    idempotent  service, op, readonly?, method?
                -> idempotent
    reason      service, op, and for kv: status ("0x86"), error_map_entry?; for the others: http_status, body
                -> reason, null for none
    decide      strategy, idempotent, attempt, elapsed_ms, timeout_ms, and the failure of the request: reason,
                error_map_entry?; or the response, with the fields of the ask ``reason``; or handed_over ("nothing",
                "part" or "all"), for a closed socket
                -> action "retry" with delay_ms and dispatches, and with error if dispatches is false; action "fail"
                with error; or action "complete"
    timeout     idempotent, on_the_wire, reason?
                -> error at the deadline, while an unanswered attempt is on the wire or while none is; reason is the
                retry reason of an earlier attempt
    cap         requested_delay_ms, elapsed_ms, timeout_ms
                -> delay_ms, dispatches
    terminal    events, op (see ``terminal_script``)
                -> reason, null for none

Source: SDK-RFC 0049, SDK-RFC 0013.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from triclinium_core import errors
from triclinium_core.explain.couchbase.happenings import HAPPENINGS, Happening, HttpAnswer, KvAnswer, verdict_of
from triclinium_core.explain.couchbase.reaction import LONGEST_DELAYS, Reaction, error_of, put_to_machine
from triclinium_core.explain.couchbase.recording_strategy import RecordingStrategy
from triclinium_core.explain.explanation import Outcome, milliseconds
from triclinium_core.retry import couchbase
from triclinium_core.retry.backoff import cap
from triclinium_core.retry.couchbase.deciders import CAPPING_CLAUSE, DECISION_CLAUSES, DecidedBy, decided_by
from triclinium_core.tools.vectors.fields import AnswerFields, Ask, Clauses, MalformedQuestion, Question, parse_status
from triclinium_core.tools.vectors.terminal_script import terminal_reason

STRATEGIES: dict[str, couchbase.RetryStrategy] = {
    "best_effort": couchbase.BestEffortRetryStrategy(),
    "fast_fail_on_terminal_error": couchbase.FastFailOnTerminalErrorRetryStrategy(),
    "fail_fast": couchbase.FailFastRetryStrategy(),
    "error_map": couchbase.ErrorMapRetryStrategy(),
}
"""Built-in strategies by their names in questions. They are stateless."""

STRATEGY_CLAUSES: Mapping[str, str] = {
    "best_effort": "RFC 0049 Best Effort",
    "fast_fail_on_terminal_error": "RFC 0049 Fail Fast (Terminal Errors)",
    "fail_fast": "RFC 0049 Fail Fast (Strict)",
    "error_map": "RFC 0013 Retry Intervals",
}
"""Clause on each of the strategies."""

SERVICES: dict[str, couchbase.Service] = {str(service): service for service in couchbase.Service}
REASONS: dict[str, couchbase.RetryReason] = {str(reason): reason for reason in couchbase.RetryReason}
HANDED_OVER: dict[str, couchbase.HandedOver] = {share.value: share for share in couchbase.HandedOver}


def _answer_idempotent(question: Question) -> AnswerFields:
    service = question.choice("service", SERVICES)
    operation = question.text("op")
    readonly = question.flag("readonly") if "readonly" in question else False
    method = question.text("method") if "method" in question else ""
    return {"idempotent": couchbase.is_idempotent(service, operation, readonly=readonly, method=method)}


def _answer_reason(question: Question) -> AnswerFields:
    verdict = verdict_of(*_answered(question))
    return {"reason": _name(verdict.reason if verdict is not None else None)}


def _answer_decide(question: Question) -> AnswerFields:
    recorded, reaction = _decided(question)
    if reaction.retry is None:
        return {"action": str(reaction.outcome), **_failed_with(reaction.error)}
    delay, dispatches = reaction.retry.delay, reaction.retry.dispatches
    if dispatches and recorded.delay is not None:
        # Decision D11: the client waits at least a millisecond. The answer has the strategy's own delay instead.
        delay = recorded.delay
    return {
        "action": str(reaction.outcome),
        "delay_ms": milliseconds(delay),
        "dispatches": dispatches,
        **_failed_with(reaction.error),
    }


def _decided(question: Question) -> tuple[RecordingStrategy, Reaction]:
    """Return the strategy of the request with its recorded decision, and the reaction of the machine."""
    recorded = RecordingStrategy(question.choice("strategy", STRATEGIES))
    service, operation, happened = _happened(question)
    annotation = couchbase.RequestAnnotation(
        operation=operation,
        idempotent=question.flag("idempotent"),
        strategy=recorded,
        submitted_at=0.0,
        deadline=question.number("timeout_ms") / 1000,
        service=service,
    )
    attempt, elapsed = question.count("attempt"), question.number("elapsed_ms") / 1000
    return recorded, put_to_machine(happened, annotation, elapsed, rng=LONGEST_DELAYS, retry_attempts=attempt)


def _answer_timeout(question: Question) -> AnswerFields:
    annotation = couchbase.RequestAnnotation(
        operation="",
        idempotent=question.flag("idempotent"),
        strategy=STRATEGIES["best_effort"],
        submitted_at=0.0,
        deadline=1.0,
    )
    on_the_wire = question.flag("on_the_wire")
    machine = couchbase.RetryMachine(annotation, rng=LONGEST_DELAYS)
    if question.get("reason") is not None:
        machine = _sent_again(annotation, question.choice("reason", REASONS))
    if on_the_wire:
        machine.handle(couchbase.Dispatched(), machine.annotation.submitted_at)
    return _failed_with(error_of(machine.handle(couchbase.WakeupReached(), annotation.deadline)))


def _sent_again(annotation: couchbase.RequestAnnotation, reason: couchbase.RetryReason) -> couchbase.RetryMachine:
    """Return the machine of a request whose retry is due.

    Raises:
        MalformedQuestion: the reason permits no retry of the request.
    """
    service, happened = HAPPENINGS[reason]
    reaction = put_to_machine(happened, replace(annotation, service=service), 0.0, rng=LONGEST_DELAYS)
    if reaction.outcome is not Outcome.RETRY:
        raise MalformedQuestion(f"reason {reason} leads to no retry of a request that is not idempotent")
    reaction.machine.handle(couchbase.WakeupReached(), reaction.machine.wakeup)
    return reaction.machine


def _happened(question: Question) -> tuple[couchbase.Service, str, Happening]:
    """Return the service, the operation (empty if it has no effect), and the failure."""
    if "reason" not in question and "service" in question:
        return _answered(question)
    if "reason" not in question and "handed_over" in question:
        return couchbase.Service.KV, "", couchbase.SocketClosed(question.choice("handed_over", HANDED_OVER))
    reason, entry = question.choice("reason", REASONS), _entry(question)
    service, happened = HAPPENINGS[reason]
    if entry is not None and isinstance(happened, KvAnswer) and happened.error_map_entry is not None:
        if not entry.indicates_retry:
            raise MalformedQuestion(f"error_map_entry.attrs permits no retry, so nothing gives the reason {reason}")
        happened = replace(happened, error_map_entry=entry)
    return service, "", happened


def _answered(question: Question) -> tuple[couchbase.Service, str, Happening]:
    """Return the service, the operation, and the response to it."""
    service, operation = question.choice("service", SERVICES), question.text("op")
    if service is couchbase.Service.KV:
        return service, operation, KvAnswer(parse_status(question.text("status"), "status"), _entry(question))
    return service, operation, HttpAnswer(question.http_status("http_status"), question.text("body"))


def _failed_with(error: errors.CouchbaseException | None) -> AnswerFields:
    return {} if error is None else {"error": error.rfc_class.__name__}


def _answer_cap(question: Question) -> AnswerFields:
    requested_ms = question.number("requested_delay_ms")
    remaining_ms = question.number("timeout_ms") - question.number("elapsed_ms")
    delay, dispatches = cap(requested_ms / 1000, remaining_ms / 1000)
    return {"delay_ms": milliseconds(delay), "dispatches": dispatches}


def _answer_terminal(question: Question) -> AnswerFields:
    events = question.each("events", "strings", Question.text)
    return {"reason": _name(terminal_reason(events, question.text("op")))}


def _entry(question: Question) -> couchbase.ErrorMapEntry | None:
    row = question.get("error_map_entry")
    if row is None:
        return None
    try:
        return couchbase.parse_entry(row, "error_map_entry")
    except couchbase.MalformedErrorMap as error:
        raise MalformedQuestion(str(error)) from error


def _name(reason: couchbase.RetryReason | None) -> str | None:
    return None if reason is None else str(reason)


ASKS: Mapping[str, Ask] = {
    "idempotent": _answer_idempotent,
    "reason": _answer_reason,
    "decide": _answer_decide,
    "timeout": _answer_timeout,
    "cap": _answer_cap,
    "terminal": _answer_terminal,
}
"""Functions that answer each kind of question."""


def _clauses_of_idempotent(question: Question) -> tuple[str, ...]:
    row = couchbase.idempotent_row(question.choice("service", SERVICES), question.text("op"))
    return (f"RFC 0049 Idempotent Operation List: {'not listed' if row is None else row.clause}",)


def _clauses_of_reason(question: Question) -> tuple[str, ...]:
    verdict = verdict_of(*_answered(question))
    return () if verdict is None else (verdict.clause,)


def _clauses_of_decide(question: Question) -> tuple[str, ...]:
    recorded, reaction = _decided(question)
    decider = decided_by(
        reaction.machine.last_reason,
        retries=reaction.retry is not None,
        was_consulted=recorded.was_asked,
        would_retry=recorded.would_retry,
        times_out=isinstance(reaction.error, errors.TimeoutException),
    )
    is_response = "reason" not in question and "service" in question
    return (
        *(_clauses_of_reason(question) if is_response else ()),
        DECISION_CLAUSES[decider],
        *((STRATEGY_CLAUSES[question.text("strategy")],) if decider is DecidedBy.STRATEGY else ()),
        *((CAPPING_CLAUSE,) if reaction.retry is not None and not reaction.retry.dispatches else ()),
    )


CLAUSES: Mapping[str, Clauses] = {
    "idempotent": _clauses_of_idempotent,
    "reason": _clauses_of_reason,
    "decide": _clauses_of_decide,
    "timeout": lambda _: ("decision C25",),
    "cap": lambda _: (CAPPING_CLAUSE,),
    "terminal": lambda _: ("RFC 0049 Fail Fast (Terminal Errors)",),
}
"""Functions that return the clauses on each kind of question."""
