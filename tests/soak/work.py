"""Operations that the tasks of one client perform, and the record of their results."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

import trio

from tests.soak.nodes import BUCKET, LASTING, PASSING, SCOPE
from triclinium import Cluster, Collection, DurabilityLevel, RawBinaryTranscoder, errors
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import may_be_applied

BINARY = RawBinaryTranscoder()
CANCELLED = "(left by its caller)"
CANCEL_SHARE = 0.03
"""Share of calls that run in a scope that may cancel them."""
MEMORY_SECONDS = 60.0
"""Maximum seconds for which a write is in flight."""
DOCUMENT_SIZE_MAX = 2000
SHARED_KEYS = 16
COUNTERS = 8
COUNTER_START = 10**9
"""Initial value of counters, far from 0, below which a counter does not count."""

OPCODES: dict[str, Opcode] = {
    "upsert": Opcode.SET,
    "insert": Opcode.ADD,
    "replace": Opcode.REPLACE,
    "remove": Opcode.DELETE,
    "increment": Opcode.INCREMENT,
    "decrement": Opcode.DECREMENT,
    "append": Opcode.APPEND,
    "prepend": Opcode.PREPEND,
    "touch": Opcode.TOUCH,
    "get_and_touch": Opcode.GET_AND_TOUCH,
    "get_and_lock": Opcode.GET_AND_LOCK,
    "unlock": Opcode.UNLOCK,
    "get": Opcode.GET,
    "exists": Opcode.GET_META,
    "get_any_replica": Opcode.GET_REPLICA,
    "get_all_replicas": Opcode.GET_REPLICA,
}
READS = {"get", "exists", "get_any_replica", "get_all_replicas"}


@dataclass
class Reported:
    """Counts of the results of one kind of operation."""

    begun: int = 0
    succeeded: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    """Failures by class, including cancelled calls."""
    maybe: int = 0
    """Number of failed operations that may have been applied."""


@dataclass
class Counted:
    """Sums of the certain and of the possible changes of one counter, in each direction."""

    up: int = 0
    down: int = 0
    maybe_up: int = 0
    maybe_down: int = 0


@dataclass
class Own:
    """Values of a document, as its only writer recorded them."""

    certain: int | None = None
    """Last value that was certainly written; None before the first write or after a removal."""
    maybe: list[tuple[float, int | None]] = field(default_factory=list)
    """Values that may have been written after ``certain``, with the times of the writes."""


@dataclass
class Known:
    """Results of all calls of one client, as its tasks recorded them."""

    reported: dict[str, Reported] = field(default_factory=lambda: {kind: Reported() for kind in OPCODES})
    counters: dict[str, Counted] = field(
        default_factory=lambda: {f"counter-{number}": Counted() for number in range(COUNTERS)}
    )
    own: dict[str, Own] = field(default_factory=dict)
    strangers: list[BaseException] = field(default_factory=list)
    """Exceptions other than CouchbaseException."""

    @property
    def begun(self) -> int:
        """Number of operations of all kinds."""
        return sum(reported.begun for reported in self.reported.values())

    @property
    def failures(self) -> Counter[str]:
        """Failures of all kinds, by class."""
        return sum((reported.failed for reported in self.reported.values()), start=Counter())


class Work:
    """Tasks of one client.

    Args:
        pause: average seconds between two operations of a task.
    """

    def __init__(self, cluster: Cluster, *, seed: int, pause: float) -> None:
        self.cluster: Cluster = cluster
        self.known: Known = Known()
        self.stopped: bool = False
        self._seed = seed
        self._pause = pause
        bucket = cluster.bucket(BUCKET)
        self.store: Collection = bucket.default_collection()
        self._stores = (self.store, bucket.scope(SCOPE).collection(LASTING), bucket.scope(SCOPE).collection(PASSING))
        self._kinds: dict[str, Callable[[random.Random, str], Awaitable[None]]] = {
            "own write": self._own_write,
            "own read": self._own_read,
            "count": self._count,
            "share": self._share,
            "grow": self._grow,
            "lock": self._lock,
            "swap": self._swap,
            "read copies": self._read_copies,
        }

    async def prepare(self) -> None:
        """Create the counters. An insert that fails may have created its counter nevertheless."""
        rng = random.Random(self._seed)
        for key in self.known.counters:
            done = False
            while not done:
                await self.perform(rng, "insert", partial(self.store.insert, key, COUNTER_START))
                done, _ = await self.perform(rng, "get", partial(self.store.get, key))

    async def toil(self, number: int) -> None:
        """Perform operations until ``stopped``."""
        rng = random.Random(self._seed * 1000 + number)
        while not self.stopped:
            await self._kinds[rng.choice(list(self._kinds))](rng, f"task-{number}")
            await trio.sleep(rng.expovariate(1 / self._pause))

    async def perform(self, rng: random.Random, kind: str, call: Callable[[], Awaitable[object]]) -> tuple[bool, bool]:
        """Perform and record an operation. Return whether it succeeded, and whether it may have been applied."""
        reported = self.known.reported[kind]
        reported.begun += 1
        limit = rng.uniform(0.0, 0.05) if rng.random() < CANCEL_SHARE else float("inf")
        error: BaseException | None = None
        with trio.move_on_after(limit) as scope:
            try:
                await call()
            except errors.CouchbaseException as raised:
                error = raised
            except Exception as raised:
                error = raised
                self.known.strangers.append(raised)
        if scope.cancelled_caught:
            reported.failed[CANCELLED] += 1
            reported.maybe += kind not in READS
            return False, True
        if error is None:
            reported.succeeded += 1
            return True, True
        reported.failed[type(error).__name__] += 1
        maybe = isinstance(error, errors.CouchbaseException) and may_be_applied(error)
        reported.maybe += maybe and kind not in READS
        return False, maybe

    async def _own_write(self, rng: random.Random, name: str) -> None:
        key, now = f"{name}-own-{rng.randrange(4)}", trio.current_time()
        own = self.known.own.setdefault(key, Own())
        value: int | None = rng.randrange(10**6)
        durability = rng.choice(list(DurabilityLevel))
        if rng.random() < 0.2:
            value = None
            done, maybe = await self.perform(rng, "remove", partial(self.store.remove, key, durability=durability))
        else:
            call = partial(self.store.upsert, key, value, durability=durability)
            done, maybe = await self.perform(rng, "upsert", call)
        if done:
            own.certain = value
            own.maybe = [entry for entry in own.maybe if entry[0] > now - MEMORY_SECONDS]
        elif maybe:
            own.maybe.append((now, value))

    async def _own_read(self, rng: random.Random, name: str) -> None:
        key = f"{name}-own-{rng.randrange(4)}"
        await self.perform(rng, "get", partial(self.store.get, key))
        await self.perform(rng, "exists", partial(self.store.exists, key))

    async def _count(self, rng: random.Random, name: str) -> None:
        key, delta = f"counter-{rng.randrange(COUNTERS)}", rng.randrange(1, 10)
        counted, binary = self.known.counters[key], self.store.binary
        if rng.random() < 0.5:
            done, maybe = await self.perform(rng, "increment", partial(binary.increment, key, delta=delta))
            counted.up += delta * done
            counted.maybe_up += delta * (maybe and not done)
        else:
            done, maybe = await self.perform(rng, "decrement", partial(binary.decrement, key, delta=delta))
            counted.down += delta * done
            counted.maybe_down += delta * (maybe and not done)

    async def _share(self, rng: random.Random, name: str) -> None:
        store, key = rng.choice(self._stores), f"shared-{rng.randrange(SHARED_KEYS)}"
        await self.perform(rng, "insert", partial(store.insert, key, 1, expiry=timedelta(seconds=rng.randrange(1, 4))))
        await self.perform(rng, "touch", partial(store.touch, key, timedelta(seconds=5)))
        await self.perform(rng, "get_and_touch", partial(store.get_and_touch, key, timedelta(seconds=2)))
        await self.perform(rng, "get", partial(store.get, key))

    async def _grow(self, rng: random.Random, name: str) -> None:
        store, key = rng.choice(self._stores), f"{name}-grown"
        try:
            size = len((await store.get(key, transcoder=BINARY)).data)
        except errors.DocumentNotFoundException:
            size = DOCUMENT_SIZE_MAX
        except errors.CouchbaseException:
            size = 0
        if size >= DOCUMENT_SIZE_MAX:
            await self.perform(rng, "upsert", partial(store.upsert, key, b"", transcoder=BINARY))
        await self.perform(rng, "append", partial(store.binary.append, key, b"after" * rng.randrange(20)))
        await self.perform(rng, "prepend", partial(store.binary.prepend, key, b"before" * rng.randrange(20)))

    async def _lock(self, rng: random.Random, name: str) -> None:
        key, locks = f"{name}-locked", []
        await self.perform(rng, "upsert", partial(self.store.upsert, key, 1))

        async def lock() -> None:
            locks.append((await self.store.get_and_lock(key, timedelta(seconds=1))).cas)

        await self.perform(rng, "get_and_lock", lock)
        for cas in locks:
            await self.perform(rng, "unlock", partial(self.store.unlock, key, cas))

    async def _swap(self, rng: random.Random, name: str) -> None:
        store, key, found = rng.choice(self._stores), f"swapped-{rng.randrange(SHARED_KEYS)}", []

        async def read() -> None:
            found.append(await store.get(key))

        await self.perform(rng, "get", read)
        for document in found:
            await self.perform(rng, "replace", partial(store.replace, key, rng.random(), cas=document.cas))
        if not found:
            await self.perform(rng, "upsert", partial(store.upsert, key, 0.0))

    async def _read_copies(self, rng: random.Random, name: str) -> None:
        key = f"{name}-own-{rng.randrange(4)}"

        async def read_all() -> None:
            async with self.store.get_all_replicas(key) as copies:
                async for _ in copies:
                    pass

        await self.perform(rng, "get_any_replica", partial(self.store.get_any_replica, key))
        await self.perform(rng, "get_all_replicas", read_all)
