"""Idioms of aiomcache and pymemcache, translated, with a transcoder for the values that those clients have stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import trio
import trio.testing

from triclinium import Collection, EncodedValue, GetResult
from triclinium.errors import (
    CasMismatchException,
    DecodingFailureException,
    DocumentExistsException,
    DocumentNotFoundException,
    EncodingFailureException,
)
from triclinium.testing import open_fake_cluster

T = TypeVar("T")

BYTES, INTEGER, TEXT = 0, 2, 16
"""Flags of ``pymemcache.serde``. aiomcache stores only bytes, with the flags 0."""

READERS: Mapping[int, Callable[[bytes], object]] = {BYTES: bytes, INTEGER: int, TEXT: bytes.decode}
"""Function that reads a stored value, by its flags."""


class SharedTranscoder:
    """Transcoder for bytes, text and integers, as ``pymemcache.serde.pickle_serde`` stores them. It never unpickles."""

    def encode(self, value: object, /) -> EncodedValue:
        """Return the stored form of a value."""
        match value:
            case bytes():
                return EncodedValue(value, BYTES)
            case str():
                return EncodedValue(value.encode(), TEXT)
            case int() if not isinstance(value, bool):
                return EncodedValue(b"%d" % value, INTEGER)
        raise EncodingFailureException(f"SharedTranscoder stores bytes, str and int, not {type(value).__name__}")

    def decode(self, data: bytes, flags: int, as_type: type[T], /) -> T:
        """Return the value that was stored."""
        try:
            value = READERS[flags](data)
        except (KeyError, ValueError) as error:
            raise DecodingFailureException(f"the value with flags {flags} is not bytes, text or an integer") from error
        if not isinstance(value, as_type):
            raise DecodingFailureException(f"the value is {type(value).__name__}, not {as_type.__name__}")
        return value


SHARED = SharedTranscoder()


async def one_value(cache: Collection) -> None:
    """Store, read, and count."""
    await cache.upsert("greeting", "Hello", expiry=60, transcoder=SHARED)  # set(…, expire=60), set(…, exptime=60)
    found = await cache.get_or_none("greeting", transcoder=SHARED)  # get(…)
    print(found.content if found is not None else "default")
    missing = await cache.get_or_none("missing", transcoder=SHARED)  # get(…, default)
    print(missing.content if missing is not None else "default")
    await cache.binary.increment("visits", initial=1)  # add(…, 1), or incr(…, 1) if it exists
    print("visits:", (await cache.binary.increment("visits", delta=2)).content)


async def add(cache: Collection, key: str, value: str) -> bool:
    """Return whether the value was stored, as ``add`` of the other clients does."""
    try:
        await cache.insert(key, value, transcoder=SHARED)
    except DocumentExistsException:
        return False
    return True


async def append_word(cache: Collection, key: str, word: str) -> None:
    """Append a word to a value with ``gets`` and ``cas``, and try again while another writer is faster."""
    while True:
        found = await cache.get(key, transcoder=SHARED)  # gets(…)
        try:
            await cache.replace(key, f"{found.content_as(str)} {word}", cas=found.cas, expiry=60, transcoder=SHARED)
            return
        except CasMismatchException:
            continue


async def get_many(cache: Collection, keys: list[str]) -> dict[str, GetResult]:
    """Return the values that exist, as ``get_many`` and ``multi_get`` do."""
    found: dict[str, GetResult] = {}
    async with cache.get_many(keys, transcoder=SHARED) as outcomes:
        async for key, outcome in outcomes:
            if not isinstance(outcome.error, DocumentNotFoundException):
                found[key] = outcome.result()
    return found


async def main() -> None:
    """Use a cluster in memory; a program opens its memcached with ``open_cluster("memcached://127.0.0.1")``."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        cache = cluster.bucket("default").default_collection()
        await one_value(cache)
        print("added:", await add(cache, "lock", "a"), await add(cache, "lock", "b"))
        await append_word(cache, "greeting", "Ada")
        print({key: found.content for key, found in sorted((await get_many(cache, ["greeting", "lock", "x"])).items())})
        await cache.remove("lock")  # delete(…)
        try:
            await cache.touch("lock", 60)  # touch(…, 60)
        except DocumentNotFoundException:
            print("touch: missing")


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
