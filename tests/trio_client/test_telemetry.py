"""What a tracer and a meter are told of calls, held against the tables of SDK-RFC 0067."""

from __future__ import annotations

import inspect
import json
import logging
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import cast

import pytest
import trio
import trio.testing
from trio.testing import MockClock

import triclinium
from tests.rows import rows
from tests.trio_client.pair import OPTIONS, Pair, open_pair
from tests.trio_client.recorded_telemetry import RecordedSpan, RecordingMeter, RecordingTracer, current_span
from triclinium.errors import (
    DocumentNotFoundException,
    DocumentUnretrievableException,
    EncodingFailureException,
    InternalServerFailureException,
    InvalidArgumentException,
    UnambiguousTooSlowError,
)
from triclinium.testing import FakeAnswer, Opcode, drop_response, hang_up, open_fake_cluster, temporary_failure
from triclinium_core.telemetry.attributes import ATTRIBUTES, Bearer
from triclinium_core.telemetry.span_names import DISPATCH, ENCODING

COMMON = {"db.system.name"}
ALWAYS_OUTER = COMMON | {"db.operation.name", "couchbase.retries"}
OF_A_DOCUMENT = {"couchbase.service", "db.namespace", "couchbase.scope.name", "couchbase.collection.name"}
OF_A_NODE = COMMON | {
    "network.transport",
    "server.address",
    "server.port",
    "network.peer.address",
    "network.peer.port",
}
SECRET = "secret-key"
VALUE = "secret-value"
STATEMENT = "SELECT * FROM hotels WHERE city = $city"
PLAIN_STATEMENT = "SELECT * FROM hotels WHERE city = 'Oslo'"


def bearer_of(span: RecordedSpan) -> Bearer:
    """Return which of the RFC's tables a span belongs to."""
    return {DISPATCH: Bearer.DISPATCH, ENCODING: Bearer.ENCODING}.get(span.name, Bearer.OUTER)


def assert_as_in_the_tables(tracer: RecordingTracer, meter: RecordingMeter) -> None:
    """Hold all that was told against the tables: what is there may be there, has its type, and nothing else is."""
    for span in tracer.spans:
        for key, value in span.attributes.items():
            row = ATTRIBUTES[key]
            assert bearer_of(span) in row.bearers, f"{span.name} has {key}"
            assert isinstance(value, row.kinds), f"{key}={value!r}"
        for key, row in ATTRIBUTES.items():
            if bearer_of(span) in row.bearers and not row.when:
                assert key in span.attributes, f"{span.name} lacks {key}"
    for name, tags, microseconds in meter.values:
        assert "db.client.operation.duration" == name
        assert microseconds >= 0
        assert all(Bearer.METRIC in ATTRIBUTES[key].bearers for key in tags), tags
        required = {key for key, row in ATTRIBUTES.items() if Bearer.METRIC in row.bearers and not row.when}
        assert required <= tags.keys()
    assert [] == tracer.broken_rules


