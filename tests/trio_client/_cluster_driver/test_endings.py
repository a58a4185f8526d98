"""End of the driver, either because it is closed or because a defect breaks it."""

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


async def test_no_event_after_the_end() -> None:
    """After the cluster is closed, the machine receives no events."""
    machine = ScriptedClusterMachine()
    async with doubles.open_driver(machine) as driver:
        pass
    await doubles.occur(driver, TimePassed())

    assert [TimePassed()] == machine.events


async def test_telemetry_is_logged_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    """A client that closes in the middle of a report's interval logs the telemetry gathered so far, once."""
    machine = ScriptedClusterMachine()
    machine.reports = [couchbase.ReportTelemetry(couchbase.TelemetryKind.ORPHANS, "{}")]
    async with doubles.open_driver(machine):
        assert [] == caplog.messages

    assert ["{}"] == caplog.messages


async def test_queued_operations_at_the_end_were_not_sent() -> None:
    """Closing the cluster fails a waiting operation as unanswered, and one queued in the same pass as not sent."""
    reported: list[str] = []

    async def ask(make: Callable[[], Operation]) -> None:
        with pytest.raises(trio.ClosedResourceError) as ended:
            await driver.perform(Done, make, None, None)
        reported.append("was not sent" if "was not sent" in str(ended.value) else "got no answer")

    def close_and_get() -> Operation:
        driver.close()
        return doubles.get()

    async with trio.open_nursery() as nursery, doubles.open_driver(ScriptedClusterMachine()) as driver:
        nursery.start_soon(ask, doubles.get)
        await trio.testing.wait_all_tasks_blocked()
        for make in [doubles.get] * 8 + [close_and_get]:
            nursery.start_soon(ask, make)
        await trio.testing.wait_all_tasks_blocked()

    assert ["got no answer"] + ["was not sent"] * 9 == sorted(reported)


class Defect(Exception):
    """Exception that stands for a defect of a machine."""


DEFECT = Defect("a defect")


def break_at(kind: type[couchbase.Event], *, then: Sequence[couchbase.Action] = ()) -> ScriptedClusterMachine:
    """Return a machine that first returns the actions ``then`` and raises at the first later event of type ``kind``."""

    def fail(event: couchbase.Event) -> Sequence[couchbase.Action]:
        if len(machine.events) == 1:
            return then
        if isinstance(event, kind):
            raise DEFECT
        return ()

    machine = ScriptedClusterMachine(fail)
    return machine


async def cause_of_failure(driver: ClusterDriver) -> BaseException | None:
    """Return the cause of the InternalError that an operation raises."""
    with pytest.raises(errors.InternalError) as caught:
        await doubles.perform(driver)
    return caught.value.__cause__


def defects(error: BaseException) -> list[BaseException]:
    """Return the original exceptions of an InternalError that left a block."""
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


class Asking:
    """Body of a block, and of tasks, that performs an operation in a shield and keeps the causes of its failures."""

    def __init__(self) -> None:
        self.causes: list[BaseException | None] = []

    async def ask(self, driver: ClusterDriver) -> None:
        """Perform an operation, which must fail."""
        with trio.CancelScope(shield=True):
            self.causes.append(await cause_of_failure(driver))


async def test_a_defect_at_submission_fails_everything() -> None:
    """A machine that raises at a submission fails the operation, later operations and the block with InternalError."""
    asking = Asking()

    async def body(driver: ClusterDriver) -> None:
        await asking.ask(driver)
        await asking.ask(driver)
        await trio.sleep_forever()

    machine = break_at(couchbase.OperationSubmitted)
    left = await leave(machine, body)

    assert [DEFECT, DEFECT] == asking.causes
    assert [DEFECT] == defects(left)
    assert 1 == len(machine.submitted)


async def test_a_broken_machine_gets_no_events() -> None:
    """After a defect, the machine receives no further events."""
    machine = break_at(TimePassed)

    async def body(driver: ClusterDriver) -> None:
        await doubles.occur(driver, TimePassed())
        driver.feed(BytesReceived(doubles.STREAM, b""))

    await leave(machine, body)

    assert [TimePassed(), TimePassed()] == machine.events


