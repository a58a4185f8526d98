"""The search indexes of a cluster and of scopes, managed."""

from __future__ import annotations

from dataclasses import replace

import pytest
import trio
from trio.testing import MockClock

from triclinium import Cluster, SearchIndex, SearchIndexManager
from triclinium.errors import EncodingFailureException, IndexNotFoundException, InvalidArgumentException
from triclinium.testing import Service, http_status, open_fake_cluster

HOTELS = SearchIndex(name="hotels", source_name="default", params={"mapping": {"default_mapping": {"enabled": True}}})


def managers(cluster: Cluster) -> list[SearchIndexManager]:
    """Return that of the cluster, and that of a scope."""
    return [cluster.search_indexes(), cluster.bucket("default").default_scope().search_indexes()]


async def test_an_index_comes_and_goes(autojump_clock: MockClock) -> None:
    """In the cluster as in a scope, under its short name."""
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


async def test_what_an_index_does(autojump_clock: MockClock) -> None:
    """Each of its controls is turned, and turned back; a document is taken apart."""
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


async def test_what_is_not_there(autojump_clock: MockClock) -> None:
    """Every method about an index says so, and which."""
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


async def test_bad_arguments(autojump_clock: MockClock) -> None:
    """They raise before anything is sent, and that is a checkpoint."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        manager = cluster.search_indexes()
        for call, error in (
            (lambda: manager.get_index(""), InvalidArgumentException),
            (lambda: manager.drop_index(".."), InvalidArgumentException),
            (lambda: manager.upsert_index("hotels"), InvalidArgumentException),  # type: ignore[arg-type]
            (lambda: manager.upsert_index(replace(HOTELS, params={"a": object()})), EncodingFailureException),
            (lambda: manager.analyze_document("hotels", float("nan")), EncodingFailureException),
        ):
            with pytest.raises(error), trio.testing.assert_checkpoints():
                await call()

        assert [] == list(fake.node.request_log)
        assert "<SearchIndexManager>" == repr(manager)
        assert "<SearchIndexManager default._default>" == repr(managers(cluster)[1])