class Waits:
    """A strategy that retries after the same delay."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def retry_after(
        self, request: triclinium.RetryRequest, reason: triclinium.RetryReason, /
    ) -> triclinium.RetryAction:
        """Return a retry."""
        return triclinium.RetryAction.after(self.seconds)


async def test_attributes_of_a_document_operation(autojump_clock: MockClock) -> None:
    """An outer span, its encoding and its attempt have exactly what the RFC wants on each, and so has the metric."""
    tracer, meter = RecordingTracer(), RecordingMeter()
    async with open_pair(tracer=tracer, meter=meter) as pair:
        people = pair.cluster.bucket("travel").scope("inventory").collection("people")
        await people.upsert("ada", 1)

    (upsert,) = tracer.roots
    encoding, dispatch = upsert.children
    assert ALWAYS_OUTER | OF_A_DOCUMENT == upsert.attributes.keys()
    assert COMMON == encoding.attributes.keys()
    assert OF_A_NODE | {"couchbase.local_id", "couchbase.operation_id", "couchbase.server_duration"} == (
        dispatch.attributes.keys()
    )
    assert {
        "db.system.name": "couchbase",
        "db.operation.name": "upsert",
        "couchbase.service": "kv",
        "db.namespace": "travel",
        "couchbase.scope.name": "inventory",
        "couchbase.collection.name": "people",
        "couchbase.retries": 0,
    } == upsert.attributes
    assert ("tcp", "127.0.0.1") == (dispatch.attributes["network.transport"], dispatch.attributes["server.address"])
    assert triclinium.StatusCode.OK is upsert.status
    ((name, tags, _),) = meter.values
    assert {key: value for key, value in upsert.attributes.items() if key != "couchbase.retries"} == tags
    assert "db.client.operation.duration" == name
    assert_as_in_the_tables(tracer, meter)


async def test_every_operation_on_documents(autojump_clock: MockClock) -> None:
    """Each has its span with one attempt; what takes a transcoder to be sent is encoded first. No key is told."""
    tracer, meter = RecordingTracer(), RecordingMeter()
    async with open_pair(tracer=tracer, meter=meter) as pair:
        people, binary = pair.people, pair.people.binary
        await people.insert(SECRET, {"n": VALUE})
        await people.replace(SECRET, {"n": VALUE}, durability=triclinium.DurabilityLevel.MAJORITY)
        await people.exists(SECRET)
        await people.get_and_touch(SECRET, None)
        await people.touch(SECRET, None)
        await people.lookup_in(SECRET, [triclinium.LookupInSpec.get("n")])
        await people.mutate_in(SECRET, [triclinium.MutateInSpec.upsert("n", VALUE)])
        locked = await people.get_and_lock(SECRET, 5)
        await people.unlock(SECRET, locked.cas)
        await binary.increment("hits", initial=1)
        await binary.decrement("hits", initial=1)
        await binary.append(SECRET, b" ")
        await binary.prepend(SECRET, b" ")
        await people.remove(SECRET)

    encoded = [(name, ENCODING, DISPATCH) for name in ("insert", "replace")]
    plain = ["exists", "get_and_touch", "touch", "lookup_in"]
    rest = ["get_and_lock", "unlock", "increment", "decrement", "append", "prepend", "remove"]
    assert [
        *encoded,
        *((name, DISPATCH) for name in plain),
        ("mutate_in", ENCODING, DISPATCH),
        *((name, DISPATCH) for name in rest),
    ] == tracer.shapes()
    assert ["majority"] == [
        span.attributes["couchbase.durability"] for span in tracer.spans if "couchbase.durability" in span.attributes
    ]
    assert_as_in_the_tables(tracer, meter)
    told = repr([(span.name, span.attributes, span.events) for span in tracer.spans]) + repr(meter.values)
    assert SECRET not in told
    assert VALUE not in told


@rows(("strategy", "retries"), [(Waits(0.5), 0), (Waits(0.1), 1), (Waits(100.0), 0)])
async def test_a_retry_that_is_never_sent_does_not_count(
    strategy: Waits, retries: int, autojump_clock: MockClock
) -> None:
    """An operation that is abandoned while it waits for a retry, or that waits for its deadline, counts the sent ones."""
    tracer = RecordingTracer()
    async with open_pair(tracer=tracer, meter=RecordingMeter(), retry_strategy=strategy) as pair:
        pair.fake.node.faults.always(Opcode.SET, temporary_failure())
        with pytest.raises(UnambiguousTooSlowError) as caught, triclinium.fail_after(0.15):
            await pair.people.upsert("ada", 1)
        counted = sum(pair.cluster.statistics().retries_by_reason.values())

    (upsert,) = tracer.roots
    assert (retries, retries) == (upsert.attributes["couchbase.retries"], counted)
    assert [retries] == [each.context.retry_attempts for each in caught.value.operations]


class WaitsIfBusy:
    """A strategy that retries what the node cannot do for now, and nothing else."""

    def retry_after(
        self, request: triclinium.RetryRequest, reason: triclinium.RetryReason, /
    ) -> triclinium.RetryAction:
        """Return a retry after half a second, or no."""
        if reason is triclinium.RetryReason.KV_TEMPORARY_FAILURE:
            return triclinium.RetryAction.after(0.5)
        return triclinium.RetryAction.no_retry()


async def get_ada(pair: Pair) -> None:
    """Read a document."""
    await pair.people.get("ada")


async def scan_all(pair: Pair) -> None:
    """Scan one vbucket after the other."""
    async with pair.people.scan(triclinium.PrefixScan("a"), concurrency=1) as found:
        await anext(found)


@rows(("opcode", "call"), [(Opcode.GET, get_ada), (Opcode.RANGE_SCAN_CREATE, scan_all)])
async def test_a_retry_that_cannot_be_sent_counts(
    opcode: Opcode, call: Callable[[Pair], Awaitable[None]], autojump_clock: MockClock
) -> None:
    """A granted retry whose dispatch fails and is refused counts in the span as in the context of the error."""
    tracer = RecordingTracer()
    async with open_pair(tracer=tracer, retry_strategy=WaitsIfBusy()) as pair, trio.open_nursery() as nursery:
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
    assert [] == tracer.broken_rules


async def test_a_retried_write(autojump_clock: MockClock) -> None:
    """Each attempt has its span, and the outer one an event for each retry, with reason, delay and clause."""
    tracer, meter = RecordingTracer(), RecordingMeter()
    async with open_pair(tracer=tracer, meter=meter, retry_strategy=triclinium.BestEffortRetryStrategy()) as pair:
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
    assert triclinium.StatusCode.OK is upsert.status
    assert_as_in_the_tables(tracer, meter)


async def test_a_lost_connection_ends_the_attempt(autojump_clock: MockClock) -> None:
    """The attempt whose answer was lost ends with its connection, and nothing is known of the server's work."""
    tracer = RecordingTracer()
    async with open_pair(tracer=tracer, retry_strategy=triclinium.BestEffortRetryStrategy()) as pair:
        await pair.people.exists("ada")
        pair.fake.node.faults.next(Opcode.GET_META, hang_up())
        await pair.people.exists("ada")

    lost, answered = tracer.roots[1].children
    assert "couchbase.server_duration" not in lost.attributes
    assert "couchbase.server_duration" in answered.attributes
    assert [] == tracer.broken_rules


@pytest.mark.parametrize(
    ("key", "status", "name"),
    [
        ("nobody", triclinium.StatusCode.UNSET, "DocumentNotFound"),
        ("", triclinium.StatusCode.ERROR, "UnambiguousTimeout"),
    ],
)
async def test_how_failures_are_told(
    key: str, status: triclinium.StatusCode, name: str, autojump_clock: MockClock
) -> None:
    """What an answer says of the document is no failure; both have their type, in the span and in the metric."""
    tracer, meter = RecordingTracer(), RecordingMeter()
    async with open_pair(tracer=tracer, meter=meter) as pair:
        if not key:
            pair.fake.node.faults.next(Opcode.GET, drop_response())
        with pytest.raises((DocumentNotFoundException, triclinium.errors.TimeoutException)):
            await pair.people.get(key or "ada")

    (get,) = tracer.roots
    ((_, tags, microseconds),) = meter.values
    assert (status, name, name) == (get.status, get.attributes["error.type"], tags["error.type"])
    assert bool(key) == (microseconds < 1_000_000)
    assert_as_in_the_tables(tracer, meter)


