"""Reference cycles, of which a call leaves none. The collector frees those that a program makes with its own objects.

A cycle keeps frames, and all their objects, alive until the garbage collector runs, or forever if it is disabled.
"""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar, Unpack

import pytest
import trio
from trio.testing import MockClock

import triclinium
from tests.rows import rows
from tests.trio_client.pair import Never, Waits
from tests.trio_client.recorded_telemetry import RecordingTracer
from triclinium import (
    Cluster,
    Collection,
    DurabilityLevel,
    EncodedValue,
    JsonTranscoder,
    StandardRetryStrategy,
    client_context,
    errors,
    fail_after,
    retry,
    retrying,
)
from triclinium.bulk import BulkOutcomes
from triclinium.management import CreateBucketSettings
from triclinium.retries import RetryAction, RetryReason, RetryRequest
from triclinium.scans import PrefixScan
from triclinium.search import MatchAllQuery
from triclinium.subdocument import LookupInSpec, MutateInSpec
from triclinium.testing import (
    ClientArguments,
    FakeAnswer,
    FakeCluster,
    Opcode,
    Service,
    delay,
    garble,
    gzipped,
    hang_up,
    hang_up_mid_request,
    open_fake_cluster,
    temporary_failure,
)
from triclinium_core.testing import FakeNodeOptions

T = TypeVar("T")
Call = Callable[[FakeCluster, Cluster], Awaitable[object]]

CALLS_COUNTED = 3
SHORT, LONG = 0.01, 100.0
"""Seconds. ``SHORT`` is a timeout, and ``LONG`` a delay of responses that exceeds every timeout of the client."""


class NotDoneError(Exception):
    """Error of a function that is retried."""


