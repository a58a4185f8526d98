"""Queries of views with CouchbaseMock, which runs the JavaScript functions of the views."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.live.couchbase_mock import CouchbaseMock
from tests.never_retry import NeverRetry
from triclinium import Bucket, errors
from triclinium.views import ViewOrdering, ViewRow, ViewScanConsistency

pytestmark = pytest.mark.live

PEOPLE = {"ada": ["uk", 1815], "bob": ["fr", 1900], "cyd": ["uk", 1910]}
MAP = "function (doc, meta) { if (doc.view_test) { emit(doc.place, meta.id); } }"


@pytest.fixture
async def bucket(couchbase_mock: CouchbaseMock, safety_net: None) -> AsyncIterator[Bucket]:
    """Yield a bucket with three people, who are indexed by place and year."""
    couchbase_mock.create_view("people", "by_place", map_function=MAP, reduce="_count")
    async with couchbase_mock.open_client() as (cluster, people):
        for name, place in PEOPLE.items():
            await people.upsert(name, {"view_test": True, "place": place})
        yield cluster.bucket(couchbase_mock.bucket)
        for name in PEOPLE:
            await people.remove(name)


async def found(bucket: Bucket, **options: Any) -> list[ViewRow]:
    """Return the rows of the test's view."""
    async with bucket.view_query(
        "people", "by_place", scan_consistency=ViewScanConsistency.REQUEST_PLUS, **options
    ) as result:
        return [row async for row in result]


async def test_rows(bucket: Bucket) -> None:
    """Rows are ordered by key and have id and value, and the metadata has the total number of rows."""
    async with bucket.view_query("people", "by_place", reduce=False, limit=2) as result:
        rows = await result.rows()
        metadata = await result.metadata()

    assert [("bob", ["fr", 1900], "bob"), ("ada", ["uk", 1815], "ada")] == [
        (row.id, row.key, row.value) for row in rows
    ]
    assert 3 == metadata.total_rows


async def test_rows_are_selected_by_options(bucket: Bucket) -> None:
    """Options select rows by one key, by several keys, by a range of keys, in either order, and after an offset."""
    by_key = await found(bucket, reduce=False, key=["uk", 1815])
    by_keys = await found(bucket, reduce=False, keys=[["uk", 1910], ["fr", 1900], ["no", 0]])
    of_uk = await found(bucket, reduce=False, startkey=["uk"], endkey=["uk", {}])
    backwards = await found(bucket, reduce=False, order=ViewOrdering.DESCENDING, skip=1)

    assert ["ada"] == [row.id for row in by_key]
    assert {"bob", "cyd"} == {row.id for row in by_keys}
    assert ["ada", "cyd"] == [row.id for row in of_uk]
    assert ["ada", "bob"] == [row.id for row in backwards]


async def test_reductions(bucket: Bucket) -> None:
    """A reduction returns one row for all rows or for each group, without a document id."""
    total = await found(bucket)
    by_country = await found(bucket, group_level=1)

    assert [(None, None, 3)] == [(row.id, row.key, row.value) for row in total]
    assert [(["fr"], 1), (["uk"], 2)] == [(row.key, row.value) for row in by_country]


async def test_a_missing_view(bucket: Bucket) -> None:
    """A missing view and a missing design document raise ViewNotFoundException."""
    for design_document, view in (("people", "by_name"), ("nobody", "by_place")):
        with pytest.raises(errors.ViewNotFoundException) as caught:
            async with bucket.view_query(design_document, view, retry_strategy=NeverRetry()):
                pass

        assert (404, view) == (caught.value.context.http_status, caught.value.context.view)


async def test_a_view_of_an_unopened_bucket(couchbase_mock: CouchbaseMock, safety_net: None) -> None:
    """A view can be queried even if its bucket has no connection."""
    couchbase_mock.create_view("people", "by_place", map_function=MAP)
    async with (
        couchbase_mock.open_client() as (cluster, _),
        cluster.bucket(couchbase_mock.bucket).view_query("people", "by_place", limit=0) as result,
    ):
        assert [] == await result.rows()
