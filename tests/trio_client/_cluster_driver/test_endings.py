"""How the driver ends: closed, or broken down by a defect that must not hide."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Awaitable, Callable, Sequence
from typing import cast, get_args

import pytest
import trio
import trio.testing
from trio.testing import MockClock, memory_stream_pair

from tests.trio_client import doubles
from tests.trio_client.pair import open_pair
from triclinium import Cluster, Collection, errors, fail_after
from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium.abc import Connector
from triclinium_core.contract import couchbase
from triclinium_core.contract.neutral import BytesReceived, ConsultStrategy, TimePassed
from triclinium_core.kv.operation.document_operations import Operation
from triclinium_core.kv.operation.inquiries import WaitUntilReady
from triclinium_core.kv.operation.reports import Ready
from triclinium_core.kv.operation.results import Done
from triclinium_core.options import PasswordAuthenticator
from triclinium_core.retry.couchbase import RetryAction, RetryReason, RetryRequest
from triclinium_core.services.service_request import ServiceRequest
from triclinium_core.telemetry.span_names import WrappingCall
from triclinium_core.testing.driver_laws import ScriptedClusterMachine, on
from triclinium_core.testing.fakes.faults import drop_response


async def test_nothing_reaches_the_machine_after_the_end() -> None:
    """The machine of a closed cluster is left alone."""
    machine = ScriptedClusterMachine()
    async with doubles.open_driver(machine) as driver:
        pass
    await doubles.occur(driver, TimePassed())

    assert [TimePassed()] == machine.events


async def test_what_was_gathered_is_told_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    """A client that is closed amid an interval tells what there is so far, once."""
    machine = ScriptedClusterMachine()
    machine.reports = [couchbase.ReportTelemetry(couchbase.TelemetryKind.ORPHANS, "{}")]
    async with doubles.open_driver(machine):
        assert [] == caplog.messages

    assert ["{}"] == caplog.messages


async def test_what_was_put_aside_at_the_end_was_not_sent() -> None:
    """Whoever waits for an answer is told that none came; who was put aside in the same pass, that nothing was sent."""
    told: list[str] = []

    async def ask(make: Callable[[], Operation]) -> None:
        with pytest.raises(trio.ClosedResourceError) as ended:
            await driver.perform(Done, make, None, None)
        told.append("was not sent" if "was not sent" in str(ended.value) else "got no answer")

    def close_and_get() -> Operation:
        driver.close()
        return doubles.get()

    async with trio.open_nursery() as nursery, doubles.open_driver(ScriptedClusterMachine()) as driver:
        nursery.start_soon(ask, doubles.get)
        await trio.testing.wait_all_tasks_blocked()
        for make in [doubles.get] * 8 + [close_and_get]:
            nursery.start_soon(ask, make)
        await trio.testing.wait_all_tasks_blocked()

    assert ["got no answer"] + ["was not sent"] * 9 == sorted(told)


class Defect(Exception):
    """What a defect of the machine looks like."""


DEFECT = Defect("a defect")


def break_at(kind: type[couchbase.Event], *, then: Sequence[couchbase.Action] = ()) -> ScriptedClusterMachine:
    """Return a machine that starts with ``then``, and breaks down at the first later event of one kind."""

    def fail(event: couchbase.Event) -> Sequence[couchbase.Action]:
        if len(machine.events) == 1:
            return then
        if isinstance(event, kind):
            raise DEFECT
        return ()

    machine = ScriptedClusterMachine(fail)
    return machine


async def cause_of_failure(driver: ClusterDriver) -> BaseException | None:
    """Return the cause of the InternalError that an operation fails with."""
    with pytest.raises(errors.InternalError) as caught:
        await doubles.perform(driver)
    return caught.value.__cause__


def defects(error: BaseException) -> list[BaseException]:
    """Return what is to blame for an InternalError that left a block."""
    group = error.__cause__
    assert isinstance(group, BaseExceptionGroup)
    found: list[BaseException] = []
    while isinstance(group, BaseExceptionGroup):
        found = [inner for inner in group.exceptions if not isinstance(inner, BaseExceptionGroup)]
        [group] = group.exceptions
    return found


async def leave(
    machine: ScriptedClusterMachine,
    body: Callable[[ClusterDriver], Awaitable[None]],
    connector: Connector | None = None,
) -> errors.InternalError:
    """Return the InternalError that leaves the block around ``body``."""
    try:
        async with doubles.open_driver(machine, connector) as driver:
            await body(driver)
    except errors.InternalError as error:
        return error
    pytest.fail("no defect has left the block")


async def test_a_machine_that_breaks_at_a_submission_fails_it_and_the_block() -> None:
    """The caller, whoever comes later, and the block get an InternalError that names the defect."""
    causes: list[BaseException | None] = []

    async def body(driver: ClusterDriver) -> None:
        with trio.CancelScope(shield=True):
            causes.append(await cause_of_failure(driver))
            causes.append(await cause_of_failure(driver))
        await trio.sleep_forever()

    machine = break_at(couchbase.OperationSubmitted)
    left = await leave(machine, body)

    assert [DEFECT, DEFECT] == causes
    assert [DEFECT] == defects(left)
    assert 1 == len(machine.submitted)


async def test_a_broken_machine_is_left_alone() -> None:
    """Whatever happens after a defect, the machine hears nothing of it."""
    machine = break_at(TimePassed)

    async def body(driver: ClusterDriver) -> None:
        await doubles.occur(driver, TimePassed())
        driver.feed(BytesReceived(doubles.STREAM, b""))

    await leave(machine, body)

    assert [TimePassed(), TimePassed()] == machine.events


async def test_only_a_submission_can_be_the_callers_mistake() -> None:
    """The same exception at any other event is a defect."""
    error = errors.CouchbaseException("whose fault is it?")

    def refuse(event: couchbase.Event) -> Sequence[couchbase.Action]:
        if isinstance(event, BytesReceived):
            raise error
        return ()

    async def body(driver: ClusterDriver) -> None:
        await doubles.occur(driver, BytesReceived(doubles.STREAM, b""))

    left = await leave(ScriptedClusterMachine(refuse), body)

    assert [error] == defects(left)


async def test_a_machine_that_breaks_in_the_background_wakes_all_who_wait() -> None:
    """Nobody waits for an answer of a machine that is broken."""
    causes: list[BaseException | None] = []
    ours, theirs = memory_stream_pair()

    async def ask(driver: ClusterDriver) -> None:
        with trio.CancelScope(shield=True):
            causes.append(await cause_of_failure(driver))

    async def body(driver: ClusterDriver) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, driver)
            nursery.start_soon(ask, driver)
            await trio.testing.wait_all_tasks_blocked()
            await theirs.send_all(b"poison")

    left = await leave(break_at(BytesReceived, then=[doubles.OPEN_STREAM]), body, doubles.connector_to(ours))

    assert [DEFECT, DEFECT] == causes
    assert [DEFECT] == defects(left)


async def cancel_an_operation(driver: ClusterDriver) -> None:
    """Have Trio abort an operation, then wait for the end."""
    with trio.move_on_after(1):
        await doubles.perform(driver)
    await trio.sleep_forever()


async def test_a_machine_that_breaks_at_an_abandonment_does_not_break_trio(autojump_clock: MockClock) -> None:
    """Trio calls the abort function, which must not raise; the defect leaves through the block."""
    left = await leave(break_at(couchbase.OperationAbandoned), cancel_an_operation)

    assert [DEFECT] == defects(left)


@pytest.mark.parametrize("question", ["is_ambiguous", "error_context"])
async def test_a_machine_that_cannot_tell_does_not_break_trio(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    """Nor may the questions raise that the abort function asks first; who knows nothing says that it may be applied."""

    def break_down(*arguments: object) -> None:
        raise DEFECT

    async def body(driver: ClusterDriver) -> None:
        with pytest.raises(errors.AmbiguousTooSlowError), fail_after(0.1):
            await doubles.perform(driver)
        await trio.sleep_forever()

    machine = ScriptedClusterMachine()
    monkeypatch.setattr(machine, question, break_down)
    left = await leave(machine, body)

    assert [DEFECT] == defects(left)


async def test_an_action_that_nobody_knows_is_a_defect() -> None:
    """An order that cannot be carried out is not passed over in silence."""
    causes: list[BaseException | None] = []

    async def body(driver: ClusterDriver) -> None:
        with trio.CancelScope(shield=True):
            causes.append(await cause_of_failure(driver))

    left = await leave(
        ScriptedClusterMachine(on(couchbase.OperationSubmitted, cast(couchbase.Action, "nonsense"))), body
    )

    assert isinstance(causes[0], KeyError)
    assert causes == defects(left)


async def test_a_block_that_never_waits_learns_of_the_defect_when_it_is_left() -> None:
    """A block without a checkpoint after the defect is not spared."""

    async def body(driver: ClusterDriver) -> None:
        await doubles.occur(driver, TimePassed())

    left = await leave(break_at(TimePassed), body)

    assert [DEFECT] == defects(left)


async def test_a_background_task_that_crashes_wakes_all_who_wait() -> None:
    """A defect outside of the machine, here of a connector, ends operations that no scope would have reached."""
    causes: list[BaseException | None] = []

    async def body(driver: ClusterDriver) -> None:
        with trio.CancelScope(shield=True):
            causes.append(await cause_of_failure(driver))

    machine = ScriptedClusterMachine(on(couchbase.OperationSubmitted, doubles.OPEN_STREAM))
    left = await leave(machine, body, doubles.connector_that_raises(DEFECT))

    assert isinstance(causes[0], BaseExceptionGroup)
    assert [DEFECT] == defects(left)


async def read_rows(driver: ClusterDriver) -> None:
    """Ask a service, and wait for more rows than have come."""
    await driver.more_rows(await driver.open_rows(ServiceRequest(), None, None))


async def test_ctrl_c_does_not_strike_in_the_middle_of_an_event() -> None:
    """Whoever brings the machine an event is protected from KeyboardInterrupt, even a user who cancels a scope."""
    protected: dict[type[couchbase.Event], bool] = {}

    class Now:
        async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
            await trio.lowlevel.checkpoint()
            return RetryAction.no_retry()

    def note(event: couchbase.Event) -> Sequence[couchbase.Action]:
        protected[type(event)] = trio.lowlevel.currently_ki_protected()
        if isinstance(event, couchbase.RequestSubmitted):
            return [couchbase.RowsReceived(event.token, [b"1"])]
        if isinstance(event, couchbase.OperationSubmitted):
            lookup = couchbase.LookUpService("_couchbase._tcp.cluster.example")
            return [
                doubles.OPEN_STREAM,
                lookup,
                ConsultStrategy(event.token, Now(), doubles.REQUEST, RetryReason.UNKNOWN),
            ]
        return ()

    ours, theirs = memory_stream_pair()
    async with doubles.open_driver(ScriptedClusterMachine(note), doubles.connector_to(ours)) as driver:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(doubles.perform, driver)
                nursery.start_soon(read_rows, driver)
                nursery.start_soon(driver.perform, Ready, lambda: WaitUntilReady(None), None, None)
                await theirs.send_all(b"hello")
                await theirs.send_eof()
                await trio.testing.wait_all_tasks_blocked()
                unprotected = trio.lowlevel.currently_ki_protected()
                async with driver.subscriptions.open():
                    pass
                driver.set_authenticator(PasswordAuthenticator("ada", "secret"))
                driver.call_ended(WrappingCall.RANGE_SCAN, 1.0)
                scope.cancel()

    # A scripted machine takes several submissions one by one.
    assert dict.fromkeys(set(get_args(couchbase.Event)) - {couchbase.OperationsSubmitted}, True) == protected
    assert not unprotected


class Attached:
    """A strategy that knows its cluster, and so is part of a cycle."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Refuse."""
        return RetryAction.no_retry()


