"""Searches in a cluster of fake nodes: requests, hits, and the requests that a client leaves early."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.rows import rows
from tests.trio_client.pair import OPTIONS, PATIENCE, Never
from triclinium import Cluster, MutationState, Scope, TimeoutOptions, errors, fail_after, search
from triclinium.testing import FakeAnswer, FakeCluster, Service, hang_up, open_fake_cluster

ADA = {"index": "people_1", "id": "ada", "score": 1.5, "fields": {"name": "Ada"}}
EVE = {"index": "people_1", "id": "eve", "score": 0.5}


@asynccontextmanager
async def open_searched(
    *answers: FakeAnswer, index: str = "people", **arguments: Any
) -> AsyncIterator[tuple[FakeCluster, Cluster]]:
    """Yield nodes whose search service sends these responses for an index, and a client."""
    with trio.fail_after(PATIENCE):
        async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client(**arguments) as cluster:
            if answers:
                fake.nodes.script.answer(index, *answers, service=Service.SEARCH)
            yield fake, cluster


async def found(place: Cluster | Scope, **options: Any) -> list[str]:
    """Return the ids of the documents that a search finds."""
    async with place.search("people", search.MatchAllQuery(), **options) as result:
        return [row.id async for row in result]


def asked(fake: FakeCluster) -> list[tuple[str, Mapping[str, Any]]]:
    """Return target and JSON of each request that the search service received."""
    return [
        (each.target, json.loads(each.body))
        for node in fake.nodes
        for each in node.request_log
        if each.service is Service.SEARCH and each.method == "POST"
    ]


async def test_hits_facets_and_metadata(autojump_clock: MockClock) -> None:
    """Hits arrive in order, and after them facets and metadata with everything that was requested."""
    types = {"field": "type", "total": 2, "missing": 0, "other": 0, "terms": [{"term": "guest", "count": 2}]}
    answer = FakeAnswer(rows=[ADA, EVE], metadata={"facets": {"types": types}, "took": 2_000_000, "total_hits": 17})
    async with (
        open_searched(answer) as (_, cluster),
        cluster.search("people", search.MatchQuery("ada"), facets={"types": search.TermFacet("type")}) as result,
    ):
        hits = [row async for row in result]
        facets = await result.facets()
        metadata = await result.metadata()

    assert [("ada", 1.5, {"name": "Ada"}), ("eve", 0.5, None)] == [(hit.id, hit.score, hit.fields) for hit in hits]
    assert (search.SearchTermFacet("guest", 2),) == facets["types"].terms
    assert facets == metadata.facets
    assert search.SearchMetrics(0.002, 17, 1.5, 1, 0) == metadata.metrics


async def test_indexes_of_cluster_and_scope(autojump_clock: MockClock) -> None:
    """A search of a scope uses the scope's index, and a search of a cluster uses the index of the cluster."""
    async with open_searched(FakeAnswer(rows=[ADA])) as (fake, cluster):
        fake.nodes.script.answer("travel.inventory.people", FakeAnswer(rows=[EVE]), service=Service.SEARCH)

        assert ["ada"] == await found(cluster)
        assert ["eve"] == await found(cluster.bucket("travel").scope("inventory"))
        assert ["/api/index/people/query", "/api/bucket/travel/scope/inventory/index/people/query"] == [
            target for target, _ in asked(fake)
        ]


