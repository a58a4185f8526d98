"""Reports of ``watching_retries`` on retries of a cluster's operations, which are like those of any call."""

from __future__ import annotations

from contextvars import ContextVar

import pytest
import trio
from trio.testing import MockClock

from tests.rows import rows
from tests.trio_client.pair import Never, Thinks, open_pair
from triclinium import ErrorMapRetryStrategy, errors, fail_after, retrying, watching_retries
from triclinium.retries import (
    RetryEnding,
    RetryGivenUp,
    RetryReport,
    RetryScheduled,
    RetryStrategy,
    RetrySucceeded,
)
from triclinium.testing import open_fake_cluster, status
from triclinium_core.kv.operation.results import MutationResult
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import FakeNodeOptions
from triclinium_core.testing.fakes.error_map import ErrorMapDocument, ErrorMapRow
from triclinium_core.testing.fakes.faults import drop_response, hang_up, temporary_failure

TEMPORARY = "KV_TEMPORARY_FAILURE"
"""Retry reason of the failures that the tests inject."""


def story(reported: list[RetryReport]) -> list[tuple[object, ...]]:
    """Return the reports without delays and errors."""
    return [
        (RetryScheduled, report.name, report.attempt, report.reason)
        if isinstance(report, RetryScheduled)
        else (RetryGivenUp, report.name, report.attempt, report.ending, report.reason)
        if isinstance(report, RetryGivenUp)
        else (RetrySucceeded, report.name, report.attempt)
        for report in reported
    ]


async def test_an_operation_that_recovers(autojump_clock: MockClock) -> None:
    """Each retry is reported with reason and delay, then the success; an operation without retries reports nothing."""
    reported: list[RetryReport] = []
    async with open_pair() as (fake, _, people):
        fake.node.faults.next(Opcode.SET, temporary_failure(), times=2)
        with watching_retries(reported.append):
            await people.upsert("ada", 1)
            await people.get("ada")

    assert [
        (RetryScheduled, "upsert", 1, TEMPORARY),
        (RetryScheduled, "upsert", 2, TEMPORARY),
        (RetrySucceeded, "upsert", 3),
    ] == story(reported)
    first = reported[0]
    assert isinstance(first, RetryScheduled)
    assert first.delay > 0
    assert TEMPORARY in str(first)


async def test_an_operation_that_runs_out_of_time(autojump_clock: MockClock) -> None:
    """If the next attempt would miss the deadline, the last report of the operation names the deadline as its end."""
    reported: list[RetryReport] = []
    async with open_pair() as (fake, _, people):
        fake.node.faults.always(Opcode.GET, temporary_failure())
        with watching_retries(reported.append), pytest.raises(errors.UnambiguousTimeoutException):
            await people.get("ada")

    *retries, end = reported
    sent = sum(command.opcode == Opcode.GET for command in fake.node.command_log)

    assert {RetryScheduled} == {type(report) for report in retries}
    assert isinstance(end, RetryGivenUp)
    assert (RetryEnding.DEADLINE, sent) == (end.ending, end.attempt)


@rows(
    ("strategy", "kind", "ending"),
    [
        (Never(), errors.TemporaryFailureException, RetryEnding.REFUSED),
        (Thinks(100), errors.UnambiguousTimeoutException, RetryEnding.DEADLINE),
    ],
)
async def test_the_end_of_a_first_attempt(
    autojump_clock: MockClock, strategy: RetryStrategy, kind: type[Exception], ending: RetryEnding
) -> None:
    """A refusal, and a deadline while a strategy decides, are reported once, with reason and the caller's error."""
    reported: list[RetryReport] = []
    async with open_pair() as (fake, _, people):
        fake.node.faults.next(Opcode.SET, temporary_failure())
        with watching_retries(reported.append), retrying(strategy), pytest.raises(kind) as caught:
            await people.upsert("ada", 1)

    assert [(RetryGivenUp, "upsert", 1, ending, TEMPORARY)] == story(reported)
    assert caught.value is getattr(reported[0], "error", None)


