"""Deadline that all requests of a management call share, and the error when it passes."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import trio
from trio.testing import MockClock

from tests.rows import rows
from triclinium import Cluster, TimeoutOptions, errors, fail_after
from triclinium.management import BucketSettings, BucketType
from triclinium.testing import FakeCluster, Service, delay, drop_response, http_status, open_fake_cluster
from triclinium_core.testing import FakeNodeOptions

OPTIONS = FakeNodeOptions(collections={"_default": {"_default": 0}, "inventory": {"hotel": 8}})
TRAVEL = BucketSettings(name="travel", ram_quota_mb=100)
CACHE = replace(TRAVEL, name="cache", bucket_type=BucketType.MEMCACHED)
TIMEOUT = 5.0
FIRST = 3.0
"""Seconds until the response to the first request of a call; they are part of ``TIMEOUT``."""
WARMING_UP = http_status(
    200,
    body=b'{"name":"travel","quota":{"rawRAM":104857600},"nodes":[{"hostname":"10.0.0.1:8091","status":"warmup"}]}',
)


@asynccontextmanager
async def opened(management: float = TIMEOUT) -> AsyncIterator[tuple[FakeCluster, Cluster]]:
    """Yield a fake cluster of one node, and a client."""
    timeouts = TimeoutOptions(management=management, query=20.0)
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client(timeouts=timeouts) as cluster:
        await cluster.bucket("default").wait_until_ready()
        yield fake, cluster


async def create_what_is_not_opened(fake: FakeCluster, cluster: Cluster) -> None:
    """Create a bucket that the key-value service does not let the client select."""
    fake.nodes.learn_late(0, 60.0)
    fake.node.faults.next(Service.MANAGEMENT, delay(FIRST))
    await cluster.buckets().create_bucket(TRAVEL)


async def create_what_warms_up(fake: FakeCluster, cluster: Cluster) -> None:
    """Create a memcached bucket, whose state only the management service knows, and which stays in warmup."""
    fake.node.faults.next(Service.MANAGEMENT, delay(FIRST))
    fake.node.faults.always(Service.MANAGEMENT, WARMING_UP)
    await cluster.buckets().create_bucket(CACHE)


async def create_and_hear_no_more(fake: FakeCluster, cluster: Cluster) -> None:
    """Create a bucket on a service that does not respond to later requests."""
    fake.node.faults.next(Service.MANAGEMENT, delay(FIRST))
    fake.node.faults.always(Service.MANAGEMENT, drop_response())
    await cluster.buckets().create_bucket(TRAVEL)


async def drop_what_stays(fake: FakeCluster, cluster: Cluster) -> None:
    """Drop a bucket that the management service continues to list."""
    fake.node.faults.next(Service.MANAGEMENT, delay(FIRST))
    fake.node.faults.always(Service.MANAGEMENT, WARMING_UP)
    await cluster.buckets().drop_bucket("default")


async def create_without_a_response(fake: FakeCluster, cluster: Cluster) -> None:
    """Create a scope that a node still does not know at the deadline."""
    fake.nodes.learn_late(0, 60.0)
    fake.node.faults.next(Service.MANAGEMENT, delay(FIRST))
    await cluster.bucket("default").collections().create_scope("other")


async def build_without_an_answer(fake: FakeCluster, cluster: Cluster) -> None:
    """Build indexes on a service that responds to no request after the first."""
    hotels = cluster.bucket("default").scope("inventory").collection("hotel").query_indexes()
    await hotels.create_index("by_city", ["city"], deferred=True)
    fake.node.faults.next(Service.QUERY, delay(FIRST))
    fake.node.faults.always(Service.QUERY, drop_response())
    await hotels.build_deferred_indexes()


async def watch_what_is_not_built(fake: FakeCluster, cluster: Cluster) -> None:
    """Wait for an index that is never built."""
    hotels = cluster.bucket("default").scope("inventory").collection("hotel").query_indexes()
    await hotels.create_index("by_city", ["city"], deferred=True)
    await hotels.watch_indexes(["by_city"])


async def ask_without_an_answer(fake: FakeCluster, cluster: Cluster) -> None:
    """Create an index on a service that does not respond."""
    fake.node.faults.always(Service.QUERY, drop_response())
    await cluster.query_indexes().create_index("default", "by_city", ["city"])


Call = Callable[[FakeCluster, Cluster], Awaitable[None]]
LATE: Sequence[tuple[Call, str, str]] = (
    (create_what_is_not_opened, "create_bucket", "11210"),
    (create_what_warms_up, "create_bucket", "10.0.0.1:8091: warmup"),
    (create_and_hear_no_more, "create_bucket", "done, but"),
    (drop_what_stays, "drop_bucket", "bucket 'default' is still there"),
    (create_without_a_response, "create_scope", "has manifest"),
    (build_without_an_answer, "build_deferred_indexes", "may have been applied"),
)


@rows(("call", "name", "text"), LATE)
async def test_one_deadline_for_all_requests(
    autojump_clock: MockClock,
    caplog: pytest.LogCaptureFixture,
    call: Call,
    name: str,
    text: str,
) -> None:
    """The first request's time counts toward the deadline of a call; the error names the call and is logged once."""
    caplog.clear()
    async with opened() as (fake, cluster):
        began_at = trio.current_time()
        with pytest.raises(errors.AmbiguousTimeoutException, match=text) as caught:
            await call(fake, cluster)

        assert TIMEOUT == pytest.approx(trio.current_time() - began_at, abs=0.01)
        assert caught.value.message.startswith(f"{name}: ")
        assert (name, TIMEOUT) == (caught.value.context.operation, caught.value.context.timeout)
        assert TIMEOUT == pytest.approx(caught.value.context.elapsed, abs=0.01)
        assert 0 == cluster.statistics().open_operations
    assert 1 == sum(record.name == "triclinium.timeout" for record in caplog.records)


