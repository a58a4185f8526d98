"""Behaviour that documents have in a real memcached and in CouchbaseMock alike."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import pytest

from tests.live.couchbase_mock import CouchbaseMock
from tests.live.memcached import Memcached
from triclinium import Collection, RawBinaryTranscoder, RawStringTranscoder, TimeoutOptions, errors, open_cluster
from triclinium_core.transcoding.flags import BINARY_FLAGS, STRING_FLAGS

pytestmark = pytest.mark.live

PATIENT = TimeoutOptions(kv=60.0)
"""Timeouts that are longer than any test, so that no test depends on the speed of the machine."""
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
        async with open_cluster(server.connection_string, server.authenticator, timeouts=PATIENT) as cluster:
            yield cluster.bucket(server.bucket).default_collection()


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
