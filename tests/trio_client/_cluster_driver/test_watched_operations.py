"""``watching_retries`` reports retries of a cluster's operations like those of any call."""

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
"""Retry reason of the failures that the tests inject."""


def story(reported: list[triclinium.retries.RetryReport]) -> list[tuple[object, ...]]:
    """Return the reports without delays and errors."""
    return [
        (triclinium.retries.RetryScheduled, report.name, report.attempt, report.reason)
        if isinstance(report, triclinium.retries.RetryScheduled)
        else (triclinium.retries.RetryGivenUp, report.name, report.attempt, report.ending, report.reason)
        if isinstance(report, triclinium.retries.RetryGivenUp)
        else (triclinium.retries.RetrySucceeded, report.name, report.attempt)
        for report in reported
    ]


async def test_an_operation_that_recovers(autojump_clock: MockClock) -> None:
    """Each retry is reported with reason and delay, then the success; an operation without retries reports nothing."""
    reported: list[triclinium.retries.RetryReport] = []
    async with open_pair() as (fake, _, people):
        fake.node.faults.next(Opcode.SET, temporary_failure(), times=2)
        with triclinium.watching_retries(reported.append):
            await people.upsert("ada", 1)
            await people.get("ada")

    assert [
        (triclinium.retries.RetryScheduled, "upsert", 1, TEMPORARY),
        (triclinium.retries.RetryScheduled, "upsert", 2, TEMPORARY),
        (triclinium.retries.RetrySucceeded, "upsert", 3),
    ] == story(reported)
    first = reported[0]
    assert isinstance(first, triclinium.retries.RetryScheduled)
    assert first.delay > 0
    assert TEMPORARY in str(first)


async def test_a_strategy_that_refuses(autojump_clock: MockClock) -> None:
    """A refusal is reported once, with the error object that the caller gets."""
    reported: list[triclinium.retries.RetryReport] = []
    async with open_pair() as (fake, _, people):
        fake.node.faults.next(Opcode.SET, temporary_failure())
        with (
            triclinium.watching_retries(reported.append),
            triclinium.retrying(Never()),
            pytest.raises(errors.TemporaryFailureException) as caught,
        ):
            await people.upsert("ada", 1)

    assert [(triclinium.retries.RetryGivenUp, "upsert", 1, triclinium.retries.RetryEnding.REFUSED, TEMPORARY)] == story(
        reported
    )
    assert caught.value is getattr(reported[0], "error", None)


async def test_an_operation_that_runs_out_of_time(autojump_clock: MockClock) -> None:
    """If the next attempt would miss the deadline, the last report of the operation names the deadline as its end."""
    reported: list[triclinium.retries.RetryReport] = []
    async with open_pair() as (fake, _, people):
        fake.node.faults.always(Opcode.GET, temporary_failure())
        with triclinium.watching_retries(reported.append), pytest.raises(errors.UnambiguousTimeoutException):
            await people.get("ada")

    *retries, end = reported
    sent = sum(command.opcode == Opcode.GET for command in fake.node.command_log)

    assert {triclinium.retries.RetryScheduled} == {type(report) for report in retries}
    assert isinstance(end, triclinium.retries.RetryGivenUp)
    assert (triclinium.retries.RetryEnding.DEADLINE, sent) == (end.ending, end.attempt)


class Slow:
    """Strategy that takes longer than the timeout of an operation."""

    async def retry_after(
        self, request: triclinium.retries.RetryRequest, reason: triclinium.retries.RetryReason, /
    ) -> triclinium.retries.RetryAction:
        """Sleep, then permit a retry."""
        await trio.sleep(100)
        return triclinium.retries.RetryAction.after(0)


async def test_a_deadline_during_a_slow_strategy(autojump_clock: MockClock) -> None:
    """If the deadline passes while a strategy decides, the hook gets the deadline as the end, with the retry reason."""
    reported: list[triclinium.retries.RetryReport] = []
    async with open_pair() as (fake, _, people):
        fake.node.faults.next(Opcode.SET, temporary_failure())
        with (
            triclinium.watching_retries(reported.append),
            triclinium.retrying(Slow()),
            pytest.raises(errors.UnambiguousTimeoutException),
        ):
            await people.upsert("ada", 1)

    assert [
        (triclinium.retries.RetryGivenUp, "upsert", 1, triclinium.retries.RetryEnding.DEADLINE, TEMPORARY)
    ] == story(reported)


