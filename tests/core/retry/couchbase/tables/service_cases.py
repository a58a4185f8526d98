"""Responses of the HTTP services that match the rows of the error tables."""

from __future__ import annotations

import json
from collections.abc import Iterator

from hypothesis import strategies as st

from triclinium_core import errors
from triclinium_core.errors import CouchbaseException
from triclinium_core.retry.couchbase import Service, ServiceResponse
from triclinium_core.retry.couchbase.tables.error_rows import ErrorRow
from triclinium_core.retry.couchbase.tables.service_errors import SERVICE_ERRORS

ROWS: list[tuple[Service, ErrorRow]] = [(service, row) for service, table in SERVICE_ERRORS.items() for row in table]
"""Each row of the tables, with its service."""


def error_class(name: str) -> type[CouchbaseException]:
    """Return the exception class whose name without the suffix is ``name``."""
    found: type[CouchbaseException] = getattr(errors, f"{name}Exception")
    return found


def body_of(code: object, message: object = "", **more: object) -> str:
    """Return a response body of query or analytics whose first error has ``code``."""
    return json.dumps({"errors": [{"code": code, "msg": message, **more}]})


def answers_to(service: Service, row: ErrorRow) -> Iterator[ServiceResponse]:
    """Yield responses that match the row, for each of its operations with one or two of its codes, if any."""
    text = row.body or " it ".join(row.words) or ("default:a.b.c" if row.names_collection else "")
    codes = {row.codes[len(row.codes) // 2], row.codes[-1]} if row.codes else {None}
    for code in sorted(codes, key=str):
        if row.status:
            body = json.dumps({"status": row.status})
        elif code is None:
            body = text if service is Service.MANAGEMENT else json.dumps({"error": text} if text else {})
        else:
            body = body_of(code, text, **({} if row.cause is None else {"reason": {"code": row.cause}}))
        for operation in row.operations or ("",):
            yield ServiceResponse(service, row.http_status or 400, body, operation)


keys = st.sampled_from(["errors", "error", "reason", "code", "msg", "retry", "status", "message", "permissions"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
numbered = st.builds(
    lambda errors, more: json.dumps({"errors": errors, **more}),
    st.lists(st.fixed_dictionaries({"code": json_values, "msg": json_values, "reason": json_values}), max_size=3),
    st.dictionaries(keys, json_values, max_size=3).map(lambda more: {k: v for k, v in more.items() if k != "errors"}),
)
bodies = json_values.map(json.dumps) | numbered | st.text() | st.binary()
"""Hypothesis strategy for bodies of a service, a proxy or an unknown server, from valid errors to random bytes."""
