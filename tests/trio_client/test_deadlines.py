"""``fail_after`` tells whether what it interrupted may have happened."""

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
from triclinium import AbandonedOperation, Cluster, Collection, RetryAction, RetryReason, RetryRequest, fail_after
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
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.testing import FakeAnswer
from triclinium_core.testing.fakes.faults import drop_response


async def idle(driver: ClusterDriver) -> None:
    """Perform nothing."""
    await trio.sleep_forever()


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