async def test_a_schedule_that_ends(autojump_clock: MockClock) -> None:
    """A retry past the maximum duration of an error map entry is reported as refused, with the last sent attempt."""
    reported: list[triclinium.retries.RetryReport] = []
    schedule = {"strategy": "constant", "interval": 40, "after": 40, "max-duration": 60}
    row = ErrorMapRow(0xFFF0, "BUSY", "auto-retry", "busy", schedule)
    options = FakeNodeOptions(buckets=("travel",), error_map=ErrorMapDocument(12, (row,)))
    async with open_fake_cluster(options=options) as fake, fake.open_client() as cluster:
        people = cluster.bucket("travel").default_collection()
        await people.upsert("ada", 1)
        fake.node.faults.always(Opcode.SET, status(0xFFF0))
        with (
            triclinium.watching_retries(reported.append),
            triclinium.retrying(triclinium.ErrorMapRetryStrategy()),
            pytest.raises(errors.CouchbaseException),
        ):
            await people.upsert("ada", 2)

    by_map = "KV_ERROR_MAP_RETRY_INDICATED"
    assert [
        (triclinium.retries.RetryScheduled, "upsert", 1, by_map),
        (triclinium.retries.RetryGivenUp, "upsert", 2, triclinium.retries.RetryEnding.REFUSED, by_map),
    ] == story(reported)


async def test_an_error_after_a_retry(autojump_clock: MockClock) -> None:
    """An error after a retry is reported as not safe to retry; without a retry before it, nothing is reported."""
    reported: list[triclinium.retries.RetryReport] = []
    async with open_pair() as (fake, _, people):
        fake.node.faults.next(Opcode.GET, temporary_failure())
        with triclinium.watching_retries(reported.append):
            for _ in range(2):
                with pytest.raises(errors.DocumentNotFoundException):
                    await people.get("nobody")

    assert [
        (triclinium.retries.RetryScheduled, "get", 1, TEMPORARY),
        (triclinium.retries.RetryGivenUp, "get", 2, triclinium.retries.RetryEnding.NOT_RETRY_SAFE, TEMPORARY),
    ] == story(reported)


async def test_requests_to_services(autojump_clock: MockClock) -> None:
    """Retries of requests to services are reported like those of operations."""
    reported: list[triclinium.retries.RetryReport] = []
    async with open_pair() as (fake, cluster, _):
        fake.node.faults.next(Service.MANAGEMENT, hang_up())
        with triclinium.watching_retries(reported.append):
            await cluster.buckets().get_all_buckets()

    assert [
        (triclinium.retries.RetryScheduled, "get_all_buckets", 1),
        (triclinium.retries.RetrySucceeded, "get_all_buckets", 2),
    ] == [step[:3] for step in story(reported)]


async def test_a_cancelled_operation_reports_no_end(autojump_clock: MockClock) -> None:
    """A cancelled operation reports its retry to the hook but no end, and the client keeps no state for it."""
    reported: list[triclinium.retries.RetryReport] = []
    async with open_pair() as (fake, _, people):
        fake.node.faults.next(Opcode.SET, temporary_failure())
        fake.node.faults.next(Opcode.SET, drop_response())
        with (
            triclinium.watching_retries(reported.append),
            pytest.raises(errors.AmbiguousTooSlowError),
            triclinium.fail_after(1),
        ):
            await people.upsert("ada", 1)

        assert [(triclinium.retries.RetryScheduled, "upsert", 1, TEMPORARY)] == story(reported)
        assert {} == people._driver._watched.open


async def test_each_task_has_its_own_hooks(autojump_clock: MockClock) -> None:
    """Each task's operations are reported to its own hooks, in its own context, even if they are sent in one write."""
    name: ContextVar[str] = ContextVar("name")
    received: list[tuple[str, str]] = []

    async def write(key: str) -> None:
        name.set(key)
        with triclinium.watching_retries(lambda report: received.append((key, name.get()))):
            await people.upsert(key, 1)

    async with open_pair() as (fake, _, people):
        fake.node.faults.next(Opcode.SET, temporary_failure(), times=3)
        async with trio.open_nursery() as nursery:
            for key in ("ada", "bob", "eve"):
                nursery.start_soon(write, key)
        await people.upsert("nobody listens", 1)

    assert {("ada", "ada"), ("bob", "bob"), ("eve", "eve")} == set(received)
    assert 6 == len(received)


async def test_a_hook_that_raises_changes_nothing(autojump_clock: MockClock) -> None:
    """After an exception of a hook, the hooks after it still run, and the operation succeeds."""
    reported: list[triclinium.retries.RetryReport] = []

    def broken(report: triclinium.retries.RetryReport) -> None:
        raise ValueError

    async with open_pair() as (fake, _, people):
        fake.node.faults.next(Opcode.SET, temporary_failure())
        with triclinium.watching_retries(broken, reported.append):
            await people.upsert("ada", 1)

    assert 2 == len(reported)


async def test_a_hook_that_cancels_its_own_call(autojump_clock: MockClock) -> None:
    """If a hook cancels the scope of a call that has succeeded, the call still returns its result."""
    scope = trio.CancelScope()

    def cancel(report: triclinium.retries.RetryReport) -> None:
        if isinstance(report, triclinium.retries.RetrySucceeded):
            scope.cancel()

    result: MutationResult | None = None
    async with open_pair() as (fake, _, people):
        fake.node.faults.next(Opcode.SET, temporary_failure())
        with triclinium.watching_retries(cancel), scope:
            result = await people.upsert("ada", 1)

    assert result is not None
    assert result.cas