async def test_a_schedule_that_ends(autojump_clock: MockClock) -> None:
    """A retry past the maximum duration of an error map entry is reported as refused, with the last sent attempt."""
    reported: list[RetryReport] = []
    schedule = {"strategy": "constant", "interval": 40, "after": 40, "max-duration": 60}
    row = ErrorMapRow(0xFFF0, "BUSY", "auto-retry", "busy", schedule)
    options = FakeNodeOptions(buckets=("travel",), error_map=ErrorMapDocument(12, (row,)))
    async with open_fake_cluster(options=options) as fake, fake.open_client() as cluster:
        people = cluster.bucket("travel").default_collection()
        await people.upsert("ada", 1)
        fake.node.faults.always(Opcode.SET, status(0xFFF0))
        with (
            watching_retries(reported.append),
            retrying(ErrorMapRetryStrategy()),
            pytest.raises(errors.CouchbaseException),
        ):
            await people.upsert("ada", 2)

    by_map = "KV_ERROR_MAP_RETRY_INDICATED"
    assert [(RetryScheduled, "upsert", 1, by_map), (RetryGivenUp, "upsert", 2, RetryEnding.REFUSED, by_map)] == story(
        reported
    )


async def test_an_error_after_a_retry(autojump_clock: MockClock) -> None:
    """An error after a retry is reported as not safe to retry; without a retry before it, nothing is reported."""
    reported: list[RetryReport] = []
    async with open_pair() as (fake, _, people):
        fake.node.faults.next(Opcode.GET, temporary_failure())
        with watching_retries(reported.append):
            for _ in range(2):
                with pytest.raises(errors.DocumentNotFoundException):
                    await people.get("nobody")

    assert [
        (RetryScheduled, "get", 1, TEMPORARY),
        (RetryGivenUp, "get", 2, RetryEnding.NOT_RETRY_SAFE, TEMPORARY),
    ] == story(reported)


async def test_requests_to_services(autojump_clock: MockClock) -> None:
    """Retries of requests to services are reported like those of operations."""
    reported: list[RetryReport] = []
    async with open_pair() as (fake, cluster, _):
        fake.node.faults.next(Service.MANAGEMENT, hang_up())
        with watching_retries(reported.append):
            await cluster.buckets().get_all_buckets()

    assert [(RetryScheduled, "get_all_buckets", 1), (RetrySucceeded, "get_all_buckets", 2)] == [
        step[:3] for step in story(reported)
    ]


async def test_a_cancelled_operation_reports_no_end(autojump_clock: MockClock) -> None:
    """A cancelled operation reports its retry to the hook but no end, and the client keeps no state for it."""
    reported: list[RetryReport] = []
    async with open_pair() as (fake, _, people):
        fake.node.faults.next(Opcode.SET, temporary_failure())
        fake.node.faults.next(Opcode.SET, drop_response())
        with watching_retries(reported.append), pytest.raises(errors.AmbiguousTooSlowError), fail_after(1):
            await people.upsert("ada", 1)

        assert [(RetryScheduled, "upsert", 1, TEMPORARY)] == story(reported)
        assert {} == people._driver._watched.open


async def test_each_task_has_its_own_hooks(autojump_clock: MockClock) -> None:
    """Each task's operations are reported to its own hooks, in its own context, even if they are sent in one write."""
    name: ContextVar[str] = ContextVar("name")
    received: list[tuple[str, str]] = []

    async def write(key: str) -> None:
        name.set(key)
        with watching_retries(lambda report: received.append((key, name.get()))):
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
    reported: list[RetryReport] = []

    def broken(report: RetryReport) -> None:
        raise ValueError

    async with open_pair() as (fake, _, people):
        fake.node.faults.next(Opcode.SET, temporary_failure())
        with watching_retries(broken, reported.append):
            written = await people.upsert("ada", 1)

    assert written.cas
    assert [
        (RetryScheduled, "upsert", 1, TEMPORARY),
        (RetrySucceeded, "upsert", 2),
    ] == story(reported)


async def test_a_hook_that_cancels_its_own_call(autojump_clock: MockClock) -> None:
    """If a hook cancels the scope of a call that has succeeded, the call still returns its result."""
    scope = trio.CancelScope()

    def cancel(report: RetryReport) -> None:
        if isinstance(report, RetrySucceeded):
            scope.cancel()

    result: MutationResult | None = None
    async with open_pair() as (fake, _, people):
        fake.node.faults.next(Opcode.SET, temporary_failure())
        with watching_retries(cancel), scope:
            result = await people.upsert("ada", 1)

    assert result is not None
    assert result.cas
