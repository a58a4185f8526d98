"""Tables of the documentation in Markdown, generated from the tables of the core so that they stay consistent."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping

from docs._ext.machines import MACHINES
from docs._ext.markdown import markdown
from docs._ext.options import OPTION_SOURCES, OPTION_TABLES
from docs._ext.smithy import aws_retry_numbers
from triclinium_core import errors
from triclinium_core.contract.couchbase import TimerKind
from triclinium_core.errors import CouchbaseException
from triclinium_core.kv.operation import document_operations
from triclinium_core.kv.operation.catalogue import OPERATIONS
from triclinium_core.kv.operation.document_operations import DocumentOperation
from triclinium_core.retry.backoff import CONTROLLED_DELAY_MAX, CONTROLLED_DELAYS, controlled, exponential
from triclinium_core.retry.calls import http_rules
from triclinium_core.retry.combined.reason_infos import REASON_INFOS, DelaySource
from triclinium_core.retry.couchbase import strategy
from triclinium_core.retry.couchbase.failures import HINTS
from triclinium_core.retry.couchbase.tables import (
    error_map,
    idempotency,
    kv_responses,
    kv_status,
    management_errors,
    reasons,
    service_errors as errors_of_services,
    service_responses,
)
from triclinium_core.retry.couchbase.tables.error_rows import ErrorRow
from triclinium_core.retry.couchbase.tables.idempotency import ANY_OPERATION, Idempotency
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service_errors import SERVICE_ERRORS
from triclinium_core.retry.couchbase.tables.service_responses import RetryableCode, classify
from triclinium_core.retry.smithy import numbers
from triclinium_core.runtime.lifecycle.stages import NEXT_STAGES, Stage

RFC_NUMBER = re.compile(r" \(RFC 0058, \d+( to \d+)?\)")
"""Pattern of an exception's number in its docstring. The RFC forbids showing these numbers to users."""

YES = "yes"
NO = ""


def retry_reasons() -> str:
    """Return a table of all reasons, with the flags, the meaning and the next step of each."""
    return markdown(
        ("reason", "any request may be retried", "always retried", "what happened", "next step"),
        (
            (
                f"`{reason}`",
                YES if reason.allows_non_idempotent_retry else NO,
                YES if reason.always_retry else NO,
                reason.meaning,
                HINTS.get(reason, ""),
            )
            for reason in RetryReason
        ),
    )


def terminal_reasons() -> str:
    """Return a table of the reasons for which the default strategy fails immediately, in the order of its checks."""
    return markdown(
        ("reason", "fails immediately with"),
        ((f"`{reason}`", _error(error)) for reason, error in strategy.TERMINAL_ERRORS.items()),
    )


def reason_infos() -> str:
    """Return a table of the error info that a token strategy gets for each reason."""
    return markdown(
        ("reason", "retry-safe", "throttling", "timeout", "`retry_after`", "because"),
        (
            (
                f"`{reason}`",
                YES if row.is_retry_safe else NO,
                YES if row.is_throttling_error else NO,
                YES if row.is_timeout_error else NO,
                NO if row.retry_after is DelaySource.NONE else row.retry_after.value,
                row.because,
            )
            for reason, row in REASON_INFOS.items()
        ),
    )


def retryable_statuses() -> str:
    """Return a table of the KV statuses that are retried."""
    return markdown(
        (
            "status",
            "reason",
            "only for",
            "not for",
            "when the strategy refuses",
            "clause of RFC 0049, Response Code Retry List",
        ),
        (
            (
                f"`0x{line.status:02x}` {line.status.name}",
                f"`{line.reason}`",
                _names(sorted(line.only_of)),
                _names(sorted(line.excluded)),
                "always retried" if line.reason.always_retry else _error(_error_of_refusal(line)),
                line.clause,
            )
            for line in kv_responses.RETRYABLE_STATUSES.values()
        ),
    )


def _error_of_refusal(line: kv_responses.RetryableStatus) -> type[CouchbaseException] | None:
    row = kv_status.KV_STATUSES[line.status]
    return row.of_operation.get(min(line.only_of), row.error) if line.only_of else row.error


def kv_statuses() -> str:
    """Return a table of the known statuses, with the exception of each."""
    return markdown(
        ("status", "name", "raises", "but for", "answers only"),
        (
            (
                f"`0x{row:02x}`",
                row.name,
                _failure(row.error),
                _by_error(row.of_operation),
                _names(sorted(row.only_of)),
            )
            for row in kv_status.KV_STATUSES.values()
        ),
    )


