"""Asynchronous strategies, which the driver awaits in background tasks before it reports their decisions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar

import pytest
import trio
import trio.testing

from tests.trio_client.doubles import DONE, REQUEST, STREAM, act, occur, open_driver, perform
from triclinium import errors
from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium_core.contract import couchbase
from triclinium_core.contract.neutral import BytesReceived, ConsultStrategy, StrategyDecided, Token
from triclinium_core.retry.couchbase import AsyncRetryStrategy, RetryAction, RetryReason, RetryRequest
from triclinium_core.testing.driver_laws import ScriptedClusterMachine

REASON = RetryReason.KV_LOCKED
ANSWER = RetryAction.after(0.5)
BYTES = BytesReceived(STREAM, b"")


class FunctionStrategy:
    """Strategy that delegates to a function."""

    def __init__(self, function: Callable[[], Awaitable[RetryAction]]) -> None:
        self._function = function
        self.asked: list[tuple[RetryRequest, RetryReason]] = []

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return the result of the function."""
        self.asked.append((request, reason))
        return await self._function()


def machine_that_consults(strategy: AsyncRetryStrategy, *, at: type[couchbase.Event]) -> ScriptedClusterMachine:
    """Return a machine that consults ``strategy`` about its only operation and completes it after any decision."""

    def consult(event: couchbase.Event) -> Sequence[couchbase.Action]:
        if isinstance(event, at):
            return [ConsultStrategy(machine.submitted[0].token, strategy, REQUEST, REASON)]
        if isinstance(event, StrategyDecided):
            return [couchbase.CompleteOperation(event.token, DONE)]
        return ()

    machine = ScriptedClusterMachine(consult)
    return machine


async def test_a_group_from_a_strategy_reaches_the_machine() -> None:
    """An exception group of a strategy reaches the machine as the same object, and the background task survives."""
    error = ExceptionGroup("mine", [ValueError()])

    async def fail() -> RetryAction:
        await trio.lowlevel.checkpoint()
        raise error

    machine = machine_that_consults(FunctionStrategy(fail), at=couchbase.OperationSubmitted)
    async with open_driver(machine) as driver:
        await perform(driver)

    decided = machine.events[-1]
    assert isinstance(decided, StrategyDecided)
    assert error is decided.raised
    assert decided.answer is None


variable = ContextVar("variable", default="of nobody")


@pytest.mark.parametrize("at", [couchbase.OperationSubmitted, BytesReceived])
async def test_a_strategy_runs_in_the_callers_context(at: type[couchbase.Event]) -> None:
    """A strategy sees the caller's context variables, whether consulted at the submission or later by a reader."""
    seen: list[str] = []

    async def look() -> RetryAction:
        seen.append(variable.get())
        return ANSWER

    async def ask() -> None:
        variable.set("of the caller")
        await perform(driver)

    machine = machine_that_consults(FunctionStrategy(look), at=at)
    async with open_driver(machine) as driver, trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        await occur(driver, BYTES)

    assert ["of the caller"] == seen


async def never() -> RetryAction:
    """Wait forever instead of making a decision."""
    await trio.sleep_forever()
    raise AssertionError


class Thinking:
    """Strategy that waits forever, and records whether it was cancelled."""

    is_over = False

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Wait."""
        try:
            return await never()
        finally:
            self.is_over = True


async def test_a_strategy_is_cancelled_with_its_caller() -> None:
    """If an operation's caller is cancelled, the strategy's call is cancelled and the machine gets no decision."""
    thinking = Thinking()
    machine = machine_that_consults(thinking, at=couchbase.OperationSubmitted)
    async with open_driver(machine) as driver:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(perform, driver)
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
        await trio.testing.wait_all_tasks_blocked()

        assert thinking.is_over
    assert couchbase.OperationAbandoned(Token(1)) == machine.events[-1]


async def test_a_strategy_is_cancelled_when_its_operation_ends() -> None:
    """A strategy is cancelled when its operation ends, for example at its deadline."""
    error = errors.CouchbaseException("too late")
    thinking = Thinking()

    async def ask() -> None:
        with pytest.raises(errors.CouchbaseException, match="too late"):
            await perform(driver)

    machine = machine_that_consults(thinking, at=couchbase.OperationSubmitted)
    async with open_driver(machine) as driver, trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        await act(driver, machine, couchbase.FailOperation(Token(1), error))
        await trio.testing.wait_all_tasks_blocked()

        assert thinking.is_over
    assert BYTES == machine.events[-1]


async def test_no_strategy_runs_for_an_abandoned_operation() -> None:
    """If the caller is cancelled during the event that consults the strategy, the strategy is not called."""
    strategy = FunctionStrategy(never)
    machine = machine_that_consults(strategy, at=BytesReceived)
    async with open_driver(machine) as driver:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(perform, driver)
                await trio.testing.wait_all_tasks_blocked()
                consult = machine.answer

                def cancel_and_consult(event: couchbase.Event) -> Sequence[couchbase.Action]:
                    scope.cancel()
                    return consult(event)

                machine.answer = cancel_and_consult
                await occur(driver, BYTES)
        await trio.testing.wait_all_tasks_blocked()

    assert [] == strategy.asked
    assert couchbase.OperationAbandoned(Token(1)) == machine.events[-1]


async def test_a_strategy_failure_during_close_is_ignored() -> None:
    """An exception that a strategy raises while the client closes is dropped."""

    async def fail() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("raised during a cancellation")

    async def answer() -> RetryAction:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)
            nursery.start_soon(trio.sleep_forever)
        raise AssertionError

    async def ask() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await perform(driver)

    machine = machine_that_consults(FunctionStrategy(answer), at=couchbase.OperationSubmitted)
    async with trio.open_nursery() as nursery, open_driver(machine) as driver:
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()

    assert not any(isinstance(event, StrategyDecided) for event in machine.events)


async def test_a_strategy_can_raise_system_exit() -> None:
    """If a strategy raises SystemExit, the block raises it, too."""

    async def exit_now() -> RetryAction:
        await trio.lowlevel.checkpoint()
        raise SystemExit(3)

    caught: list[Exception] = []

    async def ask(driver: ClusterDriver) -> None:
        with trio.CancelScope(shield=True):
            try:
                await perform(driver)
            except Exception as error:
                caught.append(error)

    machine = machine_that_consults(FunctionStrategy(exit_now), at=couchbase.OperationSubmitted)
    with pytest.raises(SystemExit):
        async with open_driver(machine) as driver:
            await ask(driver)

    assert [trio.ClosedResourceError] == [type(error) for error in caught]
