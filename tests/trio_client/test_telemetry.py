"""Spans and metrics of calls, compared with the tables of SDK-RFC 0067."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
import trio
import trio.testing
from trio.testing import MockClock

import triclinium
from tests.trio_client.pair import OPTIONS, open_pair
from tests.trio_client.recorded_telemetry import RecordingMeter, RecordingTracer
from tests.trio_client.telemetry_tables import (
    ALWAYS_OUTER,
    COMMON,
    OF_A_DOCUMENT,
    OF_A_NODE,
    STATEMENT,
    assert_as_in_the_tables,
    open_recorded,
)
from triclinium import Cluster, DurabilityLevel, Service, open_cluster
from triclinium.errors import DocumentNotFoundException, EncodingFailureException
from triclinium.subdocument import LookupInSpec, MutateInSpec
from triclinium.telemetry import StatusCode
from triclinium.testing import FakeAnswer, Opcode, drop_response, hang_up, open_fake_cluster
from triclinium_core.telemetry.span_names import DISPATCH, ENCODING

SECRET = "secret-key"
VALUE = "secret-value"


async def test_attributes_of_a_document_operation(autojump_clock: MockClock) -> None:
    """The outer span, its encoding and its attempt have exactly the attributes of the RFC, and so does the metric."""
    async with open_recorded() as (pair, tracer, meter):
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
    assert StatusCode.OK is upsert.status
    ((name, tags, _),) = meter.values
    assert {key: value for key, value in upsert.attributes.items() if key != "couchbase.retries"} == tags
    assert "db.client.operation.duration" == name


async def test_durability_of_encoded_writes(autojump_clock: MockClock) -> None:
    """The span of a write whose value is encoded has the durability of the write."""
    majority = DurabilityLevel.MAJORITY
    async with open_recorded() as (pair, tracer, _):
        await pair.people.insert("ada", {}, durability=majority)
        await pair.people.upsert("ada", {}, durability=majority)
        await pair.people.replace("ada", {}, durability=majority)
        await pair.people.mutate_in("ada", [MutateInSpec.upsert("n", 1)], durability=majority)

    assert [(name, "majority") for name in ("insert", "upsert", "replace", "mutate_in")] == [
        (span.name, span.attributes["couchbase.durability"]) for span in tracer.roots
    ]


async def test_every_document_operation_has_a_span(autojump_clock: MockClock) -> None:
    """Every operation has a span with one attempt, after any encoding of its value; no attribute has key or value."""
    async with open_recorded() as (pair, tracer, meter):
        people, binary = pair.people, pair.people.binary
        await people.insert(SECRET, {"n": VALUE})
        await people.replace(SECRET, {"n": VALUE}, durability=DurabilityLevel.MAJORITY)
        await people.exists(SECRET)
        await people.get_and_touch(SECRET, None)
        await people.touch(SECRET, None)
        await people.lookup_in(SECRET, [LookupInSpec.get("n")])
        await people.mutate_in(SECRET, [MutateInSpec.upsert("n", VALUE)])
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
    received = repr([(span.name, span.attributes, span.events) for span in tracer.spans]) + repr(meter.values)
    assert SECRET not in received
    assert VALUE not in received


@pytest.mark.parametrize(
    ("key", "status", "name"),
    [("nobody", StatusCode.UNSET, "DocumentNotFound"), ("", StatusCode.ERROR, "UnambiguousTimeout")],
)
async def test_failures_have_an_error_type(key: str, status: StatusCode, name: str, autojump_clock: MockClock) -> None:
    """A missing document leaves the span's status unset, and a timeout sets ERROR; both have an error type."""
    async with open_recorded() as (pair, tracer, meter):
        if not key:
            pair.fake.node.faults.next(Opcode.GET, drop_response())
        with pytest.raises((DocumentNotFoundException, triclinium.errors.TimeoutException)):
            await pair.people.get(key or "ada")

    (get,) = tracer.roots
    ((_, tags, microseconds),) = meter.values
    assert (status, name, name) == (get.status, get.attributes["error.type"], tags["error.type"])
    assert bool(key) == (microseconds < 1_000_000)


async def test_a_none_result_has_no_error(autojump_clock: MockClock) -> None:
    """If ``get_or_none`` returns None, its span has status OK and no error type; a timeout has ERROR and a type."""
    async with open_recorded() as (pair, tracer, meter):
        assert await pair.people.get_or_none("nobody") is None
        pair.fake.node.faults.next(Opcode.GET, drop_response())
        with pytest.raises(triclinium.errors.TimeoutException):
            await pair.people.get_or_none("ada")

    missing, late = tracer.roots
    assert (StatusCode.OK, False) == (missing.status, "error.type" in missing.attributes)
    assert (StatusCode.ERROR, "UnambiguousTimeout") == (late.status, late.attributes["error.type"])
    assert [False, True] == ["error.type" in tags for _, tags, _ in meter.values]


async def test_internal_requests_make_no_spans(autojump_clock: MockClock) -> None:
    """Neither the bootstrap nor keep-alive requests have spans."""
    async with open_recorded() as (pair, tracer, meter):
        await pair.people.exists("ada")
        await trio.sleep(600)

    assert [("exists", DISPATCH)] == tracer.shapes()
    assert 1 == len(meter.values)


