"""``fail_after`` tells whether what it interrupted may have happened."""

from __future__ import annotations

import logging
import math
import pickle
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from datetime import timedelta
from typing import cast

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from tests.rows import rows
from tests.trio_client.doubles import KEYSPACE, open_driver
from tests.trio_client.pair import Never, open_pair
from triclinium import AbandonedOperation, Cluster, Collection, RetryAction, RetryReason, RetryRequest, fail_after
from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._cluster_driver.log import CONTEXTS_MAX
from triclinium._deadlines import REMEMBERED_MAX, Report, _open_reports, abandon_reason, leave_reason, reports_of
from triclinium.errors import (
    AmbiguousTimeoutException,
    AmbiguousTooSlowError,
    InvalidArgumentException,
    RequestCanceledException,
    TimeoutException,
    UnambiguousTimeoutException,
    UnambiguousTooSlowError,
)
from triclinium_core.contract.couchbase import AbandonReason, Event, OperationAbandoned, OperationSubmitted
from triclinium_core.contract.neutral import Token
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.document_operations import Get, Operation, Upsert
from triclinium_core.kv.operation.results import Done
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.shown import MESSAGE_MAX
from triclinium_core.testing import FakeAnswer
from triclinium_core.testing.driver_laws import ScriptedClusterMachine
from triclinium_core.testing.fakes.faults import drop_response

TooSlow = AmbiguousTooSlowError | UnambiguousTooSlowError


def silent_machine() -> ScriptedClusterMachine:
    """Return a machine that answers nothing, and for which every upsert is ambiguous."""

    def note(event: Event) -> tuple[()]:
        if isinstance(event, OperationSubmitted) and isinstance(event.operation, Upsert):
            machine.ambiguous.add(event.token)
        return ()

    machine = ScriptedClusterMachine(note)
    return machine


async def perform(driver: ClusterDriver, operation: Operation) -> None:
    """Perform one operation."""
    await driver.perform(Done, lambda: operation, None, None)


async def idle(driver: ClusterDriver) -> None:
    """Perform nothing."""
    await trio.sleep_forever()


def read(key: str) -> Operation:
    """Return an operation that changes nothing."""
    return Get(KEYSPACE, key)


def write(key: str) -> Operation:
    """Return an operation that may have happened."""
    return Upsert(KEYSPACE, key, b"1", 0)


async def time_out(
    body: Callable[[ClusterDriver], Awaitable[None]], machine: ScriptedClusterMachine | None = None
) -> TooSlow:
    """Return what a ``fail_after`` around ``body`` raises."""
    async with open_driver(machine if machine is not None else silent_machine()) as driver:
        try:
            with fail_after(0.5):
                await body(driver)
        except (AmbiguousTooSlowError, UnambiguousTooSlowError) as error:
            return error
    pytest.fail("no timeout")


async def test_a_block_that_is_fast_enough_just_ends(autojump_clock: MockClock) -> None:
    """The scope is returned, as Trio's twin does, and nothing is raised."""
    with fail_after(1) as scope:
        await trio.sleep(0.9)

    assert 1 == scope.deadline
    assert not scope.cancelled_caught


async def test_a_block_that_was_not_interrupted_just_ends() -> None:
    """As with Trio's twin, a cancellation that found nothing to interrupt changes nothing."""
    with fail_after(1) as scope:
        scope.cancel()

    assert scope.cancel_called


async def test_a_write_in_flight_makes_the_timeout_ambiguous(autojump_clock: MockClock) -> None:
    """The write may have happened, and the error says which one."""
    error = await time_out(lambda driver: perform(driver, write("ada")))

    assert isinstance(error, AmbiguousTimeoutException)
    assert isinstance(error, trio.TooSlowError)
    assert (AbandonedOperation("upsert", "ada", True),) == error.operations
    assert 0.5 == trio.current_time()
    assert ("upsert", "ada", 0.5) == (error.context.operation, error.context.key, error.context.timeout)
    assert "not done within 0.5 s: upsert of 'ada'; it may have been applied" in str(error)


async def test_a_read_in_flight_makes_the_timeout_unambiguous(autojump_clock: MockClock) -> None:
    """A read changes nothing, whenever it is given up."""
    error = await time_out(lambda driver: perform(driver, read("ada")))

    assert isinstance(error, UnambiguousTimeoutException)
    assert isinstance(error, trio.TooSlowError)
    assert (AbandonedOperation("get", "ada", False),) == error.operations
    assert "nothing was applied" in str(error)


