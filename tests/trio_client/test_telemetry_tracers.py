"""Tracers of a program: the parent spans that they get, and tracers that raise or lack methods."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from typing import cast

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from tests.public_names import PUBLIC
from tests.trio_client.pair import Never, open_pair
from tests.trio_client.recorded_telemetry import RecordedSpan, RecordingMeter, RecordingTracer, current_span
from tests.trio_client.telemetry_tables import STATEMENT, assert_as_in_the_tables, open_recorded
from triclinium import Cas, EncodedValue, JsonTranscoder, open_cluster
from triclinium.errors import CouchbaseException, EncodingFailureException, InvalidArgumentException
from triclinium.scans import PrefixScan
from triclinium.search import MatchAllQuery
from triclinium.subdocument import MutateInSpec
from triclinium.telemetry import LoggingMeter, OrphanReporter, RequestSpan, ValueRecorder
from triclinium.testing import FakeAnswer, Opcode, drop_response, temporary_failure
from triclinium_core.telemetry.span_names import DISPATCH


class AttributedTracer(RecordingTracer):
    """Tracer whose spans take initial attributes."""

    def request_span(
        self,
        name: str,
        parent: RequestSpan | None = None,
        attributes: Mapping[str, str | int | float | bool] | None = None,
    ) -> RecordedSpan:
        """Start a span with attributes that must not be set again."""
        span = RecordingTracer.request_span(self, name, parent)
        for key, value in (attributes or {}).items():
            span.set_attribute(key, value)
        span.fixed = frozenset(attributes or {})
        return span


async def test_a_tracer_with_initial_attributes(autojump_clock: MockClock) -> None:
    """A tracer with initial attributes gets the same attributes as any other, each of them once."""
    tracer, meter = AttributedTracer(), RecordingMeter()
    async with open_pair(tracer=tracer, meter=meter) as pair:
        await pair.people.upsert("ada", 1)
        await pair.people.get("ada")
        await pair.cluster.query_indexes().create_primary_index("travel")

    assert {"couchbase.service", "db.namespace", "db.operation.name"} <= tracer.roots[0].fixed
    assert_as_in_the_tables(tracer, meter)


async def test_explicit_and_implicit_parents(autojump_clock: MockClock) -> None:
    """An explicit parent is used; otherwise the tracer sees the caller's context, even for calls sent in one write."""
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


