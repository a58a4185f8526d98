"""A task that waits for its operation."""

from __future__ import annotations

import gc
import weakref

import pytest
import trio

from tests.trio_client.doubles import DONE, KEYSPACE, get
from triclinium._waiter import Waiter
from triclinium_core.kv.operation.requests import Noop


async def test_a_result_is_taken() -> None:
    """Settled first, taken later."""
    waiter = Waiter(get())
    waiter.settle(DONE, None)

    assert waiter.is_settled
    assert DONE == waiter.take()


async def test_a_sleeping_task_is_woken() -> None:
    """Settling reschedules the task."""
    waiter = Waiter(get())

    async def wake() -> None:
        await trio.lowlevel.checkpoint()
        waiter.settle(DONE, None)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wake)
        waiter.is_parked = True
        await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.SUCCEEDED)

    assert DONE == waiter.take()


async def test_an_error_is_raised_and_leaves_no_cycle() -> None:
    """The error is gone with its last holder, without the help of the garbage collector."""

    class Mine(Exception):
        pass

    waiter = Waiter(get())
    waiter.settle(None, Mine())
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(Mine) as caught:
            waiter.take()
        error = weakref.ref(caught.value)
        del caught
        is_gone = error() is None
    finally:
        gc.enable()

    assert is_gone


async def test_only_operations_on_documents_have_a_key() -> None:
    """A NOOP is about nothing."""
    assert "ada" == Waiter(get("ada")).key
    assert Waiter(Noop(KEYSPACE)).key is None
