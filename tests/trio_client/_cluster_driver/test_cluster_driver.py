"""Driver without decisions of its own, which passes events to its machine and executes the machine's actions."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, get_args

import pytest
import trio
import trio.testing
from trio.testing import MockClock, memory_stream_pair

from tests.rows import rows
from tests.trio_client import doubles
from tests.trio_client.pair import open_pair
from triclinium import client_context, errors, retrying
from triclinium_core.contract import couchbase, neutral
from triclinium_core.kv.operation.document_operations import Operation
from triclinium_core.kv.operation.results import Done, GetResult
from triclinium_core.retry.couchbase import BestEffortRetryStrategy
from triclinium_core.services.service_request import Acknowledged
from triclinium_core.testing.driver_laws import REQUEST, ScriptedClusterMachine, on

# -- Operations.


async def test_an_operation_returns_the_machines_result() -> None:
    """An operation is submitted unchanged, its task waits, and the task returns the machine's result."""
    machine = ScriptedClusterMachine()
    operation = doubles.get()
    results: list[Done] = []

    async def ask() -> None:
        results.append(await driver.perform(Done, lambda: operation, None, None))

    async with doubles.open_driver(machine) as driver, trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        [submitted] = machine.submitted
        await doubles.act(driver, machine, couchbase.CompleteOperation(submitted.token, doubles.DONE))

    assert operation is submitted.operation
    assert submitted.retry_strategy is None
    assert submitted.client_context is None
    assert [doubles.DONE] == results


async def test_an_operation_raises_the_machines_error() -> None:
    """The task raises the machine's error as the same object."""
    error = errors.DocumentNotFoundException("no such document")
    machine = ScriptedClusterMachine()

    async def ask() -> None:
        with pytest.raises(errors.DocumentNotFoundException) as caught:
            await doubles.perform(driver)
        assert error is caught.value

    async with doubles.open_driver(machine) as driver, trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        await doubles.act(driver, machine, couchbase.FailOperation(machine.submitted[0].token, error))


def settle_all(event: couchbase.Event) -> Sequence[couchbase.Action]:
    """Return the completion of a submitted operation or request to a service, and nothing for other events."""
    if isinstance(event, couchbase.RequestSubmitted):
        return [couchbase.CompleteRequest(event.token, Acknowledged())]
    return doubles.settle(event)


@rows(("returns", "make"), [(Done, doubles.get), (Acknowledged, lambda: REQUEST)])
async def test_strategy_and_context_are_submitted(returns: type[Done | Acknowledged], make: Any) -> None:
    """A call's own strategy is submitted instead of the block's strategy; the client context is submitted as well."""
    of_block, of_call = BestEffortRetryStrategy(), BestEffortRetryStrategy()
    machine = ScriptedClusterMachine(settle_all)
    async with doubles.open_driver(machine) as driver:
        with retrying(of_block), client_context(is_robot=True):
            await driver.perform(returns, make, None, None)
            await driver.perform(returns, make, of_call, None)
        await driver.perform(returns, make, None, None)

    submitted: Sequence[couchbase.OperationSubmitted | couchbase.RequestSubmitted]
    submitted = machine.submitted or machine.requested
    assert [id(of_block), id(of_call), id(None)] == [id(each.retry_strategy) for each in submitted]
    assert [{"is_robot": True}, {"is_robot": True}, None] == [each.client_context for each in submitted]


# -- Checkpoints, cancellation, and wrong arguments and results.


async def test_an_operation_settled_immediately_is_a_checkpoint() -> None:
    """An operation that completes during its submission still executes a checkpoint."""
    async with doubles.open_driver(ScriptedClusterMachine(doubles.settle)) as driver:
        with trio.testing.assert_checkpoints():
            result = await doubles.perform(driver)

    assert doubles.DONE == result


async def test_a_result_beats_a_cancellation() -> None:
    """A cancellation that arrives while an operation is submitted and completed does not hide its result."""
    results: list[Done] = []

    def cancel_and_settle(event: couchbase.Event) -> Sequence[couchbase.Action]:
        if isinstance(event, couchbase.OperationSubmitted):
            scope.cancel()
        return doubles.settle(event)

    async with doubles.open_driver(ScriptedClusterMachine(cancel_and_settle)) as driver:
        with trio.CancelScope() as scope:
            results.append(await doubles.perform(driver))
            await trio.lowlevel.checkpoint()

    assert [doubles.DONE] == results
    assert scope.cancelled_caught


