"""Bulk blocks: ``async with`` runs the operations, ``async for`` gives their outcomes."""

from __future__ import annotations

from threading import get_ident
from typing import ClassVar, Generic, Self, TypeVar

import trio

from triclinium._bulk.record import BulkOutcome, BulkRecord
from triclinium._bulk.sources import Keys, Pairs, iterated
from triclinium._bulk.work import BulkWork, Operations
from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._cluster_driver.hidden_nursery import Leaving, in_background
from triclinium._trio_run import TrioRun
from triclinium_core.shown import total_repr

R_co = TypeVar("R_co", covariant=True)

OUTCOMES_AT_ONCE = 64
"""Maximum number of outcomes that a task takes between two checkpoints."""


class BulkOutcomes(Generic[R_co]):
    """Block that makes one operation for each item of a source, and iterator over the outcomes as they complete::

        async with people.get_many(keys) as outcomes:
            async for key, outcome in outcomes:
                print(key, outcome.result().content)

    The source is read while the block runs: at most ``concurrency`` items wait, are in flight, or are finished and not
    taken by the body. An item whose key is in flight waits until the operation on that key has ended. Several tasks may
    iterate; each outcome goes to one of them. ``async for`` is a checkpoint whenever it waits, and at least every 64
    outcomes.

    Leaving the block normally waits for its operations, as a nursery waits for its tasks. If the body never iterated,
    the rest of the source is read, and its operations run too. If it left the iteration early or called ``stop``, the
    operations of the items taken so far complete, and the rest of the source is not taken.

    Raises:
        BulkFailure: on leaving the block normally: operations failed, and the body used neither ``result()`` nor
            ``error`` of their outcomes. Not with ``errors="collect"``.
        Exception: the source raised it. The iteration raises it after the last outcome, or else the block on leaving.
            It takes precedence over ``BulkFailure``.
        RuntimeError: on entering: the block was entered before.

    Cancellation: a scope around the block, or an exception of its body, abandons the open operations. ``fail_after``
    reports them, and the block's lists of keys include them. A scope inside the body ends only the wait for an outcome;
    no outcome is lost.
    """

    _CHANGES: ClassVar[bool]
    """Whether the operations change documents."""

    def __init__(self, driver: ClusterDriver, items: Keys | Pairs, operations: Operations[R_co]) -> None:
        driver.check_caller()
        self._record = BulkRecord(changes=self._CHANGES, concurrency=operations.concurrency)
        source = iterated(items, has_values=operations.has_values)
        self._work = BulkWork(driver, source, operations, self._record)
        self._block = in_background(self._work, None)
        self._errors = operations.errors
        self._run = TrioRun()
        self._thread = get_ident()
        """Thread of the block's trio run."""
        self._since_checkpoint = OUTCOMES_AT_ONCE
        """Number of outcomes taken since the last checkpoint; initially the limit, so that taking the first is one."""

    @total_repr
    def __repr__(self) -> str:
        return f"<{type(self).__name__} taken={self.taken} succeeded={self.succeeded}>"

    # If Control-C arrived after the block had begun but before this method returned, nothing would end the block.
    @trio.lowlevel.enable_ki_protection
    async def __aenter__(self) -> Self:
        await self._block.__aenter__()
        return self

    __aexit__: Leaving = Leaving()

    async def leave(self, body_error: BaseException | None) -> None:
        """End the block; ``async with`` calls this method."""
        if body_error is not None:
            # Stop reading before the outcomes are dropped, which makes room for further items.
            self._work.stop()
        try:
            await self._block.leave(body_error)
            if body_error is None:
                self._raise_source_error()
        finally:
            # The traceback of the source's exception refers to the work: together they would form a cycle.
            self._work.source_error = None
        failure = self._record.failure() if body_error is None and self._errors == "raise" else None
        try:
            if failure is not None:
                raise failure
        finally:
            # The traceback refers to this frame: together they would form a cycle.
            del failure, body_error

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[str, BulkOutcome[R_co]]:
        """Return the next outcome with its key.

        Raises:
            StopAsyncIteration: all outcomes were taken.
            Exception: the source raised it; all outcomes of earlier items were taken.
            trio.ClosedResourceError: the block was left.
            RuntimeError: the block was not entered, or the caller is in another trio run.
        """
        work = self._work
        if not work.finished or self._since_checkpoint >= OUTCOMES_AT_ONCE or get_ident() != self._thread:
            await self._wait()
        self._since_checkpoint += 1
        work.room += 1
        if work.room == work.refill_at:
            work.reader.unpark_all()
        return work.finished.popleft()

    async def _wait(self) -> None:
        """Return when there is an outcome; otherwise raise an exception of ``__anext__``. A checkpoint."""
        self._run.check_caller()
        work = self._work
        if not work.started.is_set():
            raise RuntimeError("the operations have not begun; enter the block with async with, and iterate inside it")
        work.was_iterated = True
        self._since_checkpoint = 0
        if work.finished or work.is_over:
            await trio.lowlevel.checkpoint()
        while not work.finished:
            if work.is_left:
                raise trio.ClosedResourceError("the block was left; take its outcomes inside it")
            if work.is_over:
                self._raise_source_error()
                raise StopAsyncIteration
            work.reader.unpark_all()
            await work.takers.park()

    def stop(self) -> None:
        """Take no further items from the source. Those taken so far complete, and the iteration gives their outcomes.

        An asynchronous source that the block waits for is cancelled.
        """
        self._work.stop()

    @property
    def taken(self) -> int:
        """Number of items that were taken from the source."""
        return self._record.taken

    @property
    def succeeded(self) -> int:
        """Number of operations that succeeded."""
        return self._record.succeeded

    def _raise_source_error(self) -> None:
        """Raise the exception of the source, if there is one and it was not raised before."""
        error, self._work.source_error = self._work.source_error, None
        try:
            if error is not None:
                raise error
        finally:
            # The traceback refers to this frame: together they would form a cycle.
            del error


class BulkReads(BulkOutcomes[R_co]):
    """Bulk block whose operations change no document."""

    _CHANGES = False

    @property
    def failed(self) -> tuple[str, ...]:
        """Keys of the operations that failed or were abandoned: the first 1,000."""
        return tuple(self._record.not_applied.keys)

    @property
    def failed_count(self) -> int:
        """Number of all operations that failed or were abandoned."""
        return self._record.not_applied.count


class BulkWrites(BulkOutcomes[R_co]):
    """Bulk block whose operations change documents."""

    _CHANGES = True

    @property
    def not_applied(self) -> tuple[str, ...]:
        """Keys of taken items whose operations were certainly not applied: the first 1,000."""
        return tuple(self._record.not_applied.keys)

    @property
    def not_applied_count(self) -> int:
        """Number of all taken items whose operations were certainly not applied."""
        return self._record.not_applied.count

    @property
    def ambiguous(self) -> tuple[str, ...]:
        """Keys of the unsuccessful operations that may have been or may still be applied: the first 1,000."""
        return tuple(self._record.ambiguous.keys)

    @property
    def ambiguous_count(self) -> int:
        """Number of all unsuccessful operations that may have been or may still be applied."""
        return self._record.ambiguous.count
