"""Functions that create the exceptions with which requests fail, each with a message of one line and a context.

Source: SDK-RFC 0058; decisions C25, C28, C31, C32, D37.
"""

from __future__ import annotations

from dataclasses import replace

from triclinium_core import errors
from triclinium_core.error_context import ErrorContext, http_answer, kv_answer, last_answer, story
from triclinium_core.retry.couchbase.events import KvResponse, Load
from triclinium_core.retry.couchbase.tables.error_map import ErrorMapEntry
from triclinium_core.retry.couchbase.tables.kv_status import FailedPath, status_name
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.couchbase.tables.service_responses import ServiceVerdict

HINTS: dict[RetryReason, str] = {
    RetryReason.AUTHENTICATION_ERROR: "check the user name and password, or the token, and that the node belongs to your cluster",
    RetryReason.NODE_NOT_AVAILABLE: "check the address, and that the node is running",
    RetryReason.SERVICE_NOT_AVAILABLE: "check which services the nodes of the cluster run",
    RetryReason.TLS_ERROR: "check that the server's certificate is trusted and that this port speaks TLS",
    RetryReason.BUCKET_ACCESS_ERROR: "check that the bucket exists and that the user may open it",
    RetryReason.SCOPE_NOT_FOUND: "check the scope's name, or create it",
    RetryReason.COLLECTION_NOT_FOUND: "check the collection's name, or create it",
    RetryReason.KV_LOCKED: "retry after the lock is released or expires",
    RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT: "it may have been applied; read the document before writing again",
}
"""Next step for the user after a failure with each reason. A reason without an entry has no known next step."""

LOOK_AT_THE_SERVICE = "it may have been applied; check the data before sending it again"
"""Next step after a request to an HTTP service, if it may have been applied and is not idempotent."""

SAFE_TO_REPEAT = "it changed nothing, so it may be sent again"
"""Next step after an idempotent request without a response."""

HINTS_OF_ANSWERS: dict[type[errors.CouchbaseException], str] = {
    errors.DecodingFailureException: "the status is not valid for this operation; a write may have been applied, so read the document "
    "before writing again",
    errors.DurabilityAmbiguousException: "it may have been applied, or may be applied later; read the document before writing again",
    errors.DurabilityImpossibleException: "nothing was written; too few nodes have a copy of the document, so bring nodes back "
    "or use a lower durability level",
    errors.DurabilityLevelNotAvailableException: "nothing was written; use another durability level",
}
"""Next step after a final key-value response, by exception. The message of any other exception has no next step."""

NO_REASON_GIVEN = "rows may be missing; check the log of the service on that node"
"""Next step if a statement ended early and the response lists no error."""

NOT_FOLLOWED = "redirects are not followed, to send credentials to no other host; connect to nodes of the cluster"
FOREIGN_SERVER = "check which server listens at this address"
"""Next step after a response that was probably sent by a proxy or another server."""

HINTS_OF_SERVICES: dict[type[errors.CouchbaseException], str] = {
    errors.ParsingFailureException: "check the statement at the position that the server reports",
    errors.PlanningFailureException: "check the names in the statement; if no index fits, create one, such as a primary index",
    errors.PreparedStatementFailureException: "the plan of the statement is stale; run the statement ad hoc",
    errors.IndexNotFoundException: "check the names of the index and its keyspace, or create it",
    errors.IndexNotReadyException: "retry after the service has assigned the index to nodes",
    errors.DmlFailureException: "some documents may have been changed, others not",
    errors.JobQueueFullException: "send fewer statements at the same time",
    errors.RateLimitedException: "send fewer or smaller requests",
    errors.QuotaLimitedException: "drop unused items, or ask the administrator for a higher limit",
    errors.AuthenticationFailureException: "check the user name, the password and the roles of the user",
    errors.BucketNotFoundException: "check the bucket's name, or create it",
    errors.ScopeNotFoundException: "check the scope's name, or create it",
    errors.CollectionNotFoundException: "check the collection's name, or create it",
    errors.BucketNotFlushableException: "enable flush in the settings of the bucket",
    errors.FeatureNotAvailableException: "this server version does not have the feature",
    errors.InvalidArgumentException: "correct the argument that the server names",
    errors.TemporaryFailureException: "retry later; the service is starting, rebalancing or overloaded",
    errors.InternalServerFailureException: "check the log of the service on that node",
    errors.IndexExistsException: "use another name, drop the index first, or pass ignore_if_exists",
    errors.IndexFailureException: "check that the index service runs and the index is online",
    errors.CasMismatchException: "another client changed the document; read it again",
    errors.DocumentNotFoundException: "check the key; the documents before it may have been changed",
    errors.DocumentExistsException: "use another key, or UPSERT; the documents before it may have been changed",
    errors.CompilationFailureException: "check the names in the statement",
    errors.DatasetNotFoundException: "check the collection's name, or create it for analytics",
    errors.DatasetExistsException: "use another name, or drop it first",
    errors.DataverseNotFoundException: "check the scope's name, or create it for analytics",
    errors.DataverseExistsException: "use another name, or drop it first",
    errors.LinkNotFoundException: "check the link's name, or create it",
    errors.LinkExistsException: "use another name, or drop the link first",
    errors.ViewNotFoundException: "check the names of the design document and of its view, and whether it is published",
    errors.BucketExistsException: "use another name, change its settings with update_bucket, or drop it first",
    errors.ScopeExistsException: "use another name, or use the existing scope",
    errors.CollectionExistsException: "use another name, or use the existing collection",
    errors.UserNotFoundException: "check the user's name and domain",
    errors.GroupNotFoundException: "check the group's name, or create it",
    errors.UnambiguousTimeoutException: "use a longer timeout, or request less",
    errors.DecodingFailureException: FOREIGN_SERVER,
    errors.AmbiguousTimeoutException: LOOK_AT_THE_SERVICE,
}
"""Next step after a final response of an HTTP service with each exception."""