async def test_a_cancelled_caller_submits_nothing() -> None:
    """A call in a cancelled scope raises Cancelled before the operation is built."""
    machine = ScriptedClusterMachine(doubles.settle)
    made: list[Operation] = []

    def make() -> Operation:
        made.append(doubles.get())
        return made[-1]

    async with doubles.open_driver(machine) as driver:
        with trio.CancelScope() as scope:
            scope.cancel()
            await driver.perform(Done, make, None, None)

    assert scope.cancelled_caught
    assert [] == made
    assert [] == machine.submitted


async def test_a_cancelled_operation_leaves_the_queue() -> None:
    """A cancelled operation in the queue is never submitted, and the other operations complete."""
    machine = ScriptedClusterMachine()
    async with doubles.open_driver(machine) as driver, trio.open_nursery() as nursery:
        nursery.start_soon(doubles.perform, driver)
        await trio.testing.wait_all_tasks_blocked()
        with trio.CancelScope() as scope:
            scope.cancel()
            await doubles.perform(driver)
        await trio.testing.wait_all_tasks_blocked()
        [submitted] = machine.submitted
        await doubles.act(driver, machine, couchbase.CompleteOperation(submitted.token, doubles.DONE))

    assert scope.cancelled_caught
    assert 1 == len(machine.submitted)


async def test_cancellation_while_other_waiters_leave() -> None:
    """A pending cancellation cancels a call even if building its operation cancels all other waiters."""
    machine = ScriptedClusterMachine()
    other = trio.CancelScope()

    def make() -> Operation:
        other.cancel()
        return doubles.get()

    async def wait() -> None:
        with other:
            await doubles.perform(driver)

    async with doubles.open_driver(machine) as driver, trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        with trio.CancelScope() as scope:
            scope.cancel()
            await driver.perform(Done, make, None, None)
        await trio.testing.wait_all_tasks_blocked()

    assert scope.cancelled_caught
    assert 1 == len(machine.submitted)


async def test_a_wrong_argument_is_a_checkpoint() -> None:
    """An operation that cannot be built raises its own error after a checkpoint and is not submitted."""
    error = errors.InvalidArgumentException("wrong", parameter="key")
    machine = ScriptedClusterMachine(doubles.settle)

    def fail() -> Operation:
        raise error

    async with doubles.open_driver(machine) as driver:
        with trio.testing.assert_checkpoints(), pytest.raises(errors.InvalidArgumentException) as caught:
            await driver.perform(Done, fail, None, None)

    assert error is caught.value
    assert [] == machine.submitted


async def test_a_result_of_the_wrong_type() -> None:
    """If the machine's result has another type than the caller expects, the call raises AssertionError."""
    async with doubles.open_driver(ScriptedClusterMachine(doubles.settle)) as driver:
        with pytest.raises(AssertionError, match="get returned Done"):
            await driver.perform(GetResult, doubles.get, None, None)


async def test_a_wrong_argument_among_other_operations(autojump_clock: MockClock) -> None:
    """A wrong argument among the operations of one pass of trio's loop fails its own call only."""
    caught = list[str | None]()

    async with open_pair() as (_, cluster, people):

        async def mistake() -> None:
            with pytest.raises(errors.InvalidArgumentException) as mistaken:
                await people.get("ada", retry_strategy=BestEffortRetryStrategy)  # type: ignore[arg-type]
            caught.append(mistaken.value.parameter)

        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(people.upsert, str(number), number)
                nursery.start_soon(mistake)

        assert ["retry_strategy"] * 5 == caught
        assert [0, 1, 2, 3, 4] == [(await people.get(str(number))).content for number in range(5)]
        assert 0 == cluster.statistics().open_operations


async def test_a_cancelled_operation_is_abandoned_once() -> None:
    """The machine receives OperationAbandoned once, a late result is dropped, and other operations continue."""
    machine = ScriptedClusterMachine()
    async with doubles.open_driver(machine) as driver, trio.open_nursery() as nursery:
        nursery.start_soon(doubles.perform, driver, "bob")
        await trio.testing.wait_all_tasks_blocked()
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as inner:
                inner.start_soon(doubles.perform, driver, "ada")
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
        bob, ada = (submitted.token for submitted in machine.submitted)
        await doubles.act(driver, machine, *(couchbase.CompleteOperation(token, doubles.DONE) for token in (ada, bob)))

    assert 1 == machine.events.count(couchbase.OperationAbandoned(ada))
    assert couchbase.OperationAbandoned(bob) not in machine.events


