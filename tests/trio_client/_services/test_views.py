"""Queries of views in a cluster of fake nodes: requests, rows and metadata."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import trio
from trio.testing import MockClock

from tests.rows import rows
from tests.trio_client.pair import OPTIONS, PATIENCE, Never
from triclinium import Bucket, errors, views
from triclinium.testing import FakeAnswer, FakeCluster, Service, open_fake_cluster

ADA = {"id": "ada", "key": ["uk", 1815], "value": "Ada"}
EVE = {"id": "eve", "key": ["fr", 1900], "value": None}


@asynccontextmanager
async def open_viewed(*answers: FakeAnswer, view: str = "people/by_name") -> AsyncIterator[tuple[FakeCluster, Bucket]]:
    """Yield nodes that send these responses for a view, and a bucket of a client."""
    with trio.fail_after(PATIENCE):
        async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
            if answers:
                fake.nodes.script.answer(view, *answers, service=Service.VIEWS)
            yield fake, cluster.bucket("travel")


async def found(bucket: Bucket, **options: Any) -> list[str | None]:
    """Return the ids of the rows of a view."""
    async with bucket.view_query("people", "by_name", **options) as result:
        return [row.id async for row in result]


def asked(fake: FakeCluster) -> list[tuple[str, str, bytes]]:
    """Return method, target and body of each request for a view."""
    return [
        (each.method, each.target, each.body)
        for node in fake.nodes
        for each in node.request_log
        if each.service is Service.VIEWS and "/_view/" in each.target
    ]


async def test_rows_and_metadata(autojump_clock: MockClock) -> None:
    """Rows arrive in order, and after them the metadata with the total number of rows."""
    async with (
        open_viewed(FakeAnswer(rows=[ADA, EVE])) as (_, bucket),
        bucket.view_query("people", "by_name") as result,
    ):
        found_rows = [row async for row in result]
        metadata = await result.metadata()

    assert [("ada", ["uk", 1815], "Ada"), ("eve", ["fr", 1900], None)] == [
        (row.id, row.key, row.value) for row in found_rows
    ]
    assert views.ViewMetaData(2) == metadata


async def test_options(autojump_clock: MockClock) -> None:
    """Every option is sent."""
    async with open_viewed(FakeAnswer(), view="dev_people/by_name") as (fake, bucket):
        async with bucket.view_query(
            "people",
            "by_name",
            limit=5,
            skip=1,
            keys=["a"],
            key="k",
            startkey=["a"],
            endkey=["b", {}],
            startkey_docid="x",
            endkey_docid="y",
            inclusive_end=False,
            order=views.ViewOrdering.DESCENDING,
            reduce=True,
            group=True,
            group_level=2,
            scan_consistency=views.ViewScanConsistency.REQUEST_PLUS,
            on_error=views.ViewErrorMode.CONTINUE,
            namespace=views.DesignDocumentNamespace.DEVELOPMENT,
            debug=True,
            raw={"full_set": "true"},
        ) as result:
            assert [] == await result.rows()
        ((method, target, body),) = asked(fake)

    assert ("POST", "/travel/_design/dev_people/_view/by_name", b'{"keys":["a"]}') == (
        method,
        urlsplit(target).path,
        body,
    )
    assert dict(parse_qsl(urlsplit(target).query)) == {
        "limit": "5",
        "skip": "1",
        "key": '"k"',
        "startkey": '["a"]',
        "endkey": '["b",{}]',
        "startkey_docid": "x",
        "endkey_docid": "y",
        "inclusive_end": "false",
        "descending": "true",
        "reduce": "true",
        "group": "true",
        "group_level": "2",
        "stale": "false",
        "on_error": "continue",
        "debug": "true",
        "full_set": "true",
    }


@rows(("error", "options"), [
        (errors.InvalidArgumentException, {"limit": -1}),
        (errors.InvalidArgumentException, {"keys": "ab"}),
        (errors.InvalidArgumentException, {"namespace": "dev_"}),
        (errors.InvalidArgumentException, {"retry_strategy": "none"}),
        (errors.EncodingFailureException, {"key": object()}),
    ])  # fmt: skip
async def test_wrong_options(
    autojump_clock: MockClock, error: type[errors.CouchbaseException], options: Mapping[str, Any]
) -> None:
    """Wrong options raise at the call, before the block is entered, and nothing is sent."""
    async with open_viewed() as (fake, bucket):
        with pytest.raises(error):
            bucket.view_query("people", "by_name", **options)
        with pytest.raises(errors.InvalidArgumentException):
            bucket.view_query("..", "by_name")

        assert [] == asked(fake)


async def test_a_missing_view(autojump_clock: MockClock) -> None:
    """The error of a missing view names the bucket, the design document and the view."""
    async with open_viewed() as (_, bucket):
        with pytest.raises(errors.ViewNotFoundException) as caught:
            await found(bucket, retry_strategy=Never())

    context = caught.value.context
    assert ("views", "travel", "people", "by_name", 404) == (
        context.service,
        context.bucket,
        context.design_document,
        context.view,
        context.http_status,
    )


async def test_failed_nodes_of_a_view(autojump_clock: MockClock) -> None:
    """If nodes fail, the view returns the rows of the other nodes, and the metadata lists the errors."""
    answer = FakeAnswer(rows=[ADA], errors=[{"from": "10.0.0.5:8092", "reason": "timeout"}])
    async with (
        open_viewed(answer) as (_, bucket),
        bucket.view_query("people", "by_name", on_error=views.ViewErrorMode.CONTINUE) as result,
    ):
        assert ["ada"] == [row.id async for row in result]
        assert (views.ViewError("10.0.0.5:8092", "timeout"),) == (await result.metadata()).errors
