"""Sort orders: their JSON, and invalid arguments."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec

from tests.refusals import refused
from tests.rows import rows
from triclinium_core.services.search import sorting


@rows(("order", "expected"), [
        (sorting.SortScore(), {"by": "score"}),
        (sorting.SortScore(desc=True), {"by": "score", "desc": True}),
        (sorting.SortID(desc=False), {"by": "id", "desc": False}),
        (sorting.SortField("name"), {"by": "field", "field": "name"}),
        (
            sorting.SortField("name", type="number", mode="max", missing="first", desc=True),
            {"by": "field", "field": "name", "type": "number", "mode": "max", "missing": "first", "desc": True},
        ),
        (sorting.SortGeoDistance((2.35, 48.85), "geo"), {"by": "geo_distance", "location": [2.35, 48.85], "field": "geo"}),
        (
            sorting.SortGeoDistance((0, 0), "geo", unit=sorting.SearchGeoDistanceUnits.NAUTICAL_MILES, desc=True),
            {"by": "geo_distance", "location": [0, 0], "field": "geo", "unit": "nauticalmiles", "desc": True},
        ),
    ])  # fmt: skip
def test_json_of_orders(order: sorting.Sort, expected: object) -> None:
    """Each order has the JSON of SDK-RFC 0052."""
    assert expected == json.loads(msgspec.json.encode(order.members()))


def test_units() -> None:
    """The units of distances are exactly the units of the RFC."""
    units = ["meters", "miles", "centimeters", "millimeters", "nauticalmiles", "kilometers", "feet", "yards", "inch"]

    assert units == [unit.value for unit in sorting.SearchGeoDistanceUnits]


@rows(("parameter", "make", "values"), [
        ("desc", lambda value: sorting.SortScore(desc=value), (1, "true")),
        ("desc", lambda value: sorting.SortID(desc=value), (1, "true")),
        ("field", sorting.SortField, (None, "", 5)),
        ("type", lambda value: sorting.SortField("f", type=value), ("", "int", 5)),
        ("mode", lambda value: sorting.SortField("f", mode=value), ("avg", 5)),
        ("missing", lambda value: sorting.SortField("f", missing=value), ("middle", 5)),
        ("location", lambda value: sorting.SortGeoDistance(value, "f"), (None, (0,), "ab", (0, 91))),
        ("field", lambda value: sorting.SortGeoDistance((0, 0), value), (None, "", 5)),
        ("unit", lambda value: sorting.SortGeoDistance((0, 0), "f", unit=value), ("miles", 5)),
    ])  # fmt: skip
def test_invalid_arguments(parameter: str, make: Callable[..., object], values: tuple[object, ...]) -> None:
    """An invalid argument raises an error that names the argument."""
    for value in values:
        refused(parameter, make, value)
