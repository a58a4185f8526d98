"""Result of a search: hits, and metadata with metrics, errors and facets.

Source: SDK-RFC 0052 "Return Types"; bleve ``search.go`` and ``search/search.go`` for the JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeVar

import msgspec

from triclinium_core.json_depth import shallow
from triclinium_core.kv.wire.json_limits import JsonLimits
from triclinium_core.services.answer.decoded_limits import OBJECTS_SIZE_BYTES_MAX
from triclinium_core.services.json_values import decode_json
from triclinium_core.services.received import UNREADABLE, Members, as_text, body_members, decoded, members_of
from triclinium_core.services.service_request import HttpResponse, MalformedAnswer, ServiceResult

T = TypeVar("T")

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]

_NANOSECONDS = 1e9


class SearchRowLocation(msgspec.Struct, frozen=True):
    """Location of a term in a document."""

    field: str
    term: str
    position: int
    """Position among the terms of the field, counted from 1."""
    start: int
    """Offset of the term in the field, in bytes."""
    end: int
    """Offset of the end of the term in the field, in bytes."""
    array_positions: tuple[int, ...] | None = None
    """Index in each array around the field, the outermost first; None outside arrays."""


class SearchRowLocations(msgspec.Struct, frozen=True):
    """Locations of the terms in a document."""

    locations: tuple[SearchRowLocation, ...]

    def get_all(self) -> tuple[SearchRowLocation, ...]:
        """Return all locations."""
        return self.locations

    def get(self, field: str, term: str | None = None) -> tuple[SearchRowLocation, ...]:
        """Return the locations of ``term`` in a field; with None, of all terms in the field."""
        return tuple(each for each in self.locations if each.field == field and term in (None, each.term))

    def fields(self) -> tuple[str, ...]:
        """Return the fields with matching terms, each once."""
        return tuple(dict.fromkeys(each.field for each in self.locations))

    def terms(self) -> frozenset[str]:
        """Return the matching terms of all fields."""
        return frozenset(each.term for each in self.locations)

    def terms_for(self, field: str) -> tuple[str, ...]:
        """Return the matching terms of a field, each once."""
        return tuple(dict.fromkeys(each.term for each in self.get(field)))


class SearchRow(msgspec.Struct, frozen=True):
    """Hit of a search."""

    index: str
    """Name of the index partition with the hit. It begins with the name of the index."""
    id: str
    """Id of the document."""
    score: float = 0.0
    """Relevance of the document; 0 if scoring is disabled."""
    sort: tuple[str, ...] = ()
    """Values by which the hit is sorted."""
    explanation: Mapping[str, object] | None = None
    """Computation of the score, if requested; otherwise None."""
    locations: SearchRowLocations | None = None
    """Locations of the terms, if requested; otherwise None."""
    fragments: Mapping[str, tuple[str, ...]] | None = None
    """Pieces of text with highlighted terms, by field, if requested; otherwise None."""
    encoded_fields: bytes | None = None
    """Requested fields as a JSON object; None if the hit has none."""

    @property
    def fields(self) -> Mapping[str, object] | None:
        """Requested fields by name; None if the hit has none."""
        return None if self.encoded_fields is None else self.fields_as(dict[str, object])

    def fields_as(self, as_type: type[T]) -> T:
        """Return the requested fields, converted to ``as_type`` in one pass.

        Raises:
            DecodingFailureException: the fields do not fit the type, or are too large to be decoded.
        """
        return decode_json(self.encoded_fields or b"{}", as_type, f"the fields of {self.id!r} are")


class SearchMetrics(msgspec.Struct, frozen=True):
    """Metrics of a search."""

    took: float
    """Duration in seconds, measured by the server."""
    total_rows: int
    """Number of matching documents, returned or not."""
    max_score: float
    success_partition_count: int
    """Number of index partitions that returned their hits."""
    error_partition_count: int
    """Number of index partitions that failed. If there are any, hits may be missing."""

    @property
    def total_partition_count(self) -> int:
        """Number of partitions of the index."""
        return self.success_partition_count + self.error_partition_count


class SearchTermFacet(msgspec.Struct, frozen=True):
    """Number of hits with a term."""

    term: str
    count: Count


class SearchNumericRangeFacet(msgspec.Struct, frozen=True):
    """Number of hits with a number in a range."""

    name: str
    count: Count
    min: float | None = None
    max: float | None = None


class SearchDateRangeFacet(msgspec.Struct, frozen=True):
    """Number of hits with a date in a range."""

    name: str
    count: Count
    start: str | None = None
    end: str | None = None


class SearchFacetResult(msgspec.Struct, frozen=True):
    """Result of a facet."""

    name: str
    field: str
    total: int
    """Number of counted values."""
    missing: int
    """Number of hits without a value."""
    other: int
    """Number of values in terms or ranges that are not returned."""
    terms: tuple[SearchTermFacet, ...] = ()
    numeric_ranges: tuple[SearchNumericRangeFacet, ...] = ()
    date_ranges: tuple[SearchDateRangeFacet, ...] = ()


class SearchMetaData(ServiceResult, frozen=True):
    """Metadata of a search, which follows the hits."""

    metrics: SearchMetrics
    errors: Mapping[str, str]
    """Error of each failed partition of the index. If there are any, hits may be missing."""
    facets: Mapping[str, SearchFacetResult]
    """Result of each facet, by its name in the request."""


class _Location(msgspec.Struct):
    pos: int
    start: int
    end: int
    array_positions: tuple[int, ...] | None = None


class _Hit(msgspec.Struct):
    """Hit in the JSON of the service."""

    index: str
    id: str
    score: float = 0.0
    sort: tuple[str, ...] | None = None
    explanation: dict[str, object] | None = None
    locations: dict[str, dict[str, tuple[_Location, ...]]] | None = None
    fragments: dict[str, tuple[str, ...]] | None = None
    fields: msgspec.Raw = msgspec.Raw()


class _Status(msgspec.Struct):
    failed: Count = 0
    successful: Count = 0
    errors: dict[str, str] | None = None


class _Facet(msgspec.Struct):
    field: str
    total: Count = 0
    missing: Count = 0
    other: Count = 0
    terms: tuple[SearchTermFacet, ...] | None = None
    numeric_ranges: tuple[SearchNumericRangeFacet, ...] | None = None
    date_ranges: tuple[SearchDateRangeFacet, ...] | None = None


class _Answer(msgspec.Struct):
    """Response of the service, without its hits."""

    status: _Status
    total_hits: Count = 0
    max_score: float = 0.0
    took: Count = 0
    facets: dict[str, _Facet] | None = None


UNKNOWN_FORM_LIMITS = JsonLimits(size_bytes_max=OBJECTS_SIZE_BYTES_MAX, objects_max=4_096, parts_max=16_384)
"""Limits of a hit or a response of an unknown form. It is read part by part, at up to 10 microseconds per object."""

_HITS = msgspec.json.Decoder(_Hit)


def decode_row(data: bytes) -> SearchRow:
    """Return a hit. Leave out parts of an unknown form.

    Raises:
        MalformedAnswer: the hit is not an object, has no document id, or has an unknown form and exceeds
            ``UNKNOWN_FORM_LIMITS``.
    """
    try:
        hit = _HITS.decode(shallow(data))
    except UNREADABLE:
        _check_unknown_form(data)
        hit = _read_hit(members_of(msgspec.Raw(data)))
    locations = (
        SearchRowLocation(field, term, each.pos, each.start, each.end, each.array_positions)
        for field, terms in (hit.locations or {}).items()
        for term, found in terms.items()
        for each in found
    )
    return SearchRow(
        hit.index,
        hit.id,
        hit.score,
        hit.sort or (),
        hit.explanation,
        SearchRowLocations(tuple(locations)) if hit.locations is not None else None,
        hit.fragments,
        bytes(hit.fields) if bytes(hit.fields) not in (b"", b"null") else None,
    )


def _check_unknown_form(encoded: bytes) -> None:
    excess = UNKNOWN_FORM_LIMITS.excess(encoded)
    if excess is not None:
        raise MalformedAnswer(f"a response in a form unknown to this version, with {excess}")


def _read_hit(found: Members) -> _Hit:
    """Return a hit, read part by part.

    Raises:
        MalformedAnswer: the hit has no document id.
    """
    key = found.get("id", str)
    if key is None:
        raise MalformedAnswer("a hit without the id of its document")
    places, pieces = found.members("locations"), found.members("fragments")
    locations = {
        field: {
            term: tuple(place for each in terms.array(term) if (place := decoded(each, _Location)) is not None)
            for term in terms.raw
        }
        for field, terms in ((field, places.members(field)) for field in places.raw)
    }
    return _Hit(
        found.text("index"),
        key,
        found.number("score") or 0.0,
        found.texts("sort"),
        found.get("explanation", dict[str, object]),
        locations if found.is_set("locations") else None,
        {field: pieces.texts(field) for field in pieces.raw} if found.is_set("fragments") else None,
        found.raw.get("fields", msgspec.Raw()),
    )


def decode_meta_data(answer: HttpResponse) -> SearchMetaData:
    """Return the metadata in a response.

    Raises:
        MalformedAnswer: the body is not the response to a search, does not state whether hits are missing, or has an
            unknown form and exceeds ``UNKNOWN_FORM_LIMITS``.
    """
    try:
        answered = answer.body_as(_Answer)
    except MalformedAnswer:
        _check_unknown_form(answer.body)
        answered = _read_answer(body_members(answer))
    status = answered.status
    metrics = SearchMetrics(
        answered.took / _NANOSECONDS, answered.total_hits, answered.max_score, status.successful, status.failed
    )
    facets = {name: _facet_result(name, facet) for name, facet in (answered.facets or {}).items()}
    return SearchMetaData(metrics, status.errors or {}, facets)


def _read_answer(found: Members) -> _Answer:
    """Return a response, read part by part.

    Raises:
        MalformedAnswer: the response has no status, or its number of failed partitions is invalid.
    """
    status = found.members("status")
    failed = status.integer("failed") if status.is_set("failed") else 0
    if found.get("status", dict[str, msgspec.Raw]) is None or failed is None or failed < 0:
        raise MalformedAnswer("the response has no status, or an invalid number of failed partitions")
    errors = status.members("errors").raw
    texts = {name: text if (text := decoded(raw, str)) is not None else as_text(raw) for name, raw in errors.items()}
    facets = found.members("facets")
    return _Answer(
        _Status(failed, status.count("successful"), texts),
        found.count("total_hits"),
        found.number("max_score") or 0.0,
        found.count("took"),
        {name: _read_facet(facets.members(name)) for name in facets.raw if facets.is_set(name)},
    )


def _read_facet(found: Members) -> _Facet:
    return _Facet(
        found.text("field"),
        found.count("total"),
        found.count("missing"),
        found.count("other"),
        _parts(found, "terms", SearchTermFacet),
        _parts(found, "numeric_ranges", SearchNumericRangeFacet),
        _parts(found, "date_ranges", SearchDateRangeFacet),
    )


def _facet_result(name: str, facet: _Facet) -> SearchFacetResult:
    return SearchFacetResult(
        name,
        facet.field,
        facet.total,
        facet.missing,
        facet.other,
        facet.terms or (),
        facet.numeric_ranges or (),
        facet.date_ranges or (),
    )


def _parts(facet: Members, name: str, kind: type[T]) -> tuple[T, ...]:
    """Return the terms or ranges of a facet. Leave out parts of an unknown form."""
    return tuple(part for each in facet.array(name) if (part := decoded(each, kind)) is not None)