async def test_a_missing_document_that_is_a_result(autojump_clock: MockClock) -> None:
    """``get_or_none`` that returns None has the status OK and no error type, but its other failures have theirs."""
    tracer, meter = RecordingTracer(), RecordingMeter()
    async with open_pair(tracer=tracer, meter=meter) as pair:
        assert await pair.people.get_or_none("nobody") is None
        pair.fake.node.faults.next(Opcode.GET, drop_response())
        with pytest.raises(triclinium.errors.TimeoutException):
            await pair.people.get_or_none("ada")

    missing, late = tracer.roots
    assert (triclinium.StatusCode.OK, False) == (missing.status, "error.type" in missing.attributes)
    assert (triclinium.StatusCode.ERROR, "UnambiguousTimeout") == (late.status, late.attributes["error.type"])
    assert [False, True] == ["error.type" in tags for _, tags, _ in meter.values]
    assert_as_in_the_tables(tracer, meter)


class AttributedTracer(RecordingTracer):
    """A tracer whose spans begin with attributes."""

    def request_span(
        self,
        name: str,
        parent: triclinium.RequestSpan | None = None,
        attributes: Mapping[str, str | int | float | bool] | None = None,
    ) -> RecordedSpan:
        """Begin a span with attributes that may not be set again."""
        span = RecordingTracer.request_span(self, name, parent)
        for key, value in (attributes or {}).items():
            span.set_attribute(key, value)
        span.fixed = frozenset(attributes or {})
        return span


async def test_a_tracer_whose_spans_begin_with_attributes(autojump_clock: MockClock) -> None:
    """It receives the same attributes as any other tracer, each of them once."""
    tracer, meter = AttributedTracer(), RecordingMeter()
    async with open_pair(tracer=tracer, meter=meter) as pair:
        await pair.people.upsert("ada", 1)
        await pair.people.get("ada")
        await pair.cluster.query_indexes().create_primary_index("travel")

    assert {"couchbase.service", "db.namespace", "db.operation.name"} <= tracer.roots[0].fixed
    assert_as_in_the_tables(tracer, meter)


async def test_a_refused_retry(autojump_clock: MockClock) -> None:
    """The outer span is told why nothing is tried again."""
    tracer = RecordingTracer()

    class Never(triclinium.BestEffortRetryStrategy):
        def retry_after(self, *_: object) -> triclinium.RetryAction:
            return triclinium.RetryAction.no_retry()

    async with open_pair(tracer=tracer) as pair:
        pair.fake.node.faults.next(Opcode.GET, temporary_failure())
        with pytest.raises(triclinium.errors.TemporaryFailureException):
            await pair.people.get("ada", retry_strategy=Never())

    (get,) = tracer.roots
    ((event, attributes),) = get.events
    assert "triclinium.retry_refused" == event
    assert "TemporaryFailureException" == attributes["triclinium.retry.error"]
    assert (0, triclinium.StatusCode.ERROR) == (get.attributes["couchbase.retries"], get.status)


async def test_parents(autojump_clock: MockClock) -> None:
    """A span that is given is the parent; otherwise the tracer sees the context of the caller, also in one write."""
    tracer = RecordingTracer()
    async with open_pair(tracer=tracer) as pair:
        await pair.people.upsert("ada", 1)
        given = tracer.request_span("given")
        await pair.people.get("ada", parent_span=given)

        async def work(name: str) -> None:
            span = tracer.request_span(name)
            current_span.set(span)
            await pair.people.get("ada")
            span.end()

        before = len(pair.fake.node.command_log)
        async with trio.open_nursery() as nursery:
            for name in ("first", "second", "third"):
                nursery.start_soon(work, name)
        assert 3 == len(pair.fake.node.command_log) - before

    shapes = tracer.shapes()
    assert ("given", ("get", DISPATCH)) in shapes
    assert {(name, ("get", DISPATCH)) for name in ("first", "second", "third")} <= {*shapes}


async def test_internal_requests_make_no_spans(autojump_clock: MockClock) -> None:
    """Neither the bootstrap nor what keeps connections alive is told, however long it goes on."""
    tracer, meter = RecordingTracer(), RecordingMeter()
    async with open_pair(tracer=tracer, meter=meter) as pair:
        await pair.people.exists("ada")
        await trio.sleep(600)

    assert [("exists", DISPATCH)] == tracer.shapes()
    assert 1 == len(meter.values)


class Broken:
    """Raises, whatever it is asked for; or at the second question."""

    def __init__(self, *, makes_spans: bool) -> None:
        self._makes_spans = makes_spans

    def __repr__(self) -> str:
        return "<Broken>"

    def request_span(self, name: str, parent: triclinium.RequestSpan | None = None) -> triclinium.RequestSpan:
        """Raise, or return what does."""
        return self._self_or_error()

    def value_recorder(self, name: str, tags: Mapping[str, str]) -> triclinium.ValueRecorder:
        """Raise, or return what does."""
        return self._self_or_error()

    def _self_or_error(self) -> Broken:
        if not self._makes_spans:
            raise ZeroDivisionError
        return self

    def set_attribute(self, *_: object) -> None:
        """Raise."""
        raise ZeroDivisionError

    add_event = set_status = end = record_value = set_attribute


@pytest.mark.parametrize("makes_spans", [True, False])
async def test_what_a_tracer_raises(
    makes_spans: bool, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """No operation fails with a tracer or a meter: each is logged once, by its name, whatever else it raises."""
    broken = Broken(makes_spans=makes_spans)
    async with open_pair(tracer=broken, meter=broken) as pair:
        pair.fake.node.faults.next(Opcode.SET, temporary_failure())
        await pair.people.upsert("ada", {"n": 1})
        assert {"n": 1} == (await pair.people.get("ada")).content
        pair.fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[1]))
        async with pair.cluster.query(STATEMENT, city="Oslo") as result:
            assert [1] == await result.rows()

    logged = [record for record in caplog.records if record.name == "triclinium.telemetry"]
    assert [logging.ERROR] * 2 == [record.levelno for record in logged]
    assert all("<Broken>" in record.getMessage() and record.exc_info is not None for record in logged)


