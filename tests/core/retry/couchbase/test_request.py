"""What a strategy may see of a request."""

from __future__ import annotations

import dataclasses

from tests.core.retry.smithy.cases import Fixed
from triclinium_core.retry.couchbase.request import RetryRequest
from triclinium_core.retry.couchbase.tables.service import Service

RNG = Fixed()
REQUEST = RetryRequest(service=Service.KV, operation="get", idempotent=True, rng=RNG, remaining=2.5)


def test_a_request_that_just_failed() -> None:
    """Without a history there are no attempts, no reasons, no age and nothing from the application."""
    expected = {
        "service": Service.KV,
        "operation": "get",
        "idempotent": True,
        "rng": RNG,
        "key": None,
        "retry_attempts": 0,
        "retry_reasons": frozenset(),
        "age": 0.0,
        "remaining": 2.5,
        "since_first_failure": 0.0,
        "attempts_this_status": 0,
        "error_map_entry": None,
        "client_context": {},
    }

    assert expected == {field.name: getattr(REQUEST, field.name) for field in dataclasses.fields(RetryRequest)}


def test_contexts_are_not_shared() -> None:
    """Two requests without a context of their own have two contexts."""
    other = dataclasses.replace(REQUEST, operation="upsert")
    again = RetryRequest(service=Service.KV, operation="get", idempotent=True, rng=RNG, remaining=2.5)

    assert other.client_context is REQUEST.client_context
    assert again.client_context is not REQUEST.client_context
