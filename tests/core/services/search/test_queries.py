"""Queries: the JSON of each kind, and invalid arguments."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from datetime import UTC, date, datetime, timedelta, timezone
from functools import partial
from typing import Any

import msgspec
import pytest

from tests.refusals import refused
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.kv.operation.validation import UINT32_MAX
from triclinium_core.services.search import queries as q

A, B, C = q.TermQuery("a"), q.TermQuery("b"), q.TermQuery("c")
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
IN_PARIS = datetime(2026, 1, 2, 12, 0, 0, 500, tzinfo=timezone(timedelta(hours=1)))


@rows(("query", "expected"), [
        (q.MatchQuery("a room"), {"match": "a room"}),
        (q.MatchQuery(""), {"match": ""}),
        (
            q.MatchQuery("x", field="f", analyzer="en", fuzziness=1, prefix_length=2, operator=q.MatchOperator.AND, boost=1.5),
            {"match": "x", "field": "f", "analyzer": "en", "fuzziness": 1, "prefix_length": 2, "operator": "and", "boost": 1.5},
        ),
        (q.MatchQuery("x", operator=q.MatchOperator.OR), {"match": "x", "operator": "or"}),
        (q.MatchPhraseQuery("a room", field="f", analyzer="en", boost=0), {"match_phrase": "a room", "field": "f", "analyzer": "en", "boost": 0}),
        (q.TermQuery("x", field="f", fuzziness=1, prefix_length=0), {"term": "x", "field": "f", "fuzziness": 1, "prefix_length": 0}),
        (q.PhraseQuery("program", "book", field="f", boost=2), {"terms": ["program", "book"], "field": "f", "boost": 2}),
        (q.PrefixQuery("pro", field="f"), {"prefix": "pro", "field": "f"}),
        (q.WildcardQuery("p*g?", field="f"), {"wildcard": "p*g?", "field": "f"}),
        (q.RegexpQuery("p.+", field="f"), {"regexp": "p.+", "field": "f"}),
        (q.QueryStringQuery("+room -bath", boost=2), {"query": "+room -bath", "boost": 2}),
        (q.DocIdQuery(["a", "b"]), {"ids": ["a", "b"]}),
        (q.BooleanFieldQuery(False, field="f"), {"bool": False, "field": "f"}),
        (q.NumericRangeQuery(1), {"min": 1}),
        (q.NumericRangeQuery(max=0), {"max": 0}),
        (
            q.NumericRangeQuery(1, 2.5, inclusive_min=False, inclusive_max=True, field="f"),
            {"min": 1, "max": 2.5, "inclusive_min": False, "inclusive_max": True, "field": "f"},
        ),
        (q.TermRangeQuery("a", "b", inclusive_max=True, field="f"), {"min": "a", "max": "b", "inclusive_max": True, "field": "f"}),
        (q.DateRangeQuery("2026-01-02", field="f"), {"start": "2026-01-02", "field": "f"}),
        (
            q.DateRangeQuery(NOON, IN_PARIS, inclusive_start=True, inclusive_end=False, datetime_parser="p"),
            {
                "start": "2026-01-02T12:00:00+00:00", "end": "2026-01-02T12:00:00.000500+01:00",
                "inclusive_start": True, "inclusive_end": False, "datetime_parser": "p",
            },
        ),
        (q.GeoDistanceQuery("11km", (2.35, 48.85), field="f"), {"distance": "11km", "location": [2.35, 48.85], "field": "f"}),
        (q.GeoBoundingBoxQuery((-180, 90), (180, -90)), {"top_left": [-180, 90], "bottom_right": [180, -90]}),
        (q.GeoPolygonQuery([(0, 0), (1, 0), (1, 1)]), {"polygon_points": [[0, 0], [1, 0], [1, 1]]}),
        (q.ConjunctionQuery(A, B, boost=2), {"conjuncts": [{"term": "a"}, {"term": "b"}], "boost": 2}),
        (q.DisjunctionQuery(A, B), {"disjuncts": [{"term": "a"}, {"term": "b"}], "min": 1}),
        (q.DisjunctionQuery(A, B, min=2), {"disjuncts": [{"term": "a"}, {"term": "b"}], "min": 2}),
        (q.BooleanQuery(A), {"must": {"conjuncts": [{"term": "a"}]}}),
        (q.BooleanQuery(q.ConjunctionQuery(A, boost=2)), {"must": {"conjuncts": [{"term": "a"}], "boost": 2}}),
        (
            q.BooleanQuery([A], q.DisjunctionQuery(B, C, min=2), (C,), boost=3),
            {
                "must": {"conjuncts": [{"term": "a"}]},
                "should": {"disjuncts": [{"term": "b"}, {"term": "c"}], "min": 2},
                "must_not": {"disjuncts": [{"term": "c"}], "min": 1},
                "boost": 3,
            },
        ),
        (q.BooleanQuery(q.DisjunctionQuery(A, B)), {"must": {"conjuncts": [{"disjuncts": [{"term": "a"}, {"term": "b"}], "min": 1}]}}),
        (q.MatchAllQuery(), {"match_all": None}),
        (q.MatchNoneQuery(boost=1), {"match_none": None, "boost": 1}),
        (q.RawQuery({"cidr": "10.0.0.0/8", "field": "f"}, boost=2), {"cidr": "10.0.0.0/8", "field": "f", "boost": 2}),
        (q.RawQuery({}), {}),
    ])  # fmt: skip
def test_json_of_queries(query: q.SearchQuery, expected: object) -> None:
    """Each query has the JSON of SDK-RFC 0052; arguments that are not passed are omitted."""
    assert expected == json.loads(msgspec.json.encode(query.members()))


Make = Callable[..., Any]
WITH_FIELD: tuple[Make, ...] = (
    partial(q.MatchQuery, "x"),
    partial(q.MatchPhraseQuery, "x"),
    partial(q.TermQuery, "x"),
    partial(q.PhraseQuery, "x"),
    partial(q.PrefixQuery, "x"),
    partial(q.WildcardQuery, "x"),
    partial(q.RegexpQuery, "x"),
    partial(q.BooleanFieldQuery, True),
    partial(q.NumericRangeQuery, 1),
    partial(q.TermRangeQuery, "x"),
    partial(q.DateRangeQuery, "x"),
    partial(q.GeoDistanceQuery, "1m", (0, 0)),
    partial(q.GeoBoundingBoxQuery, (0, 0), (0, 0)),
    partial(q.GeoPolygonQuery, [(0, 0)] * 3),
)
OTHERS: tuple[Make, ...] = (
    partial(q.QueryStringQuery, "x"),
    partial(q.DocIdQuery, ["x"]),
    partial(q.ConjunctionQuery, A),
    partial(q.DisjunctionQuery, A),
    partial(q.BooleanQuery, A),
    q.MatchAllQuery,
    q.MatchNoneQuery,
    partial(q.RawQuery, {}),
)


@rows("make", WITH_FIELD + OTHERS)
def test_boosts(make: Make) -> None:
    """Every kind of query accepts a boost, and refuses one that is negative, not finite or not a number."""
    assert 0.5 == make(boost=0.5).members()["boost"]
    for boost in (-1, math.nan, math.inf, True, "2", 10**400):
        refused("boost", make, boost=boost)


@rows("make", WITH_FIELD)
def test_fields(make: Make) -> None:
    """Every kind of query about one field accepts its name, and refuses one that is empty or not valid text."""
    assert "a.b" == make(field="a.b").members()["field"]
    for field in ("", 5, b"f", "\ud800"):
        refused("field", make, field=field)


@rows("make", WITH_FIELD + OTHERS)
def test_queries_are_values(make: Make) -> None:
    """A query is immutable and picklable, and is equal to a query with equal arguments."""
    query = make()

    assert query == make() == pickle.loads(pickle.dumps(query))  # noqa: S301  # our own bytes
    assert query != make(boost=9)
    with pytest.raises(FrozenInstanceError):
        query.boost = 1


def test_lists_are_copied() -> None:
    """If the caller changes a list after creating the query, the query does not change."""
    ids, raw = ["a"], {"ids": ["a"]}
    queries = (q.DocIdQuery(ids), q.RawQuery(raw))
    ids.append("b")
    raw["ids"].append("b")

    assert [{"ids": ["a"]}] * 2 == json.loads(msgspec.json.encode([query.members() for query in queries]))


TEXT = (None, 5, b"x", "\ud800")
COUNT = (-1, UINT32_MAX + 1, 1.5, True, "1")
POINT = (
    None,
    (1,),
    (1, 2, 3),
    "ab",
    (181, 0),
    (-181, 0),
    (0, 91),
    (0, -91),
    ("1", 2),
    (True, 0),
    (math.nan, 0),
    {1: 2},
    5,
)


@rows(("parameter", "make", "values"), [
        ("match", q.MatchQuery, TEXT),
        ("match_phrase", q.MatchPhraseQuery, TEXT),
        ("term", q.TermQuery, TEXT),
        ("prefix", q.PrefixQuery, TEXT),
        ("wildcard", q.WildcardQuery, TEXT),
        ("regexp", q.RegexpQuery, TEXT),
        ("query", q.QueryStringQuery, TEXT),
        ("terms", q.PhraseQuery, (*TEXT, "")),
        ("ids", q.DocIdQuery, (None, [], "ab", [1], [""], {"a": 1}, 5)),
        ("bool", q.BooleanFieldQuery, (None, 1, "true")),
        ("analyzer", lambda value: q.MatchQuery("x", analyzer=value), ("", 5)),
        ("analyzer", lambda value: q.MatchPhraseQuery("x", analyzer=value), ("", 5)),
        ("fuzziness", lambda value: q.MatchQuery("x", fuzziness=value), COUNT),
        ("prefix_length", lambda value: q.MatchQuery("x", prefix_length=value), COUNT),
        ("operator", lambda value: q.MatchQuery("x", operator=value), ("and", 1)),
        ("fuzziness", lambda value: q.TermQuery("x", fuzziness=value), COUNT),
        ("prefix_length", lambda value: q.TermQuery("x", prefix_length=value), COUNT),
        ("min", q.NumericRangeQuery, (None, "1", True, math.nan, math.inf, -math.inf)),
        ("max", lambda value: q.NumericRangeQuery(1, value), ("1", math.nan)),
        ("min", q.TermRangeQuery, (None, "", 1)),
        ("max", lambda value: q.TermRangeQuery("a", value), ("", 1)),
        ("inclusive_min", lambda value: q.NumericRangeQuery(1, inclusive_min=value), (1, "true")),
        ("inclusive_max", lambda value: q.TermRangeQuery("a", inclusive_max=value), (1, "true")),
        ("start", q.DateRangeQuery, (None, "", 5, datetime(2026, 1, 2), date(2026, 1, 2))),  # noqa: DTZ001
        ("end", lambda value: q.DateRangeQuery("2026", value), ("", 5, datetime(2026, 1, 2))),  # noqa: DTZ001
        ("inclusive_start", lambda value: q.DateRangeQuery("2026", inclusive_start=value), (1,)),
        ("inclusive_end", lambda value: q.DateRangeQuery("2026", inclusive_end=value), (1,)),
        ("datetime_parser", lambda value: q.DateRangeQuery("2026", datetime_parser=value), ("", 1)),
        ("distance", lambda value: q.GeoDistanceQuery(value, (0, 0)), (None, "", 5, "km", "11 km", "-1m", "11parsecs", "1e3m", "11km\n")),
        ("location", lambda value: q.GeoDistanceQuery("1m", value), POINT),
        ("top_left", lambda value: q.GeoBoundingBoxQuery(value, (0, 0)), POINT),
        ("bottom_right", lambda value: q.GeoBoundingBoxQuery((0, 0), value), POINT),
        ("polygon_points", q.GeoPolygonQuery, (None, [], [(0, 0)] * 2, [(0, 0), (1, 1), (2, 200)], "abc")),
        ("conjuncts", q.ConjunctionQuery, (None, "a", {"term": "a"}, q.TermQuery)),
        ("disjuncts", q.DisjunctionQuery, (None, "a", {"term": "a"}, q.TermQuery)),
        ("min", lambda value: q.DisjunctionQuery(A, B, min=value), (*COUNT, 3)),
        ("must", q.BooleanQuery, (None, [], "a", [A, "b"], 5)),
        ("should", lambda value: q.BooleanQuery(should=value), ([], "a")),
        ("must_not", lambda value: q.BooleanQuery(must_not=value), ([], "a", q.ConjunctionQuery)),
        ("query", q.RawQuery, (None, [], "a", 5)),
    ])  # fmt: skip
def test_invalid_arguments(parameter: str, make: Make, values: tuple[object, ...]) -> None:
    """An invalid argument raises an error that names the argument."""
    for value in values:
        refused(parameter, make, value)


@rows(("parameter", "make", "wanted"), [
        ("terms", q.PhraseQuery, "terms"), ("conjuncts", q.ConjunctionQuery, "conjuncts"), ("disjuncts", q.DisjunctionQuery, "disjuncts"),
        ("must", q.BooleanQuery, "must, should or must_not"), ("min", q.NumericRangeQuery, "min or max"),
        ("min", q.TermRangeQuery, "min or max"), ("start", q.DateRangeQuery, "start or end"),
    ])  # fmt: skip
def test_missing_arguments(parameter: str, make: Make, wanted: str) -> None:
    """A query without search terms or limits is refused, and the error names all of them (SDK-RFC 0052)."""
    refused(parameter, make)
    with pytest.raises(errors.InvalidArgumentException, match=wanted):
        make()


UNITS = (
    *("in", "inch", "yd", "yards", "ft", "feet", "m", "meters", "cm", "centimeters", "mm", "millimeters", "km"),
    *("kilometers", "mi", "miles", "nm", "nauticalmiles"),
)


@rows("unit", UNITS)
def test_units_of_distances(unit: str) -> None:
    """A distance may have any unit of the service, or no unit."""
    for distance in (f"11{unit}", f"0.5{unit}", "19"):
        assert distance == q.GeoDistanceQuery(distance, (0, 0)).distance


def test_a_raw_query_must_be_json() -> None:
    """A raw query that JSON cannot represent is refused."""
    with pytest.raises(errors.EncodingFailureException):
        q.RawQuery({"boost": math.nan})