async def test_options(autojump_clock: MockClock) -> None:
    """Every option is sent, and so is the remaining time as the timeout of the service."""
    async with open_searched(FakeAnswer()) as (fake, cluster):
        written = await cluster.bucket("travel").default_collection().upsert("ada", 1)
        token = written.mutation_token
        assert token is not None
        async with cluster.search(
            "people",
            search.SearchRequest.create(search.MatchAllQuery()).with_vector_search(
                search.VectorSearch(search.VectorQuery("v", [0.5]))
            ),
            limit=5,
            skip=1,
            fields=["name"],
            sort=["-_score", search.SortID()],
            facets={"types": search.TermFacet("type")},
            highlight_style=search.HighlightStyle.HTML,
            highlight_fields=["name"],
            include_locations=True,
            explain=True,
            disable_scoring=True,
            collections=["people"],
            consistent_with=MutationState(written),
            raw={"search_after": ["a"]},
        ) as result:
            assert [] == await result.rows()
        body = dict(asked(fake)[0][1])
        timeout = body["ctl"].pop("timeout")

    assert 0 < timeout <= 75_000
    assert body == {
        "query": {"match_all": None},
        "knn": [{"field": "v", "vector": [0.5], "k": 3}],
        "size": 5,
        "from": 1,
        "fields": ["name"],
        "sort": ["-_score", {"by": "id"}],
        "facets": {"types": {"field": "type"}},
        "highlight": {"style": "html", "fields": ["name"]},
        "includeLocations": True,
        "explain": True,
        "score": "none",
        "collections": ["people"],
        "ctl": {
            "consistency": {
                "level": "at_plus",
                "vectors": {"people": {f"{token.vbucket}/{token.vbucket_uuid}": token.sequence_number}},
            }
        },
        "search_after": ["a"],
        "showrequest": False,
    }


async def test_a_vector_search_alone(autojump_clock: MockClock) -> None:
    """A vector search can be passed to ``search`` directly, without a search request around it."""
    async with open_searched(FakeAnswer(rows=[ADA])) as (fake, cluster):
        async with cluster.search("people", search.VectorSearch(search.VectorQuery("v", [0.5]))) as result:
            assert ["ada"] == [row.id for row in await result.rows()]
        (_, body), *_ = asked(fake)

    assert {"match_none": None} == body["query"]


@rows(("error", "options"), [
        (errors.InvalidArgumentException, {"limit": -1}),
        (errors.InvalidArgumentException, {"sort": "name"}),
        (errors.InvalidArgumentException, {"consistent_with": ()}),
        (errors.InvalidArgumentException, {"scan_consistency": "not_bounded"}),
        (errors.InvalidArgumentException, {"raw": {"size": 5}}),
        (errors.InvalidArgumentException, {"retry_strategy": "none"}),
        (errors.EncodingFailureException, {"raw": {"a": math.nan}}),
    ])  # fmt: skip
async def test_wrong_options(
    autojump_clock: MockClock, error: type[errors.CouchbaseException], options: Mapping[str, Any]
) -> None:
    """Wrong options raise at the call, before the block is entered, and nothing is sent."""
    async with open_searched() as (fake, cluster):
        with pytest.raises(error):
            cluster.search("people", search.MatchAllQuery(), **options)
        for index, request in (("a/b", search.MatchAllQuery()), ("people", {"match_all": None})):
            with pytest.raises(errors.InvalidArgumentException):
                cluster.search(index, request)  # type: ignore[arg-type]

        assert [] == asked(fake)


async def test_a_missing_index(autojump_clock: MockClock) -> None:
    """The error of a missing index names the index, bucket and scope."""
    async with open_searched() as (_, cluster):
        with pytest.raises(errors.IndexNotFoundException) as caught:
            await found(cluster.bucket("travel").scope("inventory"))

    context = caught.value.context
    assert ("search", "people", "travel", "inventory", 400) == (
        context.service,
        context.index,
        context.bucket,
        context.scope,
        context.http_status,
    )


async def test_failed_partitions_of_an_index(autojump_clock: MockClock) -> None:
    """If partitions fail, the search returns the hits of the other partitions, and the metadata lists the errors."""
    answer = FakeAnswer(rows=[ADA], errors=[{"msg": "no planPIndexes"}])
    async with open_searched(answer) as (_, cluster), cluster.search("people", search.MatchAllQuery()) as result:
        assert ["ada"] == [row.id async for row in result]
        metadata = await result.metadata()

    assert ["no planPIndexes"] == list(metadata.errors.values())
    assert (1, 1, 2) == (
        metadata.metrics.success_partition_count,
        metadata.metrics.error_partition_count,
        metadata.metrics.total_partition_count,
    )


