"""Parser of an HTTP service's response: its errors, its text, and whether the service or a proxy sent it.

The parser never raises, whatever a server or a proxy sends.

Source: SDK-RFC 0056, 0057 (the ``errors`` of a body), 0052 "SearchMetaData" (``error``), 0051; decision C22.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from triclinium_core.concealment import NO_SECRETS, Secrets
from triclinium_core.json_depth import shallow_text
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.shown import TEXT_READ_MAX, beginning, one_line

CODE_MAX = 2**63 - 1
"""Maximum error code. The parser ignores a larger number, which may have thousands of digits in Python."""

CODES_REPORTED_MAX = 20
"""Maximum number of errors after the first one whose codes are kept."""

DECODED_SIZE_BYTES_MAX = 4 * 1024 * 1024
"""Maximum size of a body that the parser decodes from JSON. It treats a larger body as text."""

DECODED_OBJECTS_MAX = 16_384
"""Maximum number of objects in a body that the parser decodes. Each object takes about a microsecond."""

DECODED_PARTS_MAX = 65_536
"""Maximum number of commas in a body that the parser decodes. Commas separate values, each of which takes up to half a
microsecond."""

TEXT_SIZE_BYTES_MAX = 64 * 1024
"""Maximum size of the text that the parser keeps from the beginning of a body. Messages show a few hundred
characters."""

TIMED_OUT = "timeout"
"""Value of ``status`` in the body of a query or analytics response if the statement timed out."""

FAILED_STATUSES = frozenset({TIMED_OUT, "errors", "fatal", "failed", "aborted", "stopped", "closed"})
"""Values of ``status``, in lower case, in the body of a query or analytics response if the statement did not finish."""

COLLECTION_DOTS = 2
"""Minimum number of dots in the path of a collection: they separate bucket, scope and collection."""

_NUMBERED = (Service.QUERY, Service.ANALYTICS)
"""Services whose errors have codes."""


@dataclass(frozen=True, slots=True)
class ServiceAnswer:
    """Facts that a response of an HTTP service contains."""

    service: Service
    operation: str
    http_status: int
    body: object
    """Body decoded from JSON; None if the body is not JSON, is null, is too large, or cannot contain an error."""
    raw: str
    """Text of the first ``TEXT_SIZE_BYTES_MAX`` bytes or characters of the body."""
    is_foreign: bool
    """Whether the body is not in a format of the service, such as the error page of a proxy.

    All services except management send JSON objects. A request whose response has the HTTP status of a success, but a
    foreign body, fails with a ``DecodingFailureException`` (decision D37).
    """
    message: str = ""
    """Complete text of the first listed error; empty without one."""
    code: int | None = None
    """Code of the first error; None without one."""
    cause: int | None = None
    """Code of another error that the first error gives as its reason; None without one."""
    more_codes: tuple[int, ...] = ()
    server_permits_retry: bool | None = None
    """Value of ``retry`` in the first error; None without one."""
    has_query_context: bool = False
    """Whether the request names a scope, so that a name without dots in its statement is a collection. False without a
    listed error."""

    @property
    def failed_status(self) -> str | None:
        """Value of ``status`` in a query or analytics body, in lower case; None if it is not in ``FAILED_STATUSES``."""
        if self.service not in _NUMBERED or not isinstance(self.body, Mapping):
            return None
        status = self.body.get("status")
        return status.lower() if isinstance(status, str) and status.lower() in FAILED_STATUSES else None

    @property
    def lists_errors(self) -> bool:
        """Whether the body has an ``errors`` member that is not empty, of any type."""
        return isinstance(self.body, Mapping) and bool(self.body.get("errors"))

    @property
    def names_collection(self) -> bool:
        """Whether the keyspace in the first error is a collection, according to its text or the query context."""
        return self.has_query_context or _is_collection_path(self.message)

    @property
    def is_failure(self) -> bool:
        """Whether the response reports a failure. A failure may have the HTTP status of a success."""
        if self.http_status >= 300 or self.is_foreign:
            return True
        if not isinstance(self.body, Mapping):
            return False
        if self.service in _NUMBERED:
            return self.lists_errors or self.failed_status is not None
        # SDK-RFC 0052 §SearchMetaData: search reports a failure in ``error``. Views use the same field.
        return self.service is not Service.MANAGEMENT and bool(self.body.get("error"))

    @property
    def error_text(self) -> str:
        """Error text of the server, on one line; empty if the body is foreign."""
        return self.error_text_without(NO_SECRETS)

    def error_text_without(self, secrets: Secrets) -> str:
        """Return ``error_text`` with ``***`` in place of credentials that the server repeats."""
        if self.is_foreign:
            return ""
        return _line(self.message if self.code is not None else "; ".join(_texts(self.body)) or self.raw, secrets)

    def body_start(self, secrets: Secrets = NO_SECRETS) -> str:
        """Return the beginning of a foreign body, with ``***`` in place of credentials; empty for any other body."""
        return _line(self.raw, secrets) if self.is_foreign else ""


def _line(text: str, secrets: Secrets) -> str:
    # Conceal secrets before ``one_line`` cuts the text, because a cut could leave a part of a secret. ``beginning``
    # marks its own cut with dots, which ``conceal`` recognises.
    return one_line(secrets.conceal(beginning(text, TEXT_READ_MAX)))


def read_answer(
    service: Service, http_status: int, body: bytes | str, operation: str = "", *, has_query_context: bool = False
) -> ServiceAnswer:
    """Return the facts in a response. Treat a body that is not JSON as text."""
    begun = body[:TEXT_SIZE_BYTES_MAX]
    raw = begun if isinstance(begun, str) else begun.decode("utf-8", "replace")
    # Do not decode a successful response of the cluster manager: it contains no errors, and may be a large document.
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
    """Return whether a text names a keyspace with three parts. A dot between backticks does not separate parts."""
    text = text[:TEXT_READ_MAX].partition(" - cause")[0]
    start = text.find("default:")
    # If the text has the namespace ``default:``, the keyspace begins there. Otherwise any word may be the keyspace.
    words = text.split() if start < 0 else text[start:].split()[:1]
    unquoted = ("".join(word.strip(".,;:'\"()").split("`")[::2]) for word in words)
    return any(each.count(".") >= COLLECTION_DOTS for each in unquoted)


def _is_foreign(service: Service, decoded: object, raw: str, *, is_cut: bool) -> bool:
    if service is Service.MANAGEMENT:
        # The cluster manager may send JSON of any type, plain text or an empty body, but never HTML or XML.
        return raw.lstrip().startswith("<")
    return not isinstance(decoded, Mapping) and (is_cut or bool(raw.strip()))


def _code(error: object) -> int | None:
    code = error.get("code") if isinstance(error, Mapping) else None
    return code if type(code) is int and abs(code) <= CODE_MAX else None


def _texts(body: object) -> Iterator[str]:
    """Yield the error texts in a body whose errors have no codes."""
    if isinstance(body, str):
        yield body
    if not isinstance(body, Mapping):
        return
    for key in ("error", "reason", "message"):
        if isinstance(body.get(key), str):
            yield body[key]
    # The cluster manager sends an error for each invalid form field, or the permissions that a user lacks.
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
        decoded: object = json.loads(shallow_text(body))
    except (ValueError, RecursionError):
        return None
    return decoded


def _count(body: bytes | str, sign: str) -> int:
    return body.count(sign) if isinstance(body, str) else body.count(sign.encode())