async def test_errors_outside_of_submissions_are_defects() -> None:
    """A CouchbaseException at an event other than a submission is a defect, which even a block about to end raises."""
    error = errors.CouchbaseException("whose fault is it?")

    def refuse(event: couchbase.Event) -> Sequence[couchbase.Action]:
        if isinstance(event, BytesReceived):
            raise error
        return ()

    async def body(driver: ClusterDriver) -> None:
        await doubles.occur(driver, BytesReceived(doubles.STREAM, b""))

    left = await leave(ScriptedClusterMachine(refuse), body)

    assert [error] == defects(left)


async def test_a_background_defect_wakes_all_waiters() -> None:
    """A machine that raises in a background task fails all waiting operations."""
    asking = Asking()
    ours, theirs = memory_stream_pair()

    async def body(driver: ClusterDriver) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(asking.ask, driver)
            nursery.start_soon(asking.ask, driver)
            await trio.testing.wait_all_tasks_blocked()
            await theirs.send_all(b"poison")

    left = await leave(break_at(BytesReceived, then=[doubles.OPEN_STREAM]), body, doubles.connector_to(ours))

    assert [DEFECT, DEFECT] == asking.causes
    assert [DEFECT] == defects(left)


async def cancel_an_operation(driver: ClusterDriver) -> None:
    """Cancel an operation, then wait for the end of the block."""
    with trio.move_on_after(1):
        await doubles.perform(driver)
    await trio.sleep_forever()


async def test_a_defect_at_abandonment_leaves_the_block(autojump_clock: MockClock) -> None:
    """A machine that raises during a cancellation does not break trio's abort function; the block raises the defect."""
    left = await leave(break_at(couchbase.OperationAbandoned), cancel_an_operation)

    assert [DEFECT] == defects(left)


@pytest.mark.parametrize("question", ["is_ambiguous", "error_context"])
async def test_a_failing_abort_query_does_not_break_trio(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    """If the machine raises while trio's abort function queries it, the operation counts as ambiguous."""

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


async def test_an_unknown_action_is_a_defect() -> None:
    """An action that the driver does not know fails the operation and the block."""
    asking = Asking()
    action = cast(couchbase.Action, "nonsense")
    left = await leave(ScriptedClusterMachine(on(couchbase.OperationSubmitted, action)), asking.ask)

    assert isinstance(asking.causes[0], KeyError)
    assert asking.causes == defects(left)


async def test_a_crashed_background_task_wakes_all_waiters() -> None:
    """If a background task crashes, here that of a connector, operations raise even in a shielded scope."""
    asking = Asking()
    machine = ScriptedClusterMachine(on(couchbase.OperationSubmitted, doubles.OPEN_STREAM))
    left = await leave(machine, asking.ask, doubles.connector_that_raises(DEFECT))

    assert isinstance(asking.causes[0], BaseExceptionGroup)
    assert [DEFECT] == defects(left)


async def read_rows(driver: ClusterDriver) -> None:
    """Send a request to a service, and wait for more rows than the machine delivers."""
    await driver.more_rows(await driver.open_rows(ServiceRequest(), None, None))


async def test_events_are_protected_from_keyboard_interrupt() -> None:
    """A task that passes an event to the machine, even in a user's cancel call, is protected from KeyboardInterrupt."""
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

    # A scripted machine splits OperationsSubmitted into several OperationSubmitted, so it never handles the former.
    assert dict.fromkeys(set(get_args(couchbase.Event)) - {couchbase.OperationsSubmitted}, True) == protected
    assert not unprotected


class Attached:
    """Strategy that references its cluster and so forms a reference cycle."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Refuse the retry."""
        return RetryAction.no_retry()


async def test_a_burst_leaves_no_references(autojump_clock: MockClock) -> None:
    """Operations submitted together are released after they complete, even if no further operation follows."""
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


async def test_a_client_closed_during_a_request_is_collected(autojump_clock: MockClock) -> None:
    """After a garbage collection, requests that were in flight do not keep a closed client alive."""
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