async def test_user_data_of_a_timeout_between_requests(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A call that times out between two requests logs its context with user data in marks, as during a request."""
    timeouts = TimeoutOptions(management=TIMEOUT)
    async with (
        open_fake_cluster(options=OPTIONS) as fake,
        fake.open_client(timeouts=timeouts, redact_logs=True) as cluster,
    ):
        with pytest.raises(errors.AmbiguousTimeoutException) as late:
            await create_what_warms_up(fake, cluster)
    path = late.value.context.http_path
    (line,) = [record.getMessage() for record in caplog.records if record.name == "triclinium.timeout"]

    assert path is not None
    assert f"<ud>{path}</ud>" in line


async def test_a_timeout_of_the_first_request(autojump_clock: MockClock) -> None:
    """If the first request times out, the error has the context of that request."""
    async with opened() as (fake, cluster):
        fake.node.faults.always(Service.MANAGEMENT, drop_response())
        began_at = trio.current_time()
        with pytest.raises(errors.AmbiguousTimeoutException) as caught:
            await cluster.buckets().create_bucket(TRAVEL)

        assert TIMEOUT == pytest.approx(trio.current_time() - began_at, abs=0.01)
        assert ("create_bucket", TIMEOUT) == (caught.value.context.operation, caught.value.context.timeout)
        assert caught.value.context.last_dispatched_to is not None


async def test_no_deadline(autojump_clock: MockClock) -> None:
    """A call without a deadline can last twice the default timeout."""
    async with opened(management=math.inf) as (fake, cluster):
        fake.nodes.learn_late(0, 150.0)
        began_at = trio.current_time()
        await cluster.buckets().create_bucket(TRAVEL)

        assert 150.0 <= trio.current_time() - began_at <= 160.0


async def test_watch_indexes_has_no_deadline(autojump_clock: MockClock) -> None:
    """``watch_indexes`` waits until the caller's scope ends, here 60 times as long as the management timeout."""
    async with opened() as (fake, cluster):
        with trio.move_on_after(60 * TIMEOUT) as scope:
            await watch_what_is_not_built(fake, cluster)

        assert scope.cancelled_caught


@rows(
    ("call", "name", "ambiguous", "awaited"),
    [
        (create_what_warms_up, "create_bucket", True, ("10.0.0.1:8091: warmup",)),
        (drop_what_stays, "drop_bucket", True, ("bucket 'default' is still there",)),
        (create_without_a_response, "create_scope", True, ()),
        (create_and_hear_no_more, "create_bucket", True, ()),
        (watch_what_is_not_built, "watch_indexes", False, ("index 'by_city' is deferred",)),
        (ask_without_an_answer, "create_query_index", True, ()),
    ],
)
async def test_the_callers_deadline(
    autojump_clock: MockClock, call: Call, name: str, ambiguous: bool, awaited: tuple[str, ...]
) -> None:
    """``fail_after`` lists the call once, with public name and ambiguity; outer scopes get the same exception."""
    async with opened(management=75.0) as (fake, cluster):
        with (
            fail_after(60.0) as outer,
            pytest.raises((errors.AmbiguousTooSlowError, errors.UnambiguousTooSlowError)) as caught,
            fail_after(4.25),
        ):
            await call(fake, cluster)

        (reported,) = caught.value.operations
        assert (name, ambiguous, awaited) == (reported.operation, reported.ambiguous, reported.context.awaited)
        assert ambiguous is isinstance(caught.value, errors.AmbiguousTimeoutException)
        assert not outer.cancel_called
        assert all(each in str(caught.value) for each in awaited)


async def test_an_expired_deadline_sends_nothing(autojump_clock: MockClock) -> None:
    """If the deadline has passed before the call, the error lists no operations."""
    async with opened() as (_, cluster):
        with pytest.raises(errors.UnambiguousTimeoutException) as caught, fail_after(0):
            await cluster.buckets().create_bucket(TRAVEL)

        assert isinstance(caught.value, errors.UnambiguousTooSlowError)
        assert () == caught.value.operations
