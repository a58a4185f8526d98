"""Requests for a search: their target, their body, and invalid arguments."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, strategies as st

from tests.core.services.search.grammar import NAMES, QUERIES, VECTORS, is_query, is_vector_query, several
from tests.refusals import refused
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.results import MutationToken
from triclinium_core.kv.topology.capabilities import ClusterCapability
from triclinium_core.retry.couchbase import is_idempotent
from triclinium_core.services.search import search_request
from triclinium_core.services.search.facets import TermFacet
from triclinium_core.services.search.parts import LEVELS_MAX
from triclinium_core.services.search.queries import ConjunctionQuery, MatchAllQuery, SearchQuery, TermQuery
from triclinium_core.services.search.search_request import SearchOptions, SearchQueryRequest, SearchRequest
from triclinium_core.services.search.sorting import SortID
from triclinium_core.services.search.vectors import VectorQuery, VectorSearch
from triclinium_core.services.service_request import HttpResponse

ALL = SearchRequest.create(MatchAllQuery())
NEAR = VectorSearch(VectorQuery("v", [0.5]))
KNN = {"knn": [{"field": "v", "vector": [0.5], "k": 3}]}
TOKENS = (
    MutationToken("travel", 7, 1, 5),
    MutationToken("travel", 7, 1, 9),
    MutationToken("travel", 7, 1, 8),
    MutationToken("travel", 3, 2**64 - 1, 4),
)


def body_of(request: SearchQueryRequest, remaining: float = math.inf) -> Mapping[str, object]:
    """Return the JSON body of the request."""
    assert request.has_body
    body: Mapping[str, object] = json.loads(request.encode(remaining).body)
    return body


def members_of(**options: object) -> Mapping[str, object]:
    """Return the members that options add to the body of a request or change in it."""
    plain = body_of(SearchQueryRequest(index="i", search=ALL))
    body = body_of(SearchQueryRequest(index="i", search=ALL, options=SearchOptions(**options)))  # type: ignore[arg-type]
    return {name: value for name, value in body.items() if name not in plain or value != plain[name]}


def test_default_request() -> None:
    """The default body has the query, no timeout if there is no deadline, and disables the echo of the request."""
    request = SearchQueryRequest(index="i", search=ALL)

    assert {"query": {"match_all": None}, "ctl": {}, "showrequest": False} == body_of(request)
    assert "POST" == request.encode(1).method
    assert "application/json" == request.encode(1).content_type


@rows(("index", "bucket", "scope", "path"), [
        ("hotels", None, None, "/api/index/hotels/query"),
        ("travel.inventory.hotels", None, None, "/api/index/travel.inventory.hotels/query"),
        ("hotels", "travel", "inventory", "/api/bucket/travel/scope/inventory/index/hotels/query"),
        ("h%2f", "a.b%", "s%", "/api/bucket/a.b%25/scope/s%25/index/h%252f/query"),
    ])  # fmt: skip
def test_paths(index: str, bucket: str | None, scope: str | None, path: str) -> None:
    """The path has the index of the cluster, or bucket, scope and index; percent signs in names are encoded."""
    request = SearchQueryRequest(index=index, search=ALL, bucket_name=bucket, scope_name=scope)

    assert path == request.encode(1).target


@rows(("options", "expected"), [
        ({"limit": 5, "skip": 0}, {"size": 5, "from": 0}),
        ({"explain": True}, {"explain": True}),
        ({"explain": False, "include_locations": False, "disable_scoring": False}, {}),
        ({"include_locations": True}, {"includeLocations": True}),
        ({"disable_scoring": True}, {"score": "none"}),
        ({"highlight_style": search_request.HighlightStyle.ANSI}, {"highlight": {"style": "ansi"}}),
        ({"highlight_fields": ["a", "b"]}, {"highlight": {"fields": ["a", "b"]}}),
        ({"highlight_fields": []}, {"highlight": {}}),
        (
            {"highlight_style": search_request.HighlightStyle.HTML, "highlight_fields": ("a",)},
            {"highlight": {"style": "html", "fields": ["a"]}},
        ),
        ({"fields": ["*"]}, {"fields": ["*"]}),
        ({"sort": ["-_score", SortID(desc=True)]}, {"sort": ["-_score", {"by": "id", "desc": True}]}),
        ({"sort": []}, {}),
        ({"facets": {"types": TermFacet("type", limit=3)}}, {"facets": {"types": {"field": "type", "size": 3}}}),
        ({"facets": {}}, {}),
        ({"collections": ["hotel"]}, {"collections": ["hotel"]}),
        ({"scan_consistency": search_request.SearchScanConsistency.NOT_BOUNDED}, {}),
        (
            {"consistent_with": TOKENS},
            {"ctl": {"consistency": {"level": "at_plus", "vectors": {"i": {"7/1": 9, "3/18446744073709551615": 4}}}}},
        ),
        ({"raw": {"search_after": ["a"], "score_": None}}, {"search_after": ["a"], "score_": None}),
    ])  # fmt: skip
def test_options(options: Mapping[str, object], expected: Mapping[str, object]) -> None:
    """An option that is not a default has the RFC's members; only the newest mutation of a vbucket is sent."""
    assert expected == members_of(**options)


