"""Spans of attempts, and the count of retries, which excludes those that were abandoned before they were due."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing
from trio.testing import MockClock

import triclinium
from tests.rows import rows
from tests.trio_client.pair import Never, Pair, Waits, open_pair
from tests.trio_client.recorded_telemetry import RecordingTracer
from tests.trio_client.telemetry_tables import open_recorded
from triclinium.errors import UnambiguousTooSlowError
from triclinium.testing import Opcode, hang_up, temporary_failure
from triclinium_core.telemetry.span_names import DISPATCH, ENCODING


@rows(("strategy", "retries"), [(Waits(0.5), 0), (Waits(0.1), 1), (Waits(100.0), 0)])
async def test_an_unsent_retry_does_not_count(strategy: Waits, retries: int, autojump_clock: MockClock) -> None:
    """An operation that a block abandons before a retry counts only the retries that were sent."""
    async with open_recorded(retry_strategy=strategy) as (pair, tracer, _):
        pair.fake.node.faults.always(Opcode.SET, temporary_failure())
        with pytest.raises(UnambiguousTooSlowError) as caught, triclinium.fail_after(0.15):
            await pair.people.upsert("ada", 1)
        counted = sum(pair.cluster.statistics().retries_by_reason.values())

    (upsert,) = tracer.roots
    assert (retries, retries) == (upsert.attributes["couchbase.retries"], counted)
    assert [retries] == [each.context.retry_attempts for each in caught.value.operations]


class WaitsIfBusy:
    """Strategy that retries temporary failures only."""

    def retry_after(
        self, request: triclinium.retries.RetryRequest, reason: triclinium.retries.RetryReason, /
    ) -> triclinium.retries.RetryAction:
        """Return a retry after half a second, or refuse."""
        if reason is triclinium.retries.RetryReason.KV_TEMPORARY_FAILURE:
            return triclinium.retries.RetryAction.after(0.5)
        return triclinium.retries.RetryAction.no_retry()


async def get_ada(pair: Pair) -> None:
    """Read a document."""
    await pair.people.get("ada")


async def scan_all(pair: Pair) -> None:
    """Read the first item of a scan, with one vbucket at a time."""
    async with pair.people.scan(triclinium.scans.PrefixScan("a"), concurrency=1) as found:
        await anext(found)


@rows(("opcode", "call"), [(Opcode.GET, get_ada), (Opcode.RANGE_SCAN_CREATE, scan_all)])
async def test_a_retry_whose_dispatch_fails_counts(
    opcode: Opcode, call: Callable[[Pair], Awaitable[None]], autojump_clock: MockClock
) -> None:
    """A permitted retry whose dispatch fails counts in the span, as in the context of the error."""
    async with open_recorded(retry_strategy=WaitsIfBusy()) as (pair, tracer, _), trio.open_nursery() as nursery:
        await pair.people.upsert("ada", 1)
        pair.fake.node.faults.always(opcode, temporary_failure())

        @nursery.start_soon
        async def kill() -> None:
            await trio.sleep(0.2)
            pair.fake.node.kill()

        with pytest.raises(triclinium.errors.RequestCanceledException) as caught:
            await call(pair)

    span = tracer.roots[-1]
    assert ["triclinium.retry", "triclinium.retry_refused"] == [name for name, _ in span.events]
    assert (1, 1) == (span.attributes["couchbase.retries"], caught.value.context.retry_attempts)


async def test_a_retried_write(autojump_clock: MockClock) -> None:
    """Each attempt has a span, and the outer span has an event for each retry, with reason, delay and clause."""
    async with open_recorded(retry_strategy=triclinium.BestEffortRetryStrategy()) as (pair, tracer, _):
        pair.fake.node.faults.next(Opcode.SET, temporary_failure(), times=2)
        await pair.people.upsert("ada", 1)

    (upsert,) = tracer.roots
    assert ("upsert", ENCODING, DISPATCH, DISPATCH, DISPATCH) == upsert.shape()
    assert 2 == upsert.attributes["couchbase.retries"]
    assert ["triclinium.retry"] * 2 == [name for name, _ in upsert.events]
    first = upsert.events[0][1]
    assert "KV_TEMPORARY_FAILURE" == first["triclinium.retry.reason"]
    assert "Temporary Failure 0x86" in str(first["triclinium.retry.clause"])
    assert isinstance(first["triclinium.retry.delay"], float)
    assert triclinium.telemetry.StatusCode.OK is upsert.status


async def test_a_lost_connection_ends_the_attempt(autojump_clock: MockClock) -> None:
    """An attempt without a response ends with its connection, and has no server duration."""
    async with open_recorded(retry_strategy=triclinium.BestEffortRetryStrategy()) as (pair, tracer, _):
        await pair.people.exists("ada")
        pair.fake.node.faults.next(Opcode.GET_META, hang_up())
        await pair.people.exists("ada")

    lost, answered = tracer.roots[1].children
    assert "couchbase.server_duration" not in lost.attributes
    assert "couchbase.server_duration" in answered.attributes


async def test_a_refused_retry(autojump_clock: MockClock) -> None:
    """A refused retry adds an event with the reason to the outer span."""
    tracer = RecordingTracer()
    async with open_pair(tracer=tracer) as pair:
        pair.fake.node.faults.next(Opcode.GET, temporary_failure())
        with pytest.raises(triclinium.errors.TemporaryFailureException):
            await pair.people.get("ada", retry_strategy=Never())

    (get,) = tracer.roots
    ((event, attributes),) = get.events
    assert "triclinium.retry_refused" == event
    assert "TemporaryFailureException" == attributes["triclinium.retry.error"]
    assert (0, triclinium.telemetry.StatusCode.ERROR) == (get.attributes["couchbase.retries"], get.status)