class Poor:
    """Makes spans and recorders that can do nothing at all."""

    def request_span(self, name: str, parent: triclinium.RequestSpan | None = None) -> triclinium.RequestSpan:
        """Return what is no span."""
        return cast(triclinium.RequestSpan, object())

    def value_recorder(self, name: str, tags: Mapping[str, str]) -> triclinium.ValueRecorder:
        """Return what is no recorder."""
        return cast(triclinium.ValueRecorder, object())


async def test_what_a_span_lacks(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """A span without the methods of one fails no operation either, nor does it hold up one that is cancelled."""
    async with open_pair(tracer=Poor(), meter=Poor()) as pair:
        pair.fake.node.faults.next(Opcode.SET, temporary_failure())
        await pair.people.upsert("ada", {"n": 1})
        pair.fake.node.faults.next(Opcode.GET, drop_response())
        with trio.move_on_after(1) as scope:
            await pair.people.get("ada")
        assert {"n": 1} == (await pair.people.get("ada")).content
        pair.fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[1]))
        async with pair.cluster.query(STATEMENT, city="Oslo") as result:
            assert [1] == await result.rows()
        # Calls that take several operations, whose spans are to be the parents of others.
        assert {"n": 1} == (await pair.people.get_any_replica("ada")).content
        async with pair.people.scan(triclinium.PrefixScan("a")) as found:
            assert ["ada"] == [item.id async for item in found]
        await pair.cluster.bucket("travel").collections().create_scope("paris")

    assert scope.cancelled_caught
    assert 2 == sum(record.name == "triclinium.telemetry" for record in caplog.records)


async def test_encoding_that_fails(autojump_clock: MockClock) -> None:
    """The spans of a value that cannot be encoded end with the error; nothing was dispatched."""
    tracer, meter = RecordingTracer(), RecordingMeter()
    async with open_pair(tracer=tracer, meter=meter) as pair:
        with pytest.raises(EncodingFailureException):
            await pair.people.upsert("ada", object())

    assert [("upsert", ENCODING)] == tracer.shapes()
    assert "EncodingFailure" == tracer.roots[0].attributes["error.type"] == meter.values[0][1]["error.type"]
    assert [] == tracer.broken_rules


async def test_wrong_arguments_make_no_span(autojump_clock: MockClock) -> None:
    """A call whose arguments are wrong is not told."""
    tracer, meter = RecordingTracer(), RecordingMeter()
    async with open_pair(tracer=tracer, meter=meter) as pair:
        with pytest.raises(InvalidArgumentException):
            await pair.people.get("")

    assert ([], []) == (tracer.spans, meter.values)


async def test_a_closed_cluster_ends_all_spans(autojump_clock: MockClock) -> None:
    """Of an operation that waits, and of rows that nobody reads just now."""
    tracer = RecordingTracer()
    async with trio.open_nursery() as nursery:
        async with open_pair(tracer=tracer) as pair:

            async def wait() -> None:
                with pytest.raises(trio.ClosedResourceError):
                    await pair.people.get("ada")

            async def read() -> None:
                async with pair.cluster.query(STATEMENT, city="Oslo") as result:
                    await anext(aiter(result))
                    await trio.sleep(60)

            pair.fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[1, 2, 3], seconds_between_rows=10))
            nursery.start_soon(read)
            # The first row has come, and the second has not.
            await trio.sleep(15)
            pair.fake.node.faults.next(Opcode.GET, drop_response())
            nursery.start_soon(wait)
            await trio.sleep(1)
            assert 4 == len(tracer.broken_rules)

        assert [] == tracer.broken_rules


async def test_a_query(autojump_clock: MockClock) -> None:
    """Its span lasts as long as its rows; the text is told where there are parameters, for those have what is sensitive."""
    tracer, meter = RecordingTracer(), RecordingMeter()
    async with open_pair(tracer=tracer, meter=meter) as pair:
        answer = FakeAnswer(rows=[1, 2, 3], seconds_between_rows=10)
        pair.fake.nodes.script.answer(STATEMENT, answer)
        pair.fake.nodes.script.answer(PLAIN_STATEMENT, answer)
        async with pair.cluster.query(STATEMENT, city="Oslo", client_context_id="mine") as result:
            assert [1, 2, 3] == await result.rows()
        async with pair.cluster.bucket("travel").scope("inventory").query(PLAIN_STATEMENT) as result:
            pass

    of_cluster, of_scope = tracer.roots
    assert [("query", ENCODING, DISPATCH)] * 2 == tracer.shapes()
    assert ALWAYS_OUTER | {"couchbase.service", "db.query.text"} == of_cluster.attributes.keys()
    assert ALWAYS_OUTER | {"couchbase.service", "db.namespace", "couchbase.scope.name"} == of_scope.attributes.keys()
    assert OF_A_NODE | {"couchbase.operation_id"} == of_cluster.children[1].attributes.keys()
    assert "mine" == of_cluster.children[1].attributes["couchbase.operation_id"]
    assert [triclinium.StatusCode.OK] * 2 == [of_cluster.status, of_scope.status]
    assert meter.values[0][2] >= 20_000_000
    assert_as_in_the_tables(tracer, meter)


async def test_rows_that_are_taken_slowly(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """A query is not slow because its reader is: once the answer is whole its time is over. One that is slow is told."""
    async with open_pair() as pair:
        for seconds in (0.0, 2.0):
            pair.fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[1, 2], seconds_between_rows=seconds))
            async with pair.cluster.query(STATEMENT, city="Oslo") as result:
                await trio.sleep(60)
                assert 2 == len([row async for row in result])

    (line,) = (json.loads(each.getMessage()) for each in caplog.records if each.name == "triclinium.threshold")
    (slow,) = line["query"]["top_requests"]
    assert 1 == line["query"]["total_count"]
    assert 1_000_000 <= slow["total_duration_us"] < 10_000_000