@rows(("remaining", "timeout"), [(75.0, 75_000), (0.0004, 1), (0.0, 1), (-1.0, 1), (1.0001, 1001), (1e9, 10**12)])
def test_the_timeout_of_the_service(remaining: float, timeout: int) -> None:
    """The timeout is the remaining time in whole milliseconds, and at least 1, because 0 means no limit."""
    assert {"timeout": timeout} == body_of(SearchQueryRequest(index="i", search=ALL), remaining)["ctl"]


@rows(("search", "expected"), [
        (SearchRequest.create(TermQuery("x")), {"query": {"term": "x"}}),
        (SearchRequest.create(NEAR), {"query": {"match_none": None}, **KNN}),
        (SearchRequest.create(NEAR).with_search_query(TermQuery("x")), {"query": {"term": "x"}, **KNN}),
        (SearchRequest.create(TermQuery("x")).with_vector_search(NEAR), {"query": {"term": "x"}, **KNN}),
        (SearchRequest(TermQuery("x"), NEAR), {"query": {"term": "x"}, **KNN}),
    ])  # fmt: skip
def test_search_requests(search: SearchRequest, expected: Mapping[str, object]) -> None:
    """A search has a query, vectors, or both; without a query it sends one that matches nothing."""
    assert expected == search.members()


@rows(("parameter", "make"), [
        ("search_query", SearchRequest),
        ("search_query", lambda: SearchRequest("x")),  # type: ignore[arg-type]
        ("vector_search", lambda: SearchRequest(None, MatchAllQuery())),  # type: ignore[arg-type]
        ("search", lambda: SearchRequest.create(VectorQuery("v", [1]))),  # type: ignore[arg-type]
        ("search_query", lambda: ALL.with_search_query(MatchAllQuery())),
        ("vector_search", lambda: SearchRequest.create(NEAR).with_vector_search(NEAR)),
        ("search_query", lambda: SearchRequest.create(NEAR).with_search_query(NEAR)),  # type: ignore[arg-type]
        ("vector_search", lambda: ALL.with_vector_search(TermQuery("x"))),  # type: ignore[arg-type]
    ])  # fmt: skip
def test_invalid_search_requests(parameter: str, make: Callable[[], object]) -> None:
    """An empty search, a part of another type, a second query and a second vector search are refused."""
    refused(parameter, make)


COUNT = (-1, 1.5, True, "1", 2**32)
NOT_NAMES = ("ab", 5, [1], [""], {"a": 1})


@rows(("parameter", "values"), [
        ("limit", COUNT),
        ("skip", COUNT),
        ("explain", (None, 1, "true")),
        ("include_locations", (None, 1)),
        ("disable_scoring", (None, 1)),
        ("highlight_style", ("html", 5)),
        ("highlight_fields", NOT_NAMES),
        ("fields", NOT_NAMES),
        ("collections", NOT_NAMES),
        ("sort", ("-_score", 5, [1], [""], SortID(), [SortID])),
        ("facets", ([TermFacet("a")], {"a": "b"}, {"": TermFacet("a")}, {1: TermFacet("a")}, "a")),
        ("scan_consistency", ("not_bounded", 5)),
        ("consistent_with", (None, 5, "a", [1], {TOKENS[0]}, TOKENS[0])),
        ("raw", ([], "a", 5, {"size": 5}, {"ctl": {}})),
    ])  # fmt: skip
def test_invalid_options(parameter: str, values: tuple[object, ...]) -> None:
    """An invalid option raises an error that names the option; so does a raw option with the name of a known option."""
    for value in values:
        refused(parameter, SearchOptions, **{parameter: value})


def test_consistency_is_set_once() -> None:
    """A search with both ``scan_consistency`` and ``consistent_with`` is refused (SDK-RFC 0052)."""
    refused(
        "scan_consistency",
        SearchOptions,
        scan_consistency=search_request.SearchScanConsistency.NOT_BOUNDED,
        consistent_with=TOKENS,
    )