HINTS_OF_STATUSES: dict[int, str] = {
    401: HINTS_OF_SERVICES[errors.AuthenticationFailureException],
    403: HINTS_OF_SERVICES[errors.AuthenticationFailureException],
    429: HINTS_OF_SERVICES[errors.RateLimitedException],
    503: HINTS_OF_SERVICES[errors.TemporaryFailureException],
}
"""Next step after a timeout, by the HTTP status of the newest response to the retried request."""


def subject(context: ErrorContext) -> str:
    """Return the text with which every message begins: the operation and its key, index or view."""
    view = None if context.view is None else f"{context.design_document}/{context.view}"
    about = next((name for name in (context.key, context.index, view) if name is not None), None)
    return context.operation if about is None else f"{context.operation} {about!r}"


def kv_response_fields(response: KvResponse, entry: ErrorMapEntry | None) -> dict[str, object]:
    """Return the context fields for a key-value response. ``entry`` is the node's error map entry for its status."""
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


def service_response_fields(http_status: int, verdict: ServiceVerdict) -> dict[str, object]:
    """Return the context fields for a response of an HTTP service."""
    return {
        "http_status": http_status,
        "error_code": verdict.code,
        "error_message": verdict.text or None,
        "more_error_codes": verdict.more_codes,
        "server_permits_retry": verdict.server_permits_retry,
        "body_start": verdict.body_start or None,
    }


def loaded(context: ErrorContext, load: Load) -> ErrorContext:
    """Return a copy of ``context`` with the load of a connection."""
    return replace(context, in_flight=load.in_flight, waiting=load.waiting)


def timeout(context: ErrorContext, *, ambiguous: bool, last_reason: RetryReason | None) -> errors.CouchbaseException:
    """Return the exception for a deadline that has passed (decision C25)."""
    after = f"{context.timeout:g} s" if context.timeout is not None else "its deadline"
    newest = last_answer(context)
    node = f", last sent to {context.last_dispatched_to}" if context.last_dispatched_to is not None else ""
    newest_text = f"; {newest}{node}" if newest is not None else ""
    if ambiguous:
        hint = _hint(RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT, context)
        return errors.AmbiguousTimeoutException(
            f"{subject(context)}: no response within {after}{newest_text}{hint}{story(context)}", context
        )
    why = f"; {last_reason.meaning}" if last_reason is not None else ""
    hint = _hint(last_reason, context) or _hint_of_status(context)
    return errors.UnambiguousTimeoutException(
        f"{subject(context)}: not done within {after} and certainly not applied{why}{newest_text}{hint}{story(context)}",
        context,
    )


def refused(
    error: type[errors.CouchbaseException] | None,
    reason: RetryReason,
    context: ErrorContext,
    cause: BaseException | None = None,
    because: str | None = None,
) -> errors.CouchbaseException:
    """Return the exception for a request whose retry a strategy or the orchestrator refused.

    Args:
        error: exception class that the strategy returned or that the response prescribes; None for
            RequestCanceledException.
        cause: exception during the strategy's decision (decision C28); None without one.
        because: text in which the strategy explains its refusal; None without one.
    """
    context = replace(context, refused_reason=str(reason))
    hint = _hint(reason, context)
    if cause is not None:
        text = f"{subject(context)}: the retry strategy's decision about {reason} failed with {type(cause).__name__}"
    else:
        text = f"{subject(context)}: {reason.meaning} ({reason}); the request is not retried"
        if because is not None:
            text += f"; the retry strategy reports: {because}"
        if context.http_status is not None:
            text += f"; {_response_text(context)}"
            hint = hint or _hint_of_service(error, context)
        text += hint
    # Decision C32: without a class from the strategy or from a response, the request raises RequestCanceledException.
    exception = (error or errors.RequestCanceledException)(text + story(context), context)
    exception.__cause__ = cause
    return exception


