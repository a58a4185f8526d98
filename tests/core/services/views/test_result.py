"""Results of a view query, read from the JSON of the service."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.services.service_request import HttpResponse, MalformedAnswer
from triclinium_core.services.views.result import ViewError, ViewMetaData, ViewRow, decode_meta_data, decode_row
from triclinium_core.shown import SERVER_TEXT_MAX

UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
"""Exceptions that a row of an unknown form may raise."""


def meta_data(body: bytes) -> ViewMetaData:
    """Return the metadata of a response."""
    return decode_meta_data(HttpResponse(200, body))


def test_a_row() -> None:
    """A row has the key and value that the view emitted; both can be converted to a requested type."""
    row = decode_row(b'{"id":"ada","key":["uk",1815],"value":{"name":"Ada"}}')

    assert ("ada", ["uk", 1815], {"name": "Ada"}) == (row.id, row.key, row.value)
    assert ("uk", 1815) == row.key_as(tuple[str, int])
    assert {"name": "Ada"} == row.value_as(dict[str, str])


def test_rows_of_nulls() -> None:
    """A row may have null as key and value, and a row of a reduction has no document id."""
    row = decode_row(b'{"key":null,"value":null}')

    assert (None, None, None) == (row.id, row.key, row.value)


@rows("as_type", [int, dict[str, int], type("Own", (), {})])
def test_values_of_another_type(as_type: type[Any]) -> None:
    """A key or value that does not match the requested type raises an error that names the key or value."""
    row = ViewRow(b'"a"', b"[1]")

    with pytest.raises(errors.DecodingFailureException, match="key"):
        row.key_as(as_type)
    with pytest.raises(errors.DecodingFailureException, match="value"):
        row.value_as(as_type)


@rows(
    "data",
    [b"", b"{", b"null", b"[]", b"5", b"{}", b'{"id":"a"}'],
)
def test_invalid_rows(data: bytes) -> None:
    """An invalid row raises an error."""
    with pytest.raises(UNREADABLE):
        decode_row(data)


@rows(
    ("data", "expected"),
    [
        (b'{"id":"a","key":1}', ViewRow(b"1", b"null", "a")),
        (b'{"value":1}', ViewRow(b"null", b"1")),
        (b'{"id":5,"key":1,"value":2}', ViewRow(b"1", b"2")),
    ],
)
def test_a_row_of_an_unknown_form(data: bytes, expected: ViewRow) -> None:
    """A missing key or value is read as null, and an id of another type as None."""
    assert expected == decode_row(data)


FROM = "http://10.0.0.5:8092/_view_merge/?stale=ok"


@rows(("body", "expected"), [
        (b'{"total_rows":7,"rows":[]}', ViewMetaData(7)),
        (b'{"rows":[]}', ViewMetaData()),
        (b'{"rows":[],"debug_info":{"local":{"main_group":1}}}', ViewMetaData(debug={"local": {"main_group": 1}})),
        (
            json.dumps({"rows": [], "errors": [{"from": FROM, "reason": "timeout"}, {}]}).encode(),
            ViewMetaData(errors=(ViewError(FROM, "timeout"), ViewError("", ""))),
        ),
    ])  # fmt: skip
def test_meta_data(body: bytes, expected: ViewMetaData) -> None:
    """The metadata has the number of rows, debug information, and the errors of the nodes whose rows are missing."""
    assert expected == meta_data(body)


@rows(("body", "expected"), [
        (b'{"total_rows":-1}', ViewMetaData()),
        (b'{"total_rows":"7","debug_info":[],"errors":null}', ViewMetaData()),
        (b'{"errors":{"a":"down"}}', ViewMetaData(errors=(ViewError("", '{"a":"down"}'),))),
        (b'{"errors":["down",{"from":7,"reason":"x"}]}', ViewMetaData(errors=(ViewError("", '"down"'), ViewError("",
    "x")))), ])  # fmt: skip
def test_an_unknown_value(body: bytes, expected: ViewMetaData) -> None:
    """A value of another type is read as None; an error of another type is kept as JSON, because rows are missing."""
    assert expected == meta_data(body)


def test_long_errors() -> None:
    """The texts of an error that a node sends are shortened."""
    reported = meta_data(json.dumps({"errors": [{"from": "x" * 5000, "reason": "y" * 5000}]}).encode()).errors[0]

    assert (SERVER_TEXT_MAX, SERVER_TEXT_MAX) == (len(reported.source), len(reported.reason))


@rows(
    "body",
    [b"", b"{", b"[]", b"null", b"<html>", b"[" * 99_999],
)
def test_invalid_responses(body: bytes) -> None:
    """An invalid response raises MalformedAnswer."""
    with pytest.raises(MalformedAnswer):
        meta_data(body)


@given(data=st.binary(max_size=64))
def test_any_response(data: bytes) -> None:
    """Any response is read or raises one of the documented errors."""
    for read in (decode_row, meta_data):
        try:
            assert isinstance(read(data), ViewRow | ViewMetaData)
        except (MalformedAnswer, *UNREADABLE):
            continue
