"""Responses, and values of any type, that the tests of the services share."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from triclinium_core.services.service_request import HttpResponse

NONSENSE: tuple[bytes, ...] = (
    b"",
    b"null",
    b"7",
    b'"text"',
    b"[null]",
    b"[[]]",
    b"{",
    b"\xff\xfe",
    b"<html>proxy</html>",
    b"[" * 100_000,
    b'{"a":' * 100_000,
)
"""Bodies that no request accepts as an object or a list. The empty list is missing because it is a valid list."""


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def answered(body: object) -> HttpResponse:
    """Return a response whose body is this value as JSON."""
    return HttpResponse(200, json.dumps(body).encode())


def anything(value: object) -> Any:
    """Return the value with the type Any, so that the type checker accepts it as any argument."""
    return value
