"""Faults that CouchbaseMock injects: statuses, late and lost responses, and nodes that fail and return."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple, TypeVar

import pytest
import trio

from tests.live.couchbase_mock import CouchbaseMock
from tests.live.waiting import PATIENT, until
from tests.never_retry import NeverRetry
from triclinium import Cluster, Collection, TimeoutOptions, errors
from triclinium.retries import RetryReason
from triclinium.subdocument import LookupInSpec, MutateInSpec, StoreSemantics
from triclinium_core.explain.couchbase.explain import CouchbaseCase, explain
from triclinium_core.explain.couchbase.happenings import KvAnswer
from triclinium_core.explain.explanation import Explanation, Outcome
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry import couchbase

R = TypeVar("R")

pytestmark = pytest.mark.live

HASTY = TimeoutOptions(kv=0.5)
"""Timeouts for operations that can only time out."""
KEYS = [f"key-{number}" for number in range(60)]

FAILOVERS_MAX = 5
"""Maximum number of failovers until one of them hits a write in flight."""

STATUSES = [*range(0x08), 0x09, 0x20, 0x21, 0x24, *range(0x81, 0x87), *range(0xC0, 0xCC), 0x7FF0, 0x7FF1, 0x7FF2]
"""Statuses that OPFAIL supports, except the one that applies only to subdocument operations."""


class Operated(NamedTuple):
    """Operation on an existing document, or an insert. If the operation needs a lock, it gets the CAS of the lock."""

    opcode: Opcode
    perform: Callable[[Collection, str, Any, couchbase.AnyRetryStrategy], Awaitable[object]]
    needs_lock: bool = False


OPERATIONS: dict[str, Operated] = {
    "get": Operated(Opcode.GET, lambda store, key, cas, by: store.get(key, retry_strategy=by)),
    "get_and_touch": Operated(
        Opcode.GET_AND_TOUCH, lambda store, key, cas, by: store.get_and_touch(key, None, retry_strategy=by)
    ),
    "get_and_lock": Operated(
        Opcode.GET_AND_LOCK,
        lambda store, key, cas, by: store.get_and_lock(key, timedelta(seconds=1), retry_strategy=by),
    ),
    "unlock": Operated(
        Opcode.UNLOCK, lambda store, key, cas, by: store.unlock(key, cas, retry_strategy=by), needs_lock=True
    ),
    "touch": Operated(Opcode.TOUCH, lambda store, key, cas, by: store.touch(key, None, retry_strategy=by)),
    "insert": Operated(Opcode.ADD, lambda store, key, cas, by: store.insert(f"{key}+", 1, retry_strategy=by)),
    "upsert": Operated(Opcode.SET, lambda store, key, cas, by: store.upsert(key, 1, retry_strategy=by)),
    "replace": Operated(Opcode.REPLACE, lambda store, key, cas, by: store.replace(key, 1, retry_strategy=by)),
    "remove": Operated(Opcode.DELETE, lambda store, key, cas, by: store.remove(key, retry_strategy=by)),
    "append": Operated(Opcode.APPEND, lambda store, key, cas, by: store.binary.append(key, b"1", retry_strategy=by)),
    "prepend": Operated(Opcode.PREPEND, lambda store, key, cas, by: store.binary.prepend(key, b"1", retry_strategy=by)),
    "increment": Operated(Opcode.INCREMENT, lambda store, key, cas, by: store.binary.increment(key, retry_strategy=by)),
    "decrement": Operated(Opcode.DECREMENT, lambda store, key, cas, by: store.binary.decrement(key, retry_strategy=by)),
}

SUBDOCUMENT_OPERATIONS: dict[str, Operated] = {
    "lookup_in": Operated(
        Opcode.SUBDOC_MULTI_LOOKUP,
        lambda store, key, cas, by: store.lookup_in(key, [LookupInSpec.get("name")], retry_strategy=by),
    ),
    "mutate_in": Operated(
        Opcode.SUBDOC_MULTI_MUTATION,
        lambda store, key, cas, by: store.mutate_in(
            f"{key}+", [MutateInSpec.upsert("name", 1)], store_semantics=StoreSemantics.UPSERT, retry_strategy=by
        ),
    ),
}


async def persist(call: Callable[[], Awaitable[R]]) -> R:
    """Repeat a call until it does not time out, and return its result. Only a busy machine may cause the timeouts."""
    while True:
        try:
            return await call()
        except errors.TimeoutException:
            continue


@asynccontextmanager
async def client_of(
    mock: CouchbaseMock, timeouts: TimeoutOptions = PATIENT, *keys: str
) -> AsyncIterator[tuple[Cluster, Collection]]:
    """Yield a client that is connected to the nodes of the stored ``keys``, and its collection."""
    async with mock.open_client(timeouts=timeouts) as (cluster, store):
        for key in keys:
            await persist(partial(store.upsert, key, 1))
        yield cluster, store


# -- Statuses.


def explained(
    operation: str, status: int, entry: couchbase.ErrorMapEntry | None, strategy: couchbase.AnyRetryStrategy
) -> Explanation:
    """Return the explanation of a status in the first response to an operation."""
    return explain(
        CouchbaseCase(
            service=couchbase.Service.KV, operation=operation, happened=KvAnswer(int(status), entry), strategy=strategy
        )
    )


async def check(
    mock: CouchbaseMock,
    cluster: Cluster,
    key: str,
    expected: Explanation,
    *,
    status: int,
    by: couchbase.AnyRetryStrategy,
) -> None:
    """Make the mock respond to an operation with a status, and check that the client behaves as expected."""
    name, action = str(expected.facts["operation"]), expected.facts["action"]
    operated, store = (OPERATIONS | SUBDOCUMENT_OPERATIONS)[name], cluster.bucket(mock.bucket).default_collection()
    await store.upsert(key, 1)
    cas = (await store.get_and_lock(key, timedelta(seconds=20))).cas if operated.needs_lock else None
    before = dict(cluster.statistics().retries_by_reason)
    mock.fail(status, opcode=operated.opcode, count=2 if action == Outcome.RETRY else 1)
    error: errors.CouchbaseException | None = None
    try:
        await operated.perform(store, key, cas, by)
    except errors.CouchbaseException as raised:
        error = raised
    after = dict(cluster.statistics().retries_by_reason)
    mock.fail(0, count=0)

    seen = {reason: count - before.get(reason, 0) for reason, count in after.items() if count != before.get(reason, 0)}
    if action == Outcome.RETRY:
        assert (None, {expected.facts["reason"]: 2}) == (error, seen), name
    elif action == Outcome.COMPLETE:
        assert (None, {}) == (error, seen), name
    else:
        assert error is not None, name
        assert (expected.facts["error"], {}) == (type(error).__name__, seen), name
        assert (name, 0, status) == (error.context.operation, error.context.retry_attempts, error.context.status)


@pytest.mark.parametrize("status", STATUSES, ids=lambda status: f"0x{status:02x}")
@pytest.mark.parametrize(
    "strategy", [couchbase.FastFailOnTerminalErrorRetryStrategy, NeverRetry], ids=lambda kind: kind.__name__
)
async def test_the_client_follows_explain(
    couchbase_mock: CouchbaseMock, cluster: Cluster, key: str, status: int, strategy: type[couchbase.AnyRetryStrategy]
) -> None:
    """For each injected status, every operation completes, fails or is retried as `triclinium explain` describes."""
    entry = couchbase_mock.error_map.entries.get(status)
    for name in OPERATIONS | SUBDOCUMENT_OPERATIONS:
        expected = explained(name, status, entry, strategy())
        await check(couchbase_mock, cluster, f"{key}-{name}", expected, status=status, by=strategy())


@pytest.mark.parametrize(
    "status", [couchbase.Status.OUT_OF_MEMORY, couchbase.Status.BUSY, 0x7FF0], ids=lambda status: f"0x{status:02x}"
)
async def test_the_error_map_decides(safety_net: None, couchbase_mock: CouchbaseMock, key: str, status: int) -> None:
    """Without an error map, a status that the map would have retried fails without a retry."""
    couchbase_mock.fail(couchbase.Status.NOT_SUPPORTED, opcode=Opcode.GET_ERROR_MAP)
    async with client_of(couchbase_mock, PATIENT, key) as (cluster, _):
        strategy = couchbase.FastFailOnTerminalErrorRetryStrategy()
        expected = explained("get", status, None, strategy)
        assert (Outcome.FAIL,) == expected.outcomes
        await check(couchbase_mock, cluster, key, expected, status=status, by=strategy)


async def test_an_impossible_status(couchbase_mock: CouchbaseMock, cluster: Cluster, key: str) -> None:
    """A status of another operation fails the operation that received it, and no other (D26)."""
    status = couchbase.Status.SUBDOC_MULTI_PATH_FAILURE
    for name, operated in OPERATIONS.items():
        expected = explained(name, status, None, couchbase.FastFailOnTerminalErrorRetryStrategy())
        store = cluster.bucket(couchbase_mock.bucket).default_collection()
        await store.upsert(key, 1)
        cas = (await store.get_and_lock(key, timedelta(seconds=20))).cas if operated.needs_lock else None
        couchbase_mock.fail(status, opcode=operated.opcode, count=1)
        with pytest.raises(errors.DecodingFailureException):
            await operated.perform(store, key, cas, couchbase.FastFailOnTerminalErrorRetryStrategy())

        assert ((Outcome.FAIL,), "DecodingFailureException") == (expected.outcomes, expected.facts["error"]), name
        if cas is not None:
            await store.unlock(key, cas)


async def test_an_error_has_the_servers_text(couchbase_mock: CouchbaseMock, store: Collection, key: str) -> None:
    """An error has the server's text and reference, and the error map's description of its status."""
    couchbase_mock.do("SET_ENHANCED_ERRORS", enabled=True)
    with pytest.raises(errors.DocumentNotFoundException) as missing:
        await store.get(key)
    couchbase_mock.fail(0x7FF0, opcode=Opcode.GET)
    with pytest.raises(errors.CouchbaseException) as refused:
        await store.get(key, retry_strategy=NeverRetry())

    assert "Failed to lookup item" == missing.value.context.server_context
    assert missing.value.context.server_ref
    assert "DUMMY_ERROR_RETRY_CONSTANT" == refused.value.context.status_name
    assert "Dummy retry error for constant backoff" == refused.value.context.status_text
    assert missing.value.context.server_ref != refused.value.context.server_ref


async def test_moved_vbuckets_are_always_tried_again(
    couchbase_mock: CouchbaseMock, cluster: Cluster, store: Collection, key: str
) -> None:
    """The client retries an operation after each NOT_MY_VBUCKET response, even under a strategy that never retries."""
    couchbase_mock.fail(couchbase.Status.NOT_MY_VBUCKET, opcode=Opcode.SET, count=4)
    await store.upsert(key, 1, retry_strategy=NeverRetry())

    assert {RetryReason.KV_NOT_MY_VBUCKET: 4} == cluster.statistics().retries_by_reason


# -- Late and lost responses.


async def test_a_slow_node(couchbase_mock: CouchbaseMock, cluster: Cluster, store: Collection, key: str) -> None:
    """With a sufficient timeout, operations on a slow node succeed without retries."""
    found = list[object]()

    async def write_and_read(number: int) -> None:
        await store.upsert(f"{key}{number}", number)
        found.append((await store.get(f"{key}{number}")).content)

    await store.upsert(key, 1)
    couchbase_mock.hiccup(20)
    async with trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(write_and_read, number)

    assert list(range(10)) == sorted(int(str(number)) for number in found)
    assert ({}, 0) == (cluster.statistics().retries_by_reason, cluster.statistics().orphans)


@pytest.mark.parametrize("lost", [False, True], ids=["held back", "lost"])
async def test_late_and_lost_responses(safety_net: None, couchbase_mock: CouchbaseMock, key: str, lost: bool) -> None:
    """A write without a response times out ambiguously, a read unambiguously, and the connection stays in use."""
    mock = couchbase_mock
    async with client_of(mock, HASTY, key) as (cluster, store):
        # On a busy machine, the first writes may have timed out, too.
        await until(lambda: not cluster.statistics().in_flight)
        connections, orphans = ready_connections(cluster), cluster.statistics().orphans
        mock.truncate(10_000 if lost else 1)
        with pytest.raises(errors.AmbiguousTimeoutException) as written:
            await store.upsert(key, 2)
        with pytest.raises(errors.UnambiguousTimeoutException) as read:
            await store.get(key)
        with trio.move_on_after(0.05) as scope:
            await store.upsert(key, 3)
        await until(lambda: "3" == mock.stored(key)["Value"])
        mock.truncate(0)
        late = orphans if lost else orphans + 3
        await until(lambda: cluster.statistics().orphans == late)
        after = cluster.statistics()

        assert scope.cancelled_caught
        assert {0} == {error.value.context.retry_attempts for error in (written, read)}
        # Requests without a response stay in flight until their connection ends, so that late responses find them.
        assert (3 if lost else 0, 0) == (after.in_flight, after.open_operations)
        assert 3 == (await persist(partial(store.get, key))).content
        assert connections <= ready_connections(cluster)


def ready_connections(cluster: Cluster) -> set[str]:
    """Return the nodes with a ready connection of a bucket."""
    return {found.node for found in cluster.statistics().connections if found.bucket and found.state == "READY"}


async def test_a_hanging_node_is_disconnected(safety_net: None, couchbase_mock: CouchbaseMock, key: str) -> None:
    """After an unanswered NOOP, a read is retried on another connection, and a write fails as possibly applied."""
    timeouts = TimeoutOptions(kv=60.0, keep_alive_interval=0.1, keep_alive=1.0)
    results = dict[str, object]()
    async with client_of(couchbase_mock, PATIENT, key), client_of(couchbase_mock, timeouts) as (cluster, store):
        await store.get(key)

        async def read() -> None:
            results["read"] = (await store.get(key)).content

        async def write() -> None:
            with pytest.raises(errors.RequestCanceledException, match="NOOP"):
                await store.upsert(key, 2)
            couchbase_mock.truncate(0)

        couchbase_mock.truncate(10_000)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            nursery.start_soon(write)

        assert results["read"] in {1, 2}
        assert RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT in cluster.statistics().retries_by_reason


async def test_a_hanging_bootstrap_is_repeated(safety_net: None, couchbase_mock: CouchbaseMock, key: str) -> None:
    """A bootstrap without a response is cancelled and repeated until it succeeds."""
    couchbase_mock.truncate(10_000)
    async with client_of(couchbase_mock, TimeoutOptions(kv=60.0, connect=2.0)) as (cluster, store):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.upsert, key, 1)
            await until(lambda: any(found.last_error for found in cluster.statistics().connections))
            couchbase_mock.truncate(0)

        assert 1 == (await store.get(key)).content


# -- Nodes that fail and return.


async def store_and_read(store: Collection, value: int, keys: list[str]) -> None:
    """Write and read documents concurrently."""
    found = dict[str, object]()

    async def write_and_read(key: str) -> None:
        await store.upsert(key, value)
        found[key] = (await store.get(key)).content

    async with trio.open_nursery() as nursery:
        for key in keys:
            nursery.start_soon(write_and_read, key)

    assert dict.fromkeys(keys, value) == found


async def test_the_client_follows_the_map(safety_net: None, mortal_mock: CouchbaseMock) -> None:
    """When the client has the map after a failover or a respawn, each write is sent to the node of its vbucket."""
    mock = mortal_mock
    async with client_of(mock) as (cluster, store):
        await store_and_read(store, 1, KEYS)
        ports = mock.ports
        mock.fail_over(1)
        gone = [key for key in KEYS if mock.owner_of(key) == 1]
        assert [] == gone

        # The node does not respond, so wait until the client has the new map and sends it no further requests.
        await until_away(mock, cluster, store, 1)
        mock.log_commands()
        await store_and_read(store, 2, KEYS)
        written = mock.commands(Opcode.SET)
        assert [[mock.owner_of(key) for key in KEYS].count(node) for node in mock.nodes] == written
        assert 0 == written[1]
        assert f"127.0.0.1:{ports[1]}" not in nodes_of(cluster, mock)

        mock.respawn(1)
        await store_and_read(store, 3, KEYS)
        mock.log_commands()
        await store_and_read(store, 4, KEYS)
        assert [[mock.owner_of(key) for key in KEYS].count(node) for node in mock.nodes] == mock.commands(Opcode.SET)
        assert {f"127.0.0.1:{port}" for port in ports} == nodes_of(cluster, mock)
        assert cluster.statistics().retries_by_reason[RetryReason.KV_NOT_MY_VBUCKET]


def nodes_of(cluster: Cluster, mock: CouchbaseMock) -> set[str]:
    """Return the nodes to which the client has connections of the bucket."""
    return {found.node for found in cluster.statistics().connections if found.bucket == mock.bucket}


async def until_away(mock: CouchbaseMock, cluster: Cluster, store: Collection, node: int) -> None:
    """Read from all nodes, some of which send the new map, until the client has disconnected from the failed node."""
    gone = f"127.0.0.1:{mock.ports[node]}"
    async with trio.open_nursery() as nursery:
        for key in KEYS:
            nursery.start_soon(store.get, key)
        await until(lambda: gone not in nodes_of(cluster, mock))
        nursery.cancel_scope.cancel()


async def test_requests_in_flight_to_a_failed_node(safety_net: None, mortal_mock: CouchbaseMock) -> None:
    """Reads in flight to a failed node are retried; a write succeeds, or fails as possibly applied."""
    mock, ended = mortal_mock, defaultdict[str, list[object]](list)
    # No config poll may bring the new map before a node sends it with NOT_MY_VBUCKET.
    timeouts = TimeoutOptions(kv=60.0, keep_alive_interval=0.2, keep_alive=1.0, config_poll_interval=3600.0)
    async with client_of(mock, PATIENT, *KEYS), client_of(mock, timeouts) as (cluster, store):
        for key in KEYS:
            await store.get(key)

        async def read(key: str) -> None:
            ended["read"].append((await store.get(key)).content)

        async def write(key: str) -> None:
            try:
                await store.upsert(key, 2)
            except errors.RequestCanceledException:
                ended["lost"].append(key)
            else:
                ended["written"].append(key)

        # Repeat the failure if no write was lost: a node may send NOT_MY_VBUCKET for all writes before it fails.
        for failovers in range(1, FAILOVERS_MAX + 1):
            mock.fail_over(2)
            async with trio.open_nursery() as nursery:
                for key in KEYS[:30]:
                    nursery.start_soon(read, key)
                for key in KEYS[30:]:
                    nursery.start_soon(write, key)

            assert [1] * 30 * failovers == ended["read"]
            assert sorted(KEYS[30:] * failovers) == sorted(map(str, [*ended["written"], *ended["lost"]]))
            if ended["lost"]:
                break
            mock.respawn(2)
            # Read all keys, so that the client gets the map with the node, and then sends writes to the node.
            for key in KEYS:
                await store.get(key)

        assert ended["lost"]
        assert [2] * len(ended["written"]) == [(await store.get(str(key))).content for key in ended["written"]]
        reasons = cluster.statistics().retries_by_reason.keys()
        assert {RetryReason.KV_NOT_MY_VBUCKET, RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT} <= reasons