@pytest.fixture(autouse=True, scope="module")
def _old_objects_are_skipped() -> Iterator[None]:
    """Freeze the objects of earlier tests, so that collections are fast."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@asynccontextmanager
async def open_stocked(**arguments: Unpack[ClientArguments]) -> AsyncIterator[tuple[FakeCluster, Cluster]]:
    """Yield a fake cluster of two nodes with a document and scripted responses, and a client."""
    options = FakeNodeOptions(vbuckets=128)
    async with (
        open_fake_cluster(options=options, nodes=2, replicas=1) as fake,
        fake.open_client(**arguments) as cluster,
    ):
        await people(cluster).upsert("ada", {"a": 1})
        script = fake.nodes.script
        for service in (Service.QUERY, Service.ANALYTICS):
            script.answer("rows", FakeAnswer(rows=[{"a": 1}]), service=service)
            script.answer("error", FakeAnswer(errors=[{"code": 3000, "msg": "no"}]), service=service)
            script.answer("late error", FakeAnswer(rows=[1], errors=[{"code": 5000, "msg": "no"}]), service=service)
        script.answer("index", FakeAnswer(rows=[{"index": "i", "id": "ada", "score": 1.0}]), service=Service.SEARCH)
        script.answer("a/b", FakeAnswer(rows=[{"id": "ada", "key": 1, "value": 2}]), service=Service.VIEWS)
        yield fake, cluster


def people(cluster: Cluster) -> Collection:
    """Return the default collection."""
    return cluster.bucket("default").default_collection()


def nowhere(cluster: Cluster) -> Collection:
    """Return a collection that does not exist."""
    return cluster.bucket("default").scope("no").collection("no")


async def all_of(block: AbstractAsyncContextManager[Any]) -> list[object]:
    """Return all items of a block."""
    async with block as found:
        return [each async for each in found]


async def use_all(block: BulkOutcomes[object]) -> None:
    """Raise and catch the exceptions of all outcomes of a block."""
    async with block:
        async for _, outcome in block:
            with contextlib.suppress(errors.CouchbaseException):
                outcome.result()


def that_raises() -> Iterator[tuple[str, int]]:
    """Yield an item, and then raise."""
    yield "ada", 1
    raise NotDoneError


async def leave_with_an_exception(block: AbstractAsyncContextManager[object]) -> None:
    """Raise in a block after its source has raised."""
    async with block:
        await trio.sleep(1)
        raise NotDoneError


async def retried(attempt: Callable[[int], None]) -> None:
    """Call ``attempt`` with numbers from 1 until it succeeds or the strategy gives up."""
    number = 0

    async def numbered() -> None:
        nonlocal number
        number += 1
        attempt(number)

    await retry(numbered, strategy=StandardRetryStrategy(), on=NotDoneError)


def fail(number: int) -> None:
    """Raise on every attempt."""
    raise NotDoneError


def fail_twice(number: int) -> None:
    """Raise the first two times."""
    if number < 3:
        raise NotDoneError


async def in_a_loop() -> None:
    """Fail until the strategy gives up."""
    async for attempt in triclinium.attempts(StandardRetryStrategy(), on=NotDoneError):
        with attempt:
            raise NotDoneError


async def create_and_drop(cluster: Cluster) -> None:
    """Create a scope and a bucket, and drop them."""
    collections, buckets = cluster.bucket("default").collections(), cluster.buckets()
    await collections.create_scope("new")
    await collections.drop_scope("new")
    await buckets.create_bucket(CreateBucketSettings(name="new", ram_quota_mb=128))
    await buckets.drop_bucket("new")


async def leave_early(block: AbstractAsyncContextManager[Any]) -> None:
    """Read the first item of a block."""
    async with block as found:
        async for _ in found:
            break


SUCCESSES: Mapping[str, Call] = {
    "get": lambda _, cluster: people(cluster).get("ada"),
    "get_or_none": lambda _, cluster: people(cluster).get_or_none("nobody"),
    "exists": lambda _, cluster: people(cluster).exists("ada"),
    "upsert": lambda _, cluster: people(cluster).upsert("ada", {"a": 1}),
    "durable upsert": lambda _, cluster: people(cluster).upsert("ada", {"a": 1}, durability=DurabilityLevel.MAJORITY),
    "increment": lambda _, cluster: people(cluster).binary.increment("count", initial=1),
    "lookup_in": lambda _, cluster: people(cluster).lookup_in("ada", [LookupInSpec.get("a")]),
    "mutate_in": lambda _, cluster: people(cluster).mutate_in("ada", [MutateInSpec.upsert("a", 1)]),
    "get_any_replica": lambda _, cluster: people(cluster).get_any_replica("ada"),
    "get_all_replicas": lambda _, cluster: all_of(people(cluster).get_all_replicas("ada")),
    "lookup_in_any_replica": lambda _, cluster: people(cluster).lookup_in_any_replica("ada", [LookupInSpec.get("a")]),
    "scan": lambda _, cluster: all_of(people(cluster).scan(PrefixScan("a"))),
    "scan, left early": lambda _, cluster: leave_early(people(cluster).scan(PrefixScan("a"))),
    "get_many": lambda _, cluster: all_of(people(cluster).get_many(["ada"] * 3)),
    "get_many, left early": lambda _, cluster: leave_early(people(cluster).get_many(["ada"] * 300)),
    "upsert_many": lambda _, cluster: all_of(people(cluster).upsert_many({"ada": {"a": 1}, "bob": 1})),
    "insert_many, collected": lambda _, cluster: all_of(
        people(cluster).insert_many([("ada", 1), ("", 1), ("bob", object())], errors="collect")
    ),
    "insert_many, used": lambda _, cluster: use_all(people(cluster).insert_many({"ada": 1, "": 1})),
    "query": lambda _, cluster: all_of(cluster.query("rows")),
    "prepared query": lambda _, cluster: all_of(cluster.query("rows", adhoc=False)),
    "query, left early": lambda _, cluster: leave_early(cluster.query("rows")),
    "search": lambda _, cluster: all_of(cluster.search("index", MatchAllQuery())),
    "analytics": lambda _, cluster: all_of(cluster.analytics_query("rows")),
    "views": lambda _, cluster: all_of(cluster.bucket("default").view_query("a", "b")),
    "management": lambda _, cluster: create_and_drop(cluster),
    "users": lambda _, cluster: cluster.users().get_all_users(),
    "query indexes": lambda _, cluster: cluster.query_indexes().get_all_indexes("default"),
    "search indexes": lambda _, cluster: cluster.search_indexes().get_all_indexes(),
    "ping": lambda _, cluster: cluster.ping(),
    "wait_until_ready": lambda _, cluster: cluster.bucket("default").wait_until_ready(),
    "retry": lambda _, __: retried(fail_twice),
}
"""Calls that succeed."""


def with_fault(kind: Opcode | Service | None, fault: Any, call: Callable[[Cluster], Awaitable[object]]) -> Call:
    """Return a call whose requests of ``kind`` meet a fault on every node; None matches every request."""

    async def faulty(fake: FakeCluster, cluster: Cluster) -> object:
        for node in fake.nodes:
            node.faults.always(kind, fault)
        try:
            return await call(cluster)
        finally:
            for node in fake.nodes:
                node.faults.clear()

    return faulty


def too_slow(kind: Opcode | Service | None, call: Callable[[Cluster], Awaitable[object]]) -> Call:
    """Return a call within a ``fail_after`` block that expires before the response arrives."""

    async def limited(cluster: Cluster) -> object:
        with fail_after(SHORT):
            return await call(cluster)

    return with_fault(kind, delay(LONG), limited)


FAILURES: Mapping[str, Call] = {
    "get": lambda _, cluster: people(cluster).get("nobody"),
    "get, wrong argument": lambda _, cluster: people(cluster).get(""),
    "get, too slow": too_slow(Opcode.GET, lambda cluster: people(cluster).get("ada")),
    "get, no scope": lambda _, cluster: nowhere(cluster).get("ada"),
    "insert": lambda _, cluster: people(cluster).insert("ada", 1),
    "upsert, not encodable": lambda _, cluster: people(cluster).upsert("ada", object()),
    "upsert, refused": with_fault(Opcode.SET, temporary_failure(), lambda cluster: people(cluster).upsert("ada", 1)),
    "upsert, no answer": with_fault(Opcode.SET, delay(LONG), lambda cluster: people(cluster).upsert("ada", 1)),
    "upsert, nonsense": with_fault(Opcode.SET, garble(), lambda cluster: people(cluster).upsert("ada", 1)),
    "upsert, lost": with_fault(Opcode.SET, hang_up(), lambda cluster: people(cluster).upsert("ada", 1)),
    "lookup_in": lambda _, cluster: people(cluster).lookup_in("nobody", [LookupInSpec.get("a")]),
    "mutate_in": lambda _, cluster: people(cluster).mutate_in("ada", [MutateInSpec.replace("b.c", 1)]),
    "get_any_replica": lambda _, cluster: people(cluster).get_any_replica("nobody"),
    "get_any_replica, too slow": too_slow(None, lambda cluster: people(cluster).get_any_replica("ada")),
    "get_all_replicas": with_fault(None, delay(LONG), lambda cluster: all_of(people(cluster).get_all_replicas("ada"))),
    "scan": lambda _, cluster: all_of(nowhere(cluster).scan(PrefixScan("a"))),
    "insert_many": lambda _, cluster: all_of(people(cluster).insert_many({"ada": 1, "": 1})),
    "get_many, too slow": too_slow(Opcode.GET, lambda cluster: all_of(people(cluster).get_many(["ada"] * 3))),
    "upsert_many, source": lambda _, cluster: all_of(people(cluster).upsert_many(that_raises())),
    "upsert_many, source and body": lambda _, cluster: leave_with_an_exception(
        people(cluster).upsert_many(that_raises())
    ),
    "query": lambda _, cluster: all_of(cluster.query("error")),
    "query, after rows": lambda _, cluster: all_of(cluster.query("late error")),
    "query, too slow": too_slow(Service.QUERY, lambda cluster: all_of(cluster.query("rows"))),
    "query, lost": with_fault(Service.QUERY, hang_up(), lambda cluster: all_of(cluster.query("rows"))),
    "query, cut": with_fault(Service.QUERY, hang_up_mid_request(), lambda cluster: all_of(cluster.query("rows"))),
    "query, no answer": with_fault(Service.QUERY, delay(LONG), lambda cluster: all_of(cluster.query("rows"))),
    "query, encoded": with_fault(Service.QUERY, gzipped(), lambda cluster: all_of(cluster.query("rows"))),
    "query, wrong type": lambda _, cluster: all_of(cluster.query("rows", row_type=int)),
    "search": lambda _, cluster: all_of(cluster.search("nothing", MatchAllQuery())),
    "analytics": lambda _, cluster: all_of(cluster.analytics_query("error")),
    "views": lambda _, cluster: all_of(cluster.bucket("default").view_query("a", "nothing", retry_strategy=Never())),
    "management": lambda _, cluster: cluster.buckets().get_bucket("nothing"),
    "management, too slow": too_slow(Service.MANAGEMENT, lambda cluster: cluster.buckets().get_all_buckets()),
    "management, no answer": with_fault(
        Service.MANAGEMENT, delay(LONG), lambda cluster: cluster.query_indexes().watch_indexes("default", ["no"])
    ),
    "users": lambda _, cluster: cluster.users().get_user("nobody"),
    "query indexes": lambda _, cluster: cluster.query_indexes().drop_index("default", "nothing"),
    "search indexes": lambda _, cluster: cluster.search_indexes().get_index("nothing"),
    "wait_until_ready": too_slow(None, lambda cluster: cluster.bucket("nothing").wait_until_ready()),
    "retry": lambda _, __: retried(fail),
    "attempts": lambda _, __: in_a_loop(),
}
"""Calls that fail."""


async def outcome_of(call: Call, fake: FakeCluster, cluster: Cluster) -> type[Exception] | None:
    """Return the type of the exception that a call raises; None if it succeeds."""
    try:
        await call(fake, cluster)
    except Exception as error:
        return type(error)
    finally:
        # Wait until timers and tasks of the call have ended and lost connections are open again.
        await trio.sleep(1)
    return None


async def repeat(call: Call, fake: FakeCluster, cluster: Cluster) -> tuple[int, set[type[Exception] | None]]:
    """Make a call several times; return the number of objects in unreachable cycles, and the outcomes."""
    outcomes = {await outcome_of(call, fake, cluster)}
    gc.collect()
    gc.disable()
    try:
        for _ in range(CALLS_COUNTED):
            outcomes.add(await outcome_of(call, fake, cluster))
        return gc.collect(), outcomes
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("call", "succeeds"),
    [
        *(pytest.param(call, True, id=f"{name} succeeds") for name, call in SUCCESSES.items()),
        *(pytest.param(call, False, id=f"{name} fails") for name, call in FAILURES.items()),
    ],
)
async def test_a_call_leaves_no_cycle(call: Call, succeeds: bool, autojump_clock: MockClock) -> None:
    """After a call, with success or failure, no object is in an unreachable cycle."""
    async with open_stocked() as (fake, cluster):
        in_cycles, outcomes = await repeat(call, fake, cluster)

    assert 0 == in_cycles
    assert succeeds == (outcomes == {None})
    assert succeeds or None not in outcomes


SEVERAL: Sequence[tuple[Opcode | None, Callable[[Cluster], Awaitable[object]]]] = [
    (None, lambda cluster: people(cluster).get_any_replica("ada")),
    (None, lambda cluster: all_of(people(cluster).get_all_replicas("ada"))),
    (Opcode.RANGE_SCAN_CREATE, lambda cluster: all_of(people(cluster).scan(PrefixScan("a")))),
]
"""Calls of several operations, each after the opcode of the requests that are refused; None refuses all."""


@rows(("refused", "call"), SEVERAL)
async def test_a_pending_retry_leaves_no_cycle(
    refused: Opcode | None, call: Callable[[Cluster], Awaitable[object]], autojump_clock: MockClock
) -> None:
    """After a traced call of several operations that is abandoned before its retries, no object is in a cycle."""

    async def limited(cluster: Cluster) -> object:
        with fail_after(SHORT):
            return await call(cluster)

    tracer = RecordingTracer()
    async with open_stocked(tracer=tracer, retry_strategy=Waits(0.5)) as (fake, cluster):
        tracer.spans.clear()
        in_cycles, outcomes = await repeat(with_fault(refused, temporary_failure(), limited), fake, cluster)

    assert (0, {errors.UnambiguousTooSlowError}) == (in_cycles, outcomes)
    reported = [
        (span.attributes["couchbase.retries"], "triclinium.retry" in dict(span.events)) for span in tracer.roots
    ]
    assert [(0, True)] * (1 + CALLS_COUNTED) == reported


class Holder:
    """User object that is a strategy, a transcoder and a context value, and keeps the requests that it receives."""

    def __init__(self) -> None:
        self.kept: list[object] = []

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Refuse every retry, and keep the request."""
        self.kept.append(request)
        return RetryAction.no_retry()

    def encode(self, value: object, /) -> EncodedValue:
        """Encode as JSON."""
        return JSON.encode(value)

    def decode(self, data: bytes, flags: int, as_type: type[T], /) -> T:
        """Decode JSON."""
        return JSON.decode(data, flags, as_type)


