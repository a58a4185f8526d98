"""Cache in front of a slow source: one load for each key, negative entries, invalidation, and a cluster that fails."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from enum import StrEnum

import msgspec
import trio
import trio.testing

from triclinium import Cas, Collection, TimeoutOptions
from triclinium.errors import (
    CasMismatchException,
    CouchbaseException,
    DocumentExistsException,
    DocumentNotFoundException,
)
from triclinium.testing import open_fake_cluster

SECONDS_PRESENT, SECONDS_ABSENT = 60.0, 5.0
"""Expiry of a value, and of the fact that the source has none."""
SECONDS_TO_LOAD = 3.0
"""Expiry of a claim. If its owner crashes, another task loads the value after this time."""
SECONDS_TO_POLL = 0.02
TIMEOUTS = TimeoutOptions(kv=0.25)
"""Limits of the client of a cache. After a timeout, the value comes from the source."""
LOADS_AT_ONCE = 4
"""Maximum number of concurrent loads in one process, which protects the source while the cluster fails."""

logger = logging.getLogger("cache")


class State(StrEnum):
    """Kinds of entries."""

    LOADING = "loading"
    PRESENT = "present"
    ABSENT = "absent"


class Entry(msgspec.Struct):
    """Content of the documents."""

    state: State
    value: str = ""


class Cache:
    """Values of a source, which ``load`` returns by key, or None if the source has none."""

    def __init__(self, documents: Collection, load: Callable[[str], Awaitable[str | None]]) -> None:
        self._documents = documents
        self._load_from_source = load
        self._loads = trio.CapacityLimiter(LOADS_AT_ONCE)

    async def get(self, key: str) -> str | None:
        """Return a value, from the cluster if possible; None if the source has none."""
        while True:
            try:
                found = await self._read_or_claim(key)
            except CouchbaseException as error:
                logger.info("%s is read from the source: %s", key, error)
                return await self._load(key)
            if not isinstance(found, Entry):
                return await self._load_and_store(key, claim=found)
            if found.state is not State.LOADING:
                return found.value if found.state is State.PRESENT else None
            await trio.sleep(SECONDS_TO_POLL)

    async def invalidate(self, key: str) -> None:
        """Forget a value, after a change of the source. A load that began before the change is not stored."""
        try:
            await self._documents.remove(key)
        except DocumentNotFoundException:
            return

    async def _read_or_claim(self, key: str) -> Entry | Cas:
        """Return the entry; without one, the CAS of a new claim."""
        while True:
            found = await self._documents.get_or_none(key)
            if found is not None:
                return found.content_as(Entry)
            try:
                # Of all tasks in all processes, the cluster lets only one create the document.
                return (await self._documents.insert(key, Entry(State.LOADING), expiry=SECONDS_TO_LOAD)).cas
            except DocumentExistsException:
                continue

    async def _load_and_store(self, key: str, claim: Cas) -> str | None:
        """Return the value from the source, and replace the claim if it still exists."""
        try:
            value = await self._load(key)
        except Exception:
            await self._release(key, claim)
            raise
        entry = Entry(State.ABSENT) if value is None else Entry(State.PRESENT, value)
        expiry = SECONDS_ABSENT if value is None else SECONDS_PRESENT
        try:
            # With this CAS, the write fails if the claim has expired, or was invalidated in the meantime.
            await self._documents.replace(key, entry, cas=claim, expiry=expiry)
        except CouchbaseException as error:
            logger.info("%s is not stored: %s", key, error)
            await self._release(key, claim)
        return value

    async def _release(self, key: str, claim: Cas) -> None:
        """Remove the claim if it still exists, so that another task can claim the key."""
        try:
            await self._documents.remove(key, cas=claim)
        except (CasMismatchException, DocumentNotFoundException):
            pass  # The claim has expired, or was invalidated in the meantime.
        except CouchbaseException as error:
            logger.info("the claim on %s is not released: %s", key, error)

    async def _load(self, key: str) -> str | None:
        async with self._loads:
            return await self._load_from_source(key)


class Books:
    """Source of the trial: a slow database that counts its queries."""

    def __init__(self) -> None:
        self.titles = {"b1": "Notes"}
        self.queries = 0

    async def load(self, key: str) -> str | None:
        """Return a title as it was at the beginning of the query."""
        self.queries += 1
        title = self.titles.get(key)
        await trio.sleep(0.5)
        return title

    def counted(self) -> int:
        """Return the number of queries since the last call."""
        queries, self.queries = self.queries, 0
        return queries


async def read_often(caches: list[Cache], key: str) -> set[str | None]:
    """Read a key 50 times in each of several caches, at the same time."""
    found: set[str | None] = set()

    async def read(cache: Cache) -> None:
        found.add(await cache.get(key))

    async with trio.open_nursery() as nursery:
        for cache in caches * 50:
            nursery.start_soon(read, cache)
    return found


async def main() -> None:
    """Use two clients, as two processes would."""
    books = Books()
    async with (
        open_fake_cluster() as fake,
        fake.open_client(seed=1, timeouts=TIMEOUTS) as first,
        fake.open_client(seed=2, timeouts=TIMEOUTS) as second,
    ):
        caches = [Cache(client.bucket("default").default_collection(), books.load) for client in (first, second)]
        print("100 readers:", await read_often(caches, "b1"), "queries:", books.counted())
        print("a missing book:", await read_often(caches, "b2"), "queries:", books.counted())
        await trio.sleep(SECONDS_ABSENT + 1)
        print("6 s later:", await read_often(caches, "b2"), await read_often(caches, "b1"), "queries:", books.counted())
        await trio.sleep(SECONDS_PRESENT)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(caches[0].get, "b1")
            await trio.sleep(0.1)
            books.titles["b1"] = "Sketch"
            await caches[1].invalidate("b1")
        print("changed during a load:", await read_often(caches, "b1"), "queries:", books.counted())
        fake.nodes.kill(0)
        print("without the cluster:", await read_often(caches, "b1"), "queries:", books.counted())


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