def statuses_left_to_the_map() -> str:
    """Return a table of the named statuses that the error map decides, with the exception of each without an entry."""
    return markdown(
        ("status", "name", "without an entry, raises"),
        (
            (f"`0x{status:02x}`", kv_status.status_name(status) or "", _error(error))
            for status, error in kv_status.ERRORS_WITHOUT_A_MAP.items()
        ),
    )


def attribute_errors() -> str:
    """Return a table of the exceptions for unknown statuses, by the first matching attribute of the status's entry."""
    return markdown(
        ("attribute", "raises"),
        (
            *((f"`{attribute}`", _error(error)) for attribute, error in kv_responses.ERRORS_BY_ATTRIBUTE),
            ("none of these", _error(CouchbaseException)),
        ),
    )


def service_codes() -> str:
    """Return a table of the responses of HTTP services that cause a retry, with the reasons."""
    lines = [
        *service_responses.RETRYABLE_ERROR_CODES.values(),
        *service_responses.RETRYABLE_HTTP_STATUSES.values(),
    ]
    codes = service_responses.RETRYABLE_ERROR_CODES
    return markdown(
        ("service", "answer", "reason", "when the strategy refuses", "clause of RFC 0049, Response Code Retry List"),
        (
            (
                str(line.service),
                f"error {line.code}" if (line.service, line.code) in codes else f"HTTP {line.code}",
                f"`{line.reason}`",
                "always retried" if line.reason.always_retry else _error(_error_of_line(line)),
                line.clause,
            )
            for line in lines
        ),
    )


def _error_of_line(line: RetryableCode) -> type[CouchbaseException] | None:
    """Return the exception of a response to which the line applies."""
    if (line.service, line.code) in service_responses.RETRYABLE_ERROR_CODES:
        body = {"errors": [{"code": line.code, "msg": line.message_contains}]}
        return classify(line.service, 500, json.dumps(body)).error
    return classify(line.service, line.code, json.dumps({"reason": "missing"} if line.code == 404 else {})).error


def service_errors() -> str:
    """Return a table of the exceptions for responses of HTTP services, in the order of the core's checks."""
    return markdown(
        ("service", "operation", "answer", "raises", "clause"),
        (
            (str(service), _names(row.operations), _answer(row), _error(row.error), row.clause)
            for service, table in SERVICE_ERRORS.items()
            for row in table
        ),
    )


def _answer(row: ErrorRow) -> str:
    """Return a description of the responses that a row matches."""
    parts = [f"HTTP {row.http_status}"] if row.http_status is not None else []
    if row.codes:
        parts.append(f"error {row.codes[0]}" + (f" to {row.codes[-1]}" if len(row.codes) > 1 else ""))
    elif row.codes is not None:
        parts.append("no error code")
    if row.cause is not None:
        parts.append(f"its reason is error {row.cause}")
    if row.status:
        parts.append(f"status `{row.status}`")
    if row.names_collection:
        parts.append("the text or the query context names a collection")
    parts += [f'"{" … ".join(word.strip() for word in row.words)}"'] if row.words else []
    parts += [f'nothing but "{row.body}"'] if row.body else []
    return ", ".join(parts)


def idempotent_operations() -> str:
    """Return a table of the idempotent operations, which may be sent again even after a request was in flight."""
    return markdown(
        ("service", "operation", "idempotent", "clause of RFC 0049, Idempotent Operation List"),
        (
            (
                str(row.service),
                "every one" if row.operation == ANY_OPERATION else f"`{row.operation}`",
                "always" if row.idempotency is Idempotency.ALWAYS else row.idempotency.value,
                row.clause,
            )
            for row in idempotency.IDEMPOTENT_OPERATIONS
        ),
    )


def operation_commands() -> str:
    """Return a table of the operations on documents, with the opcode of each."""
    return markdown(
        ("operation", "command"),
        (
            (f"`{operation.name}`", f"`Opcode.{operation.opcode.name}`")
            for operation in OPERATIONS
            if issubclass(operation, DocumentOperation)
        ),
    )


class _NoJitter:
    def random(self) -> float:
        return 0.0


