"""Calls of a cluster from another run of trio or another thread, which raise and have no effect."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager

import pytest
import trio
import trio.testing

import triclinium
from tests.rows import rows
from triclinium._trio_run import TrioRun
from triclinium.testing import FakeNodeOptions, open_fake_cluster

pytestmark = pytest.mark.native

AUTHENTICATOR = triclinium.PasswordAuthenticator("Administrator", "password")
OPTIONS = FakeNodeOptions(vbuckets=128)
ELSEWHERE = r"opened in another trio\.run"


async def entered(block: AbstractAsyncContextManager[object]) -> None:
    """Enter a block."""
    async with block:
        pass


async def called(function: Callable[[], object]) -> None:
    """Call a function."""
    function()


CALLS: Mapping[str, Callable[[triclinium.Cluster, triclinium.Collection], Awaitable[object]]] = {
    "get": lambda cluster, people: people.get("ada"),
    "ping": lambda cluster, people: cluster.ping(),
    "scan": lambda cluster, people: entered(people.scan(triclinium.scans.PrefixScan("a"))),
    "get_all_replicas": lambda cluster, people: entered(people.get_all_replicas("ada")),
    "upsert_many": lambda cluster, people: entered(people.upsert_many({"ada": 2})),
    "subscribe_topology": lambda cluster, people: entered(cluster.subscribe_topology()),
    "set_authenticator": lambda cluster, people: called(lambda: cluster.set_authenticator(AUTHENTICATOR)),
    "diagnostics": lambda cluster, people: called(cluster.diagnostics),
}


@rows("name", CALLS)
async def test_a_call_from_another_run_is_refused(name: str) -> None:
    """A call from a trio run in another thread raises RuntimeError, and the cluster still works in its own run."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        collection = cluster.bucket("default").default_collection()
        await collection.upsert("ada", 1)
        before = cluster.statistics()
        with pytest.raises(RuntimeError, match=ELSEWHERE):
            await trio.to_thread.run_sync(trio.run, CALLS[name], cluster, collection)

        assert before == cluster.statistics()
        assert 1 == (await collection.get("ada")).content


async def test_results_of_blocks_belong_to_their_run() -> None:
    """In another run, reading the results of a scan, copies, bulk outcomes or topology changes raises."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        collection = cluster.bucket("default").default_collection()
        await collection.upsert("ada", 1)
        async with (
            collection.scan(triclinium.scans.PrefixScan("a")) as found,
            collection.get_all_replicas("ada") as copies,
            collection.get_many(["ada"]) as outcomes,
            cluster.subscribe_topology() as changes,
        ):
            await trio.testing.wait_all_tasks_blocked()
            for results in (found, copies, outcomes, changes):
                with pytest.raises(RuntimeError, match=ELSEWHERE):
                    await trio.to_thread.run_sync(trio.run, results.__anext__)

            assert ["ada"] == [item.id async for item in found]
            assert [1] == [copy.content async for copy in copies]
            assert [1] == [outcome.result().content async for _, outcome in outcomes]


async def test_a_thread_without_a_run_is_refused() -> None:
    """A call from a thread without a run raises, because there is no clock outside trio."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        with pytest.raises(RuntimeError, match=ELSEWHERE):
            await trio.to_thread.run_sync(cluster.set_authenticator, AUTHENTICATOR)

        await cluster.ping()


def test_another_event_loop_is_refused() -> None:
    """On another event loop, clusters raise the same error as retries."""

    async def open_one() -> None:
        async with triclinium.open_cluster("couchbase://127.0.0.1:1", AUTHENTICATOR):
            pass

    async def fail() -> None:
        raise AssertionError

    async def retry() -> None:
        await triclinium.retry(fail, strategy=triclinium.StandardRetryStrategy())

    for call in (open_one, lambda: triclinium.run_cluster("couchbase://127.0.0.1:1", AUTHENTICATOR), retry):
        with pytest.raises(RuntimeError, match=r" in trio\.run, or in anyio\.run\(backend='trio'\)$"):
            asyncio.run(call())


def test_a_trio_run_needs_trio() -> None:
    """A TrioRun can be created only within trio."""
    with pytest.raises(RuntimeError):
        TrioRun()
