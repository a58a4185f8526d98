"""A task that waits for its operation."""

from __future__ import annotations

import gc
import weakref

import pytest
import trio

from tests.trio_client.doubles import KEYSPACE, get
from triclinium._driver.waiter import Waiter
from triclinium_core.contract.neutral import Token
from triclinium_core.kv.operation.requests import Noop, Operation


def waiter_of(operation: Operation) -> Waiter:
    """Return the waiter of this task."""
    return Waiter(Token(1), operation, trio.lowlevel.current_task(), lambda _: trio.lowlevel.Abort.SUCCEEDED)


async def test_an_error_is_raised_and_leaves_no_cycle() -> None:
    """The error is gone with its last holder, without the help of the garbage collector."""

    class Mine(Exception):
        pass

    waiter = waiter_of(get())
    waiter.error = Mine()
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(Mine) as caught:
            waiter.unwrap()
        error = weakref.ref(caught.value)
        del caught
        is_gone = error() is None
    finally:
        gc.enable()

    assert is_gone


async def test_only_operations_on_documents_have_a_key() -> None:
    """A NOOP is about nothing."""
    assert "ada" == waiter_of(get("ada")).key
    assert waiter_of(Noop(KEYSPACE)).key is None
