"""Asynchronous strategies: the driver awaits them in the background, and answers with what they said."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar

import pytest
import trio
import trio.testing

from tests.trio_client.doubles import DONE, REQUEST, STREAM, occur, open_driver, perform
from triclinium import errors
from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium_core.contract import couchbase
from triclinium_core.contract.neutral import BytesReceived, ConsultStrategy, StrategyDecided, Token
from triclinium_core.retry.couchbase import RetryAction, RetryReason, RetryRequest
from triclinium_core.testing.driver_laws import ScriptedClusterMachine

REASON = RetryReason.KV_LOCKED
ANSWER = RetryAction.after(0.5)
BYTES = BytesReceived(STREAM, b"")


class FunctionStrategy:
    """Answers what a function answers."""

    def __init__(self, function: Callable[[], Awaitable[RetryAction]]) -> None:
        self._function = function
        self.asked: list[tuple[RetryRequest, RetryReason]] = []

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return the function's answer."""
        self.asked.append((request, reason))
        return await self._function()


def machine_that_consults(strategy: FunctionStrategy, *, at: type[couchbase.Event]) -> ScriptedClusterMachine:
    """Return a machine that asks ``strategy`` about its only operation, and completes that with any answer."""

    def consult(event: couchbase.Event) -> Sequence[couchbase.Action]:
        if isinstance(event, at):
            return [ConsultStrategy(machine.submitted[0].token, strategy, REQUEST, REASON)]
        if isinstance(event, StrategyDecided):
            return [couchbase.CompleteOperation(event.token, DONE)]
        return ()

    machine = ScriptedClusterMachine(consult)
    return machine


async def test_a_group_that_a_strategy_raises_is_fed_back() -> None:
    """The very exception goes to the machine, not taken apart; the background task survives."""
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
async def test_a_strategy_sees_the_variables_of_the_task_that_asked(at: type[couchbase.Event]) -> None:
    """Wherever the failure shows, at the submission or later in a reader, the caller's context is the strategy's."""
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
    """Consider the case for ever."""
    await trio.sleep_forever()
    raise AssertionError


async def test_a_strategy_is_called_off_when_the_caller_leaves() -> None:
    """Nothing outlives its caller; an abandoned operation needs no answer."""
    finished: list[bool] = []

    async def think() -> RetryAction:
        try:
            return await never()
        finally:
            finished.append(True)

    machine = machine_that_consults(FunctionStrategy(think), at=couchbase.OperationSubmitted)
    async with open_driver(machine) as driver:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(perform, driver)
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        finished.append(False)

    assert [True, False] == finished
    assert couchbase.OperationAbandoned(Token(1)) == machine.events[-1]


async def test_a_strategy_is_called_off_when_the_operation_is_settled() -> None:
    """A deadline that passes while the strategy thinks ends its thinking."""
    error = errors.CouchbaseException("too late")
    finished: list[bool] = []

    async def think() -> RetryAction:
        try:
            return await never()
        finally:
            finished.append(True)

    async def ask() -> None:
        with pytest.raises(errors.CouchbaseException, match="too late"):
            await perform(driver)

    machine = machine_that_consults(FunctionStrategy(think), at=couchbase.OperationSubmitted)
    async with open_driver(machine) as driver, trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        machine.answer = lambda event: [couchbase.FailOperation(Token(1), error)]
        await occur(driver, BYTES)
        await trio.testing.wait_all_tasks_blocked()
        finished.append(False)

    assert [True, False] == finished
    assert BYTES == machine.events[-1]


async def test_no_strategy_is_asked_for_an_operation_that_is_gone() -> None:
    """The caller may have left while the machine handled the very event that led to the question."""
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


async def test_a_strategy_that_fails_while_the_client_closes_is_no_defect() -> None:
    """Its errors have nobody to go to any more, and do not look like ours."""

    async def fail() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("on the way out")

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


async def test_a_strategy_that_ends_the_program_ends_it() -> None:
    """SystemExit is neither an answer nor a defect of ours."""

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