async def test_the_time_of_a_reader(autojump_clock: MockClock) -> None:
    """It is not the query's: the span and the metric are over when the answer is whole, as in the log, whatever follows."""
    tracer, meter = RecordingTracer(), RecordingMeter()
    async with open_pair(tracer=tracer, meter=meter) as pair:
        pair.fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[1, 2]))
        async with pair.cluster.query(STATEMENT, city="Oslo") as result:
            await trio.sleep(60)
            (query,) = tracer.roots

            assert (1, triclinium.StatusCode.OK) == (query.ends, query.status)
            assert [1, 2] == await result.rows()
        broken = {"code": 5000, "msg": "broken"}
        pair.fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[1, 2], errors=[broken]))
        async with pair.cluster.query(STATEMENT, city="Oslo") as result:
            await trio.sleep(60)
            with pytest.raises(InternalServerFailureException):
                await result.rows()

    _, failed = tracer.roots
    assert all(microseconds < 1_000_000 for _, _, microseconds in meter.values)
    assert (triclinium.StatusCode.ERROR, "InternalServerFailure") == (failed.status, failed.attributes["error.type"])
    assert_as_in_the_tables(tracer, meter)


async def test_a_meter_alone_is_told_when_the_answer_is_whole(autojump_clock: MockClock) -> None:
    """Without a tracer it hears of the same time."""
    meter = RecordingMeter()
    async with open_pair(meter=meter) as pair:
        pair.fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[1, 2]))
        async with pair.cluster.query(STATEMENT, city="Oslo") as result:
            await trio.sleep(60)
            assert 2 == len([row async for row in result])

    ((_, _, microseconds),) = meter.values
    assert microseconds < 1_000_000


async def test_a_prepared_query(autojump_clock: MockClock) -> None:
    """What has to go before the statement is an attempt of its own, inside of the same outer span."""
    tracer = RecordingTracer()
    options = replace(OPTIONS, enhanced_prepared_statements=False)
    async with open_fake_cluster(options=options) as fake, fake.open_client(tracer=tracer) as cluster:
        fake.nodes.script.answer("SELECT 1", FakeAnswer(rows=[1]))
        async with cluster.query("SELECT 1", adhoc=False) as result:
            assert [1] == await result.rows()

    assert [("query", ENCODING, DISPATCH, ENCODING, DISPATCH)] == tracer.shapes()
    assert [] == tracer.broken_rules


async def test_management(autojump_clock: MockClock) -> None:
    """One request has the manager's span; several, and statements, stand inside of it. Only they are measured."""
    tracer, meter = RecordingTracer(), RecordingMeter()
    async with open_pair(tracer=tracer, meter=meter) as pair:
        await pair.cluster.buckets().get_bucket("travel")
        await pair.cluster.bucket("travel").collections().create_scope("new")
        await pair.cluster.query_indexes().create_primary_index("travel")
        await pair.cluster.query_indexes().get_all_indexes("travel")
        await pair.cluster.users().get_all_users()

    one, several, statement, listed, users = tracer.roots
    create = "manager_collections_create_scope"
    assert ("manager_buckets_get_bucket", DISPATCH) == one.shape()
    assert (create, (create, ENCODING, DISPATCH), ("wait_for_nodes", DISPATCH)) == several.shape()
    assert ("manager_query_create_primary_index", ("query", ENCODING, DISPATCH)) == statement.shape()
    assert ("manager_query_get_all_indexes", ("query", ENCODING, DISPATCH)) == listed.shape()
    assert ("manager_users_get_all_users", DISPATCH) == users.shape()
    assert ("management", "travel") == (one.attributes["couchbase.service"], one.attributes["db.namespace"])
    assert ("management", "new") == (
        several.attributes["couchbase.service"],
        several.attributes["couchbase.scope.name"],
    )
    assert ("query", "travel") == (statement.attributes["couchbase.service"], statement.attributes["db.namespace"])
    assert [
        "manager_buckets_get_bucket",
        create,
        "wait_for_nodes",
        "query",
        "query",
        "manager_users_get_all_users",
    ] == [tags["db.operation.name"] for _, tags, _ in meter.values]
    assert_as_in_the_tables(tracer, meter)


async def test_calls_of_several_operations(autojump_clock: MockClock) -> None:
    """Reads of replicas and scans have one span, whose children are their dispatches, and one value of the meter each."""
    tracer, meter = RecordingTracer(), RecordingMeter()
    options = replace(OPTIONS, replicas=1)
    async with (
        open_fake_cluster(options=options, nodes=2) as fake,
        fake.open_client(tracer=tracer, meter=meter) as cluster,
    ):
        people = cluster.bucket("travel").default_collection()
        await people.upsert("ada", 1)
        await cluster.bucket("travel").wait_until_ready(service_types=[triclinium.Service.KV])
        specs = [triclinium.LookupInSpec.get("")]
        given = tracer.request_span("given")
        await people.get_any_replica("ada", parent_span=given)
        await people.lookup_in_any_replica("ada", specs, parent_span=given)
        async with people.get_all_replicas("ada", parent_span=given) as copies:
            assert 2 == len([copy async for copy in copies])
        async with people.lookup_in_all_replicas("ada", specs, parent_span=given) as parts:
            assert 2 == len([part async for part in parts])
        async with people.scan(triclinium.PrefixScan("a"), concurrency=8, parent_span=given) as found:
            assert ["ada"] == [item.id async for item in found]
        given.end()

    replica_reads = ["get_any_replica", "lookup_in_any_replica", "get_all_replicas", "lookup_in_all_replicas"]
    *copies_read, scan = given.children
    assert [(name, DISPATCH, DISPATCH) for name in replica_reads] == [span.shape() for span in copies_read]
    assert ("range_scan", {DISPATCH}) == (scan.name, {child.name for child in scan.children})
    assert len(scan.children) > OPTIONS.vbuckets
    assert {triclinium.StatusCode.OK} == {span.status for span in given.children}
    for span in given.children:
        assert ALWAYS_OUTER | OF_A_DOCUMENT == span.attributes.keys()
    assert [*replica_reads, "range_scan"] == [tags["db.operation.name"] for _, tags, _ in meter.values[2:]]
    tracer.spans.remove(given)
    assert_as_in_the_tables(tracer, meter)


