"""Context of errors: facts about a failed request."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from triclinium_core.shown import beginning, json_text, short_repr, total_repr

TEXT_MAX = 1_000
"""Maximum length of a text in a context as JSON. A log line has several of them."""

LISTED_MAX = 50
"""Maximum number of entries of a list in a context as JSON."""

CONNECTIONS_SHOWN = 4
"""Maximum number of connections, and of other awaited conditions, in a message. The context has all of them."""

STANDINGS: Mapping[str, str] = {
    "pending": "waiting to be sent",
    "in_flight": "in flight",
    "consulting": "waiting for its retry strategy",
    "waiting": "waiting to be retried",
    "expiring": "without time for another attempt",
}
"""Description of the state in which a request was abandoned, by ``ErrorContext.state``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorContext:
    """Frozen record of one request at the time of its failure.

    Every field has a default, so that each layer sets only the fields that it knows. ``key`` to ``path_status`` are for
    KV, ``http_status`` to ``view`` for the HTTP services. Records with equal fields are equal. A record can be pickled
    and converted with ``to_json``.

    Source: SDK-RFC 0058 "User Surface Area"; SDK-RFC 0049 "Request Annotation".
    """

    service: str = "kv"
    operation: str = ""
    idempotent: bool | None = None
    bucket: str | None = None
    scope: str | None = None
    collection: str | None = None
    key: str | None = None
    opaque: int | None = None
    """Opaque of the newest attempt. An opaque identifies one attempt on one connection."""
    status: int | None = None
    """KV status of the newest response. HTTP services have ``http_status``."""
    status_name: str | None = None
    """Name of that status, from the client's table or the node's error map."""
    status_text: str | None = None
    """Description from the node's error map."""
    server_context: str | None = None
    """``error.context`` of the response body, if the server sent one (XERROR)."""
    server_ref: str | None = None
    """``error.ref`` of the response body: the number to search for in the server's log."""
    server_duration: float | None = None
    """Duration of the server's work on the newest response in seconds, by the server's clock, if it reported one."""
    path: str | None = None
    """Path of a sub-document operation that failed."""
    path_index: int | None = None
    """Index of that path among the specs of the operation, counted from 0."""
    path_status: int | None = None
    """KV status of that path alone."""
    http_status: int | None = None
    """HTTP status of the newest response of an HTTP service."""
    error_code: int | None = None
    """Code of the first error in that response, if the service numbers its errors."""
    error_message: str | None = None
    """Text of the first error on one line, cut if it is long."""
    more_error_codes: tuple[int, ...] = ()
    """Codes of the errors after the first."""
    server_permits_retry: bool | None = None
    """Whether the query service permits a retry after the first error; None if it did not state that."""
    body_start: str | None = None
    """Beginning of a body that is not in the format of the service, such as the page of a proxy."""
    http_method: str | None = None
    http_path: str | None = None
    """Path of the request, without the query string."""
    client_context_id: str | None = None
    """Name of the request in the server's logs."""
    statement: str | None = None
    """The statement, cut to ``STATEMENT_SHOWN_MAX`` characters. Its literals may contain data."""
    parameters: tuple[str, ...] = ()
    """Names of the statement's parameters, positional ones as ``$1``, ``$2``. Their values are never shown."""
    index: str | None = None
    """Index of a search, or of an operation on indexes."""
    design_document: str | None = None
    view: str | None = None
    last_dispatched_to: str | None = None
    last_dispatched_from: str | None = None
    retry_attempts: int = 0
    retry_reasons: frozenset[str] = field(default_factory=frozenset)
    """Names of all retry reasons so far, each a ``RetryReason``."""
    refused_reason: str | None = None
    """Reason for which the last retry was refused, if that ended the request."""
    elapsed: float | None = None
    """Seconds from submission to failure."""
    timeout: float | None = None
    """Timeout of the request in seconds."""
    in_flight: int | None = None
    """Number of unanswered requests on the connection when the request timed out or was rejected there."""
    waiting: int | None = None
    """Largest number of operations that waited for that connection at the same time."""
    last_dispatch_error: str | None = None
    """Reason for the last failed dispatch, for the loss of the newest attempt's connection, or for the current wait."""
    state: str | None = None
    """State in which the request was abandoned: the value of a ``RequestState``, such as ``in_flight``."""
    connections: tuple[str, ...] = ()
    """State of each awaited connection, if the request waited for connections."""
    awaited: tuple[str, ...] = ()
    """Other conditions that the call still waited for, such as an index that is built or a bucket that warms up."""

    @total_repr
    def __repr__(self) -> str:
        """Return all fields in at most ``MESSAGE_MAX`` characters. Long texts and collections are cut."""
        values = ", ".join(f"{spec.name}={short_repr(getattr(self, spec.name))}" for spec in fields(self))
        return f"{type(self).__name__}({values})"

    def to_json(self) -> str:
        """Return the known, finite fields as one line of JSON, keys in declaration order, sets as sorted lists.

        Texts have at most ``TEXT_MAX`` characters and lists ``LISTED_MAX`` entries.
        """
        known: dict[str, object] = {}
        for spec in fields(self):
            value: object = getattr(self, spec.name)
            if isinstance(value, frozenset):
                value = sorted(value)
            if isinstance(value, str):
                value = beginning(value, TEXT_MAX)
            if isinstance(value, list | tuple):
                value = [beginning(each, TEXT_MAX) if isinstance(each, str) else each for each in value[:LISTED_MAX]]
            if isinstance(value, float) and not math.isfinite(value):
                value = None  # JSON has no such number, and a missing timeout also means no limit
            if value is not None and value not in ("", []):
                known[spec.name] = value
        return json_text(known)


