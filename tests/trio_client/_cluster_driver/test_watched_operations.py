"""``watching_retries`` hears of operations of a cluster as it does of any call."""

from __future__ import annotations

from contextvars import ContextVar

import pytest
import trio
from trio.testing import MockClock

import triclinium
from tests.trio_client.pair import Never, open_pair
from triclinium import errors
from triclinium.testing import open_fake_cluster, status
from triclinium_core.kv.operation.results import MutationResult
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import FakeNodeOptions
from triclinium_core.testing.fakes.error_map import ErrorMapDocument, ErrorMapRow
from triclinium_core.testing.fakes.faults import drop_response, hang_up, temporary_failure

TEMPORARY = "KV_TEMPORARY_FAILURE"
"""What the tests have operations retried for."""


def story(told: list[triclinium.RetryReport]) -> list[tuple[object, ...]]:
    """Return what was told, without delays and errors."""
    return [
        (triclinium.RetryScheduled, report.name, report.attempt, report.reason)
        if isinstance(report, triclinium.RetryScheduled)
        else (triclinium.RetryGivenUp, report.name, report.attempt, report.ending, report.reason)
        if isinstance(report, triclinium.RetryGivenUp)
        else (triclinium.RetrySucceeded, report.name, report.attempt)
        for report in told
    ]


async def test_an_operation_that_recovers(autojump_clock: MockClock) -> None:
    """Each retry is told with its reason and delay, and the success after it; an operation that needs none is silent."""
    told: list[triclinium.RetryReport] = []
    async with open_pair() as (fake, _, people):
        fake.node.faults.next(Opcode.SET, temporary_failure(), times=2)
        with triclinium.watching_retries(told.append):
            await people.upsert("ada", 1)
            await people.get("ada")

    assert [
        (triclinium.RetryScheduled, "upsert", 1, TEMPORARY),
        (triclinium.RetryScheduled, "upsert", 2, TEMPORARY),
        (triclinium.RetrySucceeded, "upsert", 3),
    ] == story(told)
    first = told[0]
    assert isinstance(first, triclinium.RetryScheduled)
    assert first.delay > 0
    assert TEMPORARY in str(first)


async def test_a_strategy_that_refuses(autojump_clock: MockClock) -> None:
    """The refusal is told once, with the very error that the caller gets."""
    told: list[triclinium.RetryReport] = []
    async with open_pair() as (fake, _, people):
        fake.node.faults.next(Opcode.SET, temporary_failure())
        with (
            triclinium.watching_retries(told.append),
            triclinium.retrying(Never()),
            pytest.raises(errors.TemporaryFailureException) as caught,
        ):
            await people.upsert("ada", 1)

    assert [(triclinium.RetryGivenUp, "upsert", 1, triclinium.RetryEnding.REFUSED, TEMPORARY)] == story(told)
    assert caught.value is getattr(told[0], "error", None)


async def test_an_operation_that_runs_out_of_time(autojump_clock: MockClock) -> None:
    """Its end is told like that of a call: the next attempt would have come too late."""
    told: list[triclinium.RetryReport] = []
    async with open_pair() as (fake, _, people):
        fake.node.faults.always(Opcode.GET, temporary_failure())
        with triclinium.watching_retries(told.append), pytest.raises(errors.UnambiguousTimeoutException):
            await people.get("ada")

    *retries, end = told
    sent = sum(command.opcode == Opcode.GET for command in fake.node.command_log)

    assert {triclinium.RetryScheduled} == {type(report) for report in retries}
    assert isinstance(end, triclinium.RetryGivenUp)
    assert (triclinium.RetryEnding.DEADLINE, sent) == (end.ending, end.attempt)


class Slow:
    """A strategy that is awaited for longer than an operation may take."""

    async def retry_after(
        self, request: triclinium.RetryRequest, reason: triclinium.RetryReason, /
    ) -> triclinium.RetryAction:
        """Sleep, and permit a retry."""
        await trio.sleep(100)
        return triclinium.RetryAction.after(0)


async def test_a_deadline_while_the_strategy_is_awaited(autojump_clock: MockClock) -> None:
    """The hook gets the deadline as the ending, and the reason of the failure about which the strategy was asked."""
    told: list[triclinium.RetryReport] = []
    async with open_pair() as (fake, _, people):
        fake.node.faults.next(Opcode.SET, temporary_failure())
        with (
            triclinium.watching_retries(told.append),
            triclinium.retrying(Slow()),
            pytest.raises(errors.UnambiguousTimeoutException),
        ):
            await people.upsert("ada", 1)

    assert [(triclinium.RetryGivenUp, "upsert", 1, triclinium.RetryEnding.DEADLINE, TEMPORARY)] == story(told)


