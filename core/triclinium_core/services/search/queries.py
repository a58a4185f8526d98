"""Search queries: one class for each kind, each a value that can be part of others.

Source: SDK-RFC 0052 "SearchQuery Implementations"; bleve ``search/query`` for the JSON that the service takes.
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
    """How the terms of a match query are combined."""

    OR = "or"
    AND = "and"


@dataclass(frozen=True, slots=True)
class SearchQuery(parts.SearchPart):
    """Base of all queries. They have in common:

    Args:
        boost: how much the query counts in the score compared to others: above 1 for more, below 1 for less.

    Raises:
        InvalidArgumentException: an argument is wrong; ``.parameter`` names it.
    """

    _: KW_ONLY
    boost: float | None = None


@dataclass(frozen=True, slots=True)
class FieldQuery(SearchQuery):
    """Base of the queries about one field.

    Args:
        field: which one, with dots on the way into objects; the default field of the index unless given.
    """

    _: KW_ONLY
    field: str | None = None


@dataclass(frozen=True, slots=True)
class MatchQuery(FieldQuery):
    """Documents with the terms of a text, which is analyzed as the field was.

    Args:
        match: the text.
        analyzer: by name, instead of that of the field.
        fuzziness: how many characters of a term may differ.
        prefix_length: how many characters at the beginning of a term may not.
        operator: whether one of the terms is enough, or all are needed.
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
    """Documents with the terms of a text in a row; the text is analyzed as the field was.

    Args:
        match_phrase: the text.
        analyzer: by name, instead of that of the field.
    """

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {"match_phrase": parts.read_text}

    match_phrase: str
    _: KW_ONLY
    analyzer: str | None = None


@dataclass(frozen=True, slots=True)
class TermQuery(FieldQuery):
    """Documents with a term as it stands in the index: nothing is analyzed.

    Args:
        term: exactly as in the index, which may have ``program`` where the document says "programming".
        fuzziness: how many characters may differ.
        prefix_length: how many characters at the beginning may not.
    """

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {"term": parts.read_text}

    term: str
    _: KW_ONLY
    fuzziness: int | None = None
    prefix_length: int | None = None


@dataclass(frozen=True, slots=True, init=False)
class PhraseQuery(FieldQuery):
    """Documents with several terms in a row, as they stand in the index: nothing is analyzed.

    Args:
        terms: one or more.
    """

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {"terms": parts.read_several(check_text, "terms")}

    terms: tuple[str, ...]

    def __init__(self, *terms: str, field: str | None = None, boost: float | None = None) -> None:
        parts.fill(self, terms=terms, field=field, boost=boost)


@dataclass(frozen=True, slots=True)
class PrefixQuery(FieldQuery):
    """Documents with a term that begins with ``prefix``. Nothing is analyzed."""

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {"prefix": parts.read_text}

    prefix: str


@dataclass(frozen=True, slots=True)
class WildcardQuery(FieldQuery):
    """Documents with a term of this form: ``*`` stands for any characters or none, ``?`` for one. Nothing is analyzed."""

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {"wildcard": parts.read_text}

    wildcard: str


@dataclass(frozen=True, slots=True)
class RegexpQuery(FieldQuery):
    """Documents with a term that matches a regular expression as a whole, in the syntax of Go. Nothing is analyzed."""

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {"regexp": parts.read_text}

    regexp: str


@dataclass(frozen=True, slots=True)
class QueryStringQuery(SearchQuery):
    """Documents that fit a query in words, such as ``+room -breakfast name:Tokyo^2``.

    Args:
        query: in the syntax of Couchbase's query strings; the service reports what is wrong in it.
    """

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {"query": parts.read_text}

    query: str


@dataclass(frozen=True, slots=True)
class DocIdQuery(SearchQuery):
    """The documents with these ids, one or more."""

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {"ids": parts.read_several(check_text, "document ids")}

    ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class BooleanFieldQuery(FieldQuery):
    """Documents in which a field is True, or False."""

    bool: builtins.bool


@dataclass(frozen=True, slots=True)
class NumericRangeQuery(FieldQuery):
    """Documents with a number in a range. One end may be left open.

    Args:
        min: included unless ``inclusive_min`` is False.
        max: not included unless ``inclusive_max`` is True.
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
    """Documents with a term between two others, by the order of their bytes. One end may be left open.

    Args:
        min: included unless ``inclusive_min`` is False.
        max: not included unless ``inclusive_max`` is True.
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
        start: a datetime with a time zone, or text for the parser; included unless ``inclusive_start`` is False.
        end: likewise; not included unless ``inclusive_end`` is True.
        datetime_parser: by name, instead of that of the index.
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
    """Documents with a place within a distance of another.

    Args:
        distance: a number with its unit, such as ``11km``, ``3nm``, ``17mi`` or ``19m``; meters without one.
        location: longitude and latitude, in this order.
    """

    distance: str
    location: parts.GeoPoint


@dataclass(frozen=True, slots=True)
class GeoBoundingBoxQuery(FieldQuery):
    """Documents with a place in a box.

    Args:
        top_left: its corner in the north-west: longitude and latitude, in this order.
        bottom_right: its corner in the south-east.
    """

    top_left: parts.GeoPoint
    bottom_right: parts.GeoPoint


@dataclass(frozen=True, slots=True)
class GeoPolygonQuery(FieldQuery):
    """Documents with a place inside of a polygon.

    Args:
        polygon_points: three corners or more: longitude and latitude, in this order.
    """

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {
        "polygon_points": parts.read_several(parts.read_point, "points", least=POLYGON_POINTS_MIN)
    }

    polygon_points: Sequence[parts.GeoPoint]


_READ_QUERY = parts.read_part(SearchQuery)
_READ_QUERIES = parts.read_several(_READ_QUERY, "queries")


@dataclass(frozen=True, slots=True, init=False)
class ConjunctionQuery(SearchQuery):
    """Documents that fit all of the given queries, of which there is at least one."""

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {"conjuncts": _READ_QUERIES}

    conjuncts: tuple[SearchQuery, ...]

    def __init__(self, *conjuncts: SearchQuery, boost: float | None = None) -> None:
        parts.fill(self, conjuncts=conjuncts, boost=boost)


@dataclass(frozen=True, slots=True, init=False)
class DisjunctionQuery(SearchQuery):
    """Documents that fit at least ``min`` of the queries.

    Args:
        disjuncts: as many as ``min``, or more.
        min: how many of them, at least.
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
    """Documents that fit all queries of one list and none of another, and score higher for those of a third.

    Each list is a query, a sequence of queries, or the query that the sequence would become: ``must`` a
    ``ConjunctionQuery``, the others a ``DisjunctionQuery``, whose ``min`` says how many are needed. One of the three
    must be given.

    Args:
        must: all of these.
        should: preferably; where there is no ``must``, one of these.
        must_not: none of these.
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
    """No document."""

    _JSON_CONSTANTS: ClassVar[Mapping[str, object]] = {"match_none": None}


@dataclass(frozen=True, slots=True)
class RawQuery(SearchQuery):
    """A query in JSON, for kinds without a class here. The service judges it.

    Args:
        query: a mapping, as it should be in the request.

    Raises:
        EncodingFailureException: it has no form in JSON.
    """

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {"query": parts.read_json_object}

    query: Mapping[str, object]

    def members(self) -> dict[str, object]:
        """Return the members of the JSON object that it is in a request."""
        boost = {} if self.boost is None else {"boost": self.boost}
        return {**self.query, **boost}
