"""Search queries: a class for each kind in RFC 0052, and ``RawQuery``. Queries are values and can contain each other.

Source: SDK-RFC 0052 "SearchQuery implementations"; bleve ``search/query`` for the JSON that the service accepts.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from enum import Enum, unique
from typing import ClassVar

from triclinium_core.checks import check_text
from triclinium_core.services.search import parts

POLYGON_POINTS_MIN = 3


@unique
class MatchOperator(Enum):
    """Combination of the terms of a match query."""

    OR = "or"
    AND = "and"


@dataclass(frozen=True, slots=True)
class SearchQuery(parts.SearchPart):
    """Base of all queries.

    Args:
        boost: weight of the query in the score. A query with a weight above 1 counts more than others, below 1 less.
            None, the default, for 1.

    Raises:
        InvalidArgumentException: an argument is invalid; ``.parameter`` names it.
    """

    _: KW_ONLY
    boost: float | None = None


@dataclass(frozen=True, slots=True)
class FieldQuery(SearchQuery):
    """Base of the queries about one field.

    Args:
        field: name of the field, with dots before names in nested objects. Default: the default field of the index.
    """

    _: KW_ONLY
    field: str | None = None


@dataclass(frozen=True, slots=True)
class MatchQuery(FieldQuery):
    """Documents with one or all terms of a text. The text is analyzed like the field.

    Args:
        match: the text.
        analyzer: name of the analyzer. Default: the analyzer of the field.
        fuzziness: maximum number of characters of a term that may differ. Default: the server's value.
        prefix_length: number of characters at the beginning of a term that must not differ. Default: the server's
            value.
        operator: whether a document needs one of the terms or all. Default: the server's value.
    """

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {
        "match": parts.read_text,
        "operator": parts.read_choice(MatchOperator),
    }

    match: str
    _: KW_ONLY
    analyzer: str | None = None
    fuzziness: int | None = None
    prefix_length: int | None = None
    operator: MatchOperator | None = None


@dataclass(frozen=True, slots=True)
class MatchPhraseQuery(FieldQuery):
    """Documents with the consecutive terms of a text. The text is analyzed like the field.

    Args:
        match_phrase: the text.
        analyzer: name of the analyzer. Default: the analyzer of the field.
    """

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {"match_phrase": parts.read_text}

    match_phrase: str
    _: KW_ONLY
    analyzer: str | None = None


@dataclass(frozen=True, slots=True)
class TermQuery(FieldQuery):
    """Documents with an exact term of the index, without analysis.

    Args:
        term: the term as in the index, such as ``program`` for a document with the word "programming".
        fuzziness: maximum number of characters that may differ. Default: the server's value.
        prefix_length: number of characters at the beginning that must not differ. Default: the server's value.
    """

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {"term": parts.read_text}

    term: str
    _: KW_ONLY
    fuzziness: int | None = None
    prefix_length: int | None = None


@dataclass(frozen=True, slots=True, init=False)
class PhraseQuery(FieldQuery):
    """Documents with exact, consecutive terms of the index, without analysis.

    Args:
        terms: one or more.
    """

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {"terms": parts.read_several(check_text, "terms")}

    terms: tuple[str, ...]

    def __init__(self, *terms: str, field: str | None = None, boost: float | None = None) -> None:
        parts.fill(self, terms=terms, field=field, boost=boost)


@dataclass(frozen=True, slots=True)
class PrefixQuery(FieldQuery):
    """Documents with a term that begins with ``prefix``, without analysis."""

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {"prefix": parts.read_text}

    prefix: str


@dataclass(frozen=True, slots=True)
class WildcardQuery(FieldQuery):
    """Documents with a term that matches a pattern, without analysis: ``*`` for any characters, ``?`` for one."""

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {"wildcard": parts.read_text}

    wildcard: str


@dataclass(frozen=True, slots=True)
class RegexpQuery(FieldQuery):
    """Documents with a term that a regular expression in Go's syntax matches as a whole, without analysis."""

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {"regexp": parts.read_text}

    regexp: str


