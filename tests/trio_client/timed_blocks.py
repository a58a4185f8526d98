"""Helpers of several test files: blocks with a deadline around operations of a driver."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.trio_client.doubles import KEYSPACE, open_driver
from triclinium import fail_after
from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium.errors import (
    AmbiguousTooSlowError,
    UnambiguousTooSlowError,
)
from triclinium_core.contract.couchbase import Event, OperationSubmitted
from triclinium_core.kv.operation.document_operations import Get, Operation, Upsert
from triclinium_core.kv.operation.results import Done
from triclinium_core.testing.driver_laws import ScriptedClusterMachine

TooSlow = AmbiguousTooSlowError | UnambiguousTooSlowError


def silent_machine() -> ScriptedClusterMachine:
    """Return a machine that completes no operation, and reports every upsert as ambiguous."""

    def note(event: Event) -> tuple[()]:
        if isinstance(event, OperationSubmitted) and isinstance(event.operation, Upsert):
            machine.ambiguous.add(event.token)
        return ()

    machine = ScriptedClusterMachine(note)
    return machine


async def perform(driver: ClusterDriver, operation: Operation) -> None:
    """Perform one operation."""
    await driver.perform(Done, lambda: operation, None, None)


def read(key: str) -> Operation:
    """Return an operation that changes nothing."""
    return Get(KEYSPACE, key)


def write(key: str) -> Operation:
    """Return an operation that changes a document."""
    return Upsert(KEYSPACE, key, b"1", 0)


async def time_out(
    body: Callable[[ClusterDriver], Awaitable[None]], machine: ScriptedClusterMachine | None = None
) -> TooSlow:
    """Return the exception of a ``fail_after`` block around ``body``."""
    async with open_driver(machine if machine is not None else silent_machine()) as driver:
        try:
            with fail_after(0.5):
                await body(driver)
        except (AmbiguousTooSlowError, UnambiguousTooSlowError) as error:
            return error
    pytest.fail("no timeout")