async def test_retries_of_calls_of_several_operations(autojump_clock: MockClock) -> None:
    """The span of the call counts the retries of all its operations, and each attempt is a child of its own."""
    tracer = RecordingTracer()
    async with open_pair(tracer=tracer, retry_strategy=triclinium.BestEffortRetryStrategy()) as pair:
        await pair.people.upsert("ada", 1)
        pair.fake.node.faults.next(Opcode.GET, temporary_failure(), times=2)
        async with pair.people.get_all_replicas("ada") as copies:
            assert 1 == len([copy async for copy in copies])

    _, read = tracer.roots
    assert ("get_all_replicas", DISPATCH, DISPATCH, DISPATCH) == read.shape()
    assert (2, ["triclinium.retry"] * 2) == (read.attributes["couchbase.retries"], [name for name, _ in read.events])
    assert [] == tracer.broken_rules


async def test_a_failed_call_of_several_operations(autojump_clock: MockClock) -> None:
    """Its span and its only value have the error that the caller gets, not those of single copies."""
    tracer, meter = RecordingTracer(), RecordingMeter()
    async with open_pair(tracer=tracer, meter=meter) as pair:
        with pytest.raises(DocumentUnretrievableException):
            await pair.people.get_any_replica("nobody")
        async with pair.people.get_all_replicas("nobody") as copies:
            assert [] == [copy async for copy in copies]

    assert ["DocumentUnretrievable", None] == [span.attributes.get("error.type") for span in tracer.roots]
    assert ["DocumentUnretrievable", None] == [tags.get("error.type") for _, tags, _ in meter.values]
    assert_as_in_the_tables(tracer, meter)


async def test_calls_of_several_operations_that_are_cancelled(autojump_clock: MockClock) -> None:
    """Their spans say so, as those of their operations do; a block that is left early is no failure."""
    tracer = RecordingTracer()
    async with open_pair(tracer=tracer) as pair:
        people = pair.people
        await people.upsert("ada", 1)
        pair.fake.node.faults.always(Opcode.GET, drop_response())
        with trio.move_on_after(1):
            await people.get_any_replica("ada")
        async with people.scan(triclinium.PrefixScan("a"), batch_item_limit=1) as left:
            await anext(left)
        with trio.move_on_after(1):
            async with people.scan(triclinium.PrefixScan("a")) as cancelled:
                await anext(cancelled)
                pair.fake.node.faults.always(Opcode.RANGE_SCAN_CREATE, drop_response())
                await anext(cancelled)

    _, any_replica, early, late = tracer.roots
    assert ("get_any_replica", DISPATCH) == any_replica.shape()
    for span in (any_replica, late):
        assert (triclinium.StatusCode.UNSET, "RequestCanceled") == (span.status, span.attributes.get("error.type")), (
            span
        )
    assert (triclinium.StatusCode.OK, False) == (early.status, "error.type" in early.attributes)
    assert [] == tracer.broken_rules


async def read_silently(pair: Pair) -> None:
    """Read a document that the node does not send."""
    pair.fake.node.faults.next(Opcode.GET, drop_response())
    await pair.people.get("ada")


async def write_silently(pair: Pair) -> None:
    """Write a document without an acknowledgement."""
    pair.fake.node.faults.next(Opcode.SET, drop_response())
    await pair.people.upsert("ada", 2)


async def manage_silently(pair: Pair) -> None:
    """Send an idempotent request to a service that does not answer."""
    pair.fake.node.faults.next(triclinium.Service.MANAGEMENT, drop_response())
    await pair.cluster.buckets().get_bucket("travel")


async def query_silently(pair: Pair) -> None:
    """Wait for the first row of a statement that may write."""
    pair.fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[1], seconds=60))
    async with pair.cluster.query(STATEMENT):
        pytest.fail("a row came")


async def wait_for_rows(pair: Pair) -> None:
    """Wait for the second row."""
    pair.fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[1, 2], seconds_between_rows=60))
    async with pair.cluster.query(STATEMENT, readonly=True) as result:
        async for _ in result:
            pass


async def keep_rows(pair: Pair) -> None:
    """Stay in the block of an answer that is not whole."""
    pair.fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[1, 2], seconds_between_rows=60))
    async with pair.cluster.query(STATEMENT, readonly=True) as result:
        await anext(result)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)


async def ask_for_rows_too_late(pair: Pair) -> None:
    """Ask for the second row when the scope around has ended."""
    pair.fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[1, 2], seconds_between_rows=60))
    async with pair.cluster.query(STATEMENT, readonly=True) as result:
        await anext(result)
        with trio.CancelScope(shield=True):
            await trio.sleep(1)
        await anext(result)


