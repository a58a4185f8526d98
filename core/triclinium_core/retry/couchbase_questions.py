"""Questions about Couchbase: what each asks, the fields that it has beside its ``ask``, and what answers it.

::

    idempotent  service, op, readonly?, method?
                -> idempotent
    reason      service, op, and for kv: status ("0x86"), error_map_entry?; for the others: http_status, body
                -> reason, null where the strategy is not asked
    decide      strategy, reason, idempotent, attempt, elapsed_ms, timeout_ms, error_map_entry?
                -> action "retry" with delay_ms and dispatches, or action "fail" with error
    cap         requested_delay_ms, elapsed_ms, timeout_ms
                -> delay_ms, dispatches
    terminal    events, op (see ``terminal_script``)
                -> reason, null for none

Source: SDK-RFC 0049, SDK-RFC 0013.
"""

from __future__ import annotations

from collections.abc import Mapping

from triclinium_core.errors import AmbiguousTimeoutException, RequestCanceledException, UnambiguousTimeoutException
from triclinium_core.retry import kv_responses, service_responses
from triclinium_core.retry.backoff import cap
from triclinium_core.retry.error_map import ErrorMapEntry, MalformedErrorMap, parse_entry
from triclinium_core.retry.explain import LongestDelays
from triclinium_core.retry.explanation import milliseconds
from triclinium_core.retry.idempotency import is_idempotent
from triclinium_core.retry.kv_status import KV_STATUSES, ErrorClass
from triclinium_core.retry.orchestrator import Refuse, Retry, TimeOut, decide
from triclinium_core.retry.question_fields import (
    Answer,
    Ask,
    MalformedQuestion,
    parse_status,
    require_choice,
    require_count,
    require_each,
    require_flag,
    require_http_status,
    require_number,
    require_text,
)
from triclinium_core.retry.reasons import RetryReason
from triclinium_core.retry.request import RetryRequest
from triclinium_core.retry.service import Service
from triclinium_core.retry.strategy import (
    BestEffortRetryStrategy,
    ErrorMapRetryStrategy,
    FailFastRetryStrategy,
    FastFailOnTerminalErrorRetryStrategy,
    RetryStrategy,
)
from triclinium_core.retry.terminal_script import terminal_reason

STRATEGIES: dict[str, RetryStrategy] = {
    "best_effort": BestEffortRetryStrategy(),
    "fast_fail_on_terminal_error": FastFailOnTerminalErrorRetryStrategy(),
    "fail_fast": FailFastRetryStrategy(),
    "error_map": ErrorMapRetryStrategy(),
}
"""The shipped strategies by the names that questions use; they keep no state."""

SERVICES: dict[str, Service] = {str(service): service for service in Service}
REASONS: dict[str, RetryReason] = {str(reason): reason for reason in RetryReason}

_RANDOMNESS = LongestDelays()


def _answer_idempotent(question: Mapping[str, object]) -> Answer:
    service = require_choice(question, "service", SERVICES)
    operation = require_text(question, "op")
    readonly = require_flag(question, "readonly") if "readonly" in question else False
    method = require_text(question, "method") if "method" in question else ""
    return {"idempotent": is_idempotent(service, operation, readonly=readonly, method=method)}


def _answer_reason(question: Mapping[str, object]) -> Answer:
    service = require_choice(question, "service", SERVICES)
    operation = require_text(question, "op")
    if service is Service.KV:
        status = parse_status(require_text(question, "status"), "status")
        reason = kv_responses.classify(operation, status, _entry(question)).reason
    else:
        http_status, body = require_http_status(question, "http_status"), require_text(question, "body")
        reason = service_responses.classify(service, http_status, body).reason
    return {"reason": _name(reason)}


def _answer_decide(question: Mapping[str, object]) -> Answer:
    strategy = require_choice(question, "strategy", STRATEGIES)
    reason = require_choice(question, "reason", REASONS)
    attempt, elapsed_ms = require_count(question, "attempt"), require_number(question, "elapsed_ms")
    request = RetryRequest(
        service=Service.KV,
        operation="",
        idempotent=require_flag(question, "idempotent"),
        rng=_RANDOMNESS,
        retry_attempts=attempt,
        age=elapsed_ms / 1000,
        remaining=(require_number(question, "timeout_ms") - elapsed_ms) / 1000,
        since_first_failure=elapsed_ms / 1000,
        attempts_this_status=attempt,
        error_map_entry=_entry(question),
    )
    verdict = decide(request, reason, strategy)
    if isinstance(verdict, Retry):
        return {"action": "retry", "delay_ms": milliseconds(verdict.delay), "dispatches": verdict.dispatches}
    return {"action": "fail", "error": _error_of_verdict(verdict, request, reason).__name__}


def _error_of_verdict(verdict: Refuse | TimeOut, request: RetryRequest, reason: RetryReason) -> ErrorClass:
    if isinstance(verdict, Refuse):
        return verdict.error or error_of_reason(reason, request.error_map_entry)
    # Decision C25: only this reason leaves an attempt unanswered, and only a repeatable one is then harmless.
    if reason is RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT and not request.idempotent:
        return AmbiguousTimeoutException
    return UnambiguousTimeoutException


def error_of_reason(reason: RetryReason, entry: ErrorMapEntry | None = None) -> ErrorClass:
    """Return what a request fails with when a retry for ``reason`` is refused and the strategy names no error.

    It is the exception of the answer that the reason was born of. Where answers with different exceptions give the same
    reason, it is that of the first line in the list, since the reason alone does not tell them apart.

    Args:
        entry: what the error map says of the status, for KV_ERROR_MAP_RETRY_INDICATED.

    Source: decisions C31 and C32.
    """
    if reason is RetryReason.KV_ERROR_MAP_RETRY_INDICATED and entry is not None:
        return kv_responses.error_of_entry(entry)
    for status, line in kv_responses.RETRYABLE_STATUSES.items():
        if line.reason is reason:
            return KV_STATUSES[status].error or RequestCanceledException
    for table in (service_responses.RETRYABLE_ERROR_CODES, service_responses.RETRYABLE_HTTP_STATUSES):
        for code in table.values():
            if code.reason is reason:
                return code.error
    return RequestCanceledException


def _answer_cap(question: Mapping[str, object]) -> Answer:
    requested_ms = require_number(question, "requested_delay_ms")
    remaining_ms = require_number(question, "timeout_ms") - require_number(question, "elapsed_ms")
    capped = cap(requested_ms / 1000, remaining_ms / 1000)
    return {"delay_ms": milliseconds(capped.delay), "dispatches": capped.dispatches}


def _answer_terminal(question: Mapping[str, object]) -> Answer:
    events = require_each(question, "events", "strings", require_text)
    return {"reason": _name(terminal_reason(events, require_text(question, "op")))}


def _entry(question: Mapping[str, object]) -> ErrorMapEntry | None:
    row = question.get("error_map_entry")
    if row is None:
        return None
    try:
        return parse_entry(row, "error_map_entry")
    except MalformedErrorMap as error:
        raise MalformedQuestion(str(error)) from error


def _name(reason: RetryReason | None) -> str | None:
    return None if reason is None else str(reason)


ASKS: Mapping[str, Ask] = {
    "idempotent": _answer_idempotent,
    "reason": _answer_reason,
    "decide": _answer_decide,
    "cap": _answer_cap,
    "terminal": _answer_terminal,
}
"""All that may be asked."""
