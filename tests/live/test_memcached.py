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
from tests.never_retry import NeverRetry
from triclinium import errors
from triclinium._driver.connector import TcpConnector
from triclinium.abc import ConnectedStream

pytestmark = pytest.mark.live

PATIENT = triclinium.TimeoutOptions(kv=60.0)
"""Timeouts that are longer than any test, so that no test depends on the speed of the machine."""
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


async def seconds_to_live(memcached: Memcached, key: str) -> int:
    """Return the seconds until a document expires, read with the text protocol; -1 if it does not expire."""
    async with await trio.open_tcp_stream("127.0.0.1", memcached.port) as stream:
        await stream.send_all(f"mg {key} t\r\n".encode())
        answer = b""
        while not answer.endswith(b"\r\n"):
            piece = await stream.receive_some()
            assert piece, "memcached hung up"
            answer += piece
    head, _, seconds = answer.decode().strip().partition(" t")
    assert "HD" == head
    return int(seconds)


# -- Documents.


async def test_get_returns_the_upserted_value(store: triclinium.Collection, key: str) -> None:
    """A read returns the written value with its CAS, and a second write changes the CAS."""
    first = await store.upsert(key, {"born": 1815})
    found = await store.get(key)
    second = await store.upsert(key, {"born": 1816})

    assert ({"born": 1815}, first.cas) == (found.content, found.cas)
    assert first.cas != second.cas
    assert {"born": 1816} == (await store.get(key)).content
    assert first.mutation_token is None


async def test_exists_uses_get(store: triclinium.Collection, key: str) -> None:
    """On a plain memcached, ``exists`` uses a GET."""
    before = await store.exists(key)
    stored = await store.upsert(key, 1)
    after = await store.exists(key)

    assert not before.exists
    assert (True, stored.cas) == (after.exists, after.cas)


async def test_insert_creates_once(store: triclinium.Collection, key: str) -> None:
    """A second insert raises DocumentExistsException."""
    await store.insert(key, 1)

    with pytest.raises(errors.DocumentExistsException):
        await store.insert(key, 2)
    assert 1 == (await store.get(key)).content


async def test_replace_needs_the_current_cas(store: triclinium.Collection, key: str) -> None:
    """A replace with an old CAS fails and changes nothing."""
    with pytest.raises(errors.DocumentNotFoundException):
        await store.replace(key, 0)
    old = await store.insert(key, 1)
    new = await store.replace(key, 2, cas=old.cas)

    with pytest.raises(errors.CasMismatchException):
        await store.replace(key, 3, cas=old.cas)
    assert 2 == (await store.get(key)).content
    await store.replace(key, 4)
    assert new.cas != (await store.get(key)).cas


async def test_remove_needs_the_current_cas(store: triclinium.Collection, key: str) -> None:
    """A remove with an old CAS fails, and a document can be removed only once."""
    old = await store.insert(key, 1)
    new = await store.replace(key, 2)

    with pytest.raises(errors.CasMismatchException):
        await store.remove(key, cas=old.cas)
    await store.remove(key, cas=new.cas)
    with pytest.raises(errors.DocumentNotFoundException):
        await store.remove(key)


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


# -- Counters and concatenation.


async def test_counters(store: triclinium.Collection, key: str) -> None:
    """The client creates a counter with its initial value; the counter counts up, and down to 0 but not below."""
    created = await store.binary.increment(key, delta=7, initial=5)
    up = await store.binary.increment(key, delta=7, initial=5)
    down = await store.binary.decrement(key)
    floor = await store.binary.decrement(key, delta=100)

    assert [5, 12, 11, 0] == [result.content for result in (created, up, down, floor)]
    assert (created.cas, floor.cas) != (0, 0)


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


async def test_counting_needs_a_number(store: triclinium.Collection, key: str) -> None:
    """Counting in a document that is not a number raises DeltaInvalidException."""
    await store.upsert(key, "many")

    with pytest.raises(errors.DeltaInvalidException):
        await store.binary.increment(key)


# -- Sizes and concurrency.


@pytest.mark.parametrize("size", [0, 1, 100_000, 1024 * 1024, VALUE_SIZE_MAX - 4096], ids=str)
async def test_values_of_any_size(store: triclinium.Collection, key: str, size: int) -> None:
    """Values of any size, from empty to the server's maximum, are read back unchanged."""
    value = bytes(index % 251 for index in range(1000)) * (size // 1000 + 1)

    await store.upsert(key, value[:size], transcoder=BINARY)

    assert value[:size] == (await store.get(key, transcoder=BINARY)).content
    await store.remove(key)


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


# -- Unsupported features.


class WatchedConnector(TcpConnector):
    """Connector that counts the sent bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes_sent = 0

    async def connect(self, host: str, port: int, *, tls: bool) -> ConnectedStream:
        """Return a watched stream."""
        stream = (await super().connect(host, port, tls=tls)).stream
        return ConnectedStream(trio.StapledStream(WatchedSendStream(stream, self), stream))


class WatchedSendStream(trio.abc.SendStream):
    """Stream that counts the bytes and forwards them."""

    def __init__(self, stream: trio.abc.SendStream, watcher: WatchedConnector) -> None:
        self._stream = stream
        self._watcher = watcher

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Count and send."""
        self._watcher.bytes_sent += len(data)
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until the inner stream can send."""
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()


NOT_AVAILABLE: dict[str, Callable[[triclinium.Collection], Awaitable[object]]] = {
    "get_and_lock": lambda store: store.get_and_lock("ada", timedelta(seconds=1)),
    "unlock": lambda store: store.unlock("ada", triclinium.Cas(1)),
    "upsert with preserve_expiry": lambda store: store.upsert("ada", 1, preserve_expiry=True),
    "replace with preserve_expiry": lambda store: store.replace("ada", 1, preserve_expiry=True),
}


@pytest.mark.parametrize("operation", NOT_AVAILABLE)
async def test_unsupported_operations_are_not_sent(safety_net: None, memcached: Memcached, operation: str) -> None:
    """An unsupported operation raises without sending a byte, and the connection stays in use."""
    connector = WatchedConnector()

    async with triclinium.open_cluster(memcached.connection_string, timeouts=PATIENT, connector=connector) as cluster:
        store = cluster.default_collection()
        await store.exists("ada")
        sent = connector.bytes_sent
        with pytest.raises(errors.FeatureNotAvailableException):
            await NOT_AVAILABLE[operation](store)
        assert 0 < sent == connector.bytes_sent
        await store.exists("ada")

    assert 2 * sent == connector.bytes_sent


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


async def wait_until(condition: Callable[[], bool]) -> None:
    """Return when the condition is true; the safety net limits the wait."""
    while not condition():  # noqa: ASYNC110 - statistics have no event
        await trio.sleep(0.001)


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
        await wait_until(lambda: cluster.statistics().connections[0].state != "READY")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(note, partial(store.insert, "bob", 2))
            nursery.start_soon(note, partial(store.get_or_none, "ada"))
            await wait_until(lambda: cluster.statistics().open_operations == 2)
            nothing_yet = list(found)
            await restart(mortal_memcached)

    assert [] == nothing_yet
    assert 2 == len(found)
    assert None in found


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