async def test_a_failed_encoding(autojump_clock: MockClock) -> None:
    """The spans of a value that cannot be encoded end with the error, and there is no attempt."""
    async with open_recorded() as (pair, tracer, meter):
        with pytest.raises(EncodingFailureException):
            await pair.people.upsert("ada", object())

    assert [("upsert", ENCODING)] == tracer.shapes()
    assert "EncodingFailure" == tracer.roots[0].attributes["error.type"] == meter.values[0][1]["error.type"]


async def test_a_closed_cluster_ends_all_spans(autojump_clock: MockClock) -> None:
    """Closing the cluster ends the spans of waiting operations and of unread rows."""
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
            # Wait until the first row has arrived, but not until the second arrives.
            await trio.sleep(15)
            pair.fake.node.faults.next(Opcode.GET, drop_response())
            nursery.start_soon(wait)
            await trio.sleep(1)
            assert 4 == len(tracer.broken_rules)

        assert [] == tracer.broken_rules


async def test_spans_of_management_calls(autojump_clock: MockClock) -> None:
    """A management call has a span, with several requests or a statement as children; the metric counts the call."""
    async with open_recorded() as (pair, tracer, meter):
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


async def test_the_span_of_a_ping(autojump_clock: MockClock) -> None:
    """RFC 0067: the span of a ping names no service; its children are the pings of all endpoints."""
    async with open_recorded() as (pair, tracer, _):
        result = await pair.cluster.ping()

    (ping,) = tracer.roots
    of_kv, *of_services = ping.children
    assert ("ping", ALWAYS_OUTER) == (ping.name, {*ping.attributes})
    assert [DISPATCH] * len(Service) == [span.name for span in ping.children]
    assert OF_A_NODE | {"couchbase.local_id", "couchbase.operation_id", "couchbase.server_duration"} == (
        of_kv.attributes.keys()
    )
    assert [OF_A_NODE] * len(of_services) == [span.attributes.keys() for span in of_services]
    assert {endpoint.remote for found in result.endpoints.values() for endpoint in found} == {
        f"{span.attributes['network.peer.address']}:{span.attributes['network.peer.port']}" for span in ping.children
    }


async def test_unanswered_pings(autojump_clock: MockClock) -> None:
    """The spans of unanswered pings end with that of the call, even a cancelled one, without a server duration."""
    async with open_recorded() as (pair, tracer, _):
        for _ in range(2):
            pair.fake.node.faults.next(Opcode.NOOP, drop_response())
            pair.fake.node.faults.next(Service.QUERY, drop_response())
            with trio.move_on_after(1 if tracer.spans else math.inf):
                await pair.cluster.ping(service_types=(Service.KV, Service.QUERY))

    reported, cancelled = tracer.roots
    assert ("ping", DISPATCH, DISPATCH) == reported.shape() == cancelled.shape()
    assert not any("couchbase.server_duration" in span.attributes for span in tracer.spans)
    assert (StatusCode.OK, StatusCode.UNSET) == (reported.status, cancelled.status)


async def test_the_span_of_wait_until_ready(autojump_clock: MockClock) -> None:
    """``wait_until_ready``, which the RFC lacks, has a span whose children are the repeated pings of HTTP services."""
    async with open_recorded() as (pair, tracer, _):
        pair.fake.node.faults.next(Service.QUERY, hang_up())
        await pair.cluster.wait_until_ready(service_types=(Service.KV, Service.QUERY))

    assert [("wait_until_ready", DISPATCH, DISPATCH)] == tracer.shapes()


async def _upsert(cluster: Cluster) -> None:
    await cluster.bucket("travel").default_collection().upsert("ada", 1)


async def _read_all_copies(cluster: Cluster) -> None:
    async with cluster.bucket("travel").default_collection().get_all_replicas("ada") as copies:
        assert [] == [copy async for copy in copies]


async def _read_without_result(cluster: Cluster) -> None:
    with pytest.raises(DocumentNotFoundException):
        await cluster.bucket("travel").default_collection().get("nobody")


async def _create_index(cluster: Cluster) -> None:
    await cluster.query_indexes().create_primary_index("travel")


async def _ping(cluster: Cluster) -> None:
    await cluster.ping()


@pytest.mark.parametrize("call", [_upsert, _read_all_copies, _read_without_result, _create_index, _ping])
async def test_labels_of_the_cluster(call: Callable[[Cluster], Awaitable[None]], autojump_clock: MockClock) -> None:
    """If a call starts before the first config, its metric and the spans that end after the config have labels."""
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


async def test_addresses_of_an_alternate_network(autojump_clock: MockClock) -> None:
    """RFC 0067: server attributes have the node's own address, even in an alternate network."""
    tracer = RecordingTracer()
    options = replace(OPTIONS, alternate_addresses={"external": ("ext.example", 31210)})
    async with (
        open_fake_cluster(options=options) as fake,
        open_cluster(
            "couchbase://ext.example:31210", fake.authenticator, connector=fake.connector, tracer=tracer
        ) as cluster,
    ):
        people = cluster.bucket("travel").default_collection()
        await people.upsert("ada", 1)
        await people.get("ada")
        connected = {each.node for each in cluster.statistics().connections}

    dispatch = tracer.roots[-1].children[-1]
    assert {"ext.example:31210"} == connected
    assert ("127.0.0.1", 11210) == (dispatch.attributes["server.address"], dispatch.attributes["server.port"])
