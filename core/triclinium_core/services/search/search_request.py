"""Search request: its query, index and options.

Source: SDK-RFC 0052 "ICluster::SearchQuery", "IScope::Search", "SearchRequest".
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, unique
from typing import ClassVar

import msgspec

from triclinium_core import errors
from triclinium_core.checks import check_flag, check_text, check_type
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.mutation_tokens import check_mutation_token
from triclinium_core.kv.operation.results import MutationToken
from triclinium_core.kv.operation.validation import check_bucket_name, check_name
from triclinium_core.kv.topology.capabilities import ClusterCapability
from triclinium_core.retry.couchbase import Service
from triclinium_core.services.json_values import encode_members
from triclinium_core.services.paths import check_segment, path
from triclinium_core.services.search.facets import Facet
from triclinium_core.services.search.parts import (
    Reader,
    SearchPart,
    read_choice,
    read_json_object,
    read_several,
    read_uint32,
    refused,
    require_shallow,
)
from triclinium_core.services.search.queries import MatchNoneQuery, SearchQuery
from triclinium_core.services.search.result import SearchMetaData, decode_meta_data
from triclinium_core.services.search.sorting import Sort
from triclinium_core.services.search.vectors import VectorSearch
from triclinium_core.services.service_request import HttpRequest, HttpResponse, ServiceRequest
from triclinium_core.shown import total_repr

INDEX_NAME = re.compile(r"[A-Za-z0-9_.%-]+")
"""Names that the service allows for an index, with the prefix ``bucket.scope.`` for an index of a scope."""

MEMBERS: Mapping[str, str] = {
    "collections": "collections",
    "ctl": "scan_consistency, consistent_with or the timeout of the service",
    "explain": "explain",
    "facets": "facets",
    "fields": "fields",
    "from": "skip",
    "highlight": "highlight_style or highlight_fields",
    "includeLocations": "include_locations",
    "knn": "the vector search",
    "knn_operator": "vector_query_combination",
    "query": "the query",
    "score": "disable_scoring",
    "showrequest": "search without it, as triclinium does not return the request",
    "size": "limit",
    "sort": "sort",
}
"""Members of requests that ``raw`` must not set, each with what to use instead."""


@unique
class HighlightStyle(Enum):
    """Markup of matching terms in fragments."""

    HTML = "html"
    """The tag ``<mark>``."""
    ANSI = "ansi"
    """Escape sequences of terminals."""


@unique
class SearchScanConsistency(Enum):
    """Required freshness of the index."""

    NOT_BOUNDED = "not_bounded"
    """Search the index as it is."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A query, a vector search, or both. With both, the result has the hits that either of them finds.

    ``SearchRequest.create(query)`` or ``SearchRequest.create(vector_search)`` creates a request. The methods below
    return a new request that also has the other part.

    Raises:
        InvalidArgumentException: an argument is invalid, or there is neither a query nor a vector search.
    """

    search_query: SearchQuery | None = None
    vector_search: VectorSearch | None = None

    def __post_init__(self) -> None:
        if self.search_query is None and self.vector_search is None:
            raise errors.InvalidArgumentException(
                "search_query or vector_search must be given", parameter="search_query"
            )
        if self.search_query is not None:
            check_type(self.search_query, "search_query", SearchQuery)
        if self.vector_search is not None:
            check_type(self.vector_search, "vector_search", VectorSearch)

    @classmethod
    def create(cls, search: SearchQuery | VectorSearch) -> SearchRequest:
        """Return a request for a query, or for a vector search."""
        check_type(search, "search", SearchQuery, VectorSearch)
        return cls(vector_search=search) if isinstance(search, VectorSearch) else cls(search)

    def with_search_query(self, query: SearchQuery) -> SearchRequest:
        """Return this request with a query.

        Raises:
            InvalidArgumentException: the request has a query already.
        """
        if self.search_query is not None:
            raise errors.InvalidArgumentException(
                "search_query is set already; combine queries with a ConjunctionQuery or a DisjunctionQuery",
                parameter="search_query",
            )
        return replace(self, search_query=query)

    def with_vector_search(self, vector_search: VectorSearch) -> SearchRequest:
        """Return this request with a vector search.

        Raises:
            InvalidArgumentException: the request has a vector search already.
        """
        if self.vector_search is not None:
            raise errors.InvalidArgumentException(
                "vector_search is set already; a VectorSearch can have several queries", parameter="vector_search"
            )
        return replace(self, vector_search=vector_search)

    def members(self) -> dict[str, object]:
        """Return the members of the JSON object for the query and the vector search."""
        # SDK-RFC 0052 "SearchRequest": the service requires a query, and MatchNoneQuery finds no further hits.
        query = self.search_query if self.search_query is not None else MatchNoneQuery()
        vectors = self.vector_search.members() if self.vector_search is not None else {}
        return {"query": query.members(), **vectors}


def _read_sort(value: object, parameter: str) -> str | Sort:
    return value if isinstance(value, Sort) else check_text(value, parameter)


def _read_tokens(value: object, parameter: str) -> tuple[MutationToken, ...]:
    if not isinstance(value, Sequence) or not all(isinstance(token, MutationToken) for token in value):
        raise refused(value, parameter, "a MutationState, or a sequence of MutationToken")
    return tuple(check_mutation_token(token, parameter) for token in value)


def _read_facets(value: object, parameter: str) -> dict[str, Facet]:
    if not isinstance(value, Mapping) or not all(isinstance(facet, Facet) for facet in value.values()):
        raise refused(value, parameter, "a mapping of names to facets")
    return {check_text(name, parameter): facet for name, facet in value.items()}


def _read_raw(value: object, parameter: str) -> dict[str, object]:
    read = read_json_object(value, parameter)
    for name in read:
        if name in MEMBERS:
            raise errors.InvalidArgumentException(f"raw[{name!r}] is not allowed; use {MEMBERS[name]}", parameter="raw")
    return read


_READ_NAMES = read_several(check_text, "names", least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions(SearchPart):
    """Options of a search. The service uses its default for an option of None.

    Args:
        limit: maximum number of hits. Default: 10.
        skip: number of hits to skip first.
        explain: whether hits explain their scores.
        highlight_style: markup of terms in fragments. Hits have fragments if this or ``highlight_fields`` is given.
        highlight_fields: fields to highlight. Default: all fields with matching terms.
        fields: fields whose values the hits contain, if the index stores them; ``*`` means all.
        scan_consistency: required freshness of the index.
        consistent_with: mutations that the index must contain.
        sort: names of fields, ``_score`` or ``_id``, with the prefix ``-`` for descending order; or instances of
            ``Sort``. Default: best hits first.
        facets: facets that count the hits, under names that you choose.
        collections: return only hits in these collections, if the index has several.
        include_locations: whether hits have the locations of the terms.
        disable_scoring: whether to skip scoring, which saves work. All scores are then 0.
        raw: more members of the request in JSON, by name, which no other option sets.

    Raises:
        InvalidArgumentException: an argument is invalid; ``.parameter`` names it.
        EncodingFailureException: ``raw`` cannot be encoded as JSON.
    """

    _OWN_READERS: ClassVar[Mapping[str, Reader]] = {
        "collections": _READ_NAMES,
        "consistent_with": _read_tokens,
        "disable_scoring": check_flag,
        "explain": check_flag,
        "facets": _read_facets,
        "fields": _READ_NAMES,
        "highlight_fields": _READ_NAMES,
        "highlight_style": read_choice(HighlightStyle),
        "include_locations": check_flag,
        "raw": _read_raw,
        "scan_consistency": read_choice(SearchScanConsistency),
        "skip": read_uint32,
        "sort": read_several(_read_sort, "names of fields, or Sort", least=0),
    }

    limit: int | None = None
    skip: int | None = None
    explain: bool = False
    highlight_style: HighlightStyle | None = None
    highlight_fields: Sequence[str] | None = None
    fields: Sequence[str] | None = None
    scan_consistency: SearchScanConsistency | None = None
    consistent_with: Sequence[MutationToken] = ()
    sort: Sequence[str | Sort] | None = None
    facets: Mapping[str, Facet] | None = None
    collections: Sequence[str] | None = None
    include_locations: bool = False
    disable_scoring: bool = False
    raw: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        SearchPart.__post_init__(self)
        if self.scan_consistency is not None and self.consistent_with:
            raise errors.InvalidArgumentException(
                "scan_consistency and consistent_with exclude each other; omit one of them",
                parameter="scan_consistency",
            )

    def members(self) -> dict[str, object]:
        """Return the members of the request, without the timeout and ``consistent_with``."""
        members: dict[str, object] = {
            "size": self.limit,
            "from": self.skip,
            "explain": self.explain or None,
            "highlight": self._highlight(),
            "fields": self.fields,
            "sort": [each.members() if isinstance(each, Sort) else each for each in self.sort] if self.sort else None,
            "facets": {name: facet.members() for name, facet in self.facets.items()} if self.facets else None,
            "collections": self.collections,
            "includeLocations": self.include_locations or None,
            "score": "none" if self.disable_scoring else None,
        }
        return {name: value for name, value in members.items() if value is not None} | dict(self.raw or {})

    def _highlight(self) -> dict[str, object] | None:
        if self.highlight_style is None and self.highlight_fields is None:
            return None
        style = {"style": self.highlight_style.value} if self.highlight_style is not None else {}
        # Without names, the service highlights all fields with matching terms.
        return {**style, "fields": self.highlight_fields} if self.highlight_fields else {**style}


class SearchQueryRequest(ServiceRequest, frozen=True, kw_only=True):
    """Search in an index of the cluster, or of a scope if bucket and scope are given.

    ``repr`` shows neither the query nor the options.

    Raises:
        EncodingFailureException: the queries are nested too deeply.
    """

    name: ClassVar[str] = "search"
    service: ClassVar[Service] = Service.SEARCH
    rows_of: ClassVar[str | None] = "hits"

    index: str
    search: SearchRequest
    options: SearchOptions = SearchOptions()
    bucket_name: str | None = None
    scope_name: str | None = None
    _body: bytes = b""

    def __post_init__(self) -> None:
        check_text(self.client_context_id, "client_context_id", empty=True)
        if not INDEX_NAME.fullmatch(check_segment(self.index, "index")):
            raise refused(self.index, "index", "the name of an index: characters from A-Z a-z 0-9 _ - . %")
        check_type(self.search, "search", SearchRequest)
        check_type(self.options, "options", SearchOptions)
        if self.bucket_name is not None or self.scope_name is not None:
            check_bucket_name(self.bucket_name)
            check_name(self.scope_name, "scope")
        for part in (self.search.search_query, self.search.vector_search):
            if part is not None:
                require_shallow(part)
        # Encode now: an error in an event handler, which encodes each attempt, would end the client. The nesting of a
        # RawQuery, and of ``raw``, is bounded only by Python.
        try:
            body = encode_members({**self.search.members(), **self.options.members()})
        except RecursionError as error:
            raise errors.EncodingFailureException("the search is nested too deeply to be encoded as JSON") from error
        msgspec.structs.force_setattr(self, "_body", body)

    @total_repr
    def __repr__(self) -> str:
        return f"SearchQueryRequest({self.path})"

    @property
    def idempotent(self) -> bool:
        """True: SDK-RFC 0049 "Idempotent Operation List" lists all searches."""
        return True

    @property
    def required_capabilities(self) -> frozenset[ClusterCapability]:
        """Capabilities that the request requires of the cluster (SDK-RFC 0052 "FeatureNotAvailable handling")."""
        scoped = {ClusterCapability.SCOPED_SEARCH_INDEX} if self.scope_name is not None else set()
        vectors = {ClusterCapability.VECTOR_SEARCH} if self.search.vector_search is not None else set()
        return frozenset(scoped | vectors)

    @property
    def path(self) -> str:
        """Path of searches in the index."""
        parts = ["index", self.index]
        if self.bucket_name is not None and self.scope_name is not None:
            parts = ["bucket", self.bucket_name, "scope", self.scope_name, *parts]
        return path("api", *parts, "query")

    @property
    def has_body(self) -> bool:
        """True: the search is the body."""
        return True

    def encode(self, remaining: float) -> HttpRequest:
        """Return the request as one JSON object. Its timeout is ``remaining``, so the service stops with the client."""
        # SDK-RFC 0052 "showrequest": otherwise the response repeats the request, with its vectors.
        more = encode_members({"ctl": self._control(remaining), "showrequest": False})
        return HttpRequest("POST", self.path, b"%b,%b" % (self._body[:-1], more[1:]))

    def _control(self, remaining: float) -> dict[str, object]:
        control: dict[str, object] = {}
        if remaining < math.inf:
            # To the service, 0 means no limit.
            control["timeout"] = max(1, math.ceil(remaining * 1000))
        tokens = self.options.consistent_with
        if tokens:
            vector: dict[str, int] = {}
            for token in tokens:
                place = f"{token.vbucket}/{token.vbucket_uuid}"
                vector[place] = max(vector.get(place, 0), token.sequence_number)
            control["consistency"] = {"level": "at_plus", "vectors": {self.index: vector}}
        return control

    def decode(self, answer: HttpResponse) -> SearchMetaData:
        """Return the metadata in the response."""
        return decode_meta_data(answer)

    def error_context(self) -> ErrorContext:
        """Return the error context of the request, with its index, scope and path."""
        return replace(
            ServiceRequest.error_context(self),
            bucket=self.bucket_name,
            scope=self.scope_name,
            index=self.index,
            http_method="POST",
            http_path=self.path,
            client_context_id=self.client_context_id or None,
        )