def test_raw_options_must_be_json() -> None:
    """Raw options that JSON cannot represent are refused."""
    with pytest.raises(errors.EncodingFailureException):
        SearchOptions(raw={"a": math.nan})


@rows(("parameter", "options"), [
        ("index", {"index": value}) for value in (None, "", 5, ".", "..", "a/b", "a?b", "../x", "é", "a b", "a\n")
    ] + [
        ("search", {"search": MatchAllQuery()}),
        ("options", {"options": {}}),
        ("bucket", {"scope_name": "s"}),
        ("scope", {"bucket_name": "b"}),
        ("bucket", {"bucket_name": "a/b", "scope_name": "s"}),
        ("scope", {"bucket_name": "b", "scope_name": "s/../.."}),
        ("client_context_id", {"client_context_id": None}),
    ])  # fmt: skip
def test_invalid_requests(parameter: str, options: Mapping[str, object]) -> None:
    """An invalid argument raises an error that names the argument; so does a name that would change the path."""
    refused(parameter, SearchQueryRequest, **{"index": "i", "search": ALL, **options})


def test_capabilities() -> None:
    """Scoped indexes and vectors require cluster capabilities (SDK-RFC 0052 "FeatureNotAvailable handling")."""
    vectors = SearchRequest.create(NEAR)
    scoped, near = ClusterCapability.SCOPED_SEARCH_INDEX, ClusterCapability.VECTOR_SEARCH

    assert [set(), {scoped}, {near}, {scoped, near}] == [
        SearchQueryRequest(index="i", search=search, bucket_name=bucket, scope_name=scope).required_capabilities
        for search, bucket, scope in ((ALL, None, None), (ALL, "b", "s"), (vectors, None, None), (vectors, "b", "s"))
    ]


def test_error_context() -> None:
    """The error context has the index and its scope; neither the context nor ``repr`` shows the query."""
    search = SearchRequest.create(TermQuery("secret"))
    request = SearchQueryRequest(
        index="i", search=search, bucket_name="b", scope_name="s", options=SearchOptions(raw={"a": "secret"})
    )

    assert request.error_context() == ErrorContext(
        service="search",
        operation="search",
        idempotent=True,
        bucket="b",
        scope="s",
        index="i",
        http_method="POST",
        http_path="/api/bucket/b/scope/s/index/i/query",
    )
    assert "secret" not in repr(request)
    assert request.bucket is None
    assert request.idempotent is is_idempotent(request.service, request.name)


def test_deep_queries() -> None:
    """Queries nested in more levels than the maximum are refused when the request is created."""
    query: SearchQuery = TermQuery("inn")
    for _ in range(LEVELS_MAX - 1):
        query = ConjunctionQuery(query)
    body = SearchQueryRequest(index="i", search=SearchRequest(query)).encode(1.0).body

    assert LEVELS_MAX - 1 == body.count(b'{"conjuncts"')
    with pytest.raises(errors.EncodingFailureException, match="nested too deeply"):
        SearchQueryRequest(index="i", search=SearchRequest(ConjunctionQuery(query)))


def test_decode() -> None:
    """A successful response is decoded to the metadata of the search."""
    answer = HttpResponse(200, b'{"status":{"total":2,"failed":0,"successful":2},"total_hits":7,"hits":[]}')

    assert 7 == SearchQueryRequest(index="i", search=ALL).decode(answer).metrics.total_rows


@given(
    query=st.none() | QUERIES,
    vectors=VECTORS,
    options=st.fixed_dictionaries(
        {},
        optional={
            "limit": st.integers(0, 99),
            "explain": st.booleans(),
            "fields": st.lists(NAMES),
            "sort": st.lists(NAMES | st.builds(SortID), max_size=2),
            "raw": st.dictionaries(NAMES.filter(lambda name: name not in search_request.MEMBERS), st.integers()),
        },
    ),
    remaining=st.floats(0, 1e9) | st.just(math.inf),
)
def test_requests_match_the_grammar(
    query: SearchQuery | None, vectors: VectorSearch, options: Mapping[str, object], remaining: float
) -> None:
    """Every request that can be created matches the service's grammar."""
    request = SearchQueryRequest(
        index="i",
        search=SearchRequest(query, vectors),
        options=SearchOptions(**options),  # type: ignore[arg-type]
    )
    body = body_of(request, remaining)

    assert is_query(body["query"])
    assert several(is_vector_query)(body["knn"])
    assert body.get("knn_operator", "or") in ("and", "or")
    assert ("timeout" in body["ctl"]) is (remaining < math.inf)  # type: ignore[operator]
    assert body["showrequest"] is False
