"""Results of a search, read from the JSON of the service."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from tests.core.services.answers import JSON
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.services.search import result
from triclinium_core.services.service_request import HttpResponse, MalformedAnswer

HIT: dict[str, object] = {
    "index": "hotels_4c1c5584",
    "id": "hotel_1",
    "score": 1.25,
    "sort": ["_score", "hotel_1"],
    "explanation": {"value": 1.25, "message": "sum of:", "children": []},
    "locations": {
        "name": {"inn": [{"pos": 2, "start": 4, "end": 7, "array_positions": None}]},
        "reviews.text": {
            "inn": [{"pos": 1, "start": 0, "end": 3, "array_positions": [0, 3]}],
            "bar": [{"pos": 9, "start": 50, "end": 53, "array_positions": [1, 0]}],
        },
    },
    "fragments": {"name": ["The <mark>Inn</mark>"]},
    "fields": {"name": "The Inn", "stars": 4},
}
ANSWER: dict[str, object] = {
    "status": {"total": 6, "failed": 1, "successful": 5, "errors": {"hotels_aaaa": "no planPIndexes"}},
    "request": None,
    "hits": [],
    "total_hits": 17,
    "cost": 123,
    "max_score": 1.25,
    "took": 250_000,
    "facets": {
        "types": {
            "field": "type", "total": 17, "missing": 1, "other": 2,
            "terms": [{"term": "hotel", "count": 10}, {"term": "inn", "count": 5}],
        },
        "prices": {
            "field": "price", "total": 3, "missing": 0, "other": 0,
            "numeric_ranges": [{"name": "cheap", "max": 50, "count": 2}, {"name": "dear", "min": 50.5, "count": 1}],
        },
        "years": {
            "field": "built", "total": 1, "missing": 16, "other": 0,
            "date_ranges": [{"name": "new", "start": "2020-01-01T00:00:00Z", "end": "2030-01-01T00:00:00Z", "count": 1}],
        },
        "nothing": {"field": "x", "total": 0, "missing": 17, "other": 0, "terms": None},
    },
}  # fmt: skip


UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
"""Exceptions that a row with an unknown form may raise."""


def hit(**members: object) -> result.SearchRow:
    """Return the hit with changed members; ``...`` omits a member."""
    changed = {name: value for name, value in {**HIT, **members}.items() if value is not ...}
    return result.decode_row(json.dumps(changed).encode())


def meta_data(**members: object) -> result.SearchMetaData:
    """Return the metadata of a response with changed members; ``...`` omits a member."""
    changed = {name: value for name, value in {**ANSWER, **members}.items() if value is not ...}
    return result.decode_meta_data(HttpResponse(200, json.dumps(changed).encode()))


class Hotel(msgspec.Struct):
    """Example type for the fields of a hit."""

    name: str
    stars: int


def test_a_hit() -> None:
    """All parts of a hit are read."""
    row = hit()

    assert ("hotels_4c1c5584", "hotel_1", 1.25) == (row.index, row.id, row.score)
    assert ("_score", "hotel_1") == row.sort
    assert HIT["explanation"] == row.explanation
    assert {"name": ("The <mark>Inn</mark>",)} == row.fragments
    assert {"name": "The Inn", "stars": 4} == row.fields
    assert Hotel("The Inn", 4) == row.fields_as(Hotel)


def test_a_minimal_hit() -> None:
    """Members of a hit that the service did not send are empty or None."""
    expected = result.SearchRow("i", "a")

    assert expected == result.decode_row(b'{"index":"i","id":"a"}')
    assert expected == result.decode_row(b'{"index":"i","id":"a","score":0,"fields":null,"locations":null,"sort":null}')
    assert expected.fields is None
    assert expected.locations is None


@rows("as_type", [list[int], Hotel, int, type("Own", (), {})])
def test_fields_that_do_not_fit(as_type: type[Any]) -> None:
    """Fields that do not match the requested type raise an error that names the document."""
    with pytest.raises(errors.DecodingFailureException, match="hotel_1"):
        hit(fields={"name": 5}).fields_as(as_type)


def test_no_fields_as_a_type() -> None:
    """If a hit has no fields, they can be converted only to a type without required members."""
    assert {} == hit(fields=...).fields_as(dict[str, int])
    with pytest.raises(errors.DecodingFailureException):
        hit(fields=...).fields_as(Hotel)


def test_locations() -> None:
    """Locations are available by field and by term (SDK-RFC 0052 "SearchRowLocations")."""
    locations = hit().locations
    assert locations is not None
    in_name = result.SearchRowLocation("name", "inn", 2, 4, 7)
    in_review = result.SearchRowLocation("reviews.text", "inn", 1, 0, 3, (0, 3))
    bar = result.SearchRowLocation("reviews.text", "bar", 9, 50, 53, (1, 0))

    assert (in_name, in_review, bar) == locations.get_all()
    assert (in_review, bar) == locations.get("reviews.text")
    assert (bar,) == locations.get("reviews.text", "bar")
    assert () == locations.get("name", "bar") == locations.get("x")
    assert ("name", "reviews.text") == locations.fields()
    assert {"inn", "bar"} == locations.terms()
    assert ("inn", "bar") == locations.terms_for("reviews.text")
    assert () == locations.terms_for("x")


@rows("data", [
        b"", b"{", b"null", b"[]", b"5", b"{}", b'{"index":"i"}', b'{"index":"i","id":5}', b"\xff", b"[" * 100_000,
    ])  # fmt: skip
def test_invalid_hits(data: bytes) -> None:
    """An invalid hit raises an error."""
    with pytest.raises(UNREADABLE):
        result.decode_row(data)


@rows(("members", "expected"), [
        ({"index": 7}, result.SearchRow("", "a")),
        ({"score": "1"}, result.SearchRow("i", "a")),
        ({"sort": ["x", 7]}, result.SearchRow("i", "a", sort=("x",))),
        ({"explanation": []}, result.SearchRow("i", "a")),
        ({"fragments": {"f": "x", "g": ["y"]}}, result.SearchRow("i", "a", fragments={"f": (), "g": ("y",)})),
        (
            {"locations": {"f": {"t": [{"pos": 1}, {"pos": 1, "start": 2, "end": 3}], "u": 7}, "g": 7}},
            result.SearchRow("i", "a", locations=result.SearchRowLocations((result.SearchRowLocation("f", "t", 1, 2, 3),))),
        ),
    ])  # fmt: skip
def test_a_part_of_an_unknown_form(members: dict[str, object], expected: result.SearchRow) -> None:
    """A part of an unknown form is left out, and the rest of the hit is read."""
    assert expected == result.decode_row(json.dumps({"index": "i", "id": "a", "fields": None} | members).encode())


OBJECTS_MAX, PARTS_MAX = result.UNKNOWN_FORM_LIMITS.objects_max, result.UNKNOWN_FORM_LIMITS.parts_max
FULL: list[tuple[bytes, int]] = [(b"{}", OBJECTS_MAX - 1), (b"0", PARTS_MAX - 3)]
"""Items of a list, each with the maximum number of such items in a hit of an unknown form."""


def hit_with(item: bytes, count: int, index: bytes) -> bytes:
    """Return a hit whose fields are a list of ``count`` copies of the item."""
    return b'{"index":%b,"id":"a","fields":[%b]}' % (index, b",".join([item] * count))


def answer_with(item: bytes, count: int, took: bytes) -> HttpResponse:
    """Return a response with a list of items in an unknown member."""
    listed = b",".join([item] * count)
    return HttpResponse(200, b'{"status":{},"took":%b,"more":[%b],"hits":[]}' % (took, listed))


@rows(("item", "count"), FULL)
def test_unknown_hits_are_limited(item: bytes, count: int) -> None:
    """A hit of an unknown form is refused above the limits; a hit of the known form is accepted above them."""
    assert "a" == result.decode_row(hit_with(item, count, b"7")).id
    assert "a" == result.decode_row(hit_with(item, count + 1, b'"i"')).id
    with pytest.raises(MalformedAnswer):
        result.decode_row(hit_with(item, count + 1, b"7"))


@rows(("item", "count"), [(b"{}", OBJECTS_MAX - 2), (b"0", PARTS_MAX - 6)])
def test_unknown_responses_are_limited(item: bytes, count: int) -> None:
    """A response of an unknown form is refused above the limits; one of the known form is accepted above them."""
    assert 0.0 == result.decode_meta_data(answer_with(item, count, b'"x"')).metrics.took
    assert 0.0 == result.decode_meta_data(answer_with(item, count + 1, b"0")).metrics.took
    with pytest.raises(MalformedAnswer):
        result.decode_meta_data(answer_with(item, count + 1, b'"x"'))


def test_a_long_hit_of_an_unknown_form() -> None:
    """A hit of an unknown form is refused if it has more bytes than the limit."""
    hit = hit_with(b'"%b"' % (b"x" * result.UNKNOWN_FORM_LIMITS.size_bytes_max), 1, b"7")
    with pytest.raises(MalformedAnswer):
        result.decode_row(hit)


@rows(("members", "expected"), [
        ({"total_hits": -1, "took": 2**64, "max_score": None}, result.SearchMetrics(0.0, 0, 0.0, 5, 1)),
        ({"total_hits": "1", "took": 10**400, "max_score": "x"}, result.SearchMetrics(0.0, 0, 0.0, 5, 1)),
        ({"status": {"failed": None, "successful": []}}, result.SearchMetrics(0.00025, 17, 1.25, 0, 0)),
    ])  # fmt: skip
def test_an_unknown_metric(members: dict[str, object], expected: result.SearchMetrics) -> None:
    """A metric of an unknown form is 0."""
    assert expected == meta_data(**members).metrics


def test_an_unknown_facet() -> None:
    """A facet keeps its readable parts, other facets are complete, and an error that is not text is kept as JSON."""
    facets = {
        "a": {"field": 5, "total": -1, "terms": [{"term": "x", "count": 1}, {"term": "y"}], "numeric_ranges": {}},
        "b": 7,
        "c": None,
        "types": {"field": "type", "total": 3},
    }
    found = meta_data(facets=facets, status={"errors": {"p": {"code": 1}}})

    assert found.facets == {
        "a": result.SearchFacetResult("a", "", 0, 0, 0, terms=(result.SearchTermFacet("x", 1),)),
        "b": result.SearchFacetResult("b", "", 0, 0, 0),
        "types": result.SearchFacetResult("types", "type", 3, 0, 0),
    }
    assert {"p": '{"code": 1}'} == found.errors
    assert {} == meta_data(facets=[]).facets


def test_meta_data() -> None:
    """Times are in seconds, and facets have the names of the request."""
    reported = meta_data()

    assert result.SearchMetrics(0.00025, 17, 1.25, 5, 1) == reported.metrics
    assert 6 == reported.metrics.total_partition_count
    assert {"hotels_aaaa": "no planPIndexes"} == reported.errors
    terms = (result.SearchTermFacet("hotel", 10), result.SearchTermFacet("inn", 5))
    prices = (result.SearchNumericRangeFacet("cheap", 2, max=50), result.SearchNumericRangeFacet("dear", 1, min=50.5))
    years = (result.SearchDateRangeFacet("new", 1, "2020-01-01T00:00:00Z", "2030-01-01T00:00:00Z"),)
    assert reported.facets == {
        "types": result.SearchFacetResult("types", "type", 17, 1, 2, terms=terms),
        "prices": result.SearchFacetResult("prices", "price", 3, 0, 0, numeric_ranges=prices),
        "years": result.SearchFacetResult("years", "built", 1, 16, 0, date_ranges=years),
        "nothing": result.SearchFacetResult("nothing", "x", 0, 17, 0),
    }


@rows("members", [{"facets": ...}, {"facets": None}, {"facets": {}, "cost": ...}])
def test_no_facets(members: dict[str, object]) -> None:
    """A response without facets is read with an empty mapping of facets."""
    assert {} == meta_data(**members).facets


@rows("members", [
        {"status": ...}, {"status": "fail"}, {"status": None}, {"status": {"failed": "1"}}, {"status": {"failed": -1}},
        {"status": {"failed": 2**64}},
    ])  # fmt: skip
def test_invalid_statuses(members: dict[str, object]) -> None:
    """A response without a valid status raises MalformedAnswer."""
    with pytest.raises(MalformedAnswer):
        meta_data(**members)


@given(data=st.binary(max_size=64), member=JSON, name=st.sampled_from([*HIT, *ANSWER]))
def test_any_response(data: bytes, member: object, name: str) -> None:
    """Any response is read or raises one of the documented errors."""
    for read in (lambda: result.decode_row(data), lambda: hit(**{name: member}), lambda: meta_data(**{name: member})):
        try:
            assert isinstance(read(), result.SearchRow | result.SearchMetaData)
        except (MalformedAnswer, *UNREADABLE):
            continue
