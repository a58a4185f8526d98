"""Vector searches: their JSON, and invalid arguments."""

from __future__ import annotations

import json
import math
from array import array
from base64 import b64encode
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import msgspec

from tests.refusals import refused
from tests.rows import rows
from triclinium_core.services.search.parts import FLOAT32_MAX
from triclinium_core.services.search.queries import MatchAllQuery, TermQuery
from triclinium_core.services.search.vectors import VectorQuery, VectorQueryCombination, VectorSearch

BASE64 = b64encode(array("f", [0.5, 1.0]).tobytes()).decode()
NEAR = VectorQuery("v", [0.5])


@rows(("part", "expected"), [
        (VectorQuery("v", [0.5, 1]), {"field": "v", "vector": [0.5, 1], "k": 3}),
        (
            VectorQuery("v", [1], num_candidates=7, boost=0.7, prefilter=TermQuery("x", field="f")),
            {"field": "v", "vector": [1], "k": 7, "boost": 0.7, "filter": {"term": "x", "field": "f"}},
        ),
        (VectorQuery("v", BASE64), {"field": "v", "vector_base64": BASE64, "k": 3}),
        (VectorSearch(NEAR), {"knn": [{"field": "v", "vector": [0.5], "k": 3}]}),
        (VectorSearch([NEAR] * 2), {"knn": [{"field": "v", "vector": [0.5], "k": 3}] * 2}),
        (
            VectorSearch([NEAR], vector_query_combination=VectorQueryCombination.AND),
            {"knn": [{"field": "v", "vector": [0.5], "k": 3}], "knn_operator": "and"},
        ),
        (
            VectorSearch([NEAR], vector_query_combination=VectorQueryCombination.OR),
            {"knn": [{"field": "v", "vector": [0.5], "k": 3}], "knn_operator": "or"},
        ),
    ])  # fmt: skip
def test_json_of_vector_searches(part: VectorQuery | VectorSearch, expected: object) -> None:
    """Each vector search has the JSON of SDK-RFC 0052, with its vector as numbers or as base64 text."""
    assert expected == json.loads(msgspec.json.encode(part.members()))


@rows("vector", [[0.5, 2], (0.5, 2.0), array("f", [0.5, 2]), iter([Fraction(1, 2), Decimal(2)]), range(1, 3)])
def test_iterables_of_numbers(vector: Any) -> None:
    """Any iterable of numbers is accepted as a vector, and the query keeps a copy."""
    query = VectorQuery("v", vector)

    assert query.vector in ((0.5, 2.0), (1.0, 2.0))
    assert query.members() == query.members()


@rows(("parameter", "make", "values"), [
        ("vector_field_name", lambda value: VectorQuery(value, [1]), (None, "", 5)),
        (
            "vector",
            lambda value: VectorQuery("v", value),
            (
                None, 5, [], (), "", b"\0\0\0\0", "é", "AAAA", "AAAAAA=", "AA AA", {0.5: 1}, [True], ["0.5"], [None], [1j],
                [math.nan], [math.inf], [FLOAT32_MAX * 1.01], [10**400], [[0.5]], [Decimal("sNaN")],
            ),
        ),
        ("num_candidates", lambda value: VectorQuery("v", [1], num_candidates=value), (0, -1, 1.5, True, None, 2**32)),
        ("boost", lambda value: VectorQuery("v", [1], boost=value), (-1, "2", math.nan)),
        ("prefilter", lambda value: VectorQuery("v", [1], prefilter=value), ("a", {"term": "a"}, NEAR, MatchAllQuery)),
        ("queries", VectorSearch, (None, [], "a", [1], MatchAllQuery(), [NEAR, None])),
        ("vector_query_combination", lambda value: VectorSearch(NEAR, vector_query_combination=value), ("and", 1)),
    ])  # fmt: skip
def test_invalid_arguments(parameter: str, make: Callable[..., object], values: tuple[object, ...]) -> None:
    """An invalid argument raises an error that names the argument."""
    for value in values:
        refused(parameter, make, value)


def test_the_largest_32_bit_floats() -> None:
    """A vector accepts the largest positive and negative 32-bit floats."""
    assert (FLOAT32_MAX, -FLOAT32_MAX) == VectorQuery("v", [FLOAT32_MAX, -FLOAT32_MAX]).vector
