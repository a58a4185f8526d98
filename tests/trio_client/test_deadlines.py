"""Errors of ``fail_after``, which report whether an interrupted operation may have been applied."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from tests.rows import rows
from tests.trio_client.doubles import open_driver
from tests.trio_client.pair import Never, open_pair
from tests.trio_client.timed_blocks import TooSlow, perform, read, silent_machine, time_out, write
from triclinium import AbandonedOperation, Cluster, Collection, fail_after
from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._deadlines import _open_reports
from triclinium.errors import (
    AmbiguousTimeoutException,
    AmbiguousTooSlowError,
    InvalidArgumentException,
    RequestCanceledException,
    UnambiguousTimeoutException,
    UnambiguousTooSlowError,
)
from triclinium.retries import RetryAction, RetryReason, RetryRequest
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.testing import FakeAnswer
from triclinium_core.testing.fakes.faults import drop_response


async def idle(driver: ClusterDriver) -> None:
    """Perform no operation."""
    await trio.sleep_forever()


async def test_a_fast_block_does_not_raise(autojump_clock: MockClock) -> None:
    """A block that ends before its deadline raises nothing, and yields its scope, like in trio."""
    with fail_after(1) as scope:
        await trio.sleep(0.9)

    assert 1 == scope.deadline
    assert not scope.cancelled_caught


async def test_an_uninterrupted_block_does_not_raise() -> None:
    """A cancellation that interrupts nothing raises nothing, like in trio."""
    with fail_after(1) as scope:
        scope.cancel()

    assert scope.cancel_called


async def test_a_write_in_flight_makes_the_timeout_ambiguous(autojump_clock: MockClock) -> None:
    """If a write is in flight at the deadline, the timeout is ambiguous and names the write."""
    error = await time_out(lambda driver: perform(driver, write("ada")))

    assert isinstance(error, AmbiguousTimeoutException)
    assert isinstance(error, trio.TooSlowError)
    assert (AbandonedOperation("upsert", "ada", True),) == error.operations
    assert 0.5 == trio.current_time()
    assert ("upsert", "ada", 0.5) == (error.context.operation, error.context.key, error.context.timeout)
    assert "not done within 0.5 s: upsert of 'ada'; it may have been applied" in str(error)


async def test_a_read_in_flight_makes_the_timeout_unambiguous(autojump_clock: MockClock) -> None:
    """If only a read is in flight at the deadline, the timeout is unambiguous."""
    error = await time_out(lambda driver: perform(driver, read("ada")))

    assert isinstance(error, UnambiguousTimeoutException)
    assert isinstance(error, trio.TooSlowError)
    assert (AbandonedOperation("get", "ada", False),) == error.operations
    assert "nothing was applied" in str(error)


async def test_a_timeout_without_operations_is_unambiguous(autojump_clock: MockClock) -> None:
    """If no operation is in flight at the deadline, the timeout is unambiguous."""
    error = await time_out(idle)

    assert isinstance(error, UnambiguousTimeoutException)
    assert () == error.operations
    assert "no operation was in flight" in str(error)


async def test_operations_of_child_tasks_are_reported(autojump_clock: MockClock) -> None:
    """Operations of all tasks below the block are reported, and one ambiguous operation makes the timeout ambiguous."""

    async def body(driver: ClusterDriver) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(perform, driver, read("bob"))
            async with trio.open_nursery() as inner:
                inner.start_soon(perform, driver, write("ada"))

    error = await time_out(body)

    assert isinstance(error, AmbiguousTimeoutException)
    assert {AbandonedOperation("get", "bob", False), AbandonedOperation("upsert", "ada", True)} == set(error.operations)
    assert error.context.key is None


async def test_operations_of_adopted_tasks_are_reported(autojump_clock: MockClock) -> None:
    """An operation of a task that was started in the block's nursery from outside is reported."""
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
    """A task that the block is starting with ``nursery.start`` is reported."""

    async def child(driver: ClusterDriver, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        await perform(driver, write("ada"))
        task_status.started()

    async with open_driver(silent_machine()) as driver, trio.open_nursery() as elsewhere:
        with pytest.raises(AmbiguousTooSlowError), fail_after(0.5):
            await elsewhere.start(child, driver)


async def test_operations_of_other_tasks_are_not_reported(autojump_clock: MockClock) -> None:
    """An operation of another task that is cancelled at the same time is not reported."""
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


async def test_earlier_cancelled_operations_are_reported(autojump_clock: MockClock) -> None:
    """An operation that an inner scope cancelled earlier is reported, because a superfluous entry is safe."""

    async def body(driver: ClusterDriver) -> None:
        with trio.move_on_after(0.1):
            await perform(driver, write("ada"))
        await trio.sleep_forever()

    error = await time_out(body)

    assert (AbandonedOperation("upsert", "ada", True),) == error.operations


async def test_an_ended_block_does_not_affect_others(autojump_clock: MockClock) -> None:
    """Neither the end of an inner block nor an earlier operation affects the report of a block."""

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


async def test_the_expired_block_of_nested_ones_raises(autojump_clock: MockClock) -> None:
    """If the outer block expires first, the inner one passes Cancelled on and the outer one reports the operation."""
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


async def test_the_blocks_exception_is_raised(autojump_clock: MockClock) -> None:
    """An exception that the block raises during its cancellation takes precedence over the timeout."""
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
    """Cancel a scope, and reach a checkpoint."""
    scope.cancel()
    await trio.lowlevel.checkpoint()


async def test_a_block_cancelled_through_its_scope() -> None:
    """If the scope of a block without a limit is cancelled, the block raises as if it had expired, like in trio."""
    with pytest.raises(UnambiguousTooSlowError) as caught, fail_after(math.inf) as scope:
        await cancel_and_wait(scope)

    assert caught.value.context.timeout is None


async def test_a_timedelta_as_limit() -> None:
    """A timedelta is equivalent to its seconds."""
    with pytest.raises(UnambiguousTooSlowError) as caught, fail_after(timedelta(milliseconds=1500)):
        await trio.sleep_forever()

    assert 1.5 == caught.value.context.timeout


@rows("seconds", [-1, math.nan, "1", None, True, timedelta(seconds=-1)])
async def test_an_invalid_limit(seconds: float) -> None:
    """``fail_after`` refuses an invalid limit, and the error names the parameter."""
    with pytest.raises(InvalidArgumentException) as caught, fail_after(seconds):
        pass

    assert "seconds" == caught.value.parameter


async def cancel(scope: trio.CancelScope) -> None:
    """Cancel a scope."""
    scope.cancel()


async def test_unsent_operations_are_unambiguous(mock_clock: MockClock) -> None:
    """A write cancelled in the pass of the loop in which it was requested is ambiguous if and only if it was sent."""
    ambiguous = list[bool]()
    async with open_pair() as (fake, _, people), trio.open_nursery() as nursery:
        await people.upsert("ada", 0)
        fake.node.command_log.clear()
        fake.node.faults.always(None, drop_response())
        nursery.start_soon(people.get, "ada")
        await trio.testing.wait_all_tasks_blocked()

        async def write_and_leave(number: int) -> None:
            with fail_after(math.inf) as scope:
                # Trio decides at random whether this task runs before or after the one that submits.
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


async def test_an_operation_cancelled_during_its_submission(autojump_clock: MockClock) -> None:
    """If a strategy cancels a write while it is submitted, a write that was applied is reported as ambiguous."""
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
            reported.append(isinstance(error, AmbiguousTooSlowError))

    for _ in range(16):
        scopes, reported = list[trio.CancelScope](), list[bool]()
        async with open_pair() as (_, cluster, people):
            await people.upsert("ada", 1)
            missing = cluster.bucket("nope").default_collection()
            with pytest.raises(RequestCanceledException):
                await missing.get("k", retry_strategy=Never())
            async with trio.open_nursery() as nursery:
                # Trio decides the order of these tasks at random.
                nursery.start_soon(people.exists, "ada")
                nursery.start_soon(fail, missing)
                nursery.start_soon(write, people)
            verdicts += [((await people.exists("victim")).exists, was_reported) for was_reported in reported]

    assert (True, True) in verdicts
    assert (True, False) not in verdicts


@rows("leaves", [False, True])
@rows(("statement", "readonly"), [("UPDATE hotels SET a = 1", False), ("SELECT 1", True)])
async def test_only_an_open_query_is_reported(
    autojump_clock: MockClock, statement: str, readonly: bool, leaves: bool
) -> None:
    """A query with open rows at the deadline is reported, as ambiguous unless it is read-only; one left before is not."""
    taken = list[object]()

    async def take_one(cluster: Cluster) -> None:
        async with cluster.query(statement, readonly=readonly) as result:
            taken.append(await anext(result))
            if not leaves:
                await trio.sleep_forever()
        await trio.sleep_forever()

    async with open_pair() as (fake, cluster, _):
        fake.nodes.script.answer(statement, FakeAnswer(rows=[1, 2], seconds_between_rows=10))
        with pytest.raises((AmbiguousTooSlowError, UnambiguousTooSlowError)) as caught, fail_after(15):
            await take_one(cluster)
    error = caught.value

    assert [1] == taken
    assert isinstance(error, UnambiguousTooSlowError if readonly or leaves else AmbiguousTooSlowError)
    assert (() if leaves else (AbandonedOperation("query", None, not readonly),)) == error.operations
    assert ((0, 0) if leaves else (int(not readonly), int(readonly))) == (
        error.ambiguous_count,
        error.unambiguous_count,
    )
    assert ([] if leaves else [statement]) == [each.context.statement for each in error.operations]
