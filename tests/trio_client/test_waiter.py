"""A task that waits for its operation."""

from __future__ import annotations

import gc
import weakref

import pytest

from tests.trio_client.doubles import KEYSPACE, get
from triclinium._waiter import Waiter
from triclinium_core.kv.operation.requests import Noop


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
