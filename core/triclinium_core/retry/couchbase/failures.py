"""The exceptions that end a request: class by rule, message by one line, context filled in.

Source: SDK-RFC 0058; decisions C25, C28, C31, C32.
"""

from __future__ import annotations

from dataclasses import replace

from triclinium_core.error_context import ErrorContext, story
from triclinium_core.errors import (
    AmbiguousTimeoutException,
    CouchbaseException,
    DecodingFailureException,
    DurabilityAmbiguousException,
    DurabilityImpossibleException,
    DurabilityLevelNotAvailableException,
    RequestCanceledException,
    UnambiguousTimeoutException,
)
from triclinium_core.retry.couchbase.events import KvResponse, Load
from triclinium_core.retry.couchbase.tables.error_map import ErrorMapEntry
from triclinium_core.retry.couchbase.tables.kv_status import FailedPath, status_name
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service_responses import ServiceVerdict

HINTS: dict[RetryReason, str] = {
    RetryReason.AUTHENTICATION_ERROR: "check user name and password, or the token",
    RetryReason.TLS_ERROR: "check that the server's certificate is trusted and that this port speaks TLS",
    RetryReason.BUCKET_ACCESS_ERROR: "check that the bucket exists and that the user may open it",
    RetryReason.SCOPE_NOT_FOUND: "check the scope's name, or create it",
    RetryReason.COLLECTION_NOT_FOUND: "check the collection's name, or create it",
    RetryReason.KV_LOCKED: "retry when the lock has been released, or has expired",
    RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT: "it may have been applied; read the document before writing again",
}
"""The next step, where we know one."""

HINTS_OF_ANSWERS: dict[type[CouchbaseException], str] = {
    DecodingFailureException: "this operation has no such answer; a write may have been applied, so read the document "
    "before writing again",
    DurabilityAmbiguousException: "it may have been applied, or may still be; read the document before writing again",
    DurabilityImpossibleException: "nothing was written; too few nodes have a copy of the document, so bring them back "
    "or ask for less",
    DurabilityLevelNotAvailableException: "nothing was written; ask for another durability level",
}
"""The next step after a final response, where it does not speak for itself."""


def subject(context: ErrorContext) -> str:
    """Return operation and key, as every message begins."""
    return f"{context.operation} {context.key!r}" if context.key is not None else context.operation


def told_by_node(response: KvResponse, entry: ErrorMapEntry | None) -> dict[str, object]:
    """Return the fields of a context that a KV response fills, and what the error map of its node says of the status."""
    path = response.failed_path
    return {
        "status": response.status,
        "status_name": status_name(response.status) or (entry.name if entry is not None else None),
        "status_text": entry.description if entry is not None else None,
        "server_context": response.server_context,
        "server_ref": response.server_ref,
        "server_duration": response.server_duration,
        **({} if path is None else {"path": path.path, "path_index": path.index, "path_status": path.status}),
    }


def told_by_service(http_status: int, verdict: ServiceVerdict) -> dict[str, object]:
    """Return the fields of a context that the response of an HTTP service fills."""
    return {"http_status": http_status, "error_code": verdict.code, "error_message": verdict.text or None}


def loaded(context: ErrorContext, load: Load) -> ErrorContext:
    """Return the context with what the connection had to do."""
    return replace(context, in_flight=load.in_flight, waiting=load.waiting)


def timeout(context: ErrorContext, *, ambiguous: bool, last_reason: RetryReason | None) -> CouchbaseException:
    """Return the exception for a deadline that has passed (decision C25)."""
    after = f"{context.timeout:g} s" if context.timeout is not None else "its deadline"
    if ambiguous:
        return AmbiguousTimeoutException(
            f"{subject(context)}: no answer within {after}; it may have been applied, so read the document before "
            f"writing again{story(context)}",
            context,
        )
    why = f"; {last_reason.meaning}" if last_reason is not None else ""
    hint = _hint(last_reason, context)
    return UnambiguousTimeoutException(
        f"{subject(context)}: not done within {after} and certainly not applied{why}{hint}{story(context)}", context
    )


def refused(
    error: type[CouchbaseException] | None,
    reason: RetryReason,
    context: ErrorContext,
    cause: BaseException | None = None,
) -> CouchbaseException:
    """Return the exception for a retry that a strategy, or the orchestrator, refused.

    Args:
        error: the class that the strategy asked for, or that the response stands for; None for RequestCanceled.
        cause: what the strategy raised, if it raised (decision C28).
    """
    context = replace(context, refused_reason=str(reason))
    hint = _hint(reason, context)
    if cause is not None:
        text = f"{subject(context)}: the retry strategy failed with {type(cause).__name__} when asked about {reason}"
    else:
        text = f"{subject(context)}: {reason.meaning} ({reason}) and is not retried{hint}"
    # Decision C32: the strategy may have named an exception; else only a reason born of a response has one.
    exception = (error or RequestCanceledException)(text + story(context), context)
    exception.__cause__ = cause
    return exception


def surfaced(
    error: type[CouchbaseException], context: ErrorContext, failed_path: FailedPath | None = None
) -> CouchbaseException:
    """Return the exception that a final response stands for."""
    answer = f"HTTP status {context.http_status}"
    if context.error_code is not None:
        answer = f"error {context.error_code}"
    if context.status is not None:
        answer = f"{context.status_name or 'an unknown status'} [0x{context.status:02x}]"
    texts = [text for text in (context.status_text, context.server_context, context.error_message) if text]
    if failed_path is not None:
        # That the body tells which path it was, as the map says, is what the body has told.
        texts = [str(failed_path)]
    detail = f" ({'; '.join(texts)})" if texts else ""
    hint = f": {HINTS_OF_ANSWERS[error]}" if error in HINTS_OF_ANSWERS else ""
    return error(f"{subject(context)}: the server answered {answer}{detail}{hint}{story(context)}", context)


def at_path(context: ErrorContext, failed: FailedPath) -> CouchbaseException:
    """Return the exception for one path of a lookup that was answered."""
    context = replace(context, path=failed.path, path_index=failed.index, path_status=failed.status)
    return failed.error(f"{subject(context)}: {failed}", context)


def _hint(reason: RetryReason | None, context: ErrorContext) -> str:
    # What may be repeated at any time changes nothing, so there is nothing to look after.
    harmless = reason is RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT and context.idempotent
    return f": {HINTS[reason]}" if reason in HINTS and reason is not None and not harmless else ""
