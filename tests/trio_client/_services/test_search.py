"""Searches of a cluster of fake nodes: what travels, what comes back, and what the nodes see of a client that leaves."""

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
    """Give the block nodes whose search service answers so by an index, and a client."""
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
    """Return target and JSON of all that the search service was asked."""
    return [
        (each.target, json.loads(each.body))
        for node in fake.nodes
        for each in node.request_log
        if each.service is Service.SEARCH and each.method == "POST"
    ]


async def test_hits_facets_and_metadata(autojump_clock: MockClock) -> None:
    """Hits in their order, and after them all that was asked for beside them."""
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


async def test_where_it_is_asked(autojump_clock: MockClock) -> None:
    """A scope asks an index of its own, a cluster one of the cluster."""
    async with open_searched(FakeAnswer(rows=[ADA])) as (fake, cluster):
        fake.nodes.script.answer("travel.inventory.people", FakeAnswer(rows=[EVE]), service=Service.SEARCH)

        assert ["ada"] == await found(cluster)
        assert ["eve"] == await found(cluster.bucket("travel").scope("inventory"))
        assert ["/api/index/people/query", "/api/bucket/travel/scope/inventory/index/people/query"] == [
            target for target, _ in asked(fake)
        ]


async def test_options(autojump_clock: MockClock) -> None:
    """All of them travel, and so does what the service has left."""
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


async def test_vectors_alone(autojump_clock: MockClock) -> None:
    """A vector search needs no request around it."""
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
    """They raise where the call stands, before its block is entered, and nothing is sent."""
    async with open_searched() as (fake, cluster):
        with pytest.raises(error):
            cluster.search("people", search.MatchAllQuery(), **options)
        for index, request in (("a/b", search.MatchAllQuery()), ("people", {"match_all": None})):
            with pytest.raises(errors.InvalidArgumentException):
                cluster.search(index, request)  # type: ignore[arg-type]

        assert [] == asked(fake)


async def test_an_index_that_is_not_there(autojump_clock: MockClock) -> None:
    """The error names it, and knows where it was looked for."""
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


async def test_parts_of_an_index_that_do_not_answer(autojump_clock: MockClock) -> None:
    """What the others have found is told, and so is what may be missing."""
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


async def test_a_busy_service_is_asked_again(autojump_clock: MockClock) -> None:
    """Status 429 is retried (SDK-RFC 0049 "Response Code Retry List, Search"), unless the strategy refuses."""
    async with open_searched(BUSY, BUSY, FakeAnswer(rows=[ADA])) as (fake, cluster):
        assert ["ada"] == await found(cluster)
        assert 3 == len(asked(fake))

    async with open_searched(BUSY) as (fake, cluster):
        with pytest.raises(errors.RateLimitedException):
            await found(cluster, retry_strategy=Never())
        assert 1 == len(asked(fake))


async def test_a_service_that_is_busy_until_the_deadline(autojump_clock: MockClock) -> None:
    """The timeout carries status 429, the text of the service, the reason and the number of retries."""
    timeouts = TimeoutOptions(search=5.0)
    async with open_searched(*[BUSY] * 100, timeouts=timeouts) as (fake, cluster):
        with pytest.raises(
            errors.UnambiguousTimeoutException, match="429.*too many requests.*SEARCH_TOO_MANY"
        ) as caught:
            await found(cluster)
        context = caught.value.context

        assert (429, "too many requests", frozenset({"SEARCH_TOO_MANY_REQUESTS"})) == (
            context.http_status,
            context.error_message,
            context.retry_reasons,
        )
        assert len(asked(fake)) - 1 <= context.retry_attempts <= len(asked(fake))


async def test_a_service_that_is_busy_until_a_block_is_over(autojump_clock: MockClock) -> None:
    """The timeout of a ``fail_after`` block carries the newest answer too, in its message and in its context."""
    async with open_searched(*[BUSY] * 100) as (_, cluster):
        with (
            pytest.raises(errors.UnambiguousTooSlowError, match="429.*too many requests.*SEARCH_TOO_MANY") as caught,
            fail_after(5.0),
        ):
            await found(cluster)

        assert (429, "too many requests") == (caught.value.context.http_status, caught.value.context.error_message)


async def test_an_error_in_a_success(autojump_clock: MockClock) -> None:
    """A body with ``error`` is a failure, whatever its status says (SDK-RFC 0052 "SearchMetaData")."""
    answer = FakeAnswer(http_status=200, body='{"error":"rest_index: it broke","status":"fail"}')
    async with open_searched(answer) as (_, cluster):
        with pytest.raises(errors.CouchbaseException, match="it broke"):
            await found(cluster)


async def test_a_hit_of_another_form(autojump_clock: MockClock) -> None:
    """It is told by its place, and those behind it can be read."""
    async with (
        open_searched(FakeAnswer(rows=[ADA, {"id": 5}, EVE])) as (_, cluster),
        cluster.search("people", search.MatchAllQuery()) as result,
    ):
        assert "ada" == (await anext(result)).id
        with pytest.raises(errors.DecodingFailureException) as caught:
            await anext(result)
        assert ["eve"] == [row.id async for row in result]

    assert "people" == caught.value.context.index


async def test_a_search_that_is_left(autojump_clock: MockClock) -> None:
    """The node sees that nobody waits any more, and the next search is as any other."""
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


async def test_a_connection_that_breaks(autojump_clock: MockClock) -> None:
    """All searches may be sent again, at any stage (SDK-RFC 0049 "Idempotent Operation List")."""
    async with open_searched(FakeAnswer(rows=[ADA])) as (fake, cluster):
        fake.node.faults.next(Service.SEARCH, hang_up())

        assert ["ada"] == await found(cluster, scan_consistency=search.SearchScanConsistency.NOT_BOUNDED)
        assert [False, True] == [
            each.applied for node in fake.nodes for each in node.request_log if each.service is Service.SEARCH
        ]