def rows_lost(context: ErrorContext, reason: RetryReason) -> errors.CouchbaseException:
    """Return the exception for a request whose connection was lost after the caller had received some rows."""
    context = replace(context, refused_reason=str(reason))
    next_step = "send the request again" if context.idempotent else LOOK_AT_THE_SERVICE
    text = f"{subject(context)}: the connection was lost while rows were read, so rows are missing: {next_step}"
    return errors.RequestCanceledException(text + story(context), context)


def not_begun(context: ErrorContext, cause: BaseException | None) -> errors.CouchbaseException:
    """Return the exception for a request that was not sent, because its strategy issued no token.

    Args:
        cause: exception that the strategy raised (decision C28); None if the strategy refused a token.
    """
    why = "refused" if cause is None else f"failed with {type(cause).__name__}"
    text = f"{subject(context)}: it was not sent, because the retry strategy {why} when the client requested a token"
    exception = errors.RequestCanceledException(text + story(context), context)
    exception.__cause__ = cause
    return exception


def surfaced(
    error: type[errors.CouchbaseException], context: ErrorContext, failed_path: FailedPath | None = None
) -> errors.CouchbaseException:
    """Return the exception for a request that ended with a final response."""
    if context.http_status is not None:
        if error is errors.TimeoutException:
            # RFC 0058, 13 and 14: a request that the service stopped may have changed data, unless it is idempotent.
            error = errors.UnambiguousTimeoutException if context.idempotent else errors.AmbiguousTimeoutException
        text = f"{subject(context)}: {_response_text(context)}{_hint_of_service(error, context)}"
        return error(text + story(context), context)
    # The failed path explains the failure better than the texts of the status of the complete operation.
    answer = kv_answer(context, None if failed_path is None else str(failed_path))
    hint = f": {HINTS_OF_ANSWERS[error]}" if error in HINTS_OF_ANSWERS else ""
    return error(f"{subject(context)}: the server responded with {answer}{hint}{story(context)}", context)


def at_path(context: ErrorContext, failed: FailedPath) -> errors.CouchbaseException:
    """Return the exception for one path that failed in a successful lookup."""
    context = replace(context, path=failed.path, path_index=failed.index, path_status=failed.status)
    return failed.error(f"{subject(context)}: {failed}", context)


def _response_text(context: ErrorContext) -> str:
    """Return a description of the newest HTTP response, as a part of a sentence."""
    return f"{context.last_dispatched_to or 'the server'} responded with {http_answer(context)}"


def _hint_of_service(error: type[errors.CouchbaseException] | None, context: ErrorContext) -> str:
    step = None if error is None else HINTS_OF_SERVICES.get(error)
    if error is errors.DecodingFailureException and context.body_start is None:
        step = NO_REASON_GIVEN
    if error is errors.CouchbaseException:
        step = _hint_of_unknown(context)
    steps = [step] if step is not None else []
    if error is errors.DecodingFailureException and not context.idempotent:
        steps.append(LOOK_AT_THE_SERVICE)
    if context.server_permits_retry:
        steps.append("the server permits another attempt")
    return f": {'; '.join(steps)}" if steps else ""


def _hint_of_unknown(context: ErrorContext) -> str | None:
    """Return the next step after a response that is in no table; None if the service itself sent the response."""
    status = context.http_status or 0
    if status // 100 == 3:
        return NOT_FOLLOWED
    return FOREIGN_SERVER if context.body_start is not None or status in _OF_PROXIES else None


_OF_PROXIES = frozenset({502, 504})
"""HTTP statuses with which a proxy reports a failure of the server behind it (RFC 9110, 15.6.3 and 15.6.5)."""


def _hint_of_status(context: ErrorContext) -> str:
    step = HINTS_OF_STATUSES.get(context.http_status or 0)
    return "" if step is None else f": {step}"


def _hint(reason: RetryReason | None, context: ErrorContext) -> str:
    if reason is None or reason not in HINTS:
        return ""
    if reason is not RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT:
        return f": {HINTS[reason]}"
    # The requests that RFC 0049 lists as idempotent change nothing, so the user need not check the data.
    if context.idempotent:
        return f": {SAFE_TO_REPEAT}"
    return f": {HINTS[reason] if context.service == Service.KV else LOOK_AT_THE_SERVICE}"
