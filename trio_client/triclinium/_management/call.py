"""A call of several requests, one after the other; what comes next is up to the core's ``Steps``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import TypeVar

import trio

from triclinium._driver.driver import Driver
from triclinium._telemetry.wrapping import Wrapping
from triclinium_core.errors import CouchbaseException
from triclinium_core.kv.operation.inquiries import Inquiry
from triclinium_core.kv.operation.requests import Operation
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.services.management.steps import Pause, Steps
from triclinium_core.services.request import ServiceRequest

R = TypeVar("R")


async def carry_out(
    driver: Driver, make: Callable[[], Steps[R]], strategy: AnyRetryStrategy | None, wrapping: Wrapping
) -> R:
    """Submit what a call asks for, sleep when it pauses, and return what it comes to.

    Args:
        make: builds the call.
        strategy: that of each of its operations and requests; None for that of the block, or the cluster.
        wrapping: the span in which theirs are.

    Raises:
        Exception: what the call ends with, or what ``make`` or ``Driver.perform`` raises.

    Cancellation: what is open is abandoned, and nothing more is asked for.
    """
    try:
        steps = make()
        step = next(steps)
    except Exception:
        await trio.lowlevel.checkpoint()
        raise
    with closing(steps):
        async with wrapping.around(driver.telemetry) as parent:
            try:
                while True:
                    if isinstance(step, Pause):
                        await trio.sleep(step.seconds)
                        step = steps.send(None)
                        continue
                    try:
                        result = await driver.perform(object, _as_it_is, strategy, parent, step)
                    except CouchbaseException as error:
                        step = steps.throw(error)
                    else:
                        step = steps.send(result)
            except StopIteration as end:
                returned: R = end.value
                return returned


def _as_it_is(step: Operation | Inquiry | ServiceRequest) -> Operation | Inquiry | ServiceRequest:
    return step
