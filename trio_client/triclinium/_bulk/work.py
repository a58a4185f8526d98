"""Background work of a bulk block: one operation for each item of the source.

A task reads items while there is room. It submits the operations of an iterable in batches, those of an asynchronous
one as the items arrive. The driver passes the outcomes to ``collect``, so that no task waits for a single operation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, Literal, TypeVar, get_args

import trio

from triclinium._bulk.record import BulkOutcome, BulkRecord
from triclinium._bulk.sources import Item, pair_of
from triclinium._cluster_driver.cluster_driver import ClusterDriver, Outcome
from triclinium._driver.waiters import CollectedWaiter
from triclinium_core.checks import check_integer
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.kv.operation.document_operations import DocumentOperation
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.shown import shown
from triclinium_core.telemetry.tracing import RequestSpan, check_parent

R = TypeVar("R")

Errors = Literal["raise", "collect"]
"""Use of the failures that the body of a block did not look at: raise one ``BulkFailure``, or only record them."""

CONCURRENCY_MAX = 16_384
"""Maximum number of items at the same time: the number of requests that may be in flight on one connection."""

ITEMS_AT_ONCE = 256
"""Maximum number of items that are read between two checkpoints."""


@dataclass(frozen=True, slots=True)
class Operations(Generic[R]):
    """Operations of a bulk block.

    Args:
        returns: type of their results.
        make: builds the operation for the values of an item; raises for an item that the single call would refuse.
        strategy: strategy of each operation; None for the cluster's.
        parent: parent span of each operation; None for the tracer's choice.
        concurrency: maximum number of items taken from the source whose outcomes the body has not taken.
        errors: use of the failures that the body did not look at.
        has_values: whether each item is a pair of a key and a value, and not a key alone.

    Raises:
        InvalidArgumentException: ``parent``, ``concurrency`` or ``errors`` is wrong.
    """

    returns: type[R]
    make: Callable[..., DocumentOperation]
    strategy: AnyRetryStrategy | None
    parent: RequestSpan | None
    concurrency: int
    errors: Errors
    has_values: bool = False

    def __post_init__(self) -> None:
        check_parent(self.parent)
        check_integer(self.concurrency, "concurrency", 1, CONCURRENCY_MAX)
        if self.errors not in get_args(Errors):
            raise InvalidArgumentException(
                f"errors={shown(self.errors)} must be one of {', '.join(get_args(Errors))}", parameter="errors"
            )


class BulkWork(Generic[R]):
    """Operations of one block, until those of all taken items have ended or the block is cancelled.

    Args:
        source: iterator of the items.
        record: gets the counts and the failures.
    """

    def __init__(
        self,
        driver: ClusterDriver,
        source: Iterator[object] | AsyncIterator[object],
        operations: Operations[R],
        record: BulkRecord,
    ) -> None:
        self.started: trio.Event = trio.Event()
        self.open: dict[str, CollectedWaiter[DocumentOperation, Outcome]] = {}
        """Submissions in flight, by key."""
        self.finished: deque[tuple[str, BulkOutcome[R]]] = deque()
        """Outcomes that the body has not taken, in order of completion."""
        self.takers: trio.lowlevel.ParkingLot = trio.lowlevel.ParkingLot()
        """Tasks that wait for an outcome."""
        self.room: int = operations.concurrency
        """Number of items that may be taken from the source now."""
        self.reader: trio.lowlevel.ParkingLot = trio.lowlevel.ParkingLot()
        """Task that reads the source, while there is no room."""
        self.refill_at: int = 1 if isinstance(source, AsyncIterator) else max(1, operations.concurrency // 2)
        """Room at which the reader continues after the body takes an outcome. An asynchronous source may wait for the
        body, so any room is used. For other sources, few large batches are cheaper: each is one write to each node."""
        self.is_left: bool = False
        """Whether the block was left."""
        self.is_over: bool = False
        """Whether no more outcomes arrive."""
        self.was_iterated: bool = False
        """Whether the body has requested an outcome, called ``stop`` or raised an exception."""
        self.source_error: Exception | None = None
        """Exception of the source, until it is raised."""
        self._driver = driver
        self._source = source
        self._operations = operations
        self._record = record
        self._held: dict[str, deque[Item]] = {}
        """Items that wait, because an earlier item with the same key is in flight."""
        self._released: dict[str, None] = {}
        """Keys whose next held item can be submitted, in order."""
        self._worker: trio.lowlevel.ParkingLot = trio.lowlevel.ParkingLot()
        """Task that waits for released keys, and for the end of all operations."""
        self._is_read = False
        """Whether reading has ended."""
        self._reading = trio.CancelScope()
        self._shield = trio.CancelScope(shield=True)
        self._task: trio.lowlevel.Task

    # -- Tasks.

    async def run(self) -> None:
        """Read the source, and wait until all operations have ended. A cancellation abandons the open operations.

        Before ``close``, the cancel scopes around the block have no effect.
        """
        self._task = trio.lowlevel.current_task()
        self.started.set()
        try:
            with self._shield:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._read)
                    while not (self._is_read and not self.open and not self._held):
                        if self._released:
                            self._submit_held(next(iter(self._released)))
                        else:
                            await self._worker.park()
        finally:
            self._abandon()
            self.is_over = True
            self.takers.unpark_all()

    async def _read(self) -> None:
        """Submit operations for the items of the source, while there is room."""
        source = self._source
        try:
            with self._reading:
                # Without this checkpoint, a block that is cancelled on entering would read from the source.
                await trio.lowlevel.checkpoint()
                if isinstance(source, AsyncIterator):
                    await self._read_asynchronously(source)
                else:
                    while self._take(islice(source, min(self.room, ITEMS_AT_ONCE))):
                        await self._wait_for_room()
        except Exception as error:
            self.source_error = error
        finally:
            self._is_read = True
            self._worker.unpark_all()

    async def _read_asynchronously(self, source: AsyncIterator[object]) -> None:
        try:
            async for given in source:
                self._take((given,))
                # A source that shields itself, or has no checkpoint, does not notice the end of reading.
                await trio.lowlevel.checkpoint_if_cancelled()
                if not self.room or not self._record.taken % ITEMS_AT_ONCE:
                    await self._wait_for_room()
        finally:
            if isinstance(source, AsyncGenerator):
                # The generator's scopes and nurseries must end in this task, before the scopes around this loop.
                try:
                    await source.aclose()
                except* GeneratorExit:  # A nursery in the generator wraps it in a group.
                    pass

    async def _wait_for_room(self) -> None:
        if self.room:
            await trio.lowlevel.checkpoint()
        while not self.room:
            await self.reader.park()
            # A reader that was woken before the end of reading is not cancelled in ``park``.
            await trio.lowlevel.checkpoint_if_cancelled()

    # -- Items and their outcomes.

    def _take(self, given: Iterable[object]) -> bool:
        """Submit the operations of the given items, and return whether there were any."""
        items: list[Item] = []
        try:
            # Read these items before submitting any: the source may block, and Control-C cannot interrupt a submission.
            if self._operations.has_values:
                for each in given:
                    if type(each) is tuple and len(each) == 2:
                        items.append(each)
                    else:
                        items.append(pair_of(each, self._record.taken + len(items) + 1))
            else:
                items.extend(zip(given, strict=False))
        finally:
            # Also after an exception: submit the items before the one that caused it.
            self._record.taken += len(items)
            self.room -= len(items)
            self._submit(self._free_to_go(items))
        return bool(items)

    def _free_to_go(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items whose key is neither in flight nor held, and hold the others."""
        in_flight, held = self.open, self._held
        for item in items:
            key = item[0]
            if isinstance(key, str) and (key in in_flight or key in held):
                held.setdefault(key, deque()).append(item)
            else:
                yield item

    def _submit_held(self, key: str) -> None:
        del self._released[key]
        items = self._held[key]
        item = items.popleft()
        if not items:
            del self._held[key]
        self._submit((item,))
        if key not in self.open and key in self._held:
            # The item was refused or has ended already, so no response releases the next one.
            self._released[key] = None

    def _submit(self, items: Iterable[Item]) -> None:
        operations = self._operations
        self._driver.submit(
            operations.make, items, self, strategy=operations.strategy, parent=operations.parent, task=self._task
        )

    def refuse(self, item: Item, error: Exception) -> None:
        """Record the error of an item whose operation is not submitted, as its outcome."""
        key: str = item[0]  # type: ignore[assignment]  # an item of another type was refused because of it
        self._finish([(key, self._record.failed(key, error, was_submitted=False))])

    def collect(self, waiters: Iterable[CollectedWaiter[DocumentOperation, Outcome]]) -> None:
        """Record the outcomes of operations that have ended. The driver calls this."""
        in_flight, held, returns, record = self.open, self._held, self._operations.returns, self._record
        outcomes: list[tuple[str, BulkOutcome[R]]] = []
        for waiter in waiters:
            key, result, error = waiter.asked.key, waiter.result, waiter.error
            del in_flight[key]
            if held and key in held:
                self._released[key] = None
            if error is None:
                assert isinstance(result, returns), f"{waiter.asked.name} returned {result!r}"
                record.succeeded += 1
                outcomes.append((key, BulkOutcome(result)))
            else:
                outcomes.append((key, record.failed(key, error, was_submitted=True)))
        self._finish(outcomes)
        if self._released or (self._is_read and not in_flight):
            self._worker.unpark_all()

    def _finish(self, outcomes: Sequence[tuple[str, BulkOutcome[R]]]) -> None:
        if self.is_left:
            self._free(len(outcomes))
        else:
            self.finished.extend(outcomes)
            self.takers.unpark_all()

    def _free(self, count: int) -> None:
        """Make room for as many further items as outcomes were dropped."""
        self.room += count
        self.reader.unpark_all()

    # -- Endings.

    def stop(self) -> None:
        """Read no further items. Operations in flight and held items complete."""
        self.was_iterated = True
        self._reading.cancel()

    def close(self) -> None:
        """Drop the outcomes that the body has not taken. Stop reading if ``was_iterated``."""
        self.is_left = True
        self._shield.shield = False
        if self.was_iterated:
            # Stop reading before there is room for further items.
            self.stop()
        self._free(len(self.finished))
        self.finished.clear()
        self.takers.unpark_all()

    def _abandon(self) -> None:
        """Abandon the operations that have not ended, and record their keys."""
        while self.open:
            key, waiter = self.open.popitem()
            self._record.ended(key, is_ambiguous=self._driver.abandon_collected(waiter))
        for key, items in self._held.items():
            for _ in items:
                self._record.ended(key, is_ambiguous=False)
        self._held.clear()
