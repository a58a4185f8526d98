"""All copies of a document at once: one task reads each, for the length of a block."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

import trio

from triclinium._driver.driver import Driver
from triclinium._driver.hidden_nursery import in_background
from triclinium._trio_run import TrioRun
from triclinium_core.errors import CouchbaseException
from triclinium_core.kv.operation.replica.copies import failure_of, is_missed
from triclinium_core.kv.operation.requests import Operation
from triclinium_core.retry.couchbase.strategy import AnyRetryStrategy

S = TypeVar("S")
R_co = TypeVar("R_co", covariant=True)


class _Readers(Generic[R_co]):
    """One task for each copy, until all are read or the block is left."""

    def __init__(
        self,
        reads: Sequence[Operation],
        perform: Callable[[Operation], Awaitable[R_co]],
        replica_count: Callable[[str | None], int | None],
    ) -> None:
        self.started: trio.Event = trio.Event()
        self.started.set()
        self.errors: dict[int, CouchbaseException] = {}
        """Why a copy is missing that there should be, by its place among the reads."""
        self.ending: trio.ClosedResourceError | None = None
        """Set when the cluster was closed meanwhile."""
        self._arriving: trio.MemorySendChannel[R_co]
        self.arrived: trio.MemoryReceiveChannel[R_co]
        self._arriving, self.arrived = trio.open_memory_channel[R_co](len(reads))
        self._reads = reads
        self._perform = perform
        self._replica_count = replica_count
        self._scope = trio.CancelScope(shield=True)

    async def run(self) -> None:
        """Read all copies; the block learns of a cancellation, and ends this when it is left."""
        with self._scope:
            async with trio.open_nursery() as nursery:
                for place, read in enumerate(self._reads):
                    nursery.start_soon(self._read, place, read)
            self._arriving.close()

    def close(self) -> None:
        """Give up what was not read yet."""
        self._scope.cancel()

    async def _read(self, place: int, read: Operation) -> None:
        try:
            copy = await self._perform(read)
        except CouchbaseException as error:
            if is_missed(read, self._replica_count(read.keyspace.bucket)):
                self.errors[place] = error
        except trio.ClosedResourceError as error:
            self.ending = error
        else:
            self._arriving.send_nowait(copy)


class ReplicaResults(Generic[R_co]):
    """The copies of a document in the order in which they arrive: ``async for copy in copies``.

    Several tasks may take from it; each copy goes to one of them. It belongs to its block: afterwards it raises
    ``trio.ClosedResourceError``.
    """

    def __init__(self, readers: _Readers[R_co]) -> None:
        self._readers = readers
        self._run = TrioRun()
        self._found = False

    def __repr__(self) -> str:
        return f"<ReplicaResults errors={len(self._readers.errors)}>"

    @property
    def errors(self) -> tuple[CouchbaseException, ...]:
        """Why copies could not be read, as far as it is known by now, the active one first.

        Replicas that the bucket keeps and no node has now are among them; there are none for replicas beyond those.
        """
        return tuple(self._readers.errors[place] for place in sorted(self._readers.errors))

    def __aiter__(self) -> ReplicaResults[R_co]:
        return self

    async def __anext__(self) -> R_co:
        """Return the next copy that has arrived.

        Raises:
            StopAsyncIteration: all have.
            CouchbaseException: none could be read, and for another reason than that there is none.
            trio.ClosedResourceError: the block was left, or the cluster is closed.
            RuntimeError: it is called in another trio run.
        """
        self._run.check_caller()
        try:
            copy = await self._readers.arrived.receive()
        except trio.EndOfChannel:
            failure = self._readers.ending or (None if self._found else failure_of(self.errors))
            if failure is not None:
                raise failure from None
            raise StopAsyncIteration from None
        self._found = True
        return copy


@asynccontextmanager
async def reading_copies(
    driver: Driver,
    reads: Sequence[Operation],
    returns: type[S],
    as_copy: Callable[[S], R_co],
    strategy: AnyRetryStrategy | None,
) -> AsyncIterator[ReplicaResults[R_co]]:
    """Give the block the copies that ``reads`` find, as they arrive.

    Args:
        returns: what the reads return.
        as_copy: makes a copy of one.

    Cancellation: one that is pending on entering is noticed before anything is sent.
    """

    async def perform(read: Operation) -> R_co:
        return as_copy(await driver.perform(returns, lambda: read, strategy))

    driver.check_caller()
    await trio.lowlevel.checkpoint_if_cancelled()
    readers = _Readers(reads, perform, driver.replica_count)
    with readers.arrived:
        async with in_background(readers, ReplicaResults(readers)) as results:
            yield results
