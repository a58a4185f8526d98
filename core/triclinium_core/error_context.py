"""Context of errors: facts about a failed request."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from triclinium_core.shown import beginning, json_text, short_repr, total_repr

TEXT_MAX = 1_000
"""Maximum length of a string in the JSON of a context. A log line has several such strings."""

LISTED_MAX = 50
"""Maximum number of entries of a list in the JSON of a context."""

CONNECTIONS_SHOWN = 4
"""Maximum number of connections, and of other awaited conditions, that a message lists. The context lists all."""

STANDINGS: Mapping[str, str] = {
    "pending": "waiting to be sent",
    "in_flight": "in flight",
    "consulting": "waiting for its retry strategy",
    "waiting": "waiting to be retried",
    "expiring": "without time for another attempt",
}
"""Description of each value of ``ErrorContext.state``, the state in which the request was abandoned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorContext:
    """Facts about one request at the time of its failure.

    Every field has a default, so that each layer sets only the fields for which it has a value. The fields from ``key``
    to ``path_status`` are for requests to the key-value service, those from ``http_status`` to ``view`` for requests to
    HTTP services. A field whose value is unknown or does not apply has its default, usually empty or None. Contexts
    with equal fields are equal. A context can be pickled, and ``to_json`` converts it to JSON.

    Source: SDK-RFC 0058 "User Surface Area"; SDK-RFC 0049 "Request Annotation".
    """

    service: str = "kv"
    operation: str = ""
    idempotent: bool | None = None
    bucket: str | None = None
    scope: str | None = None
    collection: str | None = None
    key: str | None = None
    key_pseudonym: str | None = None
    """Pseudonym of ``key`` on the client's decision tape; None without a tape that has pseudonyms."""
    opaque: int | None = None
    """Opaque of the newest attempt. An opaque identifies one attempt on one connection."""
    status: int | None = None
    """Key-value status of the newest response. A response of an HTTP service sets ``http_status`` instead."""
    status_name: str | None = None
    """Name of ``status``, from the client's table or the node's error map."""
    status_text: str | None = None
    """Description of ``status`` from the node's error map."""
    server_context: str | None = None
    """``error.context`` of the response body, if the server sent one (XERROR)."""
    server_ref: str | None = None
    """``error.ref`` of the response body: the reference to search for in the server's log."""
    server_duration: float | None = None
    """Seconds that the server needed for the newest response, measured and reported by the server."""
    path: str | None = None
    """Path that failed in a sub-document operation."""
    path_index: int | None = None
    """Index of ``path`` among the specs of the operation, counted from 0."""
    path_status: int | None = None
    """Key-value status of ``path``. ``status`` is that of the complete operation."""
    http_status: int | None = None
    """HTTP status of the newest response of an HTTP service."""
    error_code: int | None = None
    """Code of the first error in the newest response, if the service numbers its errors."""
    error_message: str | None = None
    """Text of the first error in the newest response, on one line and cut if it is long."""
    more_error_codes: tuple[int, ...] = ()
    """Codes of the errors after the first one in the newest response."""
    server_permits_retry: bool | None = None
    """Whether the query service permits a retry after the first error; None if its response does not state that."""
    body_start: str | None = None
    """Beginning of a response body in an unexpected format, such as an HTML page that a proxy sent."""
    http_method: str | None = None
    http_path: str | None = None
    """Path of the request, without the query string."""
    client_context_id: str | None = None
    """Id of the request in the server's logs."""
    statement: str | None = None
    """Statement of the request, cut to ``STATEMENT_SHOWN_MAX`` characters. Its literals may contain user data."""
    parameters: tuple[str, ...] = ()
    """Names of the statement's parameters; positional ones are ``$1``, ``$2``. The context never has their values."""
    index: str | None = None
    """Index that the request searches or manages."""
    design_document: str | None = None
    view: str | None = None
    last_dispatched_to: str | None = None
    last_dispatched_from: str | None = None
    retry_attempts: int = 0
    retry_reasons: frozenset[str] = field(default_factory=frozenset)
    """Names of the ``RetryReason`` members for which the request was retried, and the reason for the newest failure."""
    refused_reason: str | None = None
    """Name of the ``RetryReason`` for which a retry was refused, if this refusal ended the request."""
    elapsed: float | None = None
    """Seconds from submission to failure."""
    timeout: float | None = None
    """Timeout of the request in seconds."""
    in_flight: int | None = None
    """Number of requests without a response on the request's connection, when the request timed out or was refused."""
    waiting: int | None = None
    """Largest number of operations in the queue of the request's connection since the queue was last empty."""
    last_dispatch_error: str | None = None
    """Reason why the last dispatch failed or the newest attempt lost its connection, or what the request waits for."""
    state: str | None = None
    """State in which the request was abandoned: the value of a ``RetryState``, such as ``in_flight``."""
    connections: tuple[str, ...] = ()
    """State of each awaited connection, if the request waited for connections."""
    awaited: tuple[str, ...] = ()
    """Other conditions for which the call still waited, such as an index that a node is building, or a bucket that is
    warming up."""

    @total_repr
    def __repr__(self) -> str:
        """Return all fields in at most ``MESSAGE_MAX`` characters. Cut long strings and collections."""
        values = ", ".join(f"{spec.name}={short_repr(getattr(self, spec.name))}" for spec in fields(self))
        return f"{type(self).__name__}({values})"

    def to_json(self) -> str:
        """Return the fields as one line of JSON, with keys in the order of their declaration.

        Omit a field whose value is empty, not finite or None. Write sets as sorted lists. Cut strings to ``TEXT_MAX``
        characters, and lists to ``LISTED_MAX`` entries.
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
                value = None  # JSON has no infinity or NaN, so omit the field.
            if value is not None and value not in ("", []):
                known[spec.name] = value
        return json_text(known)


def standing(context: ErrorContext) -> str | None:
    """Return a description of the state in which a request was abandoned, or None if the state is unknown.

    The description names the node if the request was in flight.
    """
    where = STANDINGS.get(context.state or "")
    is_with_node = context.state == "in_flight" and context.last_dispatched_to is not None
    return f"{where} to {context.last_dispatched_to}" if is_with_node else where


def http_answer(context: ErrorContext) -> str:
    """Return a description of the newest HTTP response: its error code or HTTP status, and its errors or body."""
    code, text = context.error_code, context.error_message
    what = f"HTTP status {context.http_status}" if code is None else f"error {code}"
    if context.body_start is not None:
        return f"{what} with a body in an unexpected format: {context.body_start!r}"
    more = ", ".join(map(str, context.more_error_codes))
    texts = [*([text] if text else []), *([f"and the errors {more}"] if more else [])]
    return what + (f" ({'; '.join(texts)})" if texts else "")


def kv_answer(context: ErrorContext, text: str | None = None) -> str:
    """Return a description of the newest key-value response: its status, and ``text`` or else the node's texts."""
    texts = [each for each in (context.status_text, context.server_context) if each] if text is None else [text]
    detail = f" ({'; '.join(texts)})" if texts else ""
    return f"{context.status_name or 'an unknown status'} [0x{context.status or 0:02x}]{detail}"


def last_answer(context: ErrorContext) -> str | None:
    """Return a description of the newest response, as part of a sentence, or None if there was no response.

    Do not name the node of the newest attempt: another node may have sent the newest response.
    """
    if context.http_status is not None:
        return f"last response: {http_answer(context)}"
    return f"last response: {kv_answer(context)}" if context.status is not None else None


def story(context: ErrorContext) -> str:
    """Return the history of a request in brackets, for the end of a message, or an empty string without any history.

    The history has the number of retries and their reasons, the load of the connection, the last dispatch error, the
    awaited connections and the other awaited conditions.
    """
    parts = []
    if context.retry_attempts:
        # ``retry_reasons`` includes the refused reason: leave it out unless it is the only reason. The reasons may be
        # unknown, because a machine that takes over a request gets only the number of its earlier retries.
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
