"""Operations of ``memcached://`` with a real memcached."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
import trio
import trio.testing

import triclinium
from tests.live.memcached import VALUE_SIZE_MAX, Memcached
from tests.live.waiting import PATIENT, until
from tests.never_retry import NeverRetry
from triclinium import errors

pytestmark = pytest.mark.live

BINARY = triclinium.RawBinaryTranscoder()
UINT64_MAX = 2**64 - 1
DAY_SECONDS = 24 * 60 * 60
TASKS = 1000


@pytest.fixture
async def cluster(memcached: Memcached, safety_net: None) -> AsyncIterator[triclinium.Cluster]:
    """Yield a client for the test."""
    async with triclinium.open_cluster(memcached.connection_string, timeouts=PATIENT) as opened:
        yield opened


@pytest.fixture
def store(cluster: triclinium.Cluster) -> triclinium.Collection:
    """Return the only collection of a memcached."""
    return cluster.default_collection()


async def ask_as_text(memcached: Memcached, request: str, end: str) -> str:
    """Return the response to a request of the text protocol; the response ends with ``end``."""
    async with await trio.open_tcp_stream("127.0.0.1", memcached.port) as stream:
        await stream.send_all(f"{request}\r\n".encode())
        answer = ""
        while not answer.endswith(f"{end}\r\n"):
            piece = await stream.receive_some()
            assert piece, "memcached hung up"
            answer += piece.decode()
    return answer


async def seconds_to_live(memcached: Memcached, key: str) -> int:
    """Return the seconds until a document expires; -1 if it does not expire."""
    head, _, seconds = (await ask_as_text(memcached, f"mg {key} t", "")).partition(" t")
    assert "HD" == head
    return int(seconds)


async def bytes_received(memcached: Memcached) -> int:
    """Return the number of bytes that the server has received, including those of this call."""
    answer = await ask_as_text(memcached, "stats", "END")
    return int(answer.partition("STAT bytes_read ")[2].split()[0])


async def test_exists_uses_get(store: triclinium.Collection, key: str) -> None:
    """On a plain memcached, ``exists`` returns whether a document exists, with its CAS."""
    before = await store.exists(key)
    stored = await store.upsert(key, 1)
    after = await store.exists(key)

    assert not before.exists
    assert (True, stored.cas) == (after.exists, after.cas)


# -- Expiry, as reported by the server, so that no test waits for it.


async def test_expiry_of_a_new_document(memcached: Memcached, store: triclinium.Collection, key: str) -> None:
    """A document without an expiry stays forever, and an expiry above 30 days is sent as a date."""
    await store.upsert(key, 1)
    forever = await seconds_to_live(memcached, key)
    await store.upsert(key, 1, expiry=timedelta(hours=1))
    hour = await seconds_to_live(memcached, key)
    await store.upsert(key, 1, expiry=timedelta(days=60))
    months = await seconds_to_live(memcached, key)

    assert -1 == forever
    assert 0 < hour <= 3600
    assert 59 < months / DAY_SECONDS < 61


async def test_touch_changes_only_the_expiry(memcached: Memcached, store: triclinium.Collection, key: str) -> None:
    """``touch`` and ``get_and_touch`` change only the expiry: a duration, a date or none."""
    await store.insert(key, {"born": 1815}, expiry=timedelta(days=1))
    await store.touch(key, timedelta(hours=1))
    hour = await seconds_to_live(memcached, key)
    found = await store.get_and_touch(key, datetime.now(UTC) + timedelta(days=60))
    months = await seconds_to_live(memcached, key)
    await store.touch(key, None)
    forever = await seconds_to_live(memcached, key)

    assert {"born": 1815} == found.content == (await store.get(key)).content
    assert 0 < hour <= 3600
    assert 59 < months / DAY_SECONDS < 61
    assert -1 == forever


# -- Counters.


async def test_a_counter_has_64_bits(store: triclinium.Collection, key: str) -> None:
    """A counter wraps around at 64 bits."""
    await store.binary.decrement(key, initial=UINT64_MAX)

    assert 1 == (await store.binary.increment(key, delta=2)).content
    assert UINT64_MAX == (await store.binary.increment(key, delta=UINT64_MAX - 1)).content


async def test_expiry_of_a_counter(memcached: Memcached, store: triclinium.Collection, key: str) -> None:
    """The operation that creates a counter sets its expiry; counting does not change the expiry."""
    await store.binary.increment(key, initial=1, expiry=timedelta(hours=1))
    await store.binary.increment(key, initial=1, expiry=timedelta(days=1))

    assert 0 < await seconds_to_live(memcached, key) <= 3600


# -- Sizes and concurrency.


async def test_a_value_that_is_too_large_is_refused(store: triclinium.Collection, key: str) -> None:
    """A value above the maximum is refused, and the connection stays in use."""
    await store.upsert(key, 1)

    with pytest.raises(errors.ValueTooLargeException):
        await store.replace(key, bytes(VALUE_SIZE_MAX), transcoder=BINARY)
    await store.upsert(key, 2)
    assert 2 == (await store.get(key)).content


@pytest.mark.parametrize("key", ["a", "k" * 250, "λ" * 125, "with blank\tand\nnewline"])
async def test_keys_of_any_size(store: triclinium.Collection, key: str) -> None:
    """Keys of up to 250 bytes of UTF-8 work with any characters."""
    await store.upsert(key, 1)

    assert 1 == (await store.get(key)).content
    await store.remove(key)


async def test_a_thousand_tasks_share_a_connection(cluster: triclinium.Cluster, key: str) -> None:
    """Each of a thousand tasks gets its own document over one connection."""
    store, found = cluster.default_collection(), dict[int, object]()

    async def write_and_read(number: int) -> None:
        await store.upsert(f"{key}{number}", {"number": number})
        found[number] = (await store.get(f"{key}{number}")).content

    async with trio.open_nursery() as nursery:
        for number in range(TASKS):
            nursery.start_soon(write_and_read, number)

    assert {number: {"number": number} for number in range(TASKS)} == found
    assert 1 == len(cluster.statistics().connections)


async def test_concurrent_counting_misses_no_number(store: triclinium.Collection, key: str) -> None:
    """Each of a hundred tasks that count concurrently gets a unique number."""
    seen: list[int] = []

    async def count() -> None:
        seen.append((await store.binary.increment(key, initial=1)).content)

    async with trio.open_nursery() as nursery:
        for _ in range(100):
            nursery.start_soon(count)

    assert list(range(1, 101)) == sorted(seen)


# -- Unsupported features, and a wrong scheme.


NOT_AVAILABLE: dict[str, Callable[[triclinium.Collection], Awaitable[object]]] = {
    "get_and_lock": lambda store: store.get_and_lock("ada", timedelta(seconds=1)),
    "unlock": lambda store: store.unlock("ada", triclinium.Cas(1)),
    "upsert with preserve_expiry": lambda store: store.upsert("ada", 1, preserve_expiry=True),
    "replace with preserve_expiry": lambda store: store.replace("ada", 1, preserve_expiry=True),
}


@pytest.mark.parametrize("operation", NOT_AVAILABLE)
async def test_unsupported_operations_are_not_sent(
    memcached: Memcached, store: triclinium.Collection, operation: str
) -> None:
    """An unsupported operation raises without sending a byte, and the connection stays in use."""
    await store.exists("ada")
    before = await bytes_received(memcached)
    await store.exists("ada")
    between = await bytes_received(memcached)
    with pytest.raises(errors.FeatureNotAvailableException):
        await NOT_AVAILABLE[operation](store)
    await store.exists("ada")
    after = await bytes_received(memcached)

    assert len("stats\r\n") < between - before == after - between


async def test_couchbase_scheme_on_memcached(safety_net: None, memcached: Memcached) -> None:
    """With couchbase:// on a plain memcached, the error suggests memcached://."""
    connection_string = memcached.connection_string.replace("memcached", "couchbase")
    authenticator = triclinium.PasswordAuthenticator("app", "secret")

    async with triclinium.open_cluster(
        connection_string, authenticator, timeouts=PATIENT, retry_strategy=NeverRetry()
    ) as cluster:
        with pytest.raises(errors.CouchbaseException, match="memcached://"):
            await cluster.bucket("travel").default_collection().get("ada")


