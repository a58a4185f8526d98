"""Reason of an abandonment, timeout or cancelled, which depends on the scopes around the operation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import cast

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from tests.rows import rows
from tests.trio_client.doubles import open_driver
from tests.trio_client.timed_blocks import perform, read, silent_machine, write
from triclinium import fail_after
from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._deadlines import Report, _open_reports, abandon_reason, leave_reason
from triclinium_core.contract.couchbase import AbandonReason, OperationAbandoned
from triclinium_core.testing.driver_laws import ScriptedClusterMachine


def plain(seconds: float) -> AbstractContextManager[object]:
    """Return a trio scope that cancels its block after ``seconds``."""
    return trio.move_on_after(seconds)


def shield(seconds: float) -> AbstractContextManager[object]:
    """Return a shielded trio scope that cancels its block after ``seconds``."""
    return trio.move_on_after(seconds, shield=True)


def reasons(machine: ScriptedClusterMachine) -> list[AbandonReason]:
    """Return the reasons of all abandonments that the machine received."""
    return [event.reason for event in machine.events if isinstance(event, OperationAbandoned)]


SCOPES = [
    ("timeout", [(fail_after, 1)]),
    ("cancelled", [(plain, 1)]),
    ("cancelled", [(plain, 1), (fail_after, 2)]),
    ("cancelled", [(fail_after, 2), (plain, 1)]),
    ("timeout", [(plain, 2), (fail_after, 1)]),
    ("timeout", [(fail_after, 1), (plain, 2)]),
    ("timeout", [(fail_after, 1), (fail_after, 2)]),
    ("timeout", [(fail_after, 2), (fail_after, 1)]),
    ("timeout", [(plain, 1), (fail_after, 1)]),
    ("timeout", [(fail_after, 1), (plain, 1)]),
    ("cancelled", [(fail_after, 1), (shield, 2)]),
    ("cancelled", [(fail_after, 1), (shield, 1)]),
    ("cancelled", [(fail_after, 1), (shield, math.inf), (plain, 2)]),
    ("cancelled", [(fail_after, 1), (shield, 3), (fail_after, 4), (plain, 2)]),
    ("timeout", [(fail_after, 1), (shield, 3), (fail_after, 2)]),
    ("timeout", [(shield, 3), (fail_after, 2), (plain, 3)]),
]
"""Pairs of the expected reason and the scopes around the operation with their seconds, the outermost scope first."""


async def perform_in_nurseries(driver: ClusterDriver, depth: int) -> None:
    """Perform one operation in a task ``depth`` nurseries below."""
    if depth == 0:
        await perform(driver, write("ada"))
        return
    async with trio.open_nursery() as nursery:
        nursery.start_soon(perform_in_nurseries, driver, depth - 1)


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("with_another", [False, True])
@rows(("reason", "scopes"), SCOPES)
async def test_an_abandonment_has_the_reason_of_its_scopes(
    autojump_clock: MockClock,
    reason: str,
    scopes: Sequence[tuple[Callable[[float], AbstractContextManager[object]], float]],
    *,
    with_another: bool,
    depth: int,
) -> None:
    """The reason is timeout if an expired ``fail_after`` block is around, without a shield between; else cancelled."""
    machine = silent_machine()
    async with open_driver(machine) as driver, trio.open_nursery() as others:
        if with_another:
            # Start another operation, because the driver submits along another path while one is open.
            others.start_soon(perform, driver, read("bob"))
            await trio.testing.wait_all_tasks_blocked()
        with suppress(trio.TooSlowError), ExitStack() as stack:
            for enter, seconds in scopes:
                stack.enter_context(enter(seconds))
            await perform_in_nurseries(driver, depth)
        found = reasons(machine)
        others.cancel_scope.cancel()

    assert [reason] == found


@pytest.mark.parametrize("seconds", [0.5, 1.0])
async def test_a_cancelled_block_is_not_a_timeout(autojump_clock: MockClock, seconds: float) -> None:
    """A ``fail_after`` block that is cancelled before its deadline gives the reason cancelled; at it, timeout."""
    machine = silent_machine()
    async with open_driver(machine) as driver, trio.open_nursery() as nursery:
        with suppress(trio.TooSlowError), fail_after(1) as scope:
            nursery.start_soon(cancel_after, scope, seconds)
            await perform(driver, write("ada"))

    assert ["cancelled" if seconds < 1 else "timeout"] == reasons(machine)


async def cancel_after(scope: trio.CancelScope, seconds: float) -> None:
    """Cancel a scope after a delay."""
    await trio.sleep(seconds)
    scope.cancel()


async def test_a_moved_deadline_counts(autojump_clock: MockClock) -> None:
    """If the program moves the deadline of a ``fail_after`` block, the reason depends on the new deadline only."""
    machine = silent_machine()
    async with open_driver(machine) as driver:
        with suppress(trio.TooSlowError), trio.move_on_after(2), fail_after(1) as scope:
            scope.deadline += 5
            await perform(driver, write("ada"))
        with suppress(trio.TooSlowError), trio.move_on_after(2), fail_after(5) as scope:
            scope.deadline -= 4
            await perform(driver, write("ada"))

    assert ["cancelled", "timeout"] == reasons(machine)


async def test_a_block_outside_the_nursery_does_not_count(autojump_clock: MockClock) -> None:
    """An expired block of the parent task does not affect a child task whose nursery is outside the block."""
    machine = silent_machine()
    async with open_driver(machine) as driver, trio.open_nursery() as nursery:
        with suppress(trio.TooSlowError), fail_after(1):
            nursery.start_soon(perform, driver, write("ada"))
            with trio.CancelScope(shield=True):
                await trio.sleep(2)
                nursery.cancel_scope.cancel()
                await trio.testing.wait_all_tasks_blocked()

    assert ["cancelled"] == reasons(machine)


async def test_a_shield_set_later_counts(autojump_clock: MockClock) -> None:
    """A scope that becomes a shield while its operation waits protects the operation from an expired block."""
    machine = silent_machine()
    async with open_driver(machine) as driver, trio.open_nursery() as nursery:
        with suppress(trio.TooSlowError), fail_after(1), trio.move_on_after(2) as inner:
            nursery.start_soon(raise_shield, inner)
            await perform(driver, write("ada"))

    assert ["cancelled"] == reasons(machine)


async def raise_shield(scope: trio.CancelScope) -> None:
    """Shield a scope after half a second."""
    await trio.sleep(0.5)
    scope.shield = True


async def test_expired_blocks_count_without_scope_information(autojump_clock: MockClock) -> None:
    """If trio's tasks lack information about their scopes, any expired block above a task gives the reason timeout."""

    class LaterTask:
        parent_nursery = None

    task, report = cast(trio.lowlevel.Task, LaterTask()), Report()
    _open_reports[task] = [report]
    report.scope = trio.CancelScope(deadline=trio.current_time())

    assert AbandonReason.TIMEOUT is abandon_reason(task)


def test_a_block_closed_after_the_run() -> None:
    """If Python closes a block after trio's run, the reason is NOT_NEEDED, as for a block that was left."""
    assert AbandonReason.NOT_NEEDED is leave_reason()


async def test_each_of_many_tasks_has_its_reason(autojump_clock: MockClock) -> None:
    """Tasks of one nursery whose scopes expire at the same instant each have their own reason."""
    machine = silent_machine()

    async def each(driver: ClusterDriver, scope: Callable[[float], AbstractContextManager[object]], key: str) -> None:
        with suppress(trio.TooSlowError), scope(1):
            await perform(driver, read(key))

    async with open_driver(machine) as driver, trio.open_nursery() as nursery:
        for scope in (fail_after, plain) * 3:
            nursery.start_soon(each, driver, scope, scope.__name__)

    keys = {event.token: event.operation.key for event in machine.submitted}
    found = {(keys[event.token], event.reason) for event in machine.events if isinstance(event, OperationAbandoned)}
    assert {("fail_after", AbandonReason.TIMEOUT), ("plain", AbandonReason.CANCELLED)} == found