@dataclass(frozen=True, slots=True)
class QueryStringQuery(SearchQuery):
    """Documents that match a query string, such as ``+room -breakfast name:Tokyo^2``.

    Args:
        query: query in the syntax of Couchbase's query strings. The service reports errors in it.
    """

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {"query": parts.read_text}

    query: str


@dataclass(frozen=True, slots=True)
class DocIdQuery(SearchQuery):
    """Documents with one of the given ids. At least one id is required."""

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {"ids": parts.read_several(check_text, "document ids")}

    ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class BooleanFieldQuery(FieldQuery):
    """Documents in which a field has the given boolean."""

    bool: builtins.bool


@dataclass(frozen=True, slots=True)
class NumericRangeQuery(FieldQuery):
    """Documents with a number in a range. One end may be left open.

    Args:
        min: lower end, included unless ``inclusive_min`` is False. None, the default, for no lower bound.
        max: upper end, excluded unless ``inclusive_max`` is True. None, the default, for no upper bound.
    """

    min: float | None = None
    max: float | None = None
    _: KW_ONLY
    inclusive_min: bool | None = None
    inclusive_max: bool | None = None

    def __post_init__(self) -> None:
        FieldQuery.__post_init__(self)
        parts.require_one(self, "min", "max")


@dataclass(frozen=True, slots=True)
class TermRangeQuery(FieldQuery):
    """Documents with a term between two given terms, in byte order. One end may be left open.

    Args:
        min: lower end, included unless ``inclusive_min`` is False. None, the default, for no lower bound.
        max: upper end, excluded unless ``inclusive_max`` is True. None, the default, for no upper bound.
    """

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {"min": check_text, "max": check_text}

    min: str | None = None
    max: str | None = None
    _: KW_ONLY
    inclusive_min: bool | None = None
    inclusive_max: bool | None = None

    def __post_init__(self) -> None:
        FieldQuery.__post_init__(self)
        parts.require_one(self, "min", "max")


@dataclass(frozen=True, slots=True)
class DateRangeQuery(FieldQuery):
    """Documents with a date in a range. One end may be left open.

    Args:
        start: a datetime with a time zone, or text for the parser. Included unless ``inclusive_start`` is False. None,
            the default, for no lower bound.
        end: like ``start``, but excluded unless ``inclusive_end`` is True. None, the default, for no upper bound.
        datetime_parser: name of the parser. Default: the parser of the index.
    """

    start: datetime | str | None = None
    end: datetime | str | None = None
    _: KW_ONLY
    inclusive_start: bool | None = None
    inclusive_end: bool | None = None
    datetime_parser: str | None = None

    def __post_init__(self) -> None:
        FieldQuery.__post_init__(self)
        parts.require_one(self, "start", "end")


@dataclass(frozen=True, slots=True)
class GeoDistanceQuery(FieldQuery):
    """Documents with a point within a distance of a given point.

    Args:
        distance: a number with a unit, such as ``11km``, ``3nm``, ``17mi`` or ``19m``. The default unit is meters.
        location: longitude and latitude, in this order.
    """

    distance: str
    location: parts.GeoPoint


@dataclass(frozen=True, slots=True)
class GeoBoundingBoxQuery(FieldQuery):
    """Documents with a point in a box.

    Args:
        top_left: north-west corner of the box: longitude and latitude, in this order.
        bottom_right: south-east corner of the box.
    """

    top_left: parts.GeoPoint
    bottom_right: parts.GeoPoint


@dataclass(frozen=True, slots=True)
class GeoPolygonQuery(FieldQuery):
    """Documents with a point inside a polygon.

    Args:
        polygon_points: three or more corners, each longitude and latitude, in this order.
    """

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {
        "polygon_points": parts.read_several(parts.read_point, "points", least=POLYGON_POINTS_MIN)
    }

    polygon_points: Sequence[parts.GeoPoint]