async def test_a_burst_leaves_nothing_behind(autojump_clock: MockClock) -> None:
    """What several tasks have asked for at once is let go when it is answered, though nobody asks for anything more."""
    strategies = weakref.WeakSet[Attached]()

    async def read(people: Collection, cluster: Cluster) -> None:
        strategies.add(strategy := Attached(cluster))
        await people.exists("ada", retry_strategy=strategy)

    async with open_pair() as (_, cluster, people):
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(read, people, cluster)
        await trio.testing.wait_all_tasks_blocked()
        gc.collect()

        assert not strategies


async def test_a_client_that_is_closed_amid_a_request_is_let_go(autojump_clock: MockClock) -> None:
    """The collector sees through what was in flight."""
    strategies = weakref.WeakSet[Attached]()

    async def read(people: Collection, cluster: Cluster) -> None:
        strategies.add(strategy := Attached(cluster))
        with pytest.raises(trio.ClosedResourceError):
            await people.get("ada", retry_strategy=strategy)

    async def use() -> None:
        async with trio.open_nursery() as nursery, open_pair() as (fake, cluster, people):
            await people.upsert("ada", 1)
            fake.node.faults.always(None, drop_response())
            nursery.start_soon(read, people, cluster)
            await trio.testing.wait_all_tasks_blocked()
            assert strategies

    await use()
    gc.collect()

    assert not strategies
