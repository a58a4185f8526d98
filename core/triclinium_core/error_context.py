"""Facts about a failed request that every error carries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from triclinium_core.shown import beginning, json_text, short_repr, total_repr

TEXT_MAX = 1_000
"""Maximum length of a text in a context as JSON. A line of the log has several of them."""

LISTED_MAX = 50
"""Maximum number of entries of a list in a context as JSON."""

CONNECTIONS_SHOWN = 4
"""Of how many connections, and of how much else that was waited for, a message tells; the context has all."""

STANDINGS: Mapping[str, str] = {
    "pending": "waiting to be sent",
    "in_flight": "in flight",
    "consulting": "asking its retry strategy",
    "waiting": "waiting to be retried",
    "expiring": "not to be sent again in time",
}
"""Where a request stood when its caller gave it up, in words, by ``ErrorContext.state``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorContext:
    """A frozen record of one request, as far as it had come when it failed.

    Every field has a default, so that a layer states only what it knows: ``key`` to ``path_status`` are about KV,
    ``http_status`` to ``view`` about the HTTP services. Equal records compare equal, and a record survives pickling and
    ``to_json``.

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
    """Opaque of the newest attempt; an opaque names one attempt on one connection."""
    status: int | None = None
    """KV status of the newest response; an HTTP service has ``http_status``."""
    status_name: str | None = None
    """Name of that status, from our table or the node's error map."""
    status_text: str | None = None
    """Description from the node's error map."""
    server_context: str | None = None
    """``error.context`` of the response body, where the server sent one (XERROR)."""
    server_ref: str | None = None
    """``error.ref`` of the response body: the number to look for in the server's log."""
    server_duration: float | None = None
    """Seconds for which the server worked on the newest response, by its own clock, where it told."""
    path: str | None = None
    """Of a sub-document operation: the path that failed."""
    path_index: int | None = None
    """Its place among the specs of the operation, counted from 0."""
    path_status: int | None = None
    """The KV status of that path alone."""
    http_status: int | None = None
    """HTTP status of the newest answer of an HTTP service."""
    error_code: int | None = None
    """Code of the first error of that answer, where the service numbers its errors."""
    error_message: str | None = None
    """Text of the first error, on one line and cut where it is long."""
    more_error_codes: tuple[int, ...] = ()
    """Codes of the errors after the first."""
    server_permits_retry: bool | None = None
    """Whether the query service said of the first error that the statement may be sent again; None where it did not say."""
    body_start: str | None = None
    """How the body begins where it is not what the service answers in, such as the page of a proxy."""
    http_method: str | None = None
    http_path: str | None = None
    """Path of the request, without the query string."""
    client_context_id: str | None = None
    """What the logs of the server call the request."""
    statement: str | None = None
    """The statement, cut to ``STATEMENT_SHOWN_MAX`` characters. Its literals may hold data."""
    parameters: tuple[str, ...] = ()
    """Names of the statement's parameters, positional ones as ``$1``, ``$2``; their values are told nowhere."""
    index: str | None = None
    """Of a search: the index; of an operation on indexes: the one that it is about."""
    design_document: str | None = None
    view: str | None = None
    last_dispatched_to: str | None = None
    last_dispatched_from: str | None = None
    retry_attempts: int = 0
    retry_reasons: frozenset[str] = field(default_factory=frozenset)
    """Names of all reasons met so far; each is a ``RetryReason``."""
    refused_reason: str | None = None
    """The reason for which the last retry was refused, if that ended the request."""
    elapsed: float | None = None
    """Seconds from submission to failure."""
    timeout: float | None = None
    """Seconds that the request was given."""
    in_flight: int | None = None
    """Requests without an answer on the connection, when the request ran out of time on it or was turned away."""
    waiting: int | None = None
    """How many operations waited for that connection at once, at most, while there were any."""
    last_dispatch_error: str | None = None
    """Why the newest dispatch failed, how the connection of the newest attempt was lost, or what is being waited for."""
    state: str | None = None
    """Where the request stood when its caller gave it up: the value of a ``RequestState``, such as ``in_flight``."""
    connections: tuple[str, ...] = ()
    """How each connection stood that was waited for, where the request was about connections."""
    awaited: tuple[str, ...] = ()
    """What else was not yet as the call waited for it: an index that is built, a node on which a bucket warms up."""

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
                value = None  # JSON has no such number, and endless is what a missing timeout says too
            if value is not None and value not in ("", []):
                known[spec.name] = value
        return json_text(known)


def standing(context: ErrorContext) -> str | None:
    """Return in words where a request stood when it was given up, and with which node; None where that is not known."""
    where = STANDINGS.get(context.state or "")
    is_with_node = context.state == "in_flight" and context.last_dispatched_to is not None
    return f"{where} to {context.last_dispatched_to}" if is_with_node else where


def http_answer(context: ErrorContext) -> str:
    """Return the newest answer of an HTTP service: its error code or HTTP status, and its text."""
    code, text = context.error_code, context.error_message
    what = f"HTTP status {context.http_status}" if code is None else f"error {code}"
    if context.body_start is not None:
        return f"{what} with a body that is not the service's: {context.body_start!r}"
    more = ", ".join(map(str, context.more_error_codes))
    texts = [*([text] if text else []), *([f"and the errors {more}"] if more else [])]
    return what + (f" ({'; '.join(texts)})" if texts else "")


def kv_answer(context: ErrorContext, text: str | None = None) -> str:
    """Return the newest answer of key-value: its status, and its texts or ``text`` instead of them."""
    texts = [each for each in (context.status_text, context.server_context) if each] if text is None else [text]
    detail = f" ({'; '.join(texts)})" if texts else ""
    return f"{context.status_name or 'an unknown status'} [0x{context.status or 0:02x}]{detail}"


def last_answer(context: ErrorContext) -> str | None:
    """Return the newest answer to a request, as part of a sentence; None if there was none.

    It does not name the node: the newest attempt may have gone to another one.
    """
    if context.http_status is not None:
        return f"last answer: {http_answer(context)}"
    return f"last answer: {kv_answer(context)}" if context.status is not None else None


def story(context: ErrorContext) -> str:
    """Return in brackets what a request went through, as every message ends; nothing where there is nothing to tell."""
    parts = []
    if context.retry_attempts:
        # A machine that took over a request that was retried elsewhere does not know those reasons.
        # The refused reason led to no retry, unless it is the only one.
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