async def test_a_timeout_is_logged_once(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """By the block that was late, with what it gave up; a block that gave up nothing has nothing to tell."""
    async with open_driver(silent_machine()) as driver:
        with fail_after(10), pytest.raises(AmbiguousTooSlowError), fail_after(1):
            await perform(driver, write("ada"))
        with pytest.raises(UnambiguousTooSlowError), fail_after(1):
            await trio.sleep_forever()

    ((name, level, text),) = caplog.record_tuples
    assert ("triclinium.timeout", "WARNING") == (name, logging.getLevelName(level))
    assert all(fact in text for fact in ("AmbiguousTooSlowError", '"operation": "upsert"', '"key": "ada"'))


async def test_a_burst_of_operations_makes_a_line_of_limited_length(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """It says how many more there were."""
    async with open_driver(silent_machine()) as driver:
        with pytest.raises(UnambiguousTooSlowError), fail_after(1):  # noqa: PT012 - the block is what is late
            async with trio.open_nursery() as nursery:
                for _ in range(CONTEXTS_MAX + 7):
                    nursery.start_soon(perform, driver, Get(KEYSPACE, "ada"))

    (text,) = caplog.messages
    assert CONTEXTS_MAX == text.count('"operation": "get"')
    assert "7 more" in text


async def test_a_timeout_without_operations_is_unambiguous(autojump_clock: MockClock) -> None:
    """Time may run out between operations."""
    error = await time_out(idle)

    assert isinstance(error, UnambiguousTimeoutException)
    assert () == error.operations
    assert "no operation was in flight" in str(error)


async def test_operations_of_child_tasks_are_reported(autojump_clock: MockClock) -> None:
    """What any task below the block had in flight counts; one ambiguous operation is enough."""

    async def body(driver: ClusterDriver) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(perform, driver, read("bob"))
            async with trio.open_nursery() as inner:
                inner.start_soon(perform, driver, write("ada"))

    error = await time_out(body)

    assert isinstance(error, AmbiguousTimeoutException)
    assert {AbandonedOperation("get", "bob", False), AbandonedOperation("upsert", "ada", True)} == set(error.operations)
    assert error.context.key is None


async def test_many_operations_are_counted_and_not_all_named(autojump_clock: MockClock) -> None:
    """The message stays one line; ``operations`` has them all."""

    async def body(driver: ClusterDriver) -> None:
        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(perform, driver, write(f"key-{number}"))

    error = await time_out(body)

    assert 5 == len(error.operations)
    assert "and 2 more; 5 of them may have been applied" in str(error)


async def time_out_knowing(contexts: Sequence[ErrorContext]) -> TooSlow:
    """Return what ``fail_after`` raises around as many reads, of each of which the machine knows something."""
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


async def test_the_error_has_what_the_machine_knows_of_the_operation(autojump_clock: MockClock) -> None:
    """Its retries and their reasons, its node, what went wrong, where it stood; the time is the block's."""
    error = await time_out_knowing([KNOWN])

    assert replace(KNOWN, timeout=0.5) == error.context
    assert [KNOWN] == [abandoned.context for abandoned in error.operations]
    for told in ("in flight to 10.0.0.1:11210", "13 times", "KV_TEMPORARY_FAILURE", "connection reset"):
        assert told in str(error)


async def test_of_several_operations_each_keeps_its_own_context(autojump_clock: MockClock) -> None:
    """The error has what is the same of all, and tells a story that they share once."""
    other = replace(KNOWN, key="k2")
    error = await time_out_knowing([KNOWN, other])

    assert {"k1": KNOWN, "k2": other} == {abandoned.key: abandoned.context for abandoned in error.operations}
    assert replace(KNOWN, key=None, timeout=0.5) == error.context
    assert 1 == str(error).count("connection reset")


async def test_contexts_cost_nothing_where_nobody_is_told(autojump_clock: MockClock) -> None:
    """Trio's own scopes end an operation without any question to the machine."""

    class Silent(ScriptedClusterMachine):
        def error_context(self, token: Token, now: float) -> ErrorContext | None:
            raise AssertionError

    async with open_driver(Silent()) as driver:
        with trio.move_on_after(0.5) as scope:
            await perform(driver, read("ada"))

    assert scope.cancelled_caught


async def test_a_task_that_an_outsider_started_is_reported(autojump_clock: MockClock) -> None:
    """The block cancels it, so the block reports it, although it inherited nothing from the block."""
    nurseries: list[trio.Nursery] = []

    async def outsider(driver: ClusterDriver) -> None:
        await trio.testing.wait_all_tasks_blocked()
        nurseries[0].start_soon(perform, driver, write("ada"))

    async def body(driver: ClusterDriver) -> None:
        async with trio.open_nursery() as nursery:
            nurseries.append(nursery)
            await trio.sleep_forever()

    async with open_driver(silent_machine()) as driver, trio.open_nursery() as outside:
        outside.start_soon(outsider, driver)
        with pytest.raises(AmbiguousTooSlowError) as caught, fail_after(0.5):
            await body(driver)

    assert (AbandonedOperation("upsert", "ada", True),) == caught.value.operations


async def test_a_task_that_is_being_started_is_reported(autojump_clock: MockClock) -> None:
    """The start protocol keeps a task below its starter until it has started."""

    async def child(driver: ClusterDriver, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        await perform(driver, write("ada"))
        task_status.started()

    async with open_driver(silent_machine()) as driver, trio.open_nursery() as elsewhere:
        with pytest.raises(AmbiguousTooSlowError), fail_after(0.5):
            await elsewhere.start(child, driver)


async def test_operations_of_other_tasks_are_not_reported(autojump_clock: MockClock) -> None:
    """A neighbour that is cancelled at the same time is none of the block's business."""
    errors: list[TooSlow] = []

    async def neighbour(driver: ClusterDriver) -> None:
        with trio.move_on_after(0.5):
            await perform(driver, write("ada"))

    async def reader() -> None:
        errors.append(await time_out(lambda driver: perform(driver, read("bob"))))

    async with open_driver(silent_machine()) as driver, trio.open_nursery() as nursery:
        nursery.start_soon(neighbour, driver)
        nursery.start_soon(reader)

    assert (AbandonedOperation("get", "bob", False),) == errors[0].operations


async def test_what_an_inner_scope_gave_up_earlier_counts_too(autojump_clock: MockClock) -> None:
    """One entry too many is safe, one too few would be a lie."""

    async def body(driver: ClusterDriver) -> None:
        with trio.move_on_after(0.1):
            await perform(driver, write("ada"))
        await trio.sleep_forever()

    error = await time_out(body)

    assert (AbandonedOperation("upsert", "ada", True),) == error.operations


async def test_a_block_that_has_ended_leaves_the_others_alone(autojump_clock: MockClock) -> None:
    """A report begins and ends with its own block, whatever it looks like beside those of blocks around it."""

    async def body(driver: ClusterDriver) -> None:
        with fail_after(0.1):
            pass
        await perform(driver, write("ada"))

    async with open_driver(silent_machine()) as driver:
        with trio.move_on_after(0.1):
            await perform(driver, write("before"))
        error = await time_out(body)

    assert (AbandonedOperation("upsert", "ada", True),) == error.operations
    assert not _open_reports.get(trio.lowlevel.current_task())


async def test_of_nested_blocks_the_one_that_is_late_raises(autojump_clock: MockClock) -> None:
    """The outer block is late first: the inner one passes Cancelled on, and the outer one has the report."""
    inner: list[TooSlow] = []

    async def body(driver: ClusterDriver) -> None:
        try:
            with fail_after(1):
                await perform(driver, write("ada"))
        except (AmbiguousTooSlowError, UnambiguousTooSlowError) as error:
            inner.append(error)

    error = await time_out(body)

    assert [] == inner
    assert (AbandonedOperation("upsert", "ada", True),) == error.operations


async def test_an_exception_of_the_block_is_not_replaced(autojump_clock: MockClock) -> None:
    """What the block raises on its way out counts more than its lateness."""
    error = ValueError("mine")

    async def body(driver: ClusterDriver) -> None:
        try:
            await perform(driver, write("ada"))
        finally:
            raise error

    with pytest.raises(ValueError, match="mine") as caught:
        await time_out(body)

    assert error is caught.value


async def cancel_and_wait(scope: trio.CancelScope) -> None:
    """Cancel a scope by hand."""
    scope.cancel()
    await trio.lowlevel.checkpoint()


async def test_a_block_without_a_limit_can_be_ended_by_its_scope() -> None:
    """Whoever cancels the scope by hand gets the same exception, as with Trio's twin."""
    with pytest.raises(UnambiguousTooSlowError) as caught, fail_after(math.inf) as scope:
        await cancel_and_wait(scope)

    assert caught.value.context.timeout is None


async def test_a_limit_as_a_timedelta() -> None:
    """It is the same as its seconds."""
    with pytest.raises(UnambiguousTooSlowError) as caught, fail_after(timedelta(milliseconds=1500)):
        await trio.sleep_forever()

    assert 1.5 == caught.value.context.timeout


@rows("seconds", [-1, math.nan, "1", None, True, timedelta(seconds=-1)])
async def test_a_limit_must_be_a_number_of_seconds(seconds: float) -> None:
    """Anything else is refused by its name."""
    with pytest.raises(InvalidArgumentException) as caught, fail_after(seconds):
        pass

    assert "seconds" == caught.value.parameter


@rows("kind", [AmbiguousTooSlowError, UnambiguousTooSlowError])
def test_the_exceptions_survive_pickling(kind: type[TooSlow]) -> None:
    """Message, context and operations arrive on the other side."""
    error = kind("too slow")
    error.operations = (AbandonedOperation("upsert", "ada", True),)
    error.ambiguous_count, error.unambiguous_count = 3, 2
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 (our own bytes)

    assert type(error) is type(copy)
    assert isinstance(copy, TimeoutException)
    assert (error.message, error.context, error.operations) == (copy.message, copy.context, copy.operations)
    assert (3, 2) == (copy.ambiguous_count, copy.unambiguous_count)


async def abandon(driver: ClusterDriver, operations: Sequence[Operation]) -> None:
    """Cancel operations in order, each after it was submitted, in a scope inside of the block."""
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
async def test_a_long_block_keeps_the_newest_operations_and_counts_all(
    autojump_clock: MockClock,
    caplog: pytest.LogCaptureFixture,
    before: Callable[[str], Operation],
    after: Callable[[str], Operation],
    ambiguous: int,
) -> None:
    """After many cancellations, the error lists the newest operations, ambiguous ones before others, and counts all."""
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


async def test_the_class_does_not_depend_on_what_was_dropped(autojump_clock: MockClock) -> None:
    """One ambiguous operation before any number of unambiguous ones makes the timeout ambiguous, and stays in the list."""

    async def body(driver: ClusterDriver) -> None:
        await abandon(driver, [write("ada"), *(read(f"k{number}") for number in range(2 * REMEMBERED_MAX))])
        await trio.sleep_forever()

    error = await time_out(body)

    assert isinstance(error, AmbiguousTimeoutException)
    assert AbandonedOperation("upsert", "ada", True) == error.operations[0]
    assert REMEMBERED_MAX == len(error.operations)
    assert (1, 2 * REMEMBERED_MAX) == (error.ambiguous_count, error.unambiguous_count)


async def test_the_message_names_ambiguous_operations_first(autojump_clock: MockClock) -> None:
    """A write that was abandoned after many reads is named in the message of the timeout."""

    async def body(driver: ClusterDriver) -> None:
        await abandon(driver, [*(read(f"k{number}") for number in range(20)), write("ada")])
        await trio.sleep_forever()

    assert "upsert of 'ada'" in (await time_out(body)).message


async def test_a_block_without_end_stays_small(autojump_clock: MockClock) -> None:
    """The report of a block that is open holds a bounded number of operations, whatever was cancelled inside."""
    async with open_driver(silent_machine()) as driver:
        with fail_after(math.inf):
            await abandon(driver, [write(f"k{number}") for number in range(REMEMBERED_MAX + 10)])
            (report,) = reports_of(trio.lowlevel.current_task())

    assert REMEMBERED_MAX == len(report.operations)
    assert REMEMBERED_MAX + 10 == report.ambiguous_count


def plain(seconds: float) -> AbstractContextManager[object]:
    """Return a scope of trio's that ends its block."""
    return trio.move_on_after(seconds)


def shield(seconds: float) -> AbstractContextManager[object]:
    """Return a scope of trio's that no scope around it reaches through."""
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
"""The reason of an abandonment, and the scopes around the operation with their seconds, the outermost first."""


async def perform_in_nurseries(driver: ClusterDriver, depth: int) -> None:
    """Perform one operation in a task so many nurseries below."""
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
    """An operation that a late ``fail_after`` block reaches is abandoned by a timeout; otherwise it is cancelled."""
    machine = silent_machine()
    async with open_driver(machine) as driver, trio.open_nursery() as others:
        if with_another:
            # Beside another operation, the driver submits by another path.
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
async def test_a_block_that_its_program_cancels_is_no_timeout(autojump_clock: MockClock, seconds: float) -> None:
    """An operation in a ``fail_after`` block that is cancelled before its deadline is cancelled, at it a timeout."""
    machine = silent_machine()
    async with open_driver(machine) as driver, trio.open_nursery() as nursery:
        with suppress(trio.TooSlowError), fail_after(1) as scope:
            nursery.start_soon(cancel_after, scope, seconds)
            await perform(driver, write("ada"))

    assert ["cancelled" if seconds < 1 else "timeout"] == reasons(machine)


async def cancel_after(scope: trio.CancelScope, seconds: float) -> None:
    """Cancel a scope after some time."""
    await trio.sleep(seconds)
    scope.cancel()


async def test_a_moved_deadline_counts(autojump_clock: MockClock) -> None:
    """A ``fail_after`` block whose deadline the program moves is late at the new one only."""
    machine = silent_machine()
    async with open_driver(machine) as driver:
        with suppress(trio.TooSlowError), trio.move_on_after(2), fail_after(1) as scope:
            scope.deadline += 5
            await perform(driver, write("ada"))
        with suppress(trio.TooSlowError), trio.move_on_after(2), fail_after(5) as scope:
            scope.deadline -= 4
            await perform(driver, write("ada"))

    assert ["cancelled", "timeout"] == reasons(machine)


async def test_a_block_beside_the_nursery_of_the_task_is_no_reason(autojump_clock: MockClock) -> None:
    """A task of a nursery around a late block is cancelled by other scopes, although its parent opened the block."""
    machine = silent_machine()
    async with open_driver(machine) as driver, trio.open_nursery() as nursery:
        with suppress(trio.TooSlowError), fail_after(1):
            nursery.start_soon(perform, driver, write("ada"))
            with trio.CancelScope(shield=True):
                await trio.sleep(2)
                nursery.cancel_scope.cancel()
                await trio.testing.wait_all_tasks_blocked()

    assert ["cancelled"] == reasons(machine)


async def test_a_shield_that_is_raised_later_counts(autojump_clock: MockClock) -> None:
    """A scope that becomes a shield while its operation waits protects the operation from a late block."""
    machine = silent_machine()
    async with open_driver(machine) as driver, trio.open_nursery() as nursery:
        with suppress(trio.TooSlowError), fail_after(1), trio.move_on_after(2) as inner:
            nursery.start_soon(raise_shield, inner)
            await perform(driver, write("ada"))

    assert ["cancelled"] == reasons(machine)


async def raise_shield(scope: trio.CancelScope) -> None:
    """Make a scope a shield after half a second."""
    await trio.sleep(0.5)
    scope.shield = True


async def test_a_late_block_counts_if_shields_are_unknown(autojump_clock: MockClock) -> None:
    """With a trio whose tasks have no known scopes around them, each late block above a task is a timeout."""

    class LaterTask:
        parent_nursery = None

    task, report = cast(trio.lowlevel.Task, LaterTask()), Report()
    _open_reports[task] = [report]
    report.scope = trio.CancelScope(deadline=trio.current_time())

    assert AbandonReason.TIMEOUT is abandon_reason(task)


def test_nothing_outside_of_a_run_is_cancelled() -> None:
    """A block that Python closes after the run has the reason of one that is left."""
    assert AbandonReason.NOT_NEEDED is leave_reason()


async def test_each_of_many_tasks_has_its_reason(autojump_clock: MockClock) -> None:
    """Tasks of one nursery that scopes of their own end at the same instant are abandoned for their own reasons."""
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


async def cancel(scope: trio.CancelScope) -> None:
    """Cancel a scope."""
    scope.cancel()


async def test_what_was_never_sent_was_not_applied(mock_clock: MockClock) -> None:
    """A write that is given up in the pass of trio's loop in which it was asked for may not have left yet."""
    ambiguous = list[bool]()
    async with open_pair() as (fake, _, people), trio.open_nursery() as nursery:
        await people.upsert("ada", 0)
        fake.node.command_log.clear()
        fake.node.faults.always(None, drop_response())
        nursery.start_soon(people.get, "ada")
        await trio.testing.wait_all_tasks_blocked()

        async def write_and_leave(number: int) -> None:
            with fail_after(math.inf) as scope:
                # Trio draws whether this task runs before the one that submits, or after it.
                nursery.start_soon(cancel, scope)
                await people.upsert("ada", number)

        for number in range(64):
            with pytest.raises((AmbiguousTooSlowError, UnambiguousTooSlowError)) as caught:
                await write_and_leave(number)
            await trio.testing.wait_all_tasks_blocked()
            was_sent = any(command.opcode == Opcode.SET for command in fake.node.command_log)
            fake.node.command_log.clear()
            assert was_sent is isinstance(caught.value, AmbiguousTooSlowError)
            ambiguous.append(was_sent)
        nursery.cancel_scope.cancel()

    assert {True, False} == set(ambiguous)


async def test_what_is_given_up_while_it_is_submitted(autojump_clock: MockClock) -> None:
    """A strategy that is asked about one operation cancels another one, which leaves all the same: that is told."""
    verdicts = list[tuple[bool, bool]]()

    class Cancelling:
        def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
            for scope in scopes:
                scope.cancel()
            return RetryAction.no_retry()

    async def fail(missing: Collection) -> None:
        with pytest.raises(RequestCanceledException):
            await missing.get("k", retry_strategy=Cancelling())

    async def write(people: Collection) -> None:
        try:
            with fail_after(60) as scope:
                scopes.append(scope)
                await people.upsert("victim", 42)
        except (AmbiguousTooSlowError, UnambiguousTooSlowError) as error:
            told.append(isinstance(error, AmbiguousTooSlowError))

    for _ in range(16):
        scopes, told = list[trio.CancelScope](), list[bool]()
        async with open_pair() as (_, cluster, people):
            await people.upsert("ada", 1)
            missing = cluster.bucket("nope").default_collection()
            with pytest.raises(RequestCanceledException):
                await missing.get("k", retry_strategy=Never())
            async with trio.open_nursery() as nursery:
                # Trio draws their order.
                nursery.start_soon(people.exists, "ada")
                nursery.start_soon(fail, missing)
                nursery.start_soon(write, people)
            verdicts += [((await people.exists("victim")).exists, was_told) for was_told in told]

    assert (True, True) in verdicts
    assert (True, False) not in verdicts


async def time_out_beside_rows(statement: str, *, readonly: bool, leaves: bool) -> TooSlow:
    """Return what a block raises that is late after the first row of a query, whose reader leaves the rows or keeps them."""
    taken = list[object]()

    async def take_one(cluster: Cluster) -> None:
        async with cluster.query(statement, readonly=readonly) as result:
            taken.append(await anext(result))
            if not leaves:
                await trio.sleep_forever()
        await trio.sleep_forever()

    async with open_pair() as (fake, cluster, _):
        fake.nodes.script.answer(statement, FakeAnswer(rows=[1, 2], seconds_between_rows=10))
        try:
            with fail_after(15):
                await take_one(cluster)
        except (AmbiguousTooSlowError, UnambiguousTooSlowError) as error:
            assert [1] == taken
            return error
    pytest.fail("no timeout")


STATEMENTS = [("UPDATE hotels SET a = 1", False), ("SELECT 1", True)]
"""With whether they are read-only."""


@rows(("statement", "readonly"), STATEMENTS)
async def test_a_query_whose_rows_are_handled_is_reported(
    autojump_clock: MockClock, statement: str, readonly: bool
) -> None:
    """A query whose rows the block handles when it ends is listed, and may have been applied unless it is read-only."""
    error = await time_out_beside_rows(statement, readonly=readonly, leaves=False)

    assert isinstance(error, UnambiguousTooSlowError if readonly else AmbiguousTooSlowError)
    assert (AbandonedOperation("query", None, not readonly),) == error.operations
    assert (int(not readonly), int(readonly)) == (error.ambiguous_count, error.unambiguous_count)
    assert statement == error.operations[0].context.statement


@rows(("statement", "readonly"), STATEMENTS)
async def test_a_query_whose_rows_are_left_is_not_reported(
    autojump_clock: MockClock, statement: str, readonly: bool
) -> None:
    """A query whose reader leaves its rows by choice is not listed by a block that ends later."""
    error = await time_out_beside_rows(statement, readonly=readonly, leaves=True)

    assert isinstance(error, UnambiguousTooSlowError)
    assert () == error.operations
    assert (0, 0) == (error.ambiguous_count, error.unambiguous_count)


def test_the_representation_of_an_abandoned_operation() -> None:
    """A long name is cut in the representation of an abandoned operation and whole in its attributes."""
    context = ErrorContext(statement="s" * 100_000)
    abandoned = AbandonedOperation("get", "k" * 100_000, False, context)

    assert len(repr(abandoned)) <= MESSAGE_MAX
    assert (100_000, context) == (len(abandoned.key or ""), abandoned.context)
    assert "AbandonedOperation(operation='get', key='ada', ambiguous=False, context=" in repr(
        AbandonedOperation("get", "ada", False)
    )
