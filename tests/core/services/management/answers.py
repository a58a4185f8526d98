"""Invalid responses and arguments of invalid types, which the tests of all management requests share."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from triclinium_core.services.management.management_request import ManagementRequest
from triclinium_core.services.service_request import HttpResponse, MalformedAnswer

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


def refuses_nonsense(request: ManagementRequest) -> None:
    """Check that a request raises ``MalformedAnswer`` for an invalid response."""
    for body in NONSENSE:
        with pytest.raises(MalformedAnswer):
            request.decode(HttpResponse(200, body))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def survives(request: ManagementRequest, body: bytes) -> None:
    """Check that a request decodes the response or raises ``MalformedAnswer``, and raises no other exception."""
    try:
        request.decode(HttpResponse(200, body))
    except MalformedAnswer as error:
        assert len(str(error)) < 1000


def anything(value: object) -> Any:
    """Return the value with the type Any, so that the type checker accepts it as any argument."""
    return value