class FailingHolder(Holder):
    """Variant of ``Holder`` whose strategy raises."""

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Raise."""
        raise NotDoneError


class AsyncHolder(Holder):
    """Variant of ``Holder`` whose asynchronous strategy raises."""

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:  # type: ignore[override]
        """Raise after a checkpoint."""
        await trio.lowlevel.checkpoint()
        raise NotDoneError


JSON = JsonTranscoder()
variable: ContextVar[Holder] = ContextVar("variable")
HeldCall = Callable[[FakeCluster, Cluster, Holder], Awaitable[object]]


async def in_context(call: Call, fake: FakeCluster, cluster: Cluster, holder: Holder) -> object:
    """Make a call while a context variable, the client context and the block's strategy reference the holder."""
    variable.set(holder)
    with client_context(holder=holder), retrying(holder):
        return await call(fake, cluster)


def refused(call: Callable[[Cluster, Holder], Awaitable[object]]) -> HeldCall:
    """Return a call whose requests are all refused with a temporary failure."""

    async def faulty(fake: FakeCluster, cluster: Cluster, holder: Holder) -> object:
        fault = with_fault(None, temporary_failure(), lambda cluster: call(cluster, holder))
        return await fault(fake, cluster)

    return faulty


HELD: Mapping[str, HeldCall] = {
    **{
        f"{name}, context": partial(in_context, FAILURES[name])
        for name in ("get", "get, too slow", "upsert, refused", "get_any_replica", "scan", "query", "management")
    },
    "get, transcoder": lambda _, cluster, holder: people(cluster).get("nobody", transcoder=holder),
    "get, result": lambda _, cluster, holder: people(cluster).get("ada", transcoder=holder),
    "get_any_replica, result": lambda _, cluster, holder: people(cluster).get_any_replica("ada", transcoder=holder),
    "get_all_replicas, results": lambda _, cluster, holder: all_of(
        people(cluster).get_all_replicas("ada", transcoder=holder)
    ),
    "lookup_in, result": lambda _, cluster, holder: people(cluster).lookup_in(
        "ada", [LookupInSpec.get("a")], transcoder=holder
    ),
    "mutate_in, result": lambda _, cluster, holder: people(cluster).mutate_in(
        "ada", [MutateInSpec.upsert("a", 1)], transcoder=holder
    ),
    "get_many, outcomes": lambda _, cluster, holder: all_of(
        people(cluster).get_many(["ada", "nobody"], transcoder=holder, errors="collect")
    ),
    "upsert_many, failure": refused(
        lambda cluster, holder: all_of(
            people(cluster).upsert_many({"ada": 1, "": 1}, transcoder=holder, retry_strategy=holder)
        )
    ),
    "scan, results": lambda _, cluster, holder: all_of(people(cluster).scan(PrefixScan("a"), transcoder=holder)),
    "upsert, strategy": refused(
        lambda cluster, holder: people(cluster).upsert("ada", 1, transcoder=holder, retry_strategy=holder)
    ),
    "durable upsert, strategy": refused(
        lambda cluster, holder: people(cluster).upsert(
            "ada", 1, durability=DurabilityLevel.MAJORITY, retry_strategy=holder
        )
    ),
    "query, strategy": lambda _, cluster, holder: all_of(cluster.query("error", retry_strategy=holder)),
}
"""Calls that involve a holder, which keeps their results and errors."""


async def held(call: HeldCall, fake: FakeCluster, holder: Holder) -> Callable[[], object]:
    """Let the holder keep the cluster and the result or error of a call; return a weak reference to the driver."""
    async with fake.open_client() as cluster:
        holder.kept.append(cluster)
        try:
            holder.kept.append(await call(fake, cluster, holder))
        except Exception as error:
            holder.kept.append(error)
        return weakref.ref(cluster._driver)


@pytest.mark.parametrize("make", [Holder, FailingHolder, AsyncHolder])
@rows("call", HELD.values())
async def test_objects_of_a_user_are_freed(call: HeldCall, make: type[Holder], autojump_clock: MockClock) -> None:
    """The collector frees a user object that keeps the result or the error of its call after the client is closed."""
    async with open_stocked() as (fake, _):
        holder = make()
        found = weakref.ref(holder)
        client: list[Callable[[], object]] = []

        async def hold(holder: Holder) -> None:
            client.append(await held(call, fake, holder))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(hold, holder)
            del holder
        gc.collect()

        assert (None, None) == (found(), client[0]())