def backoffs() -> str:
    """Return a table of the first delays of the two backoff calculators, in milliseconds."""
    attempts = range(12)
    best_effort, rng = exponential(), _NoJitter()
    assert controlled(len(CONTROLLED_DELAYS)) == CONTROLLED_DELAY_MAX
    return markdown(
        ("retries already done", *map(str, attempts)),
        (
            ("best effort, ms", *(f"{best_effort(attempt, rng) * 1000:g}" for attempt in attempts)),
            ("always retried, ms", *(f"{controlled(attempt) * 1000:g}" for attempt in attempts)),
        ),
    )


def timers() -> str:
    """Return a table of the timers of a client."""
    return markdown(("timer", "what is due"), ((f"`{kind.name}`", kind.value) for kind in TimerKind))


def stages() -> str:
    """Return a table of the stages of operations and requests, each with the stages that may follow it."""
    return markdown(
        ("stage", "may be followed by"),
        ((stage.value, ", ".join(each.value for each in Stage if each in NEXT_STAGES[stage])) for stage in Stage),
    )


def error_tree() -> str:
    """Return the exceptions as nested lists, each with the first line of its docstring."""
    return "\n".join(_branch(CouchbaseException, 0))


def _branch(error: type[CouchbaseException], depth: int) -> Iterable[str]:
    yield f"{'  ' * depth}- {{py:exc}}`~triclinium.errors.{error.__name__}`: {_first_line(error)}"
    for child in error.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from _branch(child, depth + 1)


def _first_line(documented: object) -> str:
    return RFC_NUMBER.sub("", (inspect.getdoc(documented) or "").partition("\n")[0])


def _error(error: type[CouchbaseException] | None) -> str:
    return f"{{py:exc}}`~triclinium.errors.{error.__name__}`" if error is not None else ""


def _failure(error: type[CouchbaseException] | None) -> str:
    return _error(error) or "no failure"


def _by_error(of_operation: Mapping[str, type[CouchbaseException] | None]) -> str:
    by_error: dict[type[CouchbaseException] | None, list[str]] = {}
    for operation, error in of_operation.items():
        by_error.setdefault(error, []).append(operation)
    return "; ".join(f"{_names(operations)}: {_failure(error)}" for error, operations in by_error.items())


def _names(operations: Iterable[str]) -> str:
    return ", ".join(f"`{operation}`" for operation in operations)


def state_table(machine: str) -> str:
    """Return a machine's table: every state and input with the next state."""
    rows: list[tuple[str, str, str]] = []
    for state, row in MACHINES[machine].transitions.items():
        if set(row.values()) == {state}:
            rows.append((f"`{state}`", "every one", "stays"))
            continue
        for symbol, following in row.items():
            rows.append((f"`{state}`", ", ".join(f"`{part}`" for part in symbol), _target(state, following)))
    return markdown(("state", "event", "leads to"), rows)


def _target(state: str, following: str) -> str:
    return "stays" if following == state else f"`{following}`"


def http_statuses() -> str:
    """Return a table of the HTTP statuses that are retried, with their reasons."""
    return markdown(
        ("status", "what it says", "throttling", "timeout"),
        (
            (f"{status}", rule.reason, YES if rule.is_throttling else NO, YES if rule.is_timeout else NO)
            for status, rule in http_rules.RETRIED_STATUSES.items()
        ),
    )


TABLES: Mapping[str, Callable[[], str]] = {
    **OPTION_TABLES,
    "attribute_errors": attribute_errors,
    "aws_retry_numbers": aws_retry_numbers,
    "backoffs": backoffs,
    "error_tree": error_tree,
    "http_statuses": http_statuses,
    "idempotent_operations": idempotent_operations,
    "kv_statuses": kv_statuses,
    "operation_commands": operation_commands,
    "reason_infos": reason_infos,
    "retry_reasons": retry_reasons,
    "retryable_statuses": retryable_statuses,
    "service_codes": service_codes,
    "service_errors": service_errors,
    "stages": stages,
    "statuses_left_to_the_map": statuses_left_to_the_map,
    "terminal_reasons": terminal_reasons,
    "timers": timers,
}
"""Function that generates each table of the directive ``{generated}``, by the table's name."""

SOURCES = (
    errors,
    error_map,
    http_rules,
    idempotency,
    kv_responses,
    kv_status,
    management_errors,
    errors_of_services,
    numbers,
    reasons,
    document_operations,
    service_responses,
    strategy,
    *OPTION_SOURCES,
)
"""Modules whose changes affect the tables."""
