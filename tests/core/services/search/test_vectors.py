"""Vector searches as the JSON of the service, and each wrong argument by its name."""

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
from hypothesis import given

from tests.core.runtime.services.refusals import refused
from tests.core.services.search.grammar import VECTORS, is_vector_query
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
def test_json(part: VectorQuery | VectorSearch, expected: object) -> None:
    """As SDK-RFC 0052 has it: of both forms of a vector only the one that was given."""
    assert expected == json.loads(msgspec.json.encode(part.members()))


@rows("vector", [[0.5, 2], (0.5, 2.0), array("f", [0.5, 2]), iter([Fraction(1, 2), Decimal(2)]), range(1, 3)])
def test_rows_of_numbers(vector: Any) -> None:
    """Whatever gives numbers one by one is a vector, and what becomes of it afterwards changes nothing."""
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
def test_wrong_arguments(parameter: str, make: Callable[..., object], values: tuple[object, ...]) -> None:
    """Nothing is made of them."""
    for value in values:
        refused(parameter, make, value)


def test_what_a_float_of_32_bits_can_hold() -> None:
    """Up to its largest number, of either sign."""
    assert (FLOAT32_MAX, -FLOAT32_MAX) == VectorQuery("v", [FLOAT32_MAX, -FLOAT32_MAX]).vector


@given(search=VECTORS)
def test_the_service_takes_all_vector_searches(search: VectorSearch) -> None:
    """Whatever can be made is JSON of the service's grammar."""
    members = json.loads(msgspec.json.encode(search.members()))

    assert members.pop("knn_operator", "or") in ("and", "or")
    assert ["knn"] == list(members)
    assert members["knn"]
    assert all(map(is_vector_query, members["knn"]))
