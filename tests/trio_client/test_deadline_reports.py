"""Error of an expired ``fail_after`` block, which lists the operations that it abandoned, with their contexts."""

from __future__ import annotations

import logging
import math
import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from tests.rows import rows
from tests.trio_client.doubles import KEYSPACE, open_driver
from tests.trio_client.timed_blocks import TooSlow, perform, read, silent_machine, time_out, write
from triclinium import AbandonedOperation, fail_after
from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._cluster_driver.log import CONTEXTS_MAX
from triclinium._deadlines import REMEMBERED_MAX, reports_of
from triclinium.errors import (
    AmbiguousTimeoutException,
    AmbiguousTooSlowError,
    TimeoutException,
    UnambiguousTooSlowError,
)
from triclinium_core.contract.neutral import Token
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.document_operations import Get, Operation
from triclinium_core.shown import MESSAGE_MAX
from triclinium_core.testing.driver_laws import ScriptedClusterMachine


async def test_a_timeout_is_logged_once(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """A block that expires logs its abandoned operations once; a block that abandoned no operation logs nothing."""
    async with open_driver(silent_machine()) as driver:
        with fail_after(10), pytest.raises(AmbiguousTooSlowError), fail_after(1):
            await perform(driver, write("ada"))
        with pytest.raises(UnambiguousTooSlowError), fail_after(1):
            await trio.sleep_forever()

    ((name, level, text),) = caplog.record_tuples
    assert ("triclinium.timeout", "WARNING") == (name, logging.getLevelName(level))
    assert all(fact in text for fact in ("AmbiguousTooSlowError", '"operation": "upsert"', '"key": "ada"'))


async def test_a_burst_makes_a_line_of_limited_length(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """The log line of a burst has the contexts of a limited number of operations and counts the rest."""
    async with open_driver(silent_machine()) as driver:
        with pytest.raises(UnambiguousTooSlowError), fail_after(1):  # noqa: PT012 - the block itself expires
            async with trio.open_nursery() as nursery:
                for _ in range(CONTEXTS_MAX + 7):
                    nursery.start_soon(perform, driver, Get(KEYSPACE, "ada"))

    (text,) = caplog.messages
    assert CONTEXTS_MAX == text.count('"operation": "get"')
    assert "7 more" in text


async def test_many_operations_are_counted(autojump_clock: MockClock) -> None:
    """The message names a few operations and counts the rest; ``operations`` has all of them."""

    async def body(driver: ClusterDriver) -> None:
        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(perform, driver, write(f"key-{number}"))

    error = await time_out(body)

    assert 5 == len(error.operations)
    assert "and 2 more; 5 of them may have been applied" in str(error)


async def time_out_knowing(contexts: Sequence[ErrorContext]) -> TooSlow:
    """Return the exception that ``fail_after`` raises around reads for which the machine returns ``contexts``."""
    machine = ScriptedClusterMachine()
    machine.contexts = {Token(number): context for number, context in enumerate(contexts, 1)}

    async def body(driver: ClusterDriver) -> None:
        async with trio.open_nursery() as nursery:
            for number in range(1, len(contexts) + 1):
                nursery.start_soon(perform, driver, read(f"k{number}"))
                await trio.testing.wait_all_tasks_blocked()

    return await time_out(body, machine)


KNOWN = ErrorContext(
    operation="get",
    key="k1",
    bucket="travel",
    retry_attempts=13,
    retry_reasons=frozenset({"KV_TEMPORARY_FAILURE"}),
    last_dispatched_to="10.0.0.1:11210",
    last_dispatch_error="10.0.0.1:11210: connection reset",
    state="in_flight",
)


async def test_the_error_has_the_operations_context(autojump_clock: MockClock) -> None:
    """The error has the operation's retries, reasons, node, last error and state, and the timeout of the block."""
    error = await time_out_knowing([KNOWN])

    assert replace(KNOWN, timeout=0.5) == error.context
    assert [KNOWN] == [abandoned.context for abandoned in error.operations]
    for reported in ("in flight to 10.0.0.1:11210", "13 times", "KV_TEMPORARY_FAILURE", "connection reset"):
        assert reported in str(error)


async def test_several_operations_keep_their_contexts(autojump_clock: MockClock) -> None:
    """Each operation keeps its context; the error has the fields that are equal, and states a shared history once."""
    other = replace(KNOWN, key="k2")
    error = await time_out_knowing([KNOWN, other])

    assert {"k1": KNOWN, "k2": other} == {abandoned.key: abandoned.context for abandoned in error.operations}
    assert replace(KNOWN, key=None, timeout=0.5) == error.context
    assert 1 == str(error).count("connection reset")


async def test_contexts_are_computed_only_for_reports(autojump_clock: MockClock) -> None:
    """If a plain trio scope abandons an operation, the client does not compute the operation's context."""

    class Silent(ScriptedClusterMachine):
        def error_context(self, token: Token, now: float) -> ErrorContext | None:
            raise AssertionError

    async with open_driver(Silent()) as driver:
        with trio.move_on_after(0.5) as scope:
            await perform(driver, read("ada"))

    assert scope.cancelled_caught


@rows("kind", [AmbiguousTooSlowError, UnambiguousTooSlowError])
def test_the_exceptions_survive_pickling(kind: type[TooSlow]) -> None:
    """Pickling keeps message, context and operations."""
    error = kind("too slow")
    error.operations = (AbandonedOperation("upsert", "ada", True),)
    error.ambiguous_count, error.unambiguous_count = 3, 2
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 (trusted bytes)

    assert type(error) is type(copy)
    assert isinstance(copy, TimeoutException)
    assert (error.message, error.context, error.operations) == (copy.message, copy.context, copy.operations)
    assert (3, 2) == (copy.ambiguous_count, copy.unambiguous_count)


async def abandon(driver: ClusterDriver, operations: Sequence[Operation]) -> None:
    """Cancel operations in order, each after its submission, in a scope inside the block."""
    for operation in operations:
        with trio.move_on_after(1e-6):
            await perform(driver, operation)


@rows(
    ("before", "after", "ambiguous"),
    [
        (read, read, 0),
        (write, write, 2 * REMEMBERED_MAX),
        (write, read, REMEMBERED_MAX),
        (read, write, REMEMBERED_MAX),
    ],
)
async def test_a_long_block_keeps_the_newest_operations(
    autojump_clock: MockClock,
    caplog: pytest.LogCaptureFixture,
    before: Callable[[str], Operation],
    after: Callable[[str], Operation],
    ambiguous: int,
) -> None:
    """After many cancellations, the error counts all operations and keeps ambiguous ones first, then the newest."""
    first = [before(f"old-{number}") for number in range(REMEMBERED_MAX)]
    second = [after(f"new-{number}") for number in range(REMEMBERED_MAX)]

    async def body(driver: ClusterDriver) -> None:
        await abandon(driver, [*first, *second])
        await trio.sleep_forever()

    error = await time_out(body)
    kept = first if before is write and after is read else second

    assert (ambiguous, 2 * REMEMBERED_MAX - ambiguous) == (error.ambiguous_count, error.unambiguous_count)
    assert [operation.name for operation in kept] == [each.operation for each in error.operations]
    assert [f"{'old' if kept is first else 'new'}-{number}" for number in range(REMEMBERED_MAX)] == [
        each.key for each in error.operations
    ]
    assert f"and {2 * REMEMBERED_MAX - 3} more" in str(error)
    assert f"and {2 * REMEMBERED_MAX - CONTEXTS_MAX} more" in caplog.text


@rows(("before", "after"), [(0, 2 * REMEMBERED_MAX), (20, 0)])
async def test_an_ambiguous_operation_is_kept(autojump_clock: MockClock, before: int, after: int) -> None:
    """One ambiguous operation among many others makes the timeout ambiguous, and stays in its list and message."""

    async def body(driver: ClusterDriver) -> None:
        reads = [read(f"k{number}") for number in range(before + after)]
        await abandon(driver, [*reads[:before], write("ada"), *reads[before:]])
        await trio.sleep_forever()

    error = await time_out(body)

    assert isinstance(error, AmbiguousTimeoutException)
    assert AbandonedOperation("upsert", "ada", True) == error.operations[before]
    assert "upsert of 'ada'" in error.message
    assert min(REMEMBERED_MAX, before + after + 1) == len(error.operations)
    assert (1, before + after) == (error.ambiguous_count, error.unambiguous_count)


async def test_the_report_of_a_block_is_bounded(autojump_clock: MockClock) -> None:
    """The report of an open block holds a bounded number of operations, however many are cancelled inside."""
    async with open_driver(silent_machine()) as driver:
        with fail_after(math.inf):
            await abandon(driver, [write(f"k{number}") for number in range(REMEMBERED_MAX + 10)])
            (report,) = reports_of(trio.lowlevel.current_task())

    assert REMEMBERED_MAX == len(report.operations)
    assert REMEMBERED_MAX + 10 == report.ambiguous_count


def test_repr_of_an_abandoned_operation() -> None:
    """A long name is cut in the repr of an abandoned operation and complete in its attributes."""
    context = ErrorContext(statement="s" * 100_000)
    abandoned = AbandonedOperation("get", "k" * 100_000, False, context)

    assert len(repr(abandoned)) <= MESSAGE_MAX
    assert (100_000, context) == (len(abandoned.key or ""), abandoned.context)
    assert "AbandonedOperation(operation='get', key='ada', ambiguous=False, context=" in repr(
        AbandonedOperation("get", "ada", False)
    )