async def test_a_schedule_that_ends(autojump_clock: MockClock) -> None:
    """A retry that the schedule of an error map leaves no time for counts as refused, and the last attempt is the sent one."""
    told: list[triclinium.RetryReport] = []
    schedule = {"strategy": "constant", "interval": 40, "after": 40, "max-duration": 60}
    row = ErrorMapRow(0xFFF0, "BUSY", "auto-retry", "busy", schedule)
    options = FakeNodeOptions(buckets=("travel",), error_map=ErrorMapDocument(12, (row,)))
    async with open_fake_cluster(options=options) as fake, fake.open_client() as cluster:
        people = cluster.bucket("travel").default_collection()
        await people.upsert("ada", 1)
        fake.node.faults.always(Opcode.SET, status(0xFFF0))
        with (
            triclinium.watching_retries(told.append),
            triclinium.retrying(triclinium.ErrorMapRetryStrategy()),
            pytest.raises(errors.CouchbaseException),
        ):
            await people.upsert("ada", 2)

    by_map = "KV_ERROR_MAP_RETRY_INDICATED"
    assert [
        (triclinium.RetryScheduled, "upsert", 1, by_map),
        (triclinium.RetryGivenUp, "upsert", 2, triclinium.RetryEnding.REFUSED, by_map),
    ] == story(told)


async def test_an_error_after_a_retry(autojump_clock: MockClock) -> None:
    """It is told as one that nobody retries; without a retry before it nothing is told."""
    told: list[triclinium.RetryReport] = []
    async with open_pair() as (fake, _, people):
        fake.node.faults.next(Opcode.GET, temporary_failure())
        with triclinium.watching_retries(told.append):
            for _ in range(2):
                with pytest.raises(errors.DocumentNotFoundException):
                    await people.get("nobody")

    assert [
        (triclinium.RetryScheduled, "get", 1, TEMPORARY),
        (triclinium.RetryGivenUp, "get", 2, triclinium.RetryEnding.NOT_RETRY_SAFE, TEMPORARY),
    ] == story(told)


async def test_requests_to_services(autojump_clock: MockClock) -> None:
    """They are told of as operations are."""
    told: list[triclinium.RetryReport] = []
    async with open_pair() as (fake, cluster, _):
        fake.node.faults.next(Service.MANAGEMENT, hang_up())
        with triclinium.watching_retries(told.append):
            await cluster.buckets().get_all_buckets()

    assert [(triclinium.RetryScheduled, "get_all_buckets", 1), (triclinium.RetrySucceeded, "get_all_buckets", 2)] == [
        step[:3] for step in story(told)
    ]


async def test_a_cancelled_operation_ends_in_silence(autojump_clock: MockClock) -> None:
    """As a cancelled call does; and nothing is remembered of it."""
    told: list[triclinium.RetryReport] = []
    async with open_pair() as (fake, _, people):
        fake.node.faults.next(Opcode.SET, temporary_failure())
        fake.node.faults.next(Opcode.SET, drop_response())
        with (
            triclinium.watching_retries(told.append),
            pytest.raises(errors.AmbiguousTooSlowError),
            triclinium.fail_after(1),
        ):
            await people.upsert("ada", 1)

        assert [(triclinium.RetryScheduled, "upsert", 1, TEMPORARY)] == story(told)
        assert {} == people._driver._watched.open


async def test_each_task_has_its_own_hooks(autojump_clock: MockClock) -> None:
    """Operations that leave in one write are told to the blocks around their calls, in the contexts of their tasks."""
    name: ContextVar[str] = ContextVar("name")
    heard: list[tuple[str, str]] = []

    async def write(key: str) -> None:
        name.set(key)
        with triclinium.watching_retries(lambda report: heard.append((key, name.get()))):
            await people.upsert(key, 1)

    async with open_pair() as (fake, _, people):
        fake.node.faults.next(Opcode.SET, temporary_failure(), times=3)
        async with trio.open_nursery() as nursery:
            for key in ("ada", "bob", "eve"):
                nursery.start_soon(write, key)
        await people.upsert("nobody listens", 1)

    assert {("ada", "ada"), ("bob", "bob"), ("eve", "eve")} == set(heard)
    assert 6 == len(heard)


async def test_a_hook_that_raises_changes_nothing(autojump_clock: MockClock) -> None:
    """It is logged and passed over, and the hooks after it are told."""
    told: list[triclinium.RetryReport] = []

    def broken(report: triclinium.RetryReport) -> None:
        raise ValueError

    async with open_pair() as (fake, _, people):
        fake.node.faults.next(Opcode.SET, temporary_failure())
        with triclinium.watching_retries(broken, told.append):
            await people.upsert("ada", 1)

    assert 2 == len(told)


async def test_a_hook_that_cancels_its_own_call(autojump_clock: MockClock) -> None:
    """A hook that cancels the scope of a call that has succeeded leaves the call its result."""
    scope = trio.CancelScope()

    def cancel(report: triclinium.RetryReport) -> None:
        if isinstance(report, triclinium.RetrySucceeded):
            scope.cancel()

    result: MutationResult | None = None
    async with open_pair() as (fake, _, people):
        fake.node.faults.next(Opcode.SET, temporary_failure())
        with triclinium.watching_retries(cancel), scope:
            result = await people.upsert("ada", 1)

    assert result is not None
    assert result.cas
