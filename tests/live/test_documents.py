"""Behaviour that documents have in a real memcached and in CouchbaseMock alike."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import pytest

from tests.live.couchbase_mock import CouchbaseMock
from tests.live.memcached import VALUE_SIZE_MAX, Memcached
from tests.live.waiting import PATIENT
from triclinium import Collection, RawBinaryTranscoder, RawStringTranscoder, errors, open_cluster
from triclinium_core.transcoding.flags import BINARY_FLAGS, STRING_FLAGS

pytestmark = pytest.mark.live

BINARY = RawBinaryTranscoder()


@pytest.fixture(params=["memcached", "couchbase_mock"])
def server(request: pytest.FixtureRequest) -> Memcached | CouchbaseMock:
    """Return each server in turn."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Memcached | CouchbaseMock)
    return found


@pytest.fixture
async def store(server: Memcached | CouchbaseMock, safety_net: None) -> AsyncIterator[Collection]:
    """Yield the server's only collection, with a client for the test."""
    if isinstance(server, Memcached):
        async with open_cluster(server.connection_string, timeouts=PATIENT) as cluster:
            yield cluster.default_collection()
    else:
        async with server.open_client() as (_, collection):
            yield collection


async def test_get_returns_the_upserted_value(server: Memcached | CouchbaseMock, store: Collection, key: str) -> None:
    """A read returns the written value with its CAS, and a write changes the CAS; only CouchbaseMock has tokens."""
    first = await store.upsert(key, {"born": 1815})
    found = await store.get(key)
    second = await store.upsert(key, {"born": 1816})

    assert ({"born": 1815}, first.cas) == (found.content, found.cas)
    assert first.cas != second.cas
    assert {"born": 1816} == (await store.get(key)).content
    if isinstance(server, Memcached):
        assert (None, None) == (first.mutation_token, second.mutation_token)
    else:
        assert first.mutation_token is not None is not second.mutation_token
        assert first.mutation_token.vbucket_uuid == second.mutation_token.vbucket_uuid
        assert first.mutation_token.sequence_number < second.mutation_token.sequence_number


async def test_writes_need_the_current_version(store: Collection, key: str) -> None:
    """A document is inserted once, and replaced and removed only if it exists and the CAS is not an old one."""
    with pytest.raises(errors.DocumentNotFoundException):
        await store.replace(key, 0)
    old = await store.insert(key, 1)
    with pytest.raises(errors.DocumentExistsException):
        await store.insert(key, 0)
    assert (1, old.cas) == ((found := await store.get(key)).content, found.cas)
    new = await store.replace(key, 2, cas=old.cas)
    with pytest.raises(errors.CasMismatchException):
        await store.replace(key, 3, cas=old.cas)
    with pytest.raises(errors.CasMismatchException):
        await store.remove(key, cas=old.cas)
    assert (2, new.cas) == ((found := await store.get(key)).content, found.cas)
    last = await store.replace(key, 4)
    assert new.cas != last.cas
    await store.remove(key, cas=last.cas)
    with pytest.raises(errors.DocumentNotFoundException):
        await store.remove(key)


async def test_counters(server: Memcached | CouchbaseMock, store: Collection, key: str) -> None:
    """A counter starts with its initial value and counts up and down, in memcached not below 0; a text is no counter."""
    counted = [
        await store.binary.increment(key, delta=7, initial=5),
        await store.binary.increment(key, delta=7, initial=5),
        await store.binary.decrement(key),
    ]

    assert [5, 12, 11] == [result.content for result in counted]
    assert 0 not in {result.cas for result in counted}
    assert {isinstance(server, Memcached)} == {result.mutation_token is None for result in counted}
    if isinstance(server, Memcached):  # CouchbaseMock counts below 0.
        floor = await store.binary.decrement(key, delta=100)
        assert (0, True) == (floor.content, floor.cas != 0)
    await store.upsert(key, "many")
    with pytest.raises(errors.DeltaInvalidException):
        await store.binary.increment(key)


@pytest.mark.parametrize("size", [0, 1, 100_000, 1024 * 1024, VALUE_SIZE_MAX - 4096], ids=str)
async def test_values_of_any_size(store: Collection, key: str, size: int) -> None:
    """Values of any size, from empty to nearly the maximum of this memcached, are read back unchanged."""
    value = (bytes(index % 251 for index in range(1000)) * (size // 1000 + 1))[:size]
    await store.upsert(key, value, transcoder=BINARY)

    assert value == (await store.get(key, transcoder=BINARY)).content
    await store.remove(key)


async def test_flags_are_preserved(store: Collection, key: str) -> None:
    """Text and bytes are read back unchanged, with the flags of their format."""
    await store.upsert(key, "ἀριθμός", transcoder=RawStringTranscoder())
    text = await store.get(key, transcoder=RawStringTranscoder())
    await store.upsert(key, bytes(range(256)), transcoder=BINARY)
    raw = await store.get(key, transcoder=BINARY)

    assert ("ἀριθμός", STRING_FLAGS) == (text.content, text.flags)
    assert (bytes(range(256)), BINARY_FLAGS) == (raw.content, raw.flags)


async def test_append_and_prepend(store: Collection, key: str) -> None:
    """``append`` and ``prepend`` add bytes if the CAS matches."""
    old = await store.insert(key, b"in", transcoder=BINARY)
    new = await store.binary.append(key, b" the end", cas=old.cas)
    with pytest.raises(errors.CasMismatchException):
        await store.binary.prepend(key, b"not ", cas=old.cas)
    await store.binary.prepend(key, b"with", cas=new.cas)

    assert b"within the end" == (await store.get(key, transcoder=BINARY)).content


OF_A_DOCUMENT: dict[str, Callable[[Collection, str], Awaitable[object]]] = {
    "get": lambda store, key: store.get(key),
    "get_and_touch": lambda store, key: store.get_and_touch(key, timedelta(hours=1)),
    "touch": lambda store, key: store.touch(key, timedelta(hours=1)),
    "replace": lambda store, key: store.replace(key, 1),
    "remove": lambda store, key: store.remove(key),
    "append": lambda store, key: store.binary.append(key, b"1"),
    "prepend": lambda store, key: store.binary.prepend(key, b"1"),
    "increment": lambda store, key: store.binary.increment(key),
    "decrement": lambda store, key: store.binary.decrement(key),
}


@pytest.mark.parametrize("operation", OF_A_DOCUMENT)
async def test_a_missing_document_is_not_found(store: Collection, key: str, operation: str) -> None:
    """Each operation that needs a document raises DocumentNotFoundException, and does not create the document."""
    with pytest.raises(errors.DocumentNotFoundException) as caught:
        await OF_A_DOCUMENT[operation](store, key)

    context = caught.value.context
    assert (operation, key, 0) == (context.operation, context.key, context.retry_attempts)
    assert await store.get_or_none(key) is None