# -- Streams and actions.


async def test_streams_are_opened_written_and_read() -> None:
    """The actions of one event are executed in order, and the stream's events reach the machine."""

    def speak(event: couchbase.Event) -> Sequence[couchbase.Action]:
        match event:
            case neutral.TimePassed():
                return [doubles.OPEN_STREAM]
            case neutral.StreamOpened():
                return [neutral.SendBytes(doubles.STREAM, b"hel"), neutral.SendBytes(doubles.STREAM, b"lo")]
            case _:
                return ()

    machine = ScriptedClusterMachine(speak)
    ours, theirs = memory_stream_pair()
    async with doubles.open_driver(machine, doubles.connector_to(ours)) as driver:
        greeting = await theirs.receive_some()
        await theirs.send_all(b"welcome")
        await theirs.aclose()
        await trio.testing.wait_all_tasks_blocked()
        left = list(driver._streams.numbers)

    assert b"hello" == greeting
    assert [] == left
    assert [
        neutral.StreamOpened(doubles.STREAM, "a nonce", "local:1", "remote:2"),
        neutral.BytesReceived(doubles.STREAM, b"welcome"),
        neutral.StreamLost(doubles.STREAM, neutral.LossCause.END_OF_STREAM, "", 5),
    ] == machine.later_events
    assert all(type(event.data) is bytes for event in machine.events if isinstance(event, neutral.BytesReceived))


async def test_a_closed_stream_reports_handed_over_bytes() -> None:
    """CloseStream closes the socket; the only event afterwards is StreamLost with the number of bytes handed over."""
    machine = ScriptedClusterMachine(on(neutral.TimePassed, doubles.OPEN_STREAM))
    ours, theirs = memory_stream_pair()
    async with doubles.open_driver(machine, doubles.connector_to(ours)) as driver:
        await trio.testing.wait_all_tasks_blocked()
        machine.answer = on(neutral.TimePassed, neutral.SendBytes(doubles.STREAM, b"12345"))
        await doubles.occur(driver, neutral.TimePassed())
        await trio.testing.wait_all_tasks_blocked()
        machine.answer = on(neutral.TimePassed, neutral.CloseStream(doubles.STREAM, "because"))
        await doubles.occur(driver, neutral.TimePassed())
        came = await theirs.receive_some(), await theirs.receive_some()

    assert (b"12345", b"") == came
    assert [
        neutral.StreamOpened(doubles.STREAM, "a nonce", "local:1", "remote:2"),
        neutral.TimePassed(),
        neutral.TimePassed(),
        neutral.StreamLost(doubles.STREAM, neutral.LossCause.CLOSED_BY_US, handed_over=5),
    ] == machine.later_events


async def test_actions_for_a_lost_stream_are_ignored() -> None:
    """Actions for an unknown stream are ignored, because the machine may not have received the loss yet."""
    machine = ScriptedClusterMachine(doubles.settle)
    async with doubles.open_driver(machine) as driver:
        gone = neutral.StreamId(99)
        machine.answer = on(neutral.TimePassed, neutral.SendBytes(gone, b"late"), neutral.CloseStream(gone, "late"))
        await doubles.occur(driver, neutral.TimePassed())
        machine.answer = doubles.settle
        result = await doubles.perform(driver)

    assert doubles.DONE == result


async def test_connections_run_in_the_clusters_context() -> None:
    """A connection sees the context variables of the task that opened the cluster, not those of an operation."""
    seen: list[str] = []
    variable = ContextVar("variable", default="of no task")

    async def connect() -> trio.abc.Stream:
        seen.append(variable.get())
        return doubles.HalfDeafStream()

    def open_at_first_use(event: couchbase.Event) -> Sequence[couchbase.Action]:
        return [doubles.OPEN_STREAM, *doubles.settle(event)] if isinstance(event, couchbase.OperationSubmitted) else ()

    variable.set("of the opener")
    async with doubles.open_driver(
        ScriptedClusterMachine(open_at_first_use), doubles.FunctionConnector(connect)
    ) as driver:
        variable.set("of the first user")
        await doubles.perform(driver)
        await trio.testing.wait_all_tasks_blocked()

    assert ["of the opener"] == seen


def test_every_action_has_a_handler() -> None:
    """The driver has a handler for every type of action that the machine can return."""
    assert set(get_args(couchbase.Action)) == {*doubles.driver_of(ScriptedClusterMachine())._handlers}
