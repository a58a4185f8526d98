"""Operations that a collector submits together, and whose outcomes no task awaits one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import pytest
import trio

from tests.trio_client import doubles
from triclinium import client_context, errors
from triclinium._cluster_driver.cluster_driver import ClusterDriver, Outcome
from triclinium._driver.waiters import CollectedWaiter
from triclinium_core.argument_error import ArgumentError
from triclinium_core.contract import couchbase, neutral
from triclinium_core.kv.operation.document_operations import DocumentOperation, Get
from triclinium_core.retry.couchbase import RetryReason
from triclinium_core.testing.driver_laws import ScriptedClusterMachine

Collected = CollectedWaiter[DocumentOperation, Outcome]


class Box:
    """Collector that keeps everything."""

    def __init__(self) -> None:
        self.open: dict[str, Collected] = {}
        self.refused: list[tuple[tuple[object, ...], Exception]] = []
        self.calls: list[list[Collected]] = []
        """Submissions that ended, one list for each call."""

    def refuse(self, item: tuple[object, ...], error: Exception) -> None:
        """Keep the error."""
        self.refused.append((item, error))

    def collect(self, waiters: Iterable[Collected]) -> None:
        """Keep the submissions."""
        self.calls.append(list(waiters))


def submit(driver: ClusterDriver, box: Box, keys: Iterable[Any]) -> None:
    """Submit a read of each key."""
    items = ((key,) for key in keys)
    driver.submit(doubles.get, items, box, strategy=None, parent=None, task=trio.lowlevel.current_task())


async def test_submissions_are_one_event() -> None:
    """All operations are submitted in order, with the client context of the caller."""
    machine = ScriptedClusterMachine()
    box = Box()
    async with doubles.open_driver(machine) as driver:
        before = len(machine.events)
        with client_context(user="ada"):
            submit(driver, box, "abc")

        assert ["a", "b", "c"] == [each.operation.key for each in machine.submitted]
        assert [{"user": "ada"}] * 3 == [dict(each.client_context or {}) for each in machine.submitted]
        assert ["a", "b", "c"] == list(box.open)
        assert 3 == len(machine.events) - before


async def test_outcomes_of_one_event_are_collected_together() -> None:
    """Operations that end with one event are passed to each collector in one call."""
    machine = ScriptedClusterMachine()
    first, second = Box(), Box()
    async with doubles.open_driver(machine) as driver:
        submit(driver, first, "abc")
        submit(driver, second, "d")
        tokens = [each.token for each in machine.submitted]
        error = errors.DocumentNotFoundException("no such document")
        await doubles.act(
            driver,
            machine,
            couchbase.CompleteOperation(tokens[1], doubles.DONE),
            couchbase.FailOperation(tokens[0], error),
            couchbase.CompleteOperation(tokens[3], doubles.DONE),
        )

        (found,) = first.calls
        assert [("b", doubles.DONE, None), ("a", None, error)] == [
            (waiter.asked.key, waiter.result, waiter.error) for waiter in found
        ]
        assert [1] == [len(call) for call in second.calls]


async def test_items_that_cannot_be_built_are_refused() -> None:
    """The collector gets the exception of an item that cannot be built, without a traceback; others are submitted."""
    machine = ScriptedClusterMachine()
    box = Box()
    async with doubles.open_driver(machine) as driver:
        submit(driver, box, ["a", "", 7, "b"])

    assert ["a", "b"] == [each.operation.key for each in machine.submitted]
    assert [("",), (7,)] == [item for item, _ in box.refused]
    assert all(isinstance(error, errors.InvalidArgumentException) for _, error in box.refused)
    assert all(error.__traceback__ is None for _, error in box.refused)


async def test_items_before_an_exception_are_submitted() -> None:
    """If the iterator raises, the exception passes, and the operations of earlier items are submitted."""

    def keys() -> Iterator[str]:
        yield "a"
        raise KeyError

    machine = ScriptedClusterMachine()
    box = Box()
    async with doubles.open_driver(machine) as driver:
        with pytest.raises(KeyError):
            submit(driver, box, keys())

        assert ["a"] == list(box.open)
        assert 1 == len(machine.submitted)


async def test_a_refused_submission_among_others() -> None:
    """If the machine refuses one submission of a batch, only its outcome is the error."""
    error = ArgumentError("not this one")

    def answer(event: couchbase.Event) -> Sequence[couchbase.Action]:
        if isinstance(event, couchbase.OperationSubmitted):
            if event.operation.key == "b":
                raise error
            return [couchbase.CompleteOperation(event.token, doubles.DONE)]
        return ()

    box = Box()
    async with doubles.open_driver(ScriptedClusterMachine(answer)) as driver:
        submit(driver, box, "abc")

    assert [("a", None), ("b", error), ("c", None)] == [
        (waiter.asked.key, waiter.error) for call in box.calls for waiter in call
    ]


async def test_abandoned_submissions() -> None:
    """An abandoned submission is reported to the machine once, with its ambiguity, and is not collected."""
    machine = ScriptedClusterMachine()
    box = Box()
    async with doubles.open_driver(machine) as driver:
        submit(driver, box, "ab")
        tokens = [each.token for each in machine.submitted]
        machine.ambiguous = {tokens[1]}
        found = [driver.abandon_collected(box.open.pop(key)) for key in "ab"]
        abandoned = [event.token for event in machine.events if isinstance(event, couchbase.OperationAbandoned)]

        assert [False, True] == found
        assert tokens == abandoned
        await doubles.act(driver, machine, couchbase.CompleteOperation(tokens[0], doubles.DONE))

    assert [] == box.calls


async def test_a_defect_ends_submissions() -> None:
    """After a defect of the machine, open operations end with InternalError."""

    def crash(event: couchbase.Event) -> Sequence[couchbase.Action]:
        if isinstance(event, neutral.BytesReceived):
            raise KeyError("a defect")
        return ()

    async def break_down() -> None:
        async with doubles.open_driver(ScriptedClusterMachine(crash)) as driver:
            submit(driver, box, "a")
            await doubles.occur(driver, neutral.BytesReceived(doubles.STREAM, b""))
            await trio.sleep_forever()

    box = Box()
    with pytest.raises(errors.InternalError):
        await break_down()

    assert [errors.InternalError] == [type(waiter.error) for call in box.calls for waiter in call]


variable: ContextVar[str] = ContextVar("variable")


class Asks:
    """Asynchronous strategy that records the context of its call."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.asked = trio.Event()

    async def retry_after(self, request: object, reason: RetryReason, /) -> Any:
        """Record the variable."""
        await trio.lowlevel.checkpoint()
        self.seen.append(variable.get("unset"))
        self.asked.set()


async def test_strategies_see_the_context_of_the_task() -> None:
    """An asynchronous strategy runs in the context of the submitting task, even if that task runs at the moment."""
    strategy = Asks()

    def consult(event: couchbase.Event) -> Sequence[couchbase.Action]:
        if isinstance(event, couchbase.OperationSubmitted):
            action: Any = neutral.ConsultStrategy(event.token, strategy, doubles.REQUEST, RetryReason.UNKNOWN)
            return [action]
        return ()

    box = Box()
    async with doubles.open_driver(ScriptedClusterMachine(consult)) as driver:
        variable.set("mine")
        submit(driver, box, "a")
        await strategy.asked.wait()

    assert ["mine"] == strategy.seen
    assert isinstance(box.calls[0][0].asked, Get)
