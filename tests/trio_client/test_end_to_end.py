"""Calls as in the README and the guides, with the real driver and machine, and a fake node in memory."""

from __future__ import annotations

import contextlib
from datetime import timedelta

import msgspec
import pytest
import trio
from trio.testing import MockClock

from tests.rows import rows
from tests.trio_client.pair import OPTIONS, Never, open_pair
from triclinium import Collection, GetResult, PasswordAuthenticator, errors, open_cluster
from triclinium.testing import open_fake_cluster
from triclinium_core.kv.wire.constants import Opcode


class Person(msgspec.Struct):
    """Typed document."""

    born: int
    tags: list[str] = []


async def test_the_first_program(autojump_clock: MockClock) -> None:
    """The README's program stores a document and reads it."""
    async with open_fake_cluster(options=OPTIONS) as fake:
        authenticator = PasswordAuthenticator("Administrator", "password")
        async with open_cluster("couchbase://127.0.0.1", authenticator, connector=fake.connector) as cluster:
            people = cluster.bucket("travel").default_collection()
            stored = await people.upsert("ada", {"born": 1815})
            ada = await people.get("ada")

    assert {"born": 1815} == ada.content
    assert stored.cas == ada.cas


async def test_reading_into_a_type(autojump_clock: MockClock) -> None:
    """``content_as`` decodes a document into the requested type, or raises DecodingFailureException."""
    async with open_pair() as (_, _, people):
        await people.upsert("ada", {"born": 1815, "tags": ["poet"]})
        await people.upsert("bob", {"born": "yesterday"})
        ada = (await people.get("ada")).content_as(Person)
        bob = await people.get("bob")

        assert Person(1815, ["poet"]) == ada
        with pytest.raises(errors.DecodingFailureException):
            bob.content_as(Person)


async def test_a_missing_document(autojump_clock: MockClock) -> None:
    """``get_or_none`` returns None for a missing document, ``exists`` reports its absence, and ``get`` raises."""
    async with open_pair() as (_, _, people):
        assert await people.get_or_none("bob") is None
        assert not (await people.exists("bob")).exists
        with pytest.raises(errors.DocumentNotFoundException) as caught:
            await people.get("bob")

    assert ("get", "bob", 0) == (
        caught.value.context.operation,
        caught.value.context.key,
        caught.value.context.retry_attempts,
    )


async def test_many_concurrent_calls_share_a_connection(autojump_clock: MockClock) -> None:
    """Concurrent calls in a nursery share one connection."""
    found: dict[str, GetResult] = {}

    async def one(people: Collection, key: str) -> None:
        with contextlib.suppress(errors.DocumentNotFoundException):
            found[key] = await people.get(key)

    async with open_pair() as (fake, _, people):
        for number in range(0, 40, 2):
            await people.insert(f"key-{number}", number)
        async with trio.open_nursery() as nursery:
            for number in range(40):
                nursery.start_soon(one, people, f"key-{number}")
        connections = {command.connection for command in fake.node.command_log if command.opcode == Opcode.GET}

    assert {f"key-{number}": number for number in range(0, 40, 2)} == {key: got.content for key, got in found.items()}
    assert 1 == len(connections)


async def test_the_optimistic_locking_loop(autojump_clock: MockClock) -> None:
    """If two tasks change a document concurrently, the later one retries on CasMismatchException; no change is lost."""
    mismatches = 0

    async def count(people: Collection) -> None:
        nonlocal mismatches
        for _ in range(10):
            while True:
                visits = await people.get("visits")
                try:
                    await people.replace("visits", visits.content_as(int) + 1, cas=visits.cas)
                    break
                except errors.CasMismatchException:
                    mismatches += 1

    async with open_pair() as (_, _, people):
        await people.insert("visits", 0)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(count, people)
            nursery.start_soon(count, people)

        assert 20 == (await people.get("visits")).content
        assert mismatches


async def test_locks_and_counters(autojump_clock: MockClock) -> None:
    """A locked document accepts no other write, a lock expires, and counters count."""
    async with open_pair(retry_strategy=Never()) as (_, _, people):
        await people.upsert("ada", 1)
        locked = await people.get_and_lock("ada", timedelta(seconds=15))
        with pytest.raises(errors.DocumentLockedException):
            await people.upsert("ada", 2)
        await people.unlock("ada", locked.cas)
        with pytest.raises(errors.DocumentNotLockedException):
            await people.unlock("ada", locked.cas)
        await people.get_and_lock("ada", timedelta(seconds=1))
        await trio.sleep(1.1)
        await people.upsert("ada", 3)

        assert 5 == (await people.binary.increment("visits", delta=1, initial=5)).content
        assert 7 == (await people.binary.increment("visits", delta=2)).content
        assert 0 == (await people.binary.decrement("visits", delta=9)).content


async def test_documents_expire(autojump_clock: MockClock) -> None:
    """A document expires when its expiry has passed on the node's clock, and ``touch`` sets a new expiry."""
    async with open_pair() as (_, _, people):
        await people.insert("ada", 1, expiry=timedelta(seconds=10))
        await people.insert("bob", 2, expiry=timedelta(seconds=10))
        await trio.sleep(9)
        await people.touch("ada", timedelta(seconds=10))
        await trio.sleep(2)

        assert (await people.exists("ada")).exists
        assert not (await people.exists("bob")).exists
        with pytest.raises(errors.DocumentExistsException):
            await people.insert("ada", 3)


async def test_buckets_and_collections_are_separate(autojump_clock: MockClock) -> None:
    """One key in three collections names three documents, and each bucket has its own connection."""
    async with open_pair() as (_, cluster, people):
        places = [people, cluster.bucket("travel").scope("inventory").collection("people")]
        places.append(cluster.bucket("hotels").default_collection())
        for number, place in enumerate(places):
            await place.insert("ada", number)

        assert [0, 1, 2] == [(await place.get("ada")).content for place in places]
        assert {None, "travel", "hotels"} == {connection.bucket for connection in cluster.statistics().connections}


@rows(
    ("path", "error", "words"),
    [
        (("nowhere", "_default", "_default"), errors.BucketAccessException, "bucket 'nowhere' does not exist"),
        (("travel", "nowhere", "people"), errors.ScopeNotFoundException, "no scope nowhere"),
        (("travel", "inventory", "nowhere"), errors.CollectionNotFoundException, "no collection inventory.nowhere"),
    ],
)
async def test_missing_buckets_scopes_and_collections(
    autojump_clock: MockClock, path: tuple[str, str, str], error: type[Exception], words: str
) -> None:
    """The first operation on a missing bucket, scope or collection fails immediately with its name."""
    bucket, scope, collection = path
    async with open_pair() as (_, cluster, _):
        with pytest.raises(error, match=words):
            await cluster.bucket(bucket).scope(scope).collection(collection).get("ada")

        assert 0 == trio.current_time()
