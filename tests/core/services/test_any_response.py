"""Arbitrary responses to requests whose responses are read whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from tests.core.services.answers import JSON, NONSENSE, SCALARS, answered
from tests.core.services.management import test_buckets, test_query_indexes, test_search_indexes, test_users
from tests.core.services.query import test_result as of_query
from tests.rows import rows
from triclinium_core.services.analytics.analytics_request import AnalyticsRequest
from triclinium_core.services.management import buckets, collections, query_indexes, search_indexes, users
from triclinium_core.services.service_request import HttpResponse, MalformedAnswer, ServiceRequest

Bodies = Callable[[object], Sequence[object]]
"""Function that returns JSON values with a given value at different positions."""


def members_of(document: Mapping[str, object], *more: str) -> Callable[[object], Sequence[Mapping[str, object]]]:
    """Return the function that replaces or adds one member of the document at a time."""
    return lambda part: [{**document, key: part} for key in (*document, *more)]


def members_of_rows(part: object) -> Sequence[object]:
    """Return responses of the query service with one row, in which ``part`` is at different positions."""
    return [{"status": "success", "results": [row]} for row in (part, *members_of(test_query_indexes.OLD)(part))]


def query_responses(part: object) -> Sequence[object]:
    """Return responses to a query that have ``part`` at different positions."""
    within = [{"metrics": each} for each in members_of(of_query.METRICS)(part)]
    return [
        {**of_query.ANSWER, **each}
        for each in (*members_of(of_query.ANSWER)(part), *within, {"warnings": [{"code": part, "msg": part}]})
    ]


MANIFEST, SEARCH_INDEX = {"uid": "1", "scopes": []}, test_search_indexes.DEFINITION
USER = members_of(test_users.USER, "description", "ldap_group_ref")
SEARCHED = members_of({}, "indexDef", "indexDefs", "count", "analyzed")
READS: Sequence[tuple[ServiceRequest, Bodies]] = (
    (buckets.GetBucket("b"), members_of(test_buckets.bucket())),
    (buckets.GetAllBuckets(), lambda part: [[part]]),
    (collections.CreateScope("b", "s"), members_of(MANIFEST)),
    (collections.GetAllScopes("b"), lambda part: [MANIFEST | {"scopes": [part]}, *members_of(MANIFEST)(part)]),
    (users.GetUser("u"), USER),
    (users.GetGroup("g"), USER),
    *((listing, lambda part: [[part]]) for listing in (users.GetAllUsers(), users.GetRoles(), users.GetAllGroups())),
    (search_indexes.GetSearchIndex("i"), lambda part: [{"indexDef": each} for each in members_of(SEARCH_INDEX)(part)]),
    (search_indexes.GetSearchIndex("i"), SEARCHED),
    (search_indexes.GetAllSearchIndexes(), SEARCHED),
    (search_indexes.GetIndexedDocumentsCount("i"), SEARCHED),
    (search_indexes.AnalyzeDocument("i", 1), SEARCHED),
    (query_indexes.all_indexes(test_query_indexes.BUCKET), members_of_rows),
    (query_indexes.deferred_indexes(test_query_indexes.BUCKET), members_of_rows),
    (query_indexes.drop_index(test_query_indexes.BUCKET, "i"), members_of_rows),
    (of_query.QUERY, query_responses),
    (AnalyticsRequest(statement="SELECT 1"), query_responses),
)
"""Requests, each with a function that returns bodies similar to its response."""


@rows("request", [request for request, _ in READS])
def test_nonsense(request: ServiceRequest) -> None:
    """A response that no request accepts raises MalformedAnswer."""
    for body in NONSENSE:
        with pytest.raises(MalformedAnswer):
            request.decode(HttpResponse(200, body))


@hypothesis_settings(max_examples=50)
@given(SCALARS | st.just(math.inf) | JSON)
def test_any_json(part: object) -> None:
    """Any value, alone or as a part of a response, is decoded or raises MalformedAnswer with a short text."""
    for request, bodies in READS:
        for body in (part, *bodies(part)):
            try:
                request.decode(answered(body))
            except MalformedAnswer as error:
                assert len(str(error)) < 1000
