"""Spans of a call of several operations: one outer span, with child spans for its attempts or requests."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace

import pytest
import trio
import trio.testing
from trio.testing import MockClock

import triclinium
from tests.trio_client.pair import OPTIONS
from tests.trio_client.recorded_telemetry import RecordingMeter, RecordingTracer
from tests.trio_client.telemetry_tables import ALWAYS_OUTER, OF_A_DOCUMENT, assert_as_in_the_tables, open_recorded
from triclinium.errors import DocumentUnretrievableException
from triclinium.testing import Opcode, drop_response, open_fake_cluster, temporary_failure
from triclinium_core.telemetry.span_names import DISPATCH


async def test_calls_of_several_operations(autojump_clock: MockClock) -> None:
    """A replica read or a scan has one span, whose children are its attempts, and one value of the meter."""
    tracer, meter = RecordingTracer(), RecordingMeter()
    options = replace(OPTIONS, replicas=1)
    async with (
        open_fake_cluster(options=options, nodes=2) as fake,
        fake.open_client(tracer=tracer, meter=meter) as cluster,
    ):
        people = cluster.bucket("travel").default_collection()
        await people.upsert("ada", 1)
        await cluster.bucket("travel").wait_until_ready(service_types=[triclinium.Service.KV])
        specs = [triclinium.subdocument.LookupInSpec.get("")]
        given = tracer.request_span("given")
        await people.get_any_replica("ada", parent_span=given)
        await people.lookup_in_any_replica("ada", specs, parent_span=given)
        async with people.get_all_replicas("ada", parent_span=given) as copies:
            assert 2 == len([copy async for copy in copies])
        async with people.lookup_in_all_replicas("ada", specs, parent_span=given) as parts:
            assert 2 == len([part async for part in parts])
        async with people.scan(triclinium.scans.PrefixScan("a"), concurrency=8, parent_span=given) as found:
            assert ["ada"] == [item.id async for item in found]
        given.end()

    replica_reads = ["get_any_replica", "lookup_in_any_replica", "get_all_replicas", "lookup_in_all_replicas"]
    *copies_read, scan = given.children
    assert [(name, DISPATCH, DISPATCH) for name in replica_reads] == [span.shape() for span in copies_read]
    assert ("range_scan", {DISPATCH}) == (scan.name, {child.name for child in scan.children})
    assert len(scan.children) > OPTIONS.vbuckets
    assert {triclinium.telemetry.StatusCode.OK} == {span.status for span in given.children}
    for span in given.children:
        assert ALWAYS_OUTER | OF_A_DOCUMENT == span.attributes.keys()
    assert [*replica_reads, "range_scan"] == [tags["db.operation.name"] for _, tags, _ in meter.values[2:]]
    tracer.spans.remove(given)
    assert_as_in_the_tables(tracer, meter)


async def test_retries_of_calls_of_several_operations(autojump_clock: MockClock) -> None:
    """The span of the call counts the retries of all its operations, and each attempt is a separate child."""
    async with open_recorded(retry_strategy=triclinium.BestEffortRetryStrategy()) as (pair, tracer, _):
        await pair.people.upsert("ada", 1)
        pair.fake.node.faults.next(Opcode.GET, temporary_failure(), times=2)
        async with pair.people.get_all_replicas("ada") as copies:
            assert 1 == len([copy async for copy in copies])

    _, read = tracer.roots
    assert ("get_all_replicas", DISPATCH, DISPATCH, DISPATCH) == read.shape()
    assert (2, ["triclinium.retry"] * 2) == (read.attributes["couchbase.retries"], [name for name, _ in read.events])


async def test_a_failed_call_of_several_operations(autojump_clock: MockClock) -> None:
    """If all copies fail, span and metric of a call have the exception that the call raises, if it raises one."""
    async with open_recorded() as (pair, tracer, meter):
        with pytest.raises(DocumentUnretrievableException):
            await pair.people.get_any_replica("nobody")
        async with pair.people.get_all_replicas("nobody") as copies:
            assert [] == [copy async for copy in copies]

    assert ["DocumentUnretrievable", None] == [span.attributes.get("error.type") for span in tracer.roots]
    assert ["DocumentUnretrievable", None] == [tags.get("error.type") for _, tags, _ in meter.values]


async def test_cancelled_calls_of_several_operations(autojump_clock: MockClock) -> None:
    """The span of a cancelled call has an error type; the span of a block that is left early has none."""
    async with open_recorded() as (pair, tracer, _):
        people = pair.people
        await people.upsert("ada", 1)
        pair.fake.node.faults.always(Opcode.GET, drop_response())
        with trio.move_on_after(1):
            await people.get_any_replica("ada")
        async with people.scan(triclinium.scans.PrefixScan("a"), batch_item_limit=1) as left:
            await anext(left)
        with trio.move_on_after(1):
            async with people.scan(triclinium.scans.PrefixScan("a")) as cancelled:
                await anext(cancelled)
                pair.fake.node.faults.always(Opcode.RANGE_SCAN_CREATE, drop_response())
                await anext(cancelled)

    _, any_replica, early, late = tracer.roots
    assert ("get_any_replica", DISPATCH) == any_replica.shape()
    for span in (any_replica, late):
        assert (triclinium.telemetry.StatusCode.UNSET, "RequestCanceled") == (
            span.status,
            span.attributes.get("error.type"),
        ), span
    assert (triclinium.telemetry.StatusCode.OK, False) == (early.status, "error.type" in early.attributes)


@pytest.mark.parametrize("limit", [trio.move_on_after, triclinium.fail_after])
async def test_calls_of_several_operations_in_a_scope(
    autojump_clock: MockClock, limit: Callable[[float], AbstractContextManager[object]]
) -> None:
    """If a scope cancels a call of several operations or requests, the span of the call has the error of its parts."""
    async with open_recorded() as (pair, tracer, _):
        await pair.people.upsert("ada", 1)
        for opcode in (Opcode.GET, Opcode.RANGE_SCAN_CREATE):
            pair.fake.node.faults.always(opcode, drop_response())
        pair.fake.node.faults.always(triclinium.Service.MANAGEMENT, drop_response())
        with suppress(trio.TooSlowError), limit(1):
            await pair.people.get_any_replica("ada")
        with suppress(trio.TooSlowError), limit(1):
            async with pair.people.scan(triclinium.scans.PrefixScan("a")) as found:
                await anext(found)
        with suppress(trio.TooSlowError), limit(1):
            await pair.cluster.bucket("travel").collections().create_scope("new")

    _, replicas, scan, several = tracer.roots
    for wrapping, part, late in (
        (replicas, "get", "UnambiguousTimeout"),
        (scan, "range_scan_create", "AmbiguousTimeout"),
        (several, "manager_collections_create_scope", "AmbiguousTimeout"),
    ):
        errors = {
            span.attributes.get("error.type")
            for span in (wrapping, *wrapping.children)
            if span.name in (wrapping.name, part)
        }
        assert {late if limit is triclinium.fail_after else "RequestCanceled"} == errors, wrapping.shape()


async def test_copies_that_are_not_needed(autojump_clock: MockClock) -> None:
    """When one copy is enough, the spans of the other copies end with the call, without an error."""
    tracer, meter = RecordingTracer(), RecordingMeter()
    async with (
        open_fake_cluster(options=replace(OPTIONS, replicas=1), nodes=2) as fake,
        fake.open_client(tracer=tracer, meter=meter) as cluster,
    ):
        people = cluster.bucket("travel").default_collection()
        await people.upsert("ada", 1)
        for node in fake.nodes:
            node.faults.always(Opcode.GET, drop_response())
        with triclinium.fail_after(10):
            await people.get_any_replica("ada")
        async with people.get_all_replicas("ada") as copies:
            await anext(copies)

    reads = [*tracer.of("get_any_replica"), *tracer.of("get_all_replicas")]
    assert [(triclinium.telemetry.StatusCode.OK, 2)] * 2 == [(span.status, len(span.children)) for span in reads]
    assert not any("error.type" in tags for _, tags, _ in meter.values)
    assert_as_in_the_tables(tracer, meter)