# -- Restarts of the server.


async def restart(server: Memcached) -> None:
    """Start the server in a thread, so that the client continues."""
    await trio.to_thread.run_sync(server.start)


async def test_operations_wait_for_a_restarting_server(safety_net: None, mortal_memcached: Memcached) -> None:
    """While the server is down, reads and writes wait; the client sends them to the restarted server."""
    found: list[object] = []

    async def note(operation: Callable[[], Awaitable[object]]) -> None:
        found.append(await operation())

    async with triclinium.open_cluster(mortal_memcached.connection_string, timeouts=PATIENT) as cluster:
        store = cluster.default_collection()
        await store.upsert("ada", 1)
        mortal_memcached.end()
        await until(lambda: cluster.statistics().connections[0].state != "READY")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(note, partial(store.insert, "bob", 2))
            nursery.start_soon(note, partial(store.get_or_none, "ada"))
            await until(lambda: cluster.statistics().open_operations == 2)
            nothing_yet = list(found)
            await restart(mortal_memcached)
        stored = (await store.get("bob")).content

    assert [] == nothing_yet
    assert None in found
    assert (2, 2) == (len(found), stored)


async def test_a_write_in_flight_is_not_retried(safety_net: None, mortal_memcached: Memcached) -> None:
    """If the server dies, the client retries a read in flight; a write in flight may have been applied, and fails."""
    found: list[object] = []

    async def read(store: triclinium.Collection) -> None:
        found.append(await store.get_or_none("ada"))

    async with triclinium.open_cluster(mortal_memcached.connection_string, timeouts=PATIENT) as cluster:
        store = cluster.default_collection()
        await store.upsert("ada", 1)
        mortal_memcached.pause()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read, store)

            async def kill_when_all_is_sent() -> None:
                await trio.testing.wait_all_tasks_blocked()
                mortal_memcached.end()

            nursery.start_soon(kill_when_all_is_sent)
            with pytest.raises(errors.RequestCanceledException):
                await store.insert("bob", 2)
            nothing_yet = list(found)
            await restart(mortal_memcached)
        written_again = (await store.exists("bob")).exists

    assert [] == nothing_yet
    assert [None] == found
    assert not written_again
