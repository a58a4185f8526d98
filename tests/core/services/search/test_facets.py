"""Facets: their JSON, and invalid arguments."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from tests.refusals import refused
from tests.rows import rows
from triclinium_core.services.search.facets import DateFacet, DateRange, Facet, NumericFacet, NumericRange, TermFacet

CHEAP, DEAR = NumericRange("cheap", max=50), NumericRange("dear", 50, 500.5)
OLD, NEW = DateRange("old", end="2020-01-01"), DateRange("new", datetime(2020, 1, 1, tzinfo=UTC), "2030-01-01")


@rows(("facet", "expected"), [
        (TermFacet("type"), {"field": "type"}),
        (TermFacet("type", limit=5), {"field": "type", "size": 5}),
        (
            NumericFacet("price", [CHEAP, DEAR], limit=2),
            {
                "field": "price", "size": 2,
                "numeric_ranges": [{"name": "cheap", "max": 50}, {"name": "dear", "min": 50, "max": 500.5}],
            },
        ),
        (
            DateFacet("built", (OLD, NEW)),
            {
                "field": "built",
                "date_ranges": [
                    {"name": "old", "end": "2020-01-01"},
                    {"name": "new", "start": "2020-01-01T00:00:00+00:00", "end": "2030-01-01"},
                ],
            },
        ),
    ])  # fmt: skip
def test_json_of_facets(facet: Facet, expected: object) -> None:
    """Each facet has the JSON of SDK-RFC 0052."""
    assert expected == json.loads(msgspec.json.encode(facet.members()))


@rows(("parameter", "make", "values"), [
        ("field", TermFacet, (None, "", 5)),
        ("limit", lambda value: TermFacet("f", limit=value), (-1, 1.5, True, 2**32)),
        ("name", lambda value: NumericRange(value, 1), (None, "", 5)),
        ("min", lambda value: NumericRange("n", value), (None, "1", math.nan, True)),
        ("max", lambda value: NumericRange("n", 1, value), ("1", math.inf)),
        ("name", lambda value: DateRange(value, "2020"), (None, "", 5)),
        ("start", lambda value: DateRange("n", value), (None, "", 2020)),
        ("end", lambda value: DateRange("n", "2020", value), ("", 2020)),
        ("ranges", lambda value: NumericFacet("f", value), (None, [], [OLD], "ab", CHEAP, [CHEAP, NumericRange("cheap", 7)])),
        ("ranges", lambda value: DateFacet("f", value), (None, [], [CHEAP], "ab", OLD, [OLD, OLD])),
    ])  # fmt: skip
def test_invalid_arguments(parameter: str, make: Callable[..., object], values: tuple[object, ...]) -> None:
    """An invalid argument raises an error that names the argument."""
    for value in values:
        refused(parameter, make, value)
