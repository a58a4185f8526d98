"""Context of an error: facts about its request."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle
from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.argument_error import ArgumentError
from triclinium_core.error_context import STANDINGS, ErrorContext, last_answer
from triclinium_core.retry.cassandra import ServerError
from triclinium_core.retry.couchbase import RetryState
from triclinium_core.shown import MESSAGE_MAX

FULL = ErrorContext(
    service="kv",
    operation="upsert",
    idempotent=False,
    bucket="travel-sample",
    scope="inventory",
    collection="airline",
    key="airline_10",
    key_pseudonym="14195f69",
    opaque=17,
    status=0x86,
    status_name="TEMPORARY_FAILURE",
    status_text="try again",
    server_context="no memory",
    server_ref="4f-1",
    server_duration=0.0001,
    path="address.city",
    path_index=0,
    path_status=0xC0,
    http_status=400,
    error_code=3000,
    error_message="syntax error",
    more_error_codes=(4040, 5000),
    server_permits_retry=False,
    body_start="<html>",
    http_method="POST",
    http_path="/query/service",
    client_context_id="c-17",
    statement="SELECT 1",
    parameters=("$1", "$city"),
    index="landmarks",
    design_document="dd",
    view="by_name",
    last_dispatched_to="10.0.0.1:11210",
    last_dispatched_from="10.0.0.9:50123",
    retry_attempts=2,
    retry_reasons=frozenset({"KV_TEMPORARY_FAILURE", "KV_LOCKED"}),
    refused_reason="KV_TEMPORARY_FAILURE",
    elapsed=1.25,
    timeout=2.5,
    in_flight=3,
    waiting=4,
    last_dispatch_error="reset",
    state="waiting",
    connections=("10.0.0.1:11210: reset",),
    awaited=("index 'by_city' is building",),
)

contexts = st.builds(ErrorContext, **{field.name: ... for field in dataclasses.fields(ErrorContext)})
"""Contexts with any values of their fields' types."""


def refuse(constant: str) -> NoReturn:
    """Fail if the parser finds a constant that Python accepts but JSON does not have."""
    raise AssertionError(f"{constant} is not JSON")


def test_full() -> None:
    """The JSON has all fields in the order of declaration; a set becomes a sorted list."""
    expected = (
        '{"service": "kv", "operation": "upsert", "idempotent": false, "bucket": "travel-sample", '
        '"scope": "inventory", "collection": "airline", "key": "airline_10", "key_pseudonym": "14195f69", "opaque": 17, "status": 134, '
        '"status_name": "TEMPORARY_FAILURE", "status_text": "try again", "server_context": "no memory", '
        '"server_ref": "4f-1", "server_duration": 0.0001, "path": "address.city", "path_index": 0, "path_status": 192, '
        '"http_status": 400, "error_code": 3000, "error_message": "syntax error", "more_error_codes": [4040, 5000], '
        '"server_permits_retry": false, "body_start": "<html>", "http_method": "POST", "http_path": "/query/service", '
        '"client_context_id": "c-17", "statement": "SELECT 1", "parameters": ["$1", "$city"], "index": "landmarks", '
        '"design_document": "dd", "view": "by_name", '
        '"last_dispatched_to": "10.0.0.1:11210", "last_dispatched_from": "10.0.0.9:50123", '
        '"retry_attempts": 2, "retry_reasons": ["KV_LOCKED", "KV_TEMPORARY_FAILURE"], '
        '"refused_reason": "KV_TEMPORARY_FAILURE", "elapsed": 1.25, "timeout": 2.5, "in_flight": 3, "waiting": 4, '
        '"last_dispatch_error": "reset", "state": "waiting", "connections": ["10.0.0.1:11210: reset"], '
        '"awaited": ["index \'by_city\' is building"]}'
    )

    assert expected == FULL.to_json()


def test_empty() -> None:
    """The JSON omits unknown fields, but always has the service and the number of retries."""
    assert '{"service": "kv", "retry_attempts": 0}' == ErrorContext().to_json()


def test_zero_is_no_absence() -> None:
    """Fields with the value 0 or False are in the JSON."""
    known = {"idempotent": False, "opaque": 0, "status": 0, "elapsed": 0.0}

    assert known.items() <= json.loads(ErrorContext(**known).to_json()).items()  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [math.inf, -math.inf, math.nan])
