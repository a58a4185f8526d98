"""Call that makes one or more requests in sequence. The core's ``Steps`` decides what the next request is."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from typing import Generic, TypeVar

import trio

from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._cluster_driver.log import log_timeout
from triclinium._deadlines import AbandonedOperation, Report, noted, report_abandoned
from triclinium._telemetry.wrapping import Wrapping
from triclinium_core import errors
from triclinium_core.kv.operation.document_operations import Operation
from triclinium_core.kv.operation.inquiries import Inquiry
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.services.management.call_time import TimeIsUp
from triclinium_core.services.management.steps import Pause, Step, Steps, last_words
from triclinium_core.services.service_request import ServiceRequest
from triclinium_core.telemetry.tracing import RequestSpan

R = TypeVar("R")


async def carry_out(
    driver: ClusterDriver,
    make: Callable[[], Steps[R]],
    strategy: AnyRetryStrategy | None,
    wrapping: Wrapping,
    *,
    is_limited: bool = True,
) -> R:
    """Submit the steps of a call, sleep during its pauses, and return its result.

    Args:
        make: builds the call.
        strategy: strategy of each operation and request; None for that of the block or the cluster.
        wrapping: describes the span of the call, which is the parent of the spans of its steps.
        is_limited: whether ``ClusterDriver.call_timeout`` limits the whole call.

    Raises:
        TimeoutException: the call exceeded its timeout.
        Exception: the error of the call, of ``make`` or of ``ClusterDriver.perform``.

    Cancellation: the current step is abandoned, and no further step is submitted.
    """
    try:
        steps = make()
        step = next(steps)
    except Exception:
        await trio.lowlevel.checkpoint()
        raise
    with closing(steps):
        async with wrapping.around(driver.telemetry) as parent:
            call = _Call(driver, steps, driver.call_timeout if is_limited else math.inf)
            return await call.run(step, strategy, parent)


class _Call(Generic[R]):
    """Call in progress.

    Args:
        timeout: time limit of the whole call in seconds.
    """

    def __init__(self, driver: ClusterDriver, steps: Steps[R], timeout: float) -> None:
        self._driver = driver
        self._steps = steps
        self._timeout = timeout
        self._began_at = trio.current_time()
        self._is_answered = False
        """Whether any step of the call has ended."""

    async def run(self, step: Step, strategy: AnyRetryStrategy | None, parent: RequestSpan | None) -> R:
        """Run all steps in order."""
        report = Report(is_last=True)
        try:
            with noted(report), trio.CancelScope() as scope:
                report.scope = scope
                return await self._take_steps(step, strategy, parent, scope)
        except trio.Cancelled:
            error = self._last_words(report, None)
            operations = report.operations if error is None else [_abandoned(error)]
            report_abandoned(operations, redact=self._driver.redacts)
            raise
        late = self._last_words(report, self._timeout)
        assert late is not None, "a call has a report once its first step is over"
        log_timeout(late, [late.context], redact=self._driver.redacts)
        try:
            raise late
        finally:
            # The traceback of the error refers to this frame: together they would form a cycle.
            del late

    async def _take_steps(
        self, step: Step, strategy: AnyRetryStrategy | None, parent: RequestSpan | None, scope: trio.CancelScope
    ) -> R:
        steps = self._steps
        try:
            while True:
                try:
                    result = await self._take(step, strategy, parent)
                except errors.CouchbaseException as error:
                    self._is_answered = True
                    step = steps.throw(error)
                else:
                    self._is_answered = True
                    step = steps.send(result)
                # Limit the call only now: the first step has its own timeout, whose error gives more details.
                scope.deadline = self._began_at + self._timeout
        except StopIteration as end:
            returned: R = end.value
            return returned

    async def _take(self, step: Step, strategy: AnyRetryStrategy | None, parent: RequestSpan | None) -> object:
        if isinstance(step, Pause):
            await trio.sleep(step.seconds)
            return None
        return await self._driver.perform(object, _as_it_is, strategy, parent, step)

    def _last_words(self, report: Report, timeout: float | None) -> errors.TimeoutException | None:
        """Return the timeout error of an abandoned call; None if nothing was submitted or the step's error suffices."""
        given_up = report.operations[-1] if report.operations else None
        if given_up is None and not self._is_answered:
            return None
        elapsed = trio.current_time() - self._began_at
        if given_up is None:
            return last_words(self._steps, TimeIsUp(elapsed, timeout))
        return last_words(self._steps, TimeIsUp(elapsed, timeout, given_up.context, is_ambiguous=given_up.ambiguous))


def _abandoned(error: errors.TimeoutException) -> AbandonedOperation:
    is_ambiguous = isinstance(error, errors.AmbiguousTimeoutException)
    return AbandonedOperation(error.context.operation, None, is_ambiguous, error.context)


def _as_it_is(step: Operation | Inquiry | ServiceRequest) -> Operation | Inquiry | ServiceRequest:
    return step
