"""JSON encoding of the values that callers pass."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import pytest

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.services.answer.decoded_limits import OBJECTS_PARTS_MAX
from triclinium_core.services.json_values import encode_json, encode_members
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.services.search.queries import TermQuery
from triclinium_core.services.search.result import SearchRow
from triclinium_core.services.search.search_request import SearchOptions, SearchQueryRequest, SearchRequest
from triclinium_core.services.statement.parameters import RawOptions
from triclinium_core.services.views.result import ViewRow


@dataclass
class Person:
    """Value of a user's type."""

    name: str


@rows(
    ("value", "expected"),
    [
        (None, b"null"),
        ([1, "é", {}], '[1,"é",{}]'.encode()),
        (2**70, b"1180591620717411303424"),
        (Person("ada"), b'{"name":"ada"}'),
        ({"null": None}, b'{"null":null}'),
    ],
)
def test_values(value: object, expected: bytes) -> None:
    """Values of the types that msgspec supports are encoded, including dataclasses."""
    assert expected == encode_json(value, "key")


class Text(str):
    """Subclass of ``str``, as a template engine may return."""

    __slots__ = ()


class Count(int):
    """Subclass of ``int``."""


class Score(float):
    """Subclass of ``float``, as an array library may return."""


def test_subclasses_of_checked_types() -> None:
    """A request whose fields are subclasses of ``str``, ``int`` or ``float`` is encoded without an error."""
    statement = QueryRequest(
        statement=Text("SELECT 1"),
        client_context_id=Text("c"),
        max_parallelism=Count(3),
        raw=RawOptions({Text("a"): 1}),
    )
    search = SearchQueryRequest(
        index=Text("i"),
        search=SearchRequest.create(TermQuery(Text("inn"), field=Text("type"), boost=Score(1.5))),
        options=SearchOptions(limit=Count(7), sort=[Text("-_score")]),
    )

    assert {"statement": "SELECT 1", "client_context_id": "c", "max_parallelism": "3", "a": 1}.items() <= json.loads(
        statement.encode(1).body
    ).items()
    assert {"query": {"term": "inn", "field": "type", "boost": 1.5}, "size": 7, "sort": ["-_score"]}.items() <= (
        json.loads(search.encode(1).body).items()
    )


def test_unchecked_members() -> None:
    """A member that is neither text nor a number raises TypeError, because only a defect in triclinium can cause it."""
    with pytest.raises(TypeError, match="object"):
        encode_members({"a": object()})


@rows("value", [math.nan, [{"a": math.inf}], b"bytes", object(), "\ud800", {1j: 1}])
def test_values_that_json_cannot_represent(value: object) -> None:
    """A value that JSON cannot represent is refused, and the error names the parameter."""
    with pytest.raises(errors.EncodingFailureException, match="^key "):
        encode_json(value, "key")


@pytest.mark.native
def test_values_that_are_nested_too_deeply() -> None:
    """A value with too many nested levels is refused; WebAssembly's encoder has a higher limit."""
    value: object = 1
    for _ in range(100_000):
        value = [value]
    with pytest.raises(errors.EncodingFailureException, match="^key "):
        encode_json(value, "key")


def test_errors_do_not_show_values() -> None:
    """The error has the type of a value and the position of the problem, but not the value."""
    with pytest.raises(errors.EncodingFailureException) as caught:
        encode_json({"token": "s3cret", "of": object()}, "$login")

    assert "$login is of type dict, and" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_parts_of_rows_that_are_decoded_late() -> None:
    """A part of a row with too many elements raises an error when it is decoded, and stays available as text."""
    encoded = b'{"a":[' + b"1," * (OBJECTS_PARTS_MAX + 60_000) + b"1]}"
    view, hit = ViewRow(encoded, encoded), SearchRow("index", "hotel", encoded_fields=encoded)
    for holder, name in ((view, "key"), (view, "value"), (hit, "fields")):
        with pytest.raises(errors.DecodingFailureException, match="parts"):
            getattr(holder, name)

    assert encoded == view.encoded_key == view.encoded_value == hit.encoded_fields