_READ_QUERY = parts.read_part(SearchQuery)
_READ_QUERIES = parts.read_several(_READ_QUERY, "queries")


@dataclass(frozen=True, slots=True, init=False)
class ConjunctionQuery(SearchQuery):
    """Documents that match all of the given queries. At least one query is required."""

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {"conjuncts": _READ_QUERIES}

    conjuncts: tuple[SearchQuery, ...]

    def __init__(self, *conjuncts: SearchQuery, boost: float | None = None) -> None:
        parts.fill(self, conjuncts=conjuncts, boost=boost)


@dataclass(frozen=True, slots=True, init=False)
class DisjunctionQuery(SearchQuery):
    """Documents that match at least ``min`` of the queries.

    Args:
        disjuncts: one or more queries, and at least ``min``.
        min: number of queries that a document must match. Default: 1.
    """

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {"disjuncts": _READ_QUERIES, "min": parts.read_uint32}

    disjuncts: tuple[SearchQuery, ...]
    min: int

    def __init__(self, *disjuncts: SearchQuery, min: int = 1, boost: float | None = None) -> None:
        parts.fill(self, disjuncts=disjuncts, min=min, boost=boost)
        if self.min > len(disjuncts):
            raise parts.refused(min, "min", f"at most {len(disjuncts)}, the number of queries")


@dataclass(frozen=True, slots=True)
class BooleanQuery(SearchQuery):
    """Documents that match all queries in ``must`` and none in ``must_not``. Queries in ``should`` raise the score.

    Each argument is a query, a sequence of queries, or a query that combines them: a ``ConjunctionQuery`` for ``must``,
    a ``DisjunctionQuery`` for ``should`` and ``must_not``, whose ``min`` is the required number of matches. At least
    one argument is required.

    Args:
        must: documents must match all of these. Default: none.
        should: documents that match these have a higher score. Without ``must``, documents must match one of these.
            Default: none.
        must_not: documents must match none of these. Default: none.
    """

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {
        "must": parts.read_part(ConjunctionQuery),
        "should": parts.read_part(DisjunctionQuery),
        "must_not": parts.read_part(DisjunctionQuery),
    }

    must: SearchQuery | Sequence[SearchQuery] | None = None
    should: SearchQuery | Sequence[SearchQuery] | None = None
    must_not: SearchQuery | Sequence[SearchQuery] | None = None

    def __post_init__(self) -> None:
        for name, kind in _COMPOUNDS.items():
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                queries = _READ_QUERIES((value,) if isinstance(value, SearchQuery) else value, name)
                object.__setattr__(self, name, kind(*queries))  # type: ignore[misc]  # they are a tuple of queries
        SearchQuery.__post_init__(self)
        parts.require_one(self, *_COMPOUNDS)


_COMPOUNDS = {"must": ConjunctionQuery, "should": DisjunctionQuery, "must_not": DisjunctionQuery}


@dataclass(frozen=True, slots=True)
class MatchAllQuery(SearchQuery):
    """All documents of the index."""

    _JSON_CONSTANTS: ClassVar[Mapping[str, object]] = {"match_all": None}


@dataclass(frozen=True, slots=True)
class MatchNoneQuery(SearchQuery):
    """No documents."""

    _JSON_CONSTANTS: ClassVar[Mapping[str, object]] = {"match_none": None}


@dataclass(frozen=True, slots=True)
class RawQuery(SearchQuery):
    """Query in JSON, for kinds without a class in this module. The service checks it.

    Args:
        query: mapping that is sent unchanged, except that the argument ``boost``, if given, replaces the ``boost`` in
            it.

    Raises:
        EncodingFailureException: the query cannot be encoded as JSON.
    """

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {"query": parts.read_json_object}

    query: Mapping[str, object]

    def members(self) -> dict[str, object]:
        """Return the members of the query's JSON object."""
        boost = {} if self.boost is None else {"boost": self.boost}
        return {**self.query, **boost}