BUSY = FakeAnswer(http_status=429, body='{"error":"too many requests","status":"fail"}')


async def test_a_busy_service_under_a_strategy(autojump_clock: MockClock) -> None:
    """If the strategy refuses, status 429 fails the search; the services' retry list is tested elsewhere."""
    async with open_searched(BUSY) as (fake, cluster):
        with pytest.raises(errors.RateLimitedException):
            await found(cluster, retry_strategy=Never())

        assert 1 == len(asked(fake))


@rows(("limit", "kind"), [(math.inf, errors.UnambiguousTimeoutException), (5.0, errors.UnambiguousTooSlowError)])
async def test_a_service_busy_until_a_timeout(
    autojump_clock: MockClock, limit: float, kind: type[errors.CouchbaseException]
) -> None:
    """If a service stays busy, either timeout has status 429, the service's text, the reason and the retries."""
    async with open_searched(*[BUSY] * 100, timeouts=TimeoutOptions(search=5.0 if limit > 5 else 75.0)) as (
        fake,
        cluster,
    ):
        with pytest.raises(kind, match="429.*too many requests.*SEARCH_TOO_MANY") as caught, fail_after(limit):
            await found(cluster)
        context = caught.value.context

        assert (429, "too many requests", frozenset({"SEARCH_TOO_MANY_REQUESTS"})) == (
            context.http_status,
            context.error_message,
            context.retry_reasons,
        )
        assert len(asked(fake)) - 1 <= context.retry_attempts <= len(asked(fake))


async def test_an_error_in_a_success(autojump_clock: MockClock) -> None:
    """A body with ``error`` is a failure, whatever its status says (SDK-RFC 0052 "SearchMetaData")."""
    answer = FakeAnswer(http_status=200, body='{"error":"rest_index: it broke","status":"fail"}')
    async with open_searched(answer) as (_, cluster):
        with pytest.raises(errors.CouchbaseException, match="it broke"):
            await found(cluster)


async def test_a_hit_of_another_form(autojump_clock: MockClock) -> None:
    """An invalid hit raises with the name of the search index, and the hits after it are readable."""
    async with (
        open_searched(FakeAnswer(rows=[ADA, {"id": 5}, EVE])) as (_, cluster),
        cluster.search("people", search.MatchAllQuery()) as result,
    ):
        assert "ada" == (await anext(result)).id
        with pytest.raises(errors.DecodingFailureException) as caught:
            await anext(result)
        assert ["eve"] == [row.id async for row in result]

    assert "people" == caught.value.context.index


async def test_leaving_a_search_early(autojump_clock: MockClock) -> None:
    """Leaving a search early closes its connection, and the next search works."""
    slow = FakeAnswer(rows=[ADA, EVE], repeat=100, seconds_between_rows=1.0)
    async with open_searched(slow, FakeAnswer(rows=[EVE])) as (fake, cluster):
        with trio.move_on_after(5):
            async with cluster.search("people", search.MatchAllQuery()) as result:
                async for _ in result:
                    pass
        assert ["eve"] == await found(cluster)
        first, second = (each for node in fake.nodes for each in node.request_log if each.service is Service.SEARCH)

    assert (True, False) == (first.client_hung_up, first.is_answered)
    assert (False, True) == (second.client_hung_up, second.is_answered)


async def test_a_search_on_a_broken_connection(autojump_clock: MockClock) -> None:
    """A search is sent again after a lost connection (SDK-RFC 0049 "Idempotent Operation List")."""
    async with open_searched(FakeAnswer(rows=[ADA])) as (fake, cluster):
        fake.node.faults.next(Service.SEARCH, hang_up())

        assert ["ada"] == await found(cluster, scan_consistency=search.SearchScanConsistency.NOT_BOUNDED)
        assert {"SOCKET_CLOSED_WHILE_IN_FLIGHT": 1} == cluster.statistics().retries_by_reason
        assert [False, True] == [
            each.applied for node in fake.nodes for each in node.request_log if each.service is Service.SEARCH
        ]
