"""One memcached, used by ``triclinium`` with the transcoder of its page, by aiomcache and by pymemcache."""

from __future__ import annotations

import asyncio

import aiomcache
import pymemcache
import pytest
import trio
from pymemcache import serde

import triclinium
from docs.howto.examples.from_memcached_clients import SHARED
from tests.live.memcached import Memcached
from tests.live.waiting import PATIENT
from triclinium import Cas

pytestmark = pytest.mark.live

VALUES = {"bytes": b"\x00\xff", "text": "Ada \u00e9", "number": -7}


async def test_pymemcache_and_the_client_share_values(memcached: Memcached, safety_net: None) -> None:
    """The client and pymemcache read each other's values, and the client accepts a CAS of pymemcache."""
    other = pymemcache.Client(("127.0.0.1", memcached.port), serde=serde.pickle_serde, default_noreply=False)
    async with triclinium.open_cluster(memcached.connection_string, timeouts=PATIENT) as cluster:
        cache = cluster.default_collection()
        for key, value in VALUES.items():
            await trio.to_thread.run_sync(other.set, f"theirs-{key}", value)
            await cache.upsert(f"ours-{key}", value, transcoder=SHARED)
        theirs = {key: (await cache.get(f"theirs-{key}", transcoder=SHARED)).content for key in VALUES}
        ours = {key: await trio.to_thread.run_sync(other.get, f"ours-{key}") for key in VALUES}
        _, token = await trio.to_thread.run_sync(other.gets, "theirs-text")
        await cache.replace("theirs-text", "changed", cas=Cas(int(token)), transcoder=SHARED)
        changed = await trio.to_thread.run_sync(other.get, "theirs-text")
    other.close()

    assert (VALUES, VALUES) == (theirs, ours)
    assert "changed" == changed


async def test_aiomcache_refuses_flags_of_the_client(memcached: Memcached, safety_net: None) -> None:
    """Aiomcache reads bytes of the page's transcoder, and refuses those that ``RawBinaryTranscoder`` has stored."""
    async with triclinium.open_cluster(memcached.connection_string, timeouts=PATIENT) as cluster:
        cache = cluster.default_collection()
        await cache.upsert("shared", b"value", transcoder=SHARED)
        await cache.upsert("binary", b"value", transcoder=triclinium.RawBinaryTranscoder())

    async def read(key: bytes) -> bytes | None:
        client = aiomcache.Client("127.0.0.1", memcached.port)
        try:
            return await client.get(key)
        finally:
            await client.close()

    assert b"value" == await trio.to_thread.run_sync(asyncio.run, read(b"shared"))
    with pytest.raises(aiomcache.ClientException, match="received flags without handler"):
        await trio.to_thread.run_sync(asyncio.run, read(b"binary"))