class Broken:
    """Tracer and meter that raise, or whose spans and recorders raise."""

    def __init__(self, *, makes_spans: bool) -> None:
        self._makes_spans = makes_spans

    def __repr__(self) -> str:
        return "<Broken>"

    def request_span(self, name: str, parent: RequestSpan | None = None) -> RequestSpan:
        """Raise, or return an object that raises."""
        return self._self_or_error()

    def value_recorder(self, name: str, tags: Mapping[str, str]) -> ValueRecorder:
        """Raise, or return an object that raises."""
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
async def test_exceptions_of_a_tracer(
    makes_spans: bool, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Exceptions of a tracer or meter fail no operation, and are logged once each with its name."""
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
    """Tracer and meter whose spans and recorders have no methods."""

    def request_span(self, name: str, parent: RequestSpan | None = None) -> RequestSpan:
        """Return an object without the methods of a span."""
        return cast(RequestSpan, object())

    def value_recorder(self, name: str, tags: Mapping[str, str]) -> ValueRecorder:
        """Return an object without the methods of a recorder."""
        return cast(ValueRecorder, object())


async def test_spans_without_methods(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """Spans and recorders without methods fail no operation, prevent no cancellation, and are logged once each."""
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
        # With a working tracer, the operations inside each of these calls have its span as their parent.
        assert {"n": 1} == (await pair.people.get_any_replica("ada")).content
        async with pair.people.scan(PrefixScan("a")) as found:
            assert ["ada"] == [item.id async for item in found]
        await pair.cluster.bucket("travel").collections().create_scope("paris")

    assert scope.cancelled_caught
    assert 2 == sum(record.name == "triclinium.telemetry" for record in caplog.records)


async def test_wrong_arguments_make_no_span(autojump_clock: MockClock) -> None:
    """A call with wrong arguments starts no span and records no duration, and encodes no value."""
    values: list[object] = []

    class Recording(JsonTranscoder):
        def encode(self, value: object) -> EncodedValue:
            values.append(value)
            return super().encode(value)

    coder, change = Recording(), MutateInSpec.upsert("n", 1)
    async with open_recorded() as (pair, tracer, meter):
        people = pair.people
        for call in (
            people.get(""),
            people.insert("ada", 1, expiry=-1, transcoder=coder),
            people.upsert(3, 1, transcoder=coder),  # type: ignore[arg-type]  # the wrong argument
            people.replace("ada", 1, cas=Cas(-1), transcoder=coder),
            people.mutate_in("ada", [change], cas=Cas(-1), transcoder=coder),
            people.mutate_in("ada", [change, MutateInSpec.remove(""), change], transcoder=coder),
        ):
            with pytest.raises(InvalidArgumentException):
                await call

    assert ([], [], []) == (tracer.spans, meter.values, values)


@pytest.mark.parametrize("tracer", [None, RecordingTracer()])
@pytest.mark.parametrize("orphans", [None, OrphanReporter()])
async def test_arguments_take_precedence_over_values(
    tracer: RecordingTracer | None, orphans: OrphanReporter | None, autojump_clock: MockClock
) -> None:
    """If an argument is invalid and the value cannot be encoded, the error is the same with and without telemetry."""
    async with open_pair(tracer=tracer, orphans=orphans) as pair:
        people, value = pair.people, object()
        for call in (
            people.insert("", value),
            people.upsert("", value),
            people.replace("ada", value, cas=Cas(-1)),
            people.mutate_in("ada", [MutateInSpec.upsert("n", value), MutateInSpec.remove("")]),
        ):
            with pytest.raises(InvalidArgumentException):
                await call
        with pytest.raises(EncodingFailureException):
            await people.upsert("ada", value)


def _calls() -> Iterator[tuple[str, inspect.Signature]]:
    for kind in PUBLIC.values():
        if inspect.isclass(kind) and kind.__module__.startswith("triclinium._"):
            for name, member in inspect.getmembers(kind, inspect.isfunction):
                signature = inspect.signature(member)
                if not name.startswith("_") and "retry_strategy" in signature.parameters:
                    yield f"{kind.__name__}.{name}", signature


async def test_the_parent_of_each_kind_of_call(autojump_clock: MockClock) -> None:
    """A given parent is the parent of the span of each kind of call to a service, and of a health check."""
    tracer = RecordingTracer()
    async with open_pair(tracer=tracer) as (_, cluster, _):
        bucket, given = cluster.bucket("travel"), tracer.request_span("given")
        blocks: list[AbstractAsyncContextManager[object]] = [
            cluster.query(STATEMENT, city="Oslo", parent_span=given, retry_strategy=Never()),
            cluster.analytics_query(STATEMENT, city="Oslo", parent_span=given, retry_strategy=Never()),
            cluster.search("hotels", MatchAllQuery(), parent_span=given, retry_strategy=Never()),
            bucket.view_query("hotels", "by_city", parent_span=given, retry_strategy=Never()),
        ]
        for block in blocks:
            # Nodes without a scripted response refuse the request, which has a span nevertheless.
            with suppress(CouchbaseException):
                async with block:
                    pass
        await bucket.ping(parent_span=given)
        await bucket.wait_until_ready(parent_span=given)
        await cluster.buckets().get_bucket("travel", parent_span=given)
        await bucket.collections().create_scope("new", parent_span=given)
        given.end()

    assert [
        "query",
        "analytics",
        "search",
        "views",
        "ping",
        "wait_until_ready",
        "manager_buckets_get_bucket",
        "manager_collections_create_scope",
    ] == [span.name for span in given.children]
    assert [] == tracer.broken_rules


def test_every_call_takes_a_parent_span() -> None:
    """RFC 0067 "SDK API Surface Area": every call with a retry strategy also takes a parent span."""
    found = dict(_calls())

    assert {"Collection.get", "Cluster.query", "UserManager.get_user", "BinaryCollection.append"} <= found.keys()
    for name, signature in found.items():
        assert "parent_span" in signature.parameters, name


@pytest.mark.parametrize("wrong_value", [object(), "tracer", 7, True, RecordingTracer, LoggingMeter])
@pytest.mark.parametrize("argument", ["tracer", "meter", "orphans"])
def test_an_invalid_tracer(argument: str, wrong_value: object) -> None:
    """``open_cluster`` refuses a tracer, meter or reporter without the method, or a class, and names the parameter."""
    wrong: dict[str, object] = {argument: wrong_value}
    with pytest.raises(InvalidArgumentException) as refused:
        open_cluster("memcached://127.0.0.1", **wrong)  # type: ignore[arg-type]  # a wrong type on purpose

    assert argument == refused.value.parameter
    assert argument in str(refused.value)