@rows(
    ("body", "name", "late"),
    [
        (read_silently, "get", "UnambiguousTimeout"),
        (write_silently, "upsert", "AmbiguousTimeout"),
        (manage_silently, "manager_buckets_get_bucket", "UnambiguousTimeout"),
        (query_silently, "query", "AmbiguousTimeout"),
        (wait_for_rows, "query", "UnambiguousTimeout"),
        (keep_rows, "query", "UnambiguousTimeout"),
        (ask_for_rows_too_late, "query", "UnambiguousTimeout"),
    ],
)
@pytest.mark.parametrize("limit", [trio.move_on_after, triclinium.fail_after])
async def test_a_call_that_a_scope_ends(
    autojump_clock: MockClock,
    limit: Callable[[float], AbstractContextManager[object]],
    body: Callable[[Pair], Awaitable[None]],
    name: str,
    late: str,
) -> None:
    """Its span and metric have the error of a timeout in a late ``fail_after`` block, and that of a cancellation else."""
    tracer, meter = RecordingTracer(), RecordingMeter()
    async with open_pair(tracer=tracer, meter=meter) as pair:
        await pair.people.upsert("ada", 1)
        with suppress(trio.TooSlowError), limit(1):
            await body(pair)

    span, (_, tags, microseconds) = tracer.roots[-1], meter.values[-1]
    status, error = (
        (triclinium.StatusCode.ERROR, late)
        if limit is triclinium.fail_after
        else (triclinium.StatusCode.UNSET, "RequestCanceled")
    )
    assert (name, status, error) == (span.name, span.status, span.attributes.get("error.type"))
    assert (name, error, 1_000_000) == (tags["db.operation.name"], tags.get("error.type"), microseconds)
    assert 2 == len(meter.values)
    assert_as_in_the_tables(tracer, meter)


@rows(("body", "name"), [(manage_silently, "manager_buckets_get_bucket"), (query_silently, "query")])
@pytest.mark.parametrize("limit", [trio.move_on_after, triclinium.fail_after])
async def test_a_call_that_begins_too_late(
    autojump_clock: MockClock,
    limit: Callable[[float], AbstractContextManager[object]],
    body: Callable[[Pair], Awaitable[None]],
    name: str,
) -> None:
    """A request in a scope that has ended, beside another operation, is not sent; its span has the same error."""
    tracer = RecordingTracer()
    async with open_pair(tracer=tracer) as pair, trio.open_nursery() as nursery:
        await pair.people.upsert("ada", 1)
        nursery.start_soon(read_silently, pair)
        await trio.testing.wait_all_tasks_blocked()
        with suppress(trio.TooSlowError), limit(1):
            with trio.CancelScope(shield=True):
                await trio.sleep(2)
            await body(pair)
        nursery.cancel_scope.cancel()

    span = tracer.roots[-1]
    error = "UnambiguousTimeout" if limit is triclinium.fail_after else "RequestCanceled"
    assert (name, error) == (span.name, span.attributes.get("error.type"))
    assert DISPATCH not in {child.name for child in span.children}
    assert [] == tracer.broken_rules


async def test_rows_that_their_reader_leaves(autojump_clock: MockClock) -> None:
    """The span and the metric of a query whose block is left before its last row have no error."""
    tracer, meter = RecordingTracer(), RecordingMeter()
    async with open_pair(tracer=tracer, meter=meter) as pair:
        pair.fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[1, 2], seconds_between_rows=60))
        async with pair.cluster.query(STATEMENT, readonly=True) as result:
            await anext(result)

    (span,), ((_, tags, _),) = tracer.roots, meter.values
    assert (triclinium.StatusCode.OK, False) == (span.status, "error.type" in span.attributes)
    assert "error.type" not in tags


@pytest.mark.parametrize("limit", [trio.move_on_after, triclinium.fail_after])
async def test_calls_of_several_operations_that_a_scope_ends(
    autojump_clock: MockClock, limit: Callable[[float], AbstractContextManager[object]]
) -> None:
    """Replica reads, scans and calls of several requests have the same error as their parts."""
    tracer = RecordingTracer()
    async with open_pair(tracer=tracer) as pair:
        await pair.people.upsert("ada", 1)
        for opcode in (Opcode.GET, Opcode.RANGE_SCAN_CREATE):
            pair.fake.node.faults.always(opcode, drop_response())
        pair.fake.node.faults.always(triclinium.Service.MANAGEMENT, drop_response())
        with suppress(trio.TooSlowError), limit(1):
            await pair.people.get_any_replica("ada")
        with suppress(trio.TooSlowError), limit(1):
            async with pair.people.scan(triclinium.PrefixScan("a")) as found:
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
    assert [] == tracer.broken_rules


async def test_copies_that_are_not_needed(autojump_clock: MockClock) -> None:
    """The reads of slower copies end with their call, which is no failure."""
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
    assert [(triclinium.StatusCode.OK, 2)] * 2 == [(span.status, len(span.children)) for span in reads]
    assert not any("error.type" in tags for _, tags, _ in meter.values)
    assert_as_in_the_tables(tracer, meter)


async def test_a_ping(autojump_clock: MockClock) -> None:
    """RFC 0067: it goes to several services, so its span names none; each probe, of whatever service, is inside of it."""
    tracer, meter = RecordingTracer(), RecordingMeter()
    async with open_pair(tracer=tracer, meter=meter) as pair:
        result = await pair.cluster.ping()

    (ping,) = tracer.roots
    of_kv, *of_services = ping.children
    assert ("ping", ALWAYS_OUTER) == (ping.name, {*ping.attributes})
    assert [DISPATCH] * len(triclinium.Service) == [span.name for span in ping.children]
    assert OF_A_NODE | {"couchbase.local_id", "couchbase.operation_id", "couchbase.server_duration"} == (
        of_kv.attributes.keys()
    )
    assert [OF_A_NODE] * len(of_services) == [span.attributes.keys() for span in of_services]
    assert {endpoint.remote for found in result.endpoints.values() for endpoint in found} == {
        f"{span.attributes['network.peer.address']}:{span.attributes['network.peer.port']}" for span in ping.children
    }
    assert_as_in_the_tables(tracer, meter)


