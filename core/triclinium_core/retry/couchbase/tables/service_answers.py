"""Parser of an HTTP service's error response: its errors, its text, and whether the service sent it.

No input from a server or a proxy raises an exception here.

Source: SDK-RFC 0056, 0057 (the ``errors`` of a body), 0052 "Hard failures" (``error``), 0051; decision C22.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from triclinium_core.concealment import NO_SECRETS, Secrets
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.shown import TEXT_READ_MAX, beginning, one_line

CODE_MAX = 2**63 - 1
"""Maximum error code. Larger numbers are not error codes, but Python accepts integers of thousands of digits."""

CODES_REPORTED_MAX = 20
"""Maximum number of errors after the first whose codes a context keeps."""

DECODED_SIZE_BYTES_MAX = 4 * 1024 * 1024
"""Maximum size of a body that is decoded for its errors. A larger body counts as text."""

DECODED_OBJECTS_MAX = 16_384
"""Maximum number of objects in such a body, each at about a microsecond."""

DECODED_PARTS_MAX = 65_536
"""Maximum number of commas in such a body. They separate values, each at up to half a microsecond."""

TEXT_SIZE_BYTES_MAX = 64 * 1024
"""Maximum size of the beginning of a body that is kept as text. Messages show some hundred characters of it."""

TIMED_OUT = "timeout"
"""Value of ``status`` in a query or analytics body after a timeout of the statement."""

FAILED_STATUSES = frozenset({TIMED_OUT, "errors", "fatal", "failed", "aborted", "stopped", "closed"})
"""Values of ``status``, in lower case, in a query or analytics body of a statement that did not finish."""

COLLECTION_DOTS = 2
"""Number of dots in the path of a collection: bucket, scope, collection."""

_NUMBERED = (Service.QUERY, Service.ANALYTICS)
"""Services whose errors have numbers."""


@dataclass(frozen=True, slots=True)
class ServiceAnswer:
    """Facts in a response of an HTTP service."""

    service: Service
    operation: str
    http_status: int
    body: object
    """Body decoded from JSON; None if it is not JSON, is null, or cannot contain an error."""
    raw: str
    """Body as text, cut at ``TEXT_SIZE_BYTES_MAX``."""
    is_foreign: bool
    """Whether the body has no format of the service, for example a proxy's error page.

    Bodies of all services but management are JSON objects. A foreign body with the status of a success is a
    ``DecodingFailureException`` (decision D37).
    """
    message: str = ""
    """Full text of the first error."""
    code: int | None = None
    """Code of the first error."""
    cause: int | None = None
    """Code of the error that the first error gives as its reason."""
    more_codes: tuple[int, ...] = ()
    server_permits_retry: bool | None = None
    """Flag ``retry`` of the first error."""
    has_query_context: bool = False
    """Whether the request names a scope, so that a single name in its statement is a collection."""

    @property
    def failed_status(self) -> str | None:
        """``status`` of a query or analytics body in lower case, if it is in ``FAILED_STATUSES``; otherwise None."""
        if self.service not in _NUMBERED or not isinstance(self.body, Mapping):
            return None
        status = self.body.get("status")
        return status.lower() if isinstance(status, str) and status.lower() in FAILED_STATUSES else None

    @property
    def lists_errors(self) -> bool:
        """Whether the body has errors, in any form."""
        return isinstance(self.body, Mapping) and bool(self.body.get("errors"))

    @property
    def names_collection(self) -> bool:
        """Whether the keyspace of the first error is a collection, from its text or from the query context."""
        return self.has_query_context or _is_collection_path(self.message)

    @property
    def is_failure(self) -> bool:
        """Whether the response is not a success, whatever its HTTP status is."""
        if self.http_status >= 300 or self.is_foreign:
            return True
        if not isinstance(self.body, Mapping):
            return False
        if self.service in _NUMBERED:
            return self.lists_errors or self.failed_status is not None
        # SDK-RFC 0052 §Hard failures; views report failures in the same field.
        return self.service is not Service.MANAGEMENT and bool(self.body.get("error"))

    @property
    def error_text(self) -> str:
        """Error in the server's words, in one line; empty if the body has none or is not the server's."""
        return self.error_text_without(NO_SECRETS)

    def error_text_without(self, secrets: Secrets) -> str:
        """Return ``error_text``, with credentials that the server repeats concealed."""
        if self.is_foreign:
            return ""
        return _line(self.message if self.code is not None else "; ".join(_texts(self.body)) or self.raw, secrets)

    def body_start(self, secrets: Secrets = NO_SECRETS) -> str:
        """Return the beginning of a body that the service did not write, with repeated credentials concealed."""
        return _line(self.raw, secrets) if self.is_foreign else ""


def _line(text: str, secrets: Secrets) -> str:
    # Conceal secrets before the line is cut: the cut could leave a part of one. Its dots are for ``conceal``.
    return one_line(secrets.conceal(beginning(text, TEXT_READ_MAX)))


def read_answer(
    service: Service, http_status: int, body: bytes | str, operation: str = "", *, has_query_context: bool = False
) -> ServiceAnswer:
    """Return the facts in a response. A body that is not JSON counts as text, never as a mistake of the caller."""
    begun = body[:TEXT_SIZE_BYTES_MAX]
    raw = begun if isinstance(begun, str) else begun.decode("utf-8", "replace")
    # A successful response of the cluster manager contains no errors, and may be a large document.
    is_silent = service is Service.MANAGEMENT and http_status < 300
    decoded = None if is_silent else _decode(body)
    foreign = _is_foreign(service, decoded, raw, is_cut=len(body) > len(begun))
    listed = decoded.get("errors") if isinstance(decoded, Mapping) and service in _NUMBERED else None
    first = listed[0] if isinstance(listed, list) and listed else None
    if not isinstance(listed, list) or not isinstance(first, Mapping):
        return ServiceAnswer(service, operation, http_status, decoded, raw, foreign)
    message, reason, permits = first.get("msg"), first.get("reason"), first.get("retry")
    codes = [_code(error) for error in listed[1 : CODES_REPORTED_MAX + 1]]
    return ServiceAnswer(
        service,
        operation,
        http_status,
        decoded,
        raw,
        foreign,
        message if isinstance(message, str) else "",
        _code(first),
        _code(reason),
        tuple(code for code in codes if code is not None),
        permits if isinstance(permits, bool) else None,
        has_query_context,
    )


def _is_collection_path(text: str) -> bool:
    """Return whether the keyspace in a text has three parts. A dot between backticks is not a separator.

    A bucket name with two dots and without backticks counts as a collection (decision D74).
    """
    text = text[:TEXT_READ_MAX].partition(" - cause")[0]
    start = text.find("default:")
    # With a namespace, the word that begins there is the keyspace; without one, any word may be the keyspace.
    words = text.split() if start < 0 else text[start:].split()[:1]
    unquoted = ("".join(word.strip(".,;:'\"()").split("`")[::2]) for word in words)
    return any(each.count(".") >= COLLECTION_DOTS for each in unquoted)


def _is_foreign(service: Service, decoded: object, raw: str, *, is_cut: bool) -> bool:
    if service is Service.MANAGEMENT:
        # The cluster manager sends JSON of any type, plain text, or an empty body.
        return raw.lstrip().startswith("<")
    return not isinstance(decoded, Mapping) and (is_cut or bool(raw.strip()))


def _code(error: object) -> int | None:
    code = error.get("code") if isinstance(error, Mapping) else None
    return code if type(code) is int and abs(code) <= CODE_MAX else None


def _texts(body: object) -> Iterator[str]:
    """Yield the error texts of a body whose errors have no numbers."""
    if isinstance(body, str):
        yield body
    if not isinstance(body, Mapping):
        return
    for key in ("error", "reason", "message"):
        if isinstance(body.get(key), str):
            yield body[key]
    # The cluster manager sends errors of form fields, and the permissions that a user lacks.
    for key in ("errors", "permissions"):
        listed = body.get(key)
        if isinstance(listed, Mapping):
            yield from (f"{name}: {text}" for name, text in listed.items() if isinstance(text, str))
        elif isinstance(listed, list):
            yield from (text for text in listed if isinstance(text, str))


def _decode(body: bytes | str) -> object:
    if len(body) > DECODED_SIZE_BYTES_MAX or _count(body, "{") > DECODED_OBJECTS_MAX:
        return None
    if _count(body, ",") > DECODED_PARTS_MAX:
        return None
    try:
        decoded: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return decoded


def _count(body: bytes | str, sign: str) -> int:
    return body.count(sign) if isinstance(body, str) else body.count(sign.encode())
