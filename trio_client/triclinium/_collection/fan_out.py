"""Call that makes several operations: a task for each operation while the block runs, and the results as they arrive.

The core's ``FanOut`` decides when to submit each operation, and interprets the results.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Generic, Self, TypeVar

import trio

from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._cluster_driver.hidden_nursery import in_background
from triclinium._deadlines import Report, leave_reason, noted
from triclinium._error_copies import copy_of
from triclinium._telemetry.wrapping import SharedCall, Wrapping
from triclinium._trio_run import TrioRun
from triclinium_core import errors
from triclinium_core.contract.couchbase import AbandonReason
from triclinium_core.kv.operation.document_operations import Operation
from triclinium_core.kv.operation.fan_out import FanOut
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.telemetry.tracing import check_parent

T_co = TypeVar("T_co", covariant=True)
F = TypeVar("F", bound=FanOut[object])
R = TypeVar("R")


class FanOutTasks:
    """Tasks of one call, until the call is over or its block is left."""

    def __init__(
        self, driver: ClusterDriver, fan_out: FanOut[object], strategy: AnyRetryStrategy | None, wrapping: Wrapping
    ) -> None:
        self.started: trio.Event = trio.Event()
        self.is_left: bool = False
        """Whether the block was left."""
        self.takers: trio.lowlevel.ParkingLot = trio.lowlevel.ParkingLot()
        """Tasks that wait for a result."""
        self.submitter: trio.lowlevel.ParkingLot = trio.lowlevel.ParkingLot()
        """Task that waits for an operation to submit."""
        self._driver = driver
        self._fan_out = fan_out
        self._strategy = strategy
        self._wrapping = wrapping
        self._call = SharedCall(None)
        """Parent of the operations. It has no span before ``run`` has begun the span of the call."""
        self._scope = trio.CancelScope(shield=True)
        self._report = Report()
        """Report of the shielded operations: the reason why they are abandoned, and the abandoned ones."""

    async def run(self) -> None:
        """Submit the operations of the fan-out. Only the block can be cancelled; leaving the block stops this task."""
        began_at = trio.current_time()
        spans = self._wrapping.begin(self._driver.telemetry, is_measured=True)
        self._call = SharedCall(spans)
        self.started.set()
        try:
            with noted(self._report), self._scope:
                async with trio.open_nursery() as nursery:
                    while not self._fan_out.is_over:
                        self._submit(nursery)
                        with trio.move_on_at(self._fan_out.wakeup):
                            await self.submitter.park()
                    self._report.reason = AbandonReason.NOT_NEEDED
                    nursery.cancel_scope.cancel()
        finally:
            # Outside of the shield, a deadline of -inf shows that a scope around the block is cancelled.
            is_cancelled = not self._fan_out.is_over and trio.current_effective_deadline() == -math.inf
            for operation in self._fan_out.close():
                self._driver.send_off(operation)
            self.takers.unpark_all()
            self._driver.call_ended(self._wrapping.call, trio.current_time() - began_at)
            if spans is not None:
                if is_cancelled:
                    is_late = self._report.reason is AbandonReason.TIMEOUT
                    reason = AbandonReason.TIMEOUT if is_late else AbandonReason.CANCELLED
                    spans.abandon(reason, is_ambiguous=self._report.is_ambiguous)
                else:
                    spans.end(self._fan_out.failure)

    def close(self) -> None:
        """Abandon the open operations, because the block was left."""
        self.is_left = True
        self._report.reason = AbandonReason.NOT_NEEDED if self._fan_out.is_over else leave_reason()
        self._scope.cancel()

    def _submit(self, nursery: trio.Nursery) -> None:
        replicas = self._driver.replica_count(self._fan_out.bucket)
        for operation in self._fan_out.next_operations(trio.current_time(), replicas=replicas):
            nursery.start_soon(self._perform, operation)

    async def _perform(self, operation: Operation) -> None:
        try:
            result = await self._driver.perform(object, lambda: operation, self._strategy, self._call)
        except (errors.CouchbaseException, trio.ClosedResourceError) as error:
            # The fan-out keeps the error. The error's traceback refers to this frame, which refers to the fan-out:
            # together they would form a cycle.
            self._settle(operation, error.with_traceback(None))
        else:
            self._settle(operation, result)

    def _settle(self, operation: Operation, outcome: object) -> None:
        bucket = operation.keyspace.bucket
        vbuckets, replicas = self._driver.vbucket_count(bucket), self._driver.replica_count(bucket)
        self._fan_out.settled(operation, outcome, vbuckets=vbuckets, replicas=replicas)
        self.submitter.unpark()
        self.takers.unpark_all()


class FanOutResults(Generic[T_co]):
    """Results of a call for its block, in the order in which they arrive."""

    def __init__(self, fan_out: FanOut[T_co], tasks: FanOutTasks) -> None:
        self._fan_out = fan_out
        self._tasks = tasks
        self._run = TrioRun()
        self._taken: deque[T_co] = deque()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T_co:
        """Return the next result.

        Raises:
            StopAsyncIteration: there are no more results.
            CouchbaseException: the reason why no more results arrive.
            trio.ClosedResourceError: the block was left, or the cluster is closed.
            RuntimeError: the caller is in another trio run.
        """
        self._run.check_caller()
        await trio.lowlevel.checkpoint()
        while True:
            if self._tasks.is_left:
                raise trio.ClosedResourceError("the block was left; read its results inside it")
            if not self._taken:
                self._taken.extend(self._fan_out.take())
                self._tasks.submitter.unpark()
            if self._taken:
                return self._taken.popleft()
            if self._fan_out.is_over:
                failure = self._fan_out.failure
                raise StopAsyncIteration if failure is None else copy_of(failure)
            await self._tasks.takers.park()


def in_block(
    results: Callable[[F, FanOutTasks], R],
    driver: ClusterDriver,
    fan_out: F,
    strategy: AnyRetryStrategy | None,
    wrapping: Wrapping,
) -> in_background[R]:
    """Give a block the ``results`` of a call as they arrive.

    Cancellation: if one is pending on entering, nothing is sent.
    """
    driver.check_caller()
    check_parent(wrapping.parent)
    tasks = FanOutTasks(driver, fan_out, strategy, wrapping)
    return in_background(tasks, results(fan_out, tasks))
