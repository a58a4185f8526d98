"""Invalid responses, and arguments of invalid types, for the tests of all requests."""

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
"""Bodies that are neither the object nor the list of any request. The empty list is not among them: it is valid."""


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
    """Check that a request decodes a response or raises ``MalformedAnswer``, and nothing else."""
    try:
        request.decode(HttpResponse(200, body))
    except MalformedAnswer as error:
        assert len(str(error)) < 1000


def anything(value: object) -> Any:
    """Return a value as type Any, to bypass the type checker."""
    return value