def test_endless_is_left_out(seconds: float) -> None:
    """The JSON omits infinity and NaN, because JSON has neither."""
    assert ErrorContext().to_json() == ErrorContext(timeout=seconds, elapsed=seconds).to_json()


@given(contexts)
def test_always_one_line_of_json(context: ErrorContext) -> None:
    """The JSON of any context is one line that a strict parser accepts."""
    text = context.to_json()
    known = json.loads(text, parse_constant=refuse)

    assert text.isascii()
    assert 1 == len(text.splitlines())
    assert context.retry_attempts == known["retry_attempts"]
    assert sorted(context.retry_reasons) == known.get("retry_reasons", [])
    assert context.key == known.get("key", "" if context.key == "" else None)


def test_survives_copying() -> None:
    """A copy or a pickle of a context equals the original and has its hash."""
    pickles = [pickle.dumps(FULL, protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]

    for twin in (copy.copy(FULL), copy.deepcopy(FULL), *map(pickle.loads, pickles)):
        assert (FULL, hash(FULL)) == (twin, hash(twin))


@rows("name", [field.name for field in dataclasses.fields(ErrorContext)])
def test_frozen(name: str) -> None:
    """Setting a field of a context raises ``FrozenInstanceError``."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(FULL, name, None)


def test_differs_by_every_field() -> None:
    """Two contexts that differ in one field are not equal."""
    blank = ErrorContext(service="query", retry_attempts=9)

    for field in dataclasses.fields(ErrorContext):
        assert dataclasses.replace(FULL, **{field.name: getattr(blank, field.name)}) != FULL


def test_every_open_state_has_a_text() -> None:
    """Every state has a text, unless it is final."""
    assert {state.value for state in RetryState if not state.is_final} == set(STANDINGS)


LONG_NAMES: dict[str, Any] = {
    "key": "k" * 10_000,
    "statement": "\x1b" * 10_000,
    "index": "i" * 10_000,
    "parameters": ("p" * 10_000,) * 10_000,
    "retry_reasons": frozenset(map(str, range(10_000))),
    "connections": ("c" * 10_000,) * 10_000,
}


@rows(("name", "value"), LONG_NAMES.items())
def test_the_representation_of_a_long_value(name: str, value: Any) -> None:
    """A long value is cut in the repr, but its attribute is complete."""
    context = dataclasses.replace(FULL, **{name: value})

    assert len(repr(context)) <= MESSAGE_MAX
    assert repr(context).isprintable()
    assert value == getattr(context, name)


def test_the_representation_has_each_field() -> None:
    """The repr has each field, with its complete value if it is short."""
    written = [f"{field.name}={getattr(FULL, field.name)!r}" for field in dataclasses.fields(FULL)]

    assert f"ErrorContext({', '.join(written)})" == repr(FULL)


@rows("make", [errors.CouchbaseException, ArgumentError, errors.InvalidArgumentException, ServerError])
def test_the_text_of_an_error_is_bounded(make: Callable[[str], Exception]) -> None:
    """The text of an error is at most ``MESSAGE_MAX`` characters long."""
    error = make("x" * 100_000)

    assert len(str(error)) <= MESSAGE_MAX


@rows(
    ("context", "expected"),
    [
        (ErrorContext(key="ada"), None),
        (ErrorContext(http_status=429), "HTTP status 429"),
        (ErrorContext(http_status=429, error_message="busy"), "HTTP status 429 (busy)"),
        (ErrorContext(http_status=200, error_code=4040, more_error_codes=(3000,)), "error 4040 (and the errors 3000)"),
        (ErrorContext(status=0x86, status_name="TEMPORARY_FAILURE"), "TEMPORARY_FAILURE [0x86]"),
        (ErrorContext(status=0x86, server_context="busy"), "an unknown status [0x86] (busy)"),
        (ErrorContext(status=0), "an unknown status [0x00]"),
    ],
)
def test_the_newest_answer(context: ErrorContext, expected: str | None) -> None:
    """The text has the status and the texts of the newest response; without a response there is no text."""
    answer = last_answer(context)

    assert expected == (answer if answer is None else answer.removeprefix("last response: "))
