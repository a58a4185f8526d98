"""Grammar of the search service's queries, independent of the code that creates them.

The service determines the kind of a query by its members, in the order of KINDS, and refuses a query if a member has
the wrong type. Source: bleve ``search/query/query.go``, ``ParseQuery``, and its structs.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import timedelta, timezone
from typing import Any

from hypothesis import strategies as st

from triclinium_core.services.search import queries as q
from triclinium_core.services.search.vectors import VectorQuery, VectorQueryCombination, VectorSearch

Rule = Callable[[object], bool]

OFFSETS = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
"""Time zones that need no database, because not every platform has one."""


def is_text(value: object) -> bool:
    """Return whether the value is a string."""
    return isinstance(value, str)


def is_number(value: object) -> bool:
    """Return whether the value is a JSON number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_count(value: object) -> bool:
    """Return whether the value is a non-negative integer."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_flag(value: object) -> bool:
    """Return whether the value is True or False."""
    return isinstance(value, bool)


def is_point(value: object) -> bool:
    """Return whether the value is a longitude and a latitude."""
    return isinstance(value, list) and len(value) == 2 and is_number(value[0]) and is_number(value[1])


def several(rule: Rule) -> Rule:
    """Return the rule for a non-empty array of elements that match ``rule``."""
    return lambda value: isinstance(value, list) and bool(value) and all(map(rule, value))


def is_query(value: object) -> bool:
    """Return whether the service accepts the value, including all nested queries, as a query."""
    if not isinstance(value, dict):
        return False
    for kind, members in KINDS.items():
        if kind in value:
            taken = {"boost": is_number, **members}
            return all(name in taken and taken[name](member) for name, member in value.items())
    return any(name in RANGES and is_range(value) for name in value) or is_boolean(value)


FIELD: Mapping[str, Rule] = {"field": is_text}

KINDS: Mapping[str, Mapping[str, Rule]] = {
    "term": {**FIELD, "term": is_text, "fuzziness": is_count, "prefix_length": is_count},
    "match": {
        **FIELD,
        "match": is_text,
        "analyzer": is_text,
        "fuzziness": is_count,
        "prefix_length": is_count,
        "operator": lambda value: value in ("or", "and"),
    },
    "match_phrase": {**FIELD, "match_phrase": is_text, "analyzer": is_text},
    "conjuncts": {"conjuncts": several(is_query)},
    "disjuncts": {"disjuncts": several(is_query), "min": is_count},
    "query": {"query": is_text},
    "prefix": {**FIELD, "prefix": is_text},
    "regexp": {**FIELD, "regexp": is_text},
    "wildcard": {**FIELD, "wildcard": is_text},
    "terms": {**FIELD, "terms": several(is_text)},
    "match_all": {"match_all": lambda value: value is None},
    "match_none": {"match_none": lambda value: value is None},
    "ids": {"ids": several(is_text)},
    "bool": {**FIELD, "bool": is_flag},
    "top_left": {**FIELD, "top_left": is_point, "bottom_right": is_point},
    "distance": {**FIELD, "distance": is_text, "location": is_point},
    "polygon_points": {**FIELD, "polygon_points": several(is_point)},
}
"""Permitted members for each kind of query; the key is the member that determines the kind."""

RANGES = ("min", "max", "start", "end")


def is_range(value: Mapping[str, object]) -> bool:
    """Return whether the value is a range of numbers, terms or dates that has at least one end."""
    ends = [value[name] for name in ("min", "max") if name in value]
    dates = [value[name] for name in ("start", "end") if name in value]
    flags = [value[name] for name in value if name.startswith("inclusive_")]
    known = {"min", "max", "start", "end", "field", "boost", "datetime_parser"}
    return (
        bool(ends) != bool(dates)
        and (all(map(is_number, ends)) or all(map(is_text, ends)))
        and all(map(is_text, dates))
        and all(map(is_flag, flags))
        and all(name in known or name.startswith("inclusive_") for name in value)
    )


def is_boolean(value: Mapping[str, object]) -> bool:
    """Return whether the value has at least one of ``must`` (conjuncts), ``should`` and ``must_not`` (disjuncts)."""
    kinds = {"must": "conjuncts", "should": "disjuncts", "must_not": "disjuncts"}
    parts = {name: part for name, part in value.items() if name != "boost"}
    return bool(parts) and all(
        name in kinds and isinstance(part, dict) and kinds[name] in part and is_query(part)
        for name, part in parts.items()
    )


def is_vector_query(value: object) -> bool:
    """Return whether the value is a query with a vector."""
    if not isinstance(value, dict) or ("vector" in value) == ("vector_base64" in value):
        return False
    rules: Mapping[str, Rule] = {
        "field": is_text,
        "k": lambda number: is_count(number) and number != 0,
        "boost": is_number,
        "filter": is_query,
        "vector": several(is_number),
        "vector_base64": lambda text: isinstance(text, str) and len(b64decode(text)) % 4 == 0 < len(text),
    }
    return {"field", "k"} <= set(value) and all(name in rules and rules[name](part) for name, part in value.items())


NAMES = st.text(min_size=1, max_size=8)
TEXTS = st.text(max_size=8)
COUNTS = st.integers(0, 0xFFFF_FFFF)
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
POINTS = st.tuples(st.floats(-180, 180), st.floats(-90, 90))
BOOSTS = st.none() | st.floats(0, 100)
FIELDS = st.fixed_dictionaries({}, optional={"field": NAMES, "boost": BOOSTS})
FLAGS = st.none() | st.booleans()


def _with_field(
    kind: Callable[..., q.SearchQuery], *arguments: st.SearchStrategy[Any], **options: st.SearchStrategy[Any]
) -> st.SearchStrategy[q.SearchQuery]:
    """Return a Hypothesis strategy for queries that may have a field and a boost."""

    def make(given: tuple[Any, ...], own: Mapping[str, Any], common: Mapping[str, Any]) -> q.SearchQuery:
        return kind(*given, **own, **common)

    return st.builds(make, st.tuples(*arguments), st.fixed_dictionaries(options), FIELDS)


def _ranges() -> st.SearchStrategy[q.SearchQuery]:
    flags = {"inclusive_min": FLAGS, "inclusive_max": FLAGS}
    dates = {"inclusive_start": FLAGS, "inclusive_end": FLAGS, "datetime_parser": st.none() | NAMES}
    moments = NAMES | st.datetimes(timezones=OFFSETS)
    return st.one_of(
        _with_field(q.NumericRangeQuery, NUMBERS, st.none() | NUMBERS, **flags),
        _with_field(q.TermRangeQuery, st.none() | NAMES, NAMES, **flags),
        _with_field(q.DateRangeQuery, moments, st.none() | moments, **dates),
    )


SIMPLE: st.SearchStrategy[q.SearchQuery] = st.one_of(
    _with_field(
        q.MatchQuery, TEXTS, fuzziness=st.none() | COUNTS, operator=st.none() | st.sampled_from(q.MatchOperator)
    ),
    _with_field(q.MatchPhraseQuery, TEXTS, analyzer=st.none() | NAMES),
    _with_field(q.TermQuery, TEXTS, fuzziness=COUNTS, prefix_length=COUNTS),
    st.builds(lambda terms: q.PhraseQuery(*terms), st.lists(NAMES, min_size=1, max_size=3)),
    _with_field(q.PrefixQuery, TEXTS),
    _with_field(q.WildcardQuery, TEXTS),
    _with_field(q.RegexpQuery, TEXTS),
    st.builds(q.QueryStringQuery, TEXTS),
    st.builds(q.DocIdQuery, st.lists(NAMES, min_size=1, max_size=3)),
    _with_field(q.BooleanFieldQuery, st.booleans()),
    _ranges(),
    _with_field(q.GeoDistanceQuery, st.sampled_from(["11km", "3nauticalmiles", "0.5mi", "19"]), POINTS),
    _with_field(q.GeoBoundingBoxQuery, POINTS, POINTS),
    _with_field(q.GeoPolygonQuery, st.lists(POINTS, min_size=3, max_size=5)),
    st.builds(q.MatchAllQuery, boost=BOOSTS),
    st.builds(q.MatchNoneQuery),
)


def _compound(parts: st.SearchStrategy[q.SearchQuery]) -> st.SearchStrategy[q.SearchQuery]:
    several_parts = st.lists(parts, min_size=1, max_size=3)
    maybe = st.none() | parts | several_parts
    return st.one_of(
        st.builds(lambda queries, boost: q.ConjunctionQuery(*queries, boost=boost), several_parts, BOOSTS),
        st.builds(lambda queries: q.DisjunctionQuery(*queries, min=len(queries)), several_parts),
        st.builds(q.BooleanQuery, several_parts, maybe, maybe),
        st.builds(q.BooleanQuery, st.none(), maybe, parts),
    )


QUERIES: st.SearchStrategy[q.SearchQuery] = st.recursive(SIMPLE, _compound, max_leaves=8)
"""Hypothesis strategy for queries of all kinds, which may be nested."""

VECTORS: st.SearchStrategy[VectorSearch] = st.builds(
    VectorSearch,
    st.lists(
        st.builds(
            VectorQuery,
            NAMES,
            st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=8),
            num_candidates=st.integers(1, 100),
            boost=BOOSTS,
            prefilter=st.none() | SIMPLE,
        ),
        min_size=1,
        max_size=3,
    ),
    vector_query_combination=st.none() | st.sampled_from(VectorQueryCombination),
)
"""Hypothesis strategy for vector searches that have one or more vector queries."""