async def test_probes_that_are_not_answered(autojump_clock: MockClock) -> None:
    """Their spans end with those of the ping, also where it is cancelled, and have nothing of the server."""
    tracer = RecordingTracer()
    async with open_pair(tracer=tracer) as pair:
        for _ in range(2):
            pair.fake.node.faults.next(Opcode.NOOP, drop_response())
            pair.fake.node.faults.next(triclinium.Service.QUERY, drop_response())
            with trio.move_on_after(1 if tracer.spans else math.inf):
                await pair.cluster.ping(service_types=(triclinium.Service.KV, triclinium.Service.QUERY))

    reported, cancelled = tracer.roots
    assert ("ping", DISPATCH, DISPATCH) == reported.shape() == cancelled.shape()
    assert not any("couchbase.server_duration" in span.attributes for span in tracer.spans)
    assert (triclinium.StatusCode.OK, triclinium.StatusCode.UNSET) == (reported.status, cancelled.status)
    assert [] == tracer.broken_rules


async def test_a_wait_until_ready(autojump_clock: MockClock) -> None:
    """An operation that the RFC does not have: the pings of services over HTTP are inside of its span, each time anew."""
    tracer = RecordingTracer()
    async with open_pair(tracer=tracer) as pair:
        pair.fake.node.faults.next(triclinium.Service.QUERY, hang_up())
        await pair.cluster.wait_until_ready(service_types=(triclinium.Service.KV, triclinium.Service.QUERY))

    assert [("wait_until_ready", DISPATCH, DISPATCH)] == tracer.shapes()
    assert [] == tracer.broken_rules


async def _upsert(cluster: triclinium.Cluster) -> None:
    await cluster.bucket("travel").default_collection().upsert("ada", 1)


async def _read_all_copies(cluster: triclinium.Cluster) -> None:
    async with cluster.bucket("travel").default_collection().get_all_replicas("ada") as copies:
        assert [] == [copy async for copy in copies]


async def _read_without_result(cluster: triclinium.Cluster) -> None:
    with pytest.raises(DocumentNotFoundException):
        await cluster.bucket("travel").default_collection().get("nobody")


async def _create_index(cluster: triclinium.Cluster) -> None:
    await cluster.query_indexes().create_primary_index("travel")


async def _ping(cluster: triclinium.Cluster) -> None:
    await cluster.ping()


@pytest.mark.parametrize("call", [_upsert, _read_all_copies, _read_without_result, _create_index, _ping])
async def test_labels_of_the_cluster(
    call: Callable[[triclinium.Cluster], Awaitable[None]], autojump_clock: MockClock
) -> None:
    """A call that starts before the first config has them in all spans that end after it, and in its metric."""
    tracer, meter = RecordingTracer(), RecordingMeter()
    options = replace(OPTIONS, cluster_uuid="5f3a", cluster_name="north")
    async with open_fake_cluster(options=options) as fake, fake.open_client(tracer=tracer, meter=meter) as cluster:
        await call(cluster)
        first = len(tracer.spans)
        await _upsert(cluster)

    labels = {"couchbase.cluster.uuid": "5f3a", "couchbase.cluster.name": "north"}
    ended_late = [span.attributes for span in tracer.spans[:first] if span.name != ENCODING or call is not _upsert]
    assert ended_late
    assert meter.values
    for attributes in (*ended_late, *(span.attributes for span in tracer.spans[first:]), *(v[1] for v in meter.values)):
        assert labels.items() <= attributes.items()
    assert_as_in_the_tables(tracer, meter)


async def test_addresses_of_a_node_in_another_network(autojump_clock: MockClock) -> None:
    """RFC 0067: the server is named by its own address, the peer by the one that it is reached at."""
    tracer = RecordingTracer()
    options = replace(OPTIONS, alternate_addresses={"external": ("ext.example", 31210)})
    async with (
        open_fake_cluster(options=options) as fake,
        fake.open_client(tracer=tracer, network="external") as cluster,
    ):
        people = cluster.bucket("travel").default_collection()
        await people.upsert("ada", 1)
        await people.get("ada")

    dispatch = tracer.roots[-1].children[-1]
    assert ("127.0.0.1", 11210) == (dispatch.attributes["server.address"], dispatch.attributes["server.port"])


def _calls() -> Iterator[tuple[str, inspect.Signature]]:
    for kind in vars(triclinium).values():
        if inspect.isclass(kind) and kind.__module__.startswith("triclinium._"):
            for name, member in inspect.getmembers(kind, inspect.isfunction):
                signature = inspect.signature(member)
                if not name.startswith("_") and "retry_strategy" in signature.parameters:
                    yield f"{kind.__name__}.{name}", signature


def test_every_call_takes_a_parent() -> None:
    """RFC 0067 "SDK API Surface Area": whatever takes a strategy of its own takes a span to stand inside of."""
    found = dict(_calls())

    assert {"Collection.get", "Cluster.query", "UserManager.get_user", "BinaryCollection.append"} <= found.keys()
    for name, signature in found.items():
        assert "parent_span" in signature.parameters, name


@pytest.mark.parametrize("wrong_value", [object(), "tracer", 7, True, RecordingTracer, triclinium.LoggingMeter])
@pytest.mark.parametrize("argument", ["tracer", "meter", "orphans"])
def test_what_is_no_tracer(argument: str, wrong_value: object) -> None:
    """What has not the method, or is a class, is refused by name before anything is opened."""
    wrong: dict[str, object] = {argument: wrong_value}
    with pytest.raises(InvalidArgumentException) as refused:
        triclinium.open_cluster("memcached://127.0.0.1", **wrong)  # type: ignore[arg-type]  # that is the point

    assert argument == refused.value.parameter
    assert argument in str(refused.value)
