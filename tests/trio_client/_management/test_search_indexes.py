"""Management of the search indexes of a cluster and of scopes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from trio.testing import MockClock

from triclinium import Cluster
from triclinium.errors import IndexNotFoundException
from triclinium.management import SearchIndex, SearchIndexManager
from triclinium.testing import Service, http_status, open_fake_cluster

HOTELS = SearchIndex(name="hotels", source_name="default", params={"mapping": {"default_mapping": {"enabled": True}}})


def managers(cluster: Cluster) -> list[SearchIndexManager]:
    """Return the managers of the cluster and of a scope."""
    return [cluster.search_indexes(), cluster.bucket("default").default_scope().search_indexes()]


async def test_create_get_and_drop_an_index(autojump_clock: MockClock) -> None:
    """An index is created, found and dropped by its short name, in the cluster and in a scope."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        for manager in managers(cluster):
            await manager.upsert_index(HOTELS)
            found = await manager.get_index("hotels")

            assert "hotels" == found.name
            assert HOTELS.params == found.params
            assert found.uuid
            assert [found] == list(await manager.get_all_indexes())

            await manager.upsert_index(replace(found, plan_params={"numReplicas": 1}))
            assert {"numReplicas": 1} == (await manager.get_index("hotels")).plan_params
            assert 0 == await manager.get_indexed_documents_count("hotels")

            await manager.drop_index("hotels")
            assert [] == list(await manager.get_all_indexes())


async def test_controls_of_an_index(autojump_clock: MockClock) -> None:
    """Each control of an index can be set and reset, and a document can be analyzed."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        for manager in managers(cluster):
            await manager.upsert_index(HOTELS)
            for turn in (
                manager.pause_ingest,
                manager.resume_ingest,
                manager.disallow_querying,
                manager.allow_querying,
                manager.freeze_plan,
                manager.unfreeze_plan,
            ):
                await turn("hotels")
            fake.node.faults.next(Service.SEARCH, http_status(200, body=b'{"status":"ok","analyzed":[{"term":"a"}]}'))
            assert [{"term": "a"}] == list(await manager.analyze_document("hotels", {"name": "a"}))


async def test_a_missing_index_is_named(autojump_clock: MockClock) -> None:
    """Methods for a missing index raise IndexNotFoundException with its name."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        for manager in managers(cluster):
            for call in (
                manager.get_index,
                manager.drop_index,
                manager.get_indexed_documents_count,
                manager.pause_ingest,
                lambda name, manager=manager: manager.analyze_document(name, {}),
            ):
                with pytest.raises(IndexNotFoundException) as caught:
                    await call("nothing")

                assert "nothing" == caught.value.context.index
