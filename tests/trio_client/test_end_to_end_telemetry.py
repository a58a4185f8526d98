"""Reports that a client logs by default, as lines of JSON; it logs no empty report."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any

import pytest
import trio
from trio.testing import MockClock

import triclinium
from tests.trio_client.pair import OPTIONS, open_pair
from triclinium import errors
from triclinium.testing import FakeAnswer, open_fake_cluster
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.faults import delay, drop_response, temporary_failure

ALWAYS = {
    "operation_name",
    "total_duration_us",
    "last_dispatch_duration_us",
    "total_dispatch_duration_us",
    "last_server_duration_us",
    "total_server_duration_us",
    "last_local_id",
    "operation_id",
    "last_local_socket",
    "last_remote_socket",
    "timeout_ms",
}
"""Fields of every key-value operation that got a response."""


@pytest.fixture(autouse=True)
def _all_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="triclinium")


def reported_by(caplog: pytest.LogCaptureFixture, logger: str) -> list[Any]:
    """Return the records of one logger, parsed as JSON."""
    return [json.loads(record.getMessage()) for record in caplog.records if record.name == f"triclinium.{logger}"]


async def test_a_slow_operation(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """A slow operation is logged after ten seconds with all its fields; a fast one is not."""
    async with open_pair() as (fake, _, people):
        await people.upsert("ada", 1)
        fake.node.faults.next(Opcode.GET, delay(0.75))
        await people.get("ada")
        await people.get("ada")
        await trio.sleep(9.9)

        assert [] == reported_by(caplog, "threshold")

        await trio.sleep(0.2)
        (report,) = reported_by(caplog, "threshold")

    (entry,) = report["kv"]["top_requests"]
    assert ALWAYS == entry.keys()
    assert (1, "get", 750_000, 2500) == (
        report["kv"]["total_count"],
        entry["operation_name"],
        entry["total_duration_us"],
        entry["timeout_ms"],
    )
    assert 1 == len(reported_by(caplog, "threshold"))


async def test_calls_cancelled_by_a_scope(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """Calls that a scope cancels are in the meter and, if they are slow, in the threshold log with the reason."""
    async with open_pair() as (fake, cluster, people):
        fake.node.faults.always(Opcode.GET, drop_response())
        fake.node.faults.always(Service.MANAGEMENT, drop_response())
        fake.nodes.script.answer("SELECT 1", FakeAnswer(rows=[1, 2], seconds_between_rows=60))
        with pytest.raises(trio.TooSlowError), triclinium.fail_after(1):
            await people.get("ada")
        with trio.move_on_after(1.5):
            await people.get("ada")
        with pytest.raises(trio.TooSlowError), triclinium.fail_after(2):
            await cluster.buckets().get_all_buckets()
        with pytest.raises(trio.TooSlowError), triclinium.fail_after(2):
            async with cluster.query("SELECT 1") as result:
                await result.rows()
        with trio.move_on_after(2):
            async with cluster.query("SELECT 1") as result:
                await anext(result)
                await trio.sleep_forever()
        with trio.move_on_after(0.25):
            await people.get("ada")

    (slow,), (durations,) = reported_by(caplog, "threshold"), reported_by(caplog, "meter")
    assert {
        "kv": [("get", 1_500_000, "cancelled"), ("get", 1_000_000, "timeout")],
        "management": [("manager_buckets_get_all_buckets", 2_000_000, "timeout")],
        "query": [("query", 2_000_000, "timeout"), ("query", 2_000_000, "cancelled")],
    } == {
        service: [
            (entry["operation_name"], entry["total_duration_us"], entry["abandoned"])
            for entry in of_service["top_requests"]
        ]
        for service, of_service in slow.items()
    }
    assert {"get": 3, "manager_buckets_get_all_buckets": 1, "query": 2} == {
        name: of_name["total_count"]
        for of_service in durations["operations"].values()
        for name, of_name in of_service.items()
    }


async def test_retries_count_as_duration(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """An operation that is slow because of its retries is logged as slow, even if each attempt was fast."""
    async with open_pair(tracer=triclinium.telemetry.ThresholdLoggingTracer(kv_threshold=0.05)) as (fake, _, people):
        fake.node.faults.next(Opcode.SET, temporary_failure(), times=8)
        await people.upsert("ada", 1)

    (report,) = reported_by(caplog, "threshold")
    (entry,) = report["kv"]["top_requests"]
    assert entry["total_duration_us"] > 50_000 > entry["total_dispatch_duration_us"]
    assert entry["last_server_duration_us"] < entry["total_server_duration_us"]


async def test_encoding_counts_as_duration(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """Slow encoding of a value makes its operation slow, with or without a response in time; fast encoding does not."""

    class Slow(triclinium.JsonTranscoder):
        def encode(self, value: object) -> triclinium.EncodedValue:
            autojump_clock.jump(0.6)
            return super().encode(value)

    async with open_pair() as (fake, _, people):
        await people.upsert("ada", 1)
        await people.upsert("ada", 1, transcoder=Slow())
        await people.mutate_in("ada", [triclinium.subdocument.MutateInSpec.replace("", 2)], transcoder=Slow())
        fake.node.faults.next(Opcode.SET, delay(3.0))
        with pytest.raises(errors.AmbiguousTimeoutException):
            await people.upsert("ada", 1, transcoder=Slow())
        await trio.sleep(1)

    ((slow,), (orphan,)) = reported_by(caplog, "threshold"), reported_by(caplog, "orphan")
    late, first, parts = slow["kv"]["top_requests"]
    assert ["upsert", "upsert", "mutate_in"] == [entry["operation_name"] for entry in (late, first, parts)]
    assert {600_000} == {entry["encode_duration_us"] for entry in (late, first, parts, *orphan["kv"]["top_requests"])}
    assert (3_100_000, 600_000) == (late["total_duration_us"], first["total_duration_us"])
    (durations,) = reported_by(caplog, "meter")
    assert 3_000_000 < durations["operations"]["kv"]["upsert"]["percentiles_us"]["100.0"]


async def test_encoding_of_query_parameters(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """The log entry of a query with parameters has the duration of their encoding."""
    async with open_pair(tracer=triclinium.telemetry.ThresholdLoggingTracer(query_threshold=0)) as (fake, cluster, _):
        fake.nodes.script.answer("SELECT $city", FakeAnswer(rows=[1]))
        async with cluster.query("SELECT $city", city="Oslo") as result:
            assert [1] == await result.rows()

    (report,) = reported_by(caplog, "threshold")
    assert 0 == report["query"]["top_requests"][0]["encode_duration_us"]


async def test_an_orphan(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """A late response of a timed out operation is logged as an orphan, and the timeout once, with the same id."""
    async with open_pair() as (fake, _, people):
        await people.upsert("ada", 1)
        fake.node.faults.next(Opcode.GET, delay(3.0))
        with pytest.raises(errors.UnambiguousTimeoutException) as caught:
            await people.get("ada")
        await trio.sleep(11)
        (report,) = reported_by(caplog, "orphan")

    (entry,) = report["kv"]["top_requests"]
    (timeout,) = (record.getMessage() for record in caplog.records if record.name == "triclinium.timeout")
    assert ALWAYS == entry.keys()
    assert (3_000_000, f"0x{caught.value.context.opaque:x}") == (entry["total_duration_us"], entry["operation_id"])
    assert caught.value.context.to_json() in timeout


async def test_durations_of_all_operations(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """Every ten minutes and at the end, durations of successes and failures are logged by operation, without NOOPs."""
    async with open_pair() as (fake, _, people):
        for key in ("ada", "bob"):
            await people.upsert(key, 1)
        fake.node.faults.next(Opcode.GET, drop_response())
        with pytest.raises(errors.UnambiguousTimeoutException):
            await people.get("ada")
        await trio.sleep(601)
        await people.exists("ada")

    first, last = reported_by(caplog, "meter")
    counts = {name: reported["total_count"] for name, reported in first["operations"]["kv"].items()}
    assert ({"upsert": 2, "get": 1}, 600) == (counts, first["meta"]["emit_interval_s"])
    assert 2_500_000 == first["operations"]["kv"]["get"]["percentiles_us"]["100.0"]
    assert ["exists"] == list(last["operations"]["kv"])


async def test_late_copies_are_not_orphans(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """Late responses of a completed replica read are not orphans, and the meter has one value for each call."""
    options = replace(OPTIONS, replicas=1)
    async with open_fake_cluster(options=options, nodes=2) as fake, fake.open_client() as cluster:
        people = cluster.bucket("travel").default_collection()
        await people.upsert("ada", 1)
        for node in fake.nodes:
            node.faults.always(Opcode.GET, delay(1.0))
        assert (await people.get_any_replica("ada")).is_replica
        async with people.get_all_replicas("ada") as copies:
            assert (await anext(copies)).is_replica
        async with people.scan(triclinium.scans.PrefixScan("a")) as found:
            assert ["ada"] == [item.id async for item in found]
        await trio.sleep(5)
        orphans = cluster.statistics().orphans

    (durations,) = reported_by(caplog, "meter")
    counts = {name: reported["total_count"] for name, reported in durations["operations"]["kv"].items()}
    assert (0, []) == (orphans, reported_by(caplog, "orphan"))
    assert {"upsert": 1, "get_any_replica": 1, "get_all_replicas": 1, "range_scan": 1} == counts


async def test_a_client_that_closes_early(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """If a client closes before the interval ends, the last line of its meter gives the seconds that it covers."""
    async with open_pair() as (_, _, people):
        for _ in range(10):
            await people.upsert("ada", 1)
            await trio.sleep(1)

    (last,) = reported_by(caplog, "meter")
    assert (10, 10) == (last["operations"]["kv"]["upsert"]["total_count"], last["meta"]["emit_interval_s"])


async def test_an_idle_client_logs_nothing(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """A client without operations logs no reports."""
    async with open_pair() as (_, cluster, _):
        await cluster.bucket("travel").wait_until_ready()
        await trio.sleep(3_000)

    assert [[], [], []] == [reported_by(caplog, logger) for logger in ("threshold", "orphan", "meter")]


async def test_each_can_be_turned_off(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """With tracer, meter and orphans turned off, none of the three logs a report."""
    async with open_pair(tracer=None, meter=None, orphans=None) as (fake, _, people):
        fake.node.faults.next(Opcode.SET, delay(0.75))
        await people.upsert("ada", 1)
        fake.node.faults.next(Opcode.GET, delay(3.0))
        with pytest.raises(errors.UnambiguousTimeoutException):
            await people.get("ada")
        await trio.sleep(700)

    assert [[], [], []] == [reported_by(caplog, logger) for logger in ("threshold", "orphan", "meter")]


async def test_intervals_and_sample_sizes_are_options(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Reports count all operations and list as many as the sample size, at the chosen interval."""
    async with open_pair(
        tracer=triclinium.telemetry.ThresholdLoggingTracer(kv_threshold=0, sample_size=2, emit_interval=0.5),
        meter=triclinium.telemetry.LoggingMeter(emit_interval=0.5),
        orphans=triclinium.telemetry.OrphanReporter(sample_size=1),
    ) as (_, _, people):
        for key in ("ada", "bob", "eve"):
            await people.upsert(key, 1)
        await trio.sleep(0.6)
        (report,), (durations,) = reported_by(caplog, "threshold"), reported_by(caplog, "meter")

    assert (3, 2) == (report["kv"]["total_count"], len(report["kv"]["top_requests"]))
    assert 0.5 == durations["meta"]["emit_interval_s"]
