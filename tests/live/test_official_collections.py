"""Official client with a fake cluster of three nodes whose collections are created and dropped."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest
import trio

from tests.live.official import official_client, placed, written
from tests.live.waiting import until
from triclinium.testing import FakeCluster, open_tcp_cluster
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing import FakeNodeOptions, FakeNodes

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("couchbase_package")]

SCOPE, NAME, OTHER = "inventory", "people", "visitors"
PATH, OTHER_PATH = f"{SCOPE}.{NAME}", f"{SCOPE}.{OTHER}"
FIRST_ID = 8
KEYS = [f"key-{number}" for number in range(60)]
TIMEOUTS = {"AmbiguousTimeoutException", "UnambiguousTimeoutException"}


class OfficialAndNodes(NamedTuple):
    """Official client with its nodes."""

    ask: Callable[..., Awaitable[Mapping[str, Any]]]
    """Function that sends a command, and returns the client's answer."""
    fake: FakeCluster
    nodes: FakeNodes

    async def store(self, value: int, path: str = PATH) -> None:
        """Write and read all documents of a collection."""
        for key in KEYS:
            assert "result" in await self.ask(do="upsert", key=key, value=value, path=path)
            assert value == (await self.ask(do="get", key=key, path=path))["result"]["content"]


@asynccontextmanager
async def staged() -> AsyncIterator[OfficialAndNodes]:
    """Yield the client with three nodes that have a collection."""
    collections = {"_default": {"_default": 0}, SCOPE: {NAME: FIRST_ID}}
    nodes = FakeNodes(FakeNodeOptions(collections=collections), nodes=3)
    async with open_tcp_cluster(nodes) as fake, official_client(fake) as official:
        yield OfficialAndNodes(official.ask, fake, nodes)


async def test_documents_of_a_collection(safety_net: None) -> None:
    """Documents are written and read on all nodes, wherever their vbuckets are, separately from other collections."""
    async with staged() as stage:
        await stage.store(1)
        assert placed(stage.nodes, KEYS, FIRST_ID) == written(stage.nodes)
        stage.nodes.move(stage.nodes.vbuckets_of(0)[::2], to=1)
        await stage.store(2)
        assert placed(stage.nodes, KEYS, FIRST_ID) == written(stage.nodes)

        assert {"error": "DocumentNotFoundException"} == await stage.ask(do="get", key=KEYS[0])
        await stage.ask(do="upsert", key=KEYS[0], value=3)
        assert 2 == (await stage.ask(do="get", key=KEYS[0], path=PATH))["result"]["content"]


async def test_a_collection_created_meanwhile(safety_net: None) -> None:
    """A new collection can be used immediately on each node, and a recreated one is empty."""
    async with staged() as stage:
        await stage.store(1)
        new_id = stage.nodes.collections.create(SCOPE, OTHER)
        written(stage.nodes)
        await stage.store(2, OTHER_PATH)
        assert placed(stage.nodes, KEYS, new_id) == written(stage.nodes)

        stage.nodes.collections.drop(SCOPE, NAME)
        again_id = stage.nodes.collections.create(SCOPE, NAME)
        assert again_id not in {FIRST_ID, new_id}
        assert {"error": "DocumentNotFoundException"} == await stage.ask(do="get", key=KEYS[0], path=PATH)
        await stage.store(3)
        assert placed(stage.nodes, KEYS, again_id) == written(stage.nodes)
        assert 2 == (await stage.ask(do="get", key=KEYS[0], path=OTHER_PATH))["result"]["content"]


async def test_a_collection_dropped_meanwhile(safety_net: None) -> None:
    """A dropped collection accepts no writes; a pending write succeeds when the collection is created again."""
    async with staged() as stage:
        await stage.store(1)
        stage.nodes.collections.drop(SCOPE, NAME)
        written(stage.nodes)
        refused = await stage.ask(do="upsert", key=KEYS[0], value=2, path=PATH, timeout=2.5)
        assert refused["error"] in {"CollectionNotFoundException", *TIMEOUTS}
        assert [set(), set(), set()] == written(stage.nodes)

        answers = []

        async def write() -> None:
            answers.append(await stage.ask(do="upsert", key=KEYS[1], value=3, path=PATH))

        def was_refused() -> bool:
            commands = [command for node in stage.nodes for command in node.command_log]
            refusals = {Opcode.SET, Opcode.GET_COLLECTION_ID}
            return any(command.opcode in refusals and command.status != Status.SUCCESS for command in commands)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            await until(was_refused)
            new_id = stage.nodes.collections.create(SCOPE, NAME)

        assert ["result"] == [key for answer in answers for key in answer]
        assert {(KEYS[1], new_id)} == set().union(*written(stage.nodes))


async def test_missing_scopes_and_collections(safety_net: None) -> None:
    """A missing scope or collection raises, and other operations continue."""
    async with staged() as stage:
        nowhere = await stage.ask(do="upsert", key="ada", value=1, path="nowhere.people", timeout=2.5)
        absent = await stage.ask(do="upsert", key="ada", value=1, path=f"{SCOPE}.nobody", timeout=2.5)

        assert {"error": "ScopeNotFoundException"} == nowhere
        assert absent["error"] in {"CollectionNotFoundException", *TIMEOUTS}
        assert [set(), set(), set()] == written(stage.nodes)
        await stage.store(1)


async def test_both_clients_in_one_collection(safety_net: None) -> None:
    """Each client reads the documents of the other, even after the collection was recreated."""
    async with staged() as stage, stage.fake.open_client() as cluster:
        people = cluster.bucket(stage.fake.node.options.buckets[0]).scope(SCOPE).collection(NAME)
        for value in range(2):
            await stage.store(value)
            assert [value] * len(KEYS) == [(await people.get(key)).content for key in KEYS]
            for key in KEYS:
                await people.upsert(key, value + 10)
            found = [(await stage.ask(do="get", key=key, path=PATH))["result"]["content"] for key in KEYS]
            assert [value + 10] * len(KEYS) == found
            stage.nodes.collections.drop(SCOPE, NAME)
            stage.nodes.collections.create(SCOPE, NAME)