def standing(context: ErrorContext) -> str | None:
    """Return a description of the state in which a request was abandoned, with its node. None for an unknown state."""
    where = STANDINGS.get(context.state or "")
    is_with_node = context.state == "in_flight" and context.last_dispatched_to is not None
    return f"{where} to {context.last_dispatched_to}" if is_with_node else where


def http_answer(context: ErrorContext) -> str:
    """Return the newest response of an HTTP service: its error code or HTTP status, and its text."""
    code, text = context.error_code, context.error_message
    what = f"HTTP status {context.http_status}" if code is None else f"error {code}"
    if context.body_start is not None:
        return f"{what} with a body in an unexpected format: {context.body_start!r}"
    more = ", ".join(map(str, context.more_error_codes))
    texts = [*([text] if text else []), *([f"and the errors {more}"] if more else [])]
    return what + (f" ({'; '.join(texts)})" if texts else "")


def kv_answer(context: ErrorContext, text: str | None = None) -> str:
    """Return the newest response of key-value: its status, and its texts or ``text`` instead of them."""
    texts = [each for each in (context.status_text, context.server_context) if each] if text is None else [text]
    detail = f" ({'; '.join(texts)})" if texts else ""
    return f"{context.status_name or 'an unknown status'} [0x{context.status or 0:02x}]{detail}"


def last_answer(context: ErrorContext) -> str | None:
    """Return the newest response to a request, as part of a sentence, or None without a response.

    Do not name the node: the newest attempt may have gone to another one.
    """
    if context.http_status is not None:
        return f"last response: {http_answer(context)}"
    return f"last response: {kv_answer(context)}" if context.status is not None else None


def story(context: ErrorContext) -> str:
    """Return the history of a request in brackets, for the end of a message. Empty without any history."""
    parts = []
    if context.retry_attempts:
        # A machine that takes over a request does not know the reasons of its earlier retries.
        # The refused reason caused no retry, unless it is the only one.
        led = context.retry_reasons - {context.refused_reason} or context.retry_reasons
        reasons = f": {', '.join(sorted(led))}" if led else ""
        times = "once" if context.retry_attempts == 1 else f"{context.retry_attempts} times"
        parts.append(f"retried {times}{reasons}")
    if context.in_flight is not None and context.in_flight > 1:
        parts.append(f"{context.in_flight} requests were unanswered on the connection")
    if context.waiting is not None and context.waiting > 1:
        parts.append(f"{context.waiting} operations waited for the connection")
    if context.last_dispatch_error:
        parts.append(f"last dispatch error: {context.last_dispatch_error}")
    for waited_for in (context.connections, context.awaited):
        more = len(waited_for) - CONNECTIONS_SHOWN
        parts += [*waited_for[:CONNECTIONS_SHOWN], *((f"and {more} more",) if more > 0 else ())]
    return f" [{'; '.join(parts)}]" if parts else ""
