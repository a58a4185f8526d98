"""Types of the public interface for a type checker. Checked, never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import TypeVar, assert_type

import trio

import triclinium
from triclinium import bulk, errors, retries, scans, subdocument
from triclinium.abc import ConnectedStream, Connector
from triclinium_core.retry import smithy

T = TypeVar("T")


class Person:
    """Type that an application defines."""


class NeverRetry:
    """Strategy."""

    def retry_after(self, request: retries.RetryRequest, reason: retries.RetryReason, /) -> retries.RetryAction:
        """Refuse the retry."""
        assert_type(request.retry_attempts, int)
        assert_type(request.client_context["tenant"], object)
        return retries.RetryAction.no_retry()


class AskAService:
    """Asynchronous strategy, which may perform I/O."""

    async def retry_after(self, request: retries.RetryRequest, reason: retries.RetryReason, /) -> retries.RetryAction:
        """Retry after a second."""
        await trio.lowlevel.checkpoint()
        return retries.RetryAction.after(1.0)


class Tunnel:
    """Connector."""

    async def connect(self, host: str, port: int, *, tls: bool) -> ConnectedStream:
        """Return a stream."""
        return ConnectedStream(await trio.open_tcp_stream(host, port))


async def opening(authenticator: triclinium.PasswordAuthenticator, connector: Connector) -> None:
    """Open a cluster with ``open_cluster`` and with ``run_cluster``."""
    assert_type(triclinium.open_cluster("memcached://10.0.0.5"), AbstractAsyncContextManager[triclinium.Cluster])
    async with triclinium.open_cluster(
        "couchbase://10.0.0.5",
        authenticator,
        timeouts=triclinium.TimeoutOptions(kv=1),
        retry_strategy=NeverRetry(),
        circuit_breaker=triclinium.CircuitBreakerOptions(enabled=False),
        connector=connector,
    ) as cluster:
        assert_type(cluster, triclinium.Cluster)
    async with trio.open_nursery() as nursery:
        await nursery.start(triclinium.run_cluster, "couchbase://10.0.0.5", authenticator)
    await opening(authenticator, Tunnel())


def walking(cluster: triclinium.Cluster) -> None:
    """Get the handles of a cluster, and its statistics."""
    assert_type(cluster.bucket("travel"), triclinium.Bucket)
    assert_type(cluster.bucket("travel").scope("inventory"), triclinium.Scope)
    assert_type(cluster.bucket("travel").scope("inventory").collection("people"), triclinium.Collection)
    assert_type(cluster.bucket("travel").default_collection(), triclinium.Collection)
    assert_type(cluster.default_collection(), triclinium.Collection)
    assert_type(cluster.statistics(), triclinium.health.ClientStatistics)


async def reading(people: triclinium.Collection) -> None:
    """Read typed results and convert them."""
    ada = await people.get("ada")
    assert_type(ada, triclinium.GetResult)
    assert_type(ada.content, object)
    assert_type(ada.content_as(Person), Person)
    assert_type(ada.cas, triclinium.Cas)
    assert_type(await people.get_or_none("bob"), triclinium.GetResult | None)
    assert_type(await people.exists("bob"), triclinium.ExistsResult)
    assert_type(await people.get_and_touch("ada", timedelta(hours=1)), triclinium.GetResult)
    assert_type(await people.get_and_lock("ada", lock_time=timedelta(seconds=15)), triclinium.GetResult)
    assert_type(await people.get_and_lock("ada", lock_time=15), triclinium.GetResult)
    assert_type(await people.unlock("ada", cas=ada.cas), None)


async def writing(people: triclinium.Collection, cas: triclinium.Cas) -> None:
    """Pass keyword-only options, which are checked."""
    assert_type(
        await people.insert("ada", {"born": 1815}, expiry=datetime(2100, 1, 1, tzinfo=UTC)), triclinium.MutationResult
    )
    assert_type(await people.upsert("ada", Person(), preserve_expiry=True), triclinium.MutationResult)
    replaced = await people.replace("ada", b"x", cas=cas, transcoder=triclinium.RawBinaryTranscoder())
    assert_type(replaced.mutation_token, triclinium.MutationToken | None)
    assert_type(await people.remove("ada", cas=cas), triclinium.MutationResult)
    assert_type(await people.touch("ada", None), triclinium.MutationResult)
    assert_type(people.binary, triclinium.BinaryCollection)
    assert_type(await people.binary.append("log", b"x"), triclinium.MutationResult)
    visits = await people.binary.increment("visits", delta=1, initial=1)
    assert_type(visits, triclinium.CounterResult)
    assert_type(visits.content, int)
    await people.get("ada", triclinium.RawBinaryTranscoder())  # type: ignore[call-arg]
    await people.replace("ada", 1, cass=cas)  # type: ignore[call-arg]
    await people.replace("ada", 1, cas=7)  # type: ignore[arg-type]
    await people.get("ada", timeout=2)  # type: ignore[call-arg]


async def parts(people: triclinium.Collection, cas: triclinium.Cas) -> None:
    """Pass lookup specs to lookups and mutation specs to mutations, and read typed parts."""
    cas_of = subdocument.LookupInSpec.get(subdocument.LookupInMacro.CAS, xattr=True)
    found = await people.lookup_in("ada", [subdocument.LookupInSpec.get("a"), cas_of])
    assert_type(found, subdocument.LookupInResult)
    assert_type(found.content_as(Person, 0), Person)
    assert_type(found.exists(1), bool)
    specs = [
        subdocument.MutateInSpec.upsert("a", 1, create_parents=True),
        subdocument.MutateInSpec.upsert("x", subdocument.MutationMacro.CAS, xattr=True),
    ]
    changed = await people.mutate_in("ada", specs, cas=cas, store_semantics=subdocument.StoreSemantics.UPSERT)
    assert_type(changed, subdocument.MutateInResult)
    assert_type(changed.content_as(int, 0), int)
    assert_type(changed.mutation_token, triclinium.MutationToken | None)
    await people.lookup_in("ada", specs)  # type: ignore[arg-type]
    await people.mutate_in("ada", [subdocument.LookupInSpec.get("a")])  # type: ignore[list-item]
    await people.lookup_in("ada", subdocument.LookupInSpec.get("a"))  # type: ignore[arg-type]


async def copies(people: triclinium.Collection) -> None:
    """Read replicas and scans in blocks, item by item."""
    assert_type(await people.get_any_replica("ada"), triclinium.GetReplicaResult)
    copied = await people.lookup_in_any_replica("ada", [subdocument.LookupInSpec.get("a")])
    assert_type(copied, subdocument.LookupInReplicaResult)
    async with people.get_all_replicas("ada") as found:
        assert_type(found, triclinium.ReplicaResults[triclinium.GetReplicaResult])
        async for copy in found:
            assert_type((copy.content_as(Person), copy.is_replica), tuple[Person, bool])
    async with people.lookup_in_all_replicas("ada", [subdocument.LookupInSpec.get("a")]) as parts_found:
        assert_type(await anext(parts_found), subdocument.LookupInReplicaResult)
    in_range = scans.RangeScan("a", scans.ScanTerm("b", exclusive=True))
    for scan_type in (in_range, scans.PrefixScan("a"), scans.SamplingScan(5, seed=1)):
        async with people.scan(scan_type, ids_only=False, concurrency=4) as items:
            assert_type(items, scans.ScanResults)
            async for item in items:
                assert_type(item, scans.ScanResult)
                assert_type((item.id, item.content_as(Person), item.expiry_time), tuple[str, Person, datetime | None])
    people.scan("a")  # type: ignore[arg-type]
    people.scan(scans.PrefixScan("a"), consistent_with=["token"])  # type: ignore[list-item]


async def many(people: triclinium.Collection, keys: AsyncIterator[str]) -> None:
    """Run bulk blocks, and use their outcomes and lists."""
    async with people.get_many(keys, concurrency=8, errors="collect") as reads:
        assert_type(reads, bulk.BulkReads[triclinium.GetResult])
        async for key, outcome in reads:
            assert_type((key, outcome.error), tuple[str, Exception | None])
            assert_type(outcome.result().content_as(Person), Person)
    assert_type((reads.taken, reads.failed, reads.failed_count), tuple[int, tuple[str, ...], int])
    async with people.upsert_many({"ada": Person()}) as writes:
        assert_type(writes, bulk.BulkWrites[triclinium.MutationResult])
        writes.stop()
    assert_type((writes.not_applied, writes.ambiguous), tuple[tuple[str, ...], tuple[str, ...]])
    try:
        async with people.touch_many(["ada"], timedelta(hours=1)):
            pass
    except errors.BulkFailure as failure:
        assert_type(failure.failures, tuple[tuple[str, Exception], ...])
        assert_type(failure.counts, Mapping[type[Exception], int])
    people.get_many(7)  # type: ignore[arg-type]
    people.upsert_many(["ada"])  # type: ignore[list-item]
    people.exists_many(["ada"], errors="ignore")  # type: ignore[arg-type]


async def deciding(people: triclinium.Collection) -> None:
    """Pass synchronous and asynchronous strategies."""
    with triclinium.retrying(AskAService()), triclinium.client_context(is_robot=True):
        await people.get("ada", retry_strategy=triclinium.BestEffortRetryStrategy(triclinium.exponential(jitter=0.2)))
    with triclinium.retrying(triclinium.ErrorMapRetryStrategy(triclinium.FastFailOnTerminalErrorRetryStrategy())):
        await people.get("ada", retry_strategy=NeverRetry())
    with triclinium.retrying(5):  # type: ignore[arg-type]
        pass


async def fetch(url: str, *, size: int = 1) -> bytes:
    """Stand in for a function to be retried."""
    return url.encode()


@triclinium.retried(strategy=triclinium.StandardRetryStrategy(), on=(OSError, ValueError))
async def fetch_again(url: str, *, size: int = 1) -> bytes:
    """Keep the signature."""
    return url.encode()


def is_short(found: list[str]) -> bool:
    """Judge a result."""
    return len(found) < 2


@triclinium.retried(strategy=triclinium.SimpleRetryStrategy(), retry_result=is_short)
async def fetch_until(url: str) -> list[str]:
    """Keep the signature if results are judged, too."""
    return [url]


def judge(error: Exception) -> bool | retries.ErrorInfo:
    """Return an error info instead of a flag."""
    return retries.ErrorInfo(is_retry_safe=True, retry_after=1.0)


def listen(report: retries.RetryReport) -> None:
    """Accept every kind of report."""
    assert_type(report, retries.RetryScheduled | retries.RetryGivenUp | retries.RetrySucceeded)
    if isinstance(report, retries.RetryScheduled):
        assert_type((report.attempt, report.delay, report.error), tuple[int, float, Exception | None])


async def retrying_anything(quota: triclinium.AdaptiveRetryStrategy) -> None:
    """Retry functions with their arguments and results."""
    assert_type(await triclinium.retry(fetch, "u", strategy=quota, on=OSError, hooks=[listen]), bytes)
    assert_type(await triclinium.retry(fetch, "u", strategy=quota, on=judge, retry_result=lambda b: not b), bytes)
    assert_type(await fetch_again("u", size=2), bytes)
    assert_type(await fetch_until("u"), list[str])
    async for attempt in triclinium.attempts(quota, on=judge, token_scope="u"):
        assert_type(attempt, triclinium.Attempt)
        with attempt:
            attempt.retry(retries.ErrorInfo(is_retry_safe=True))
        async with attempt:
            assert_type(attempt.number, int)
    with triclinium.watching_retries(listen):
        assert_type(retries.attempts_of(OSError()), tuple[retries.AttemptRecord, ...])
    await triclinium.retry(fetch, 1, strategy=quota)  # type: ignore[arg-type]
    assert_type(await triclinium.retry(fetch, "u", strategy=triclinium.BestEffortRetryStrategy()), bytes)
    await triclinium.retry(fetch, "u", strategy=quota, on=KeyboardInterrupt)  # type: ignore[arg-type]
    triclinium.retried(strategy=quota, retry_result=is_short)(fetch)  # type: ignore[arg-type]
    await fetch_again(1)  # type: ignore[arg-type]


class Tokens:
    """Token strategy that has the methods and no attributes."""

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> smithy.RetryToken:
        """Refuse to issue a token."""
        raise smithy.RetryError

    def refresh_retry_token_for_retry(
        self, *, token_to_renew: smithy.RetryToken, error: Exception
    ) -> smithy.RetryToken:
        """Refuse the retry."""
        raise smithy.RetryError from error

    def record_success(self, *, token: smithy.RetryToken) -> None:
        """Do nothing."""


class LimitedTokens(Tokens):
    """Token strategy as in the Smithy design, with its two attributes."""

    max_attempts = 3

    def __init__(self, backoff: smithy.RetryBackoffStrategy) -> None:
        self.backoff_strategy = backoff


def limits(strategy: smithy.RetryStrategy) -> tuple[smithy.RetryBackoffStrategy, int]:
    """Read the attributes of any strategy of the design."""
    return strategy.backoff_strategy, strategy.max_attempts


def delays(strategy: smithy.AsyncRetryStrategy) -> smithy.RetryBackoffStrategy:
    """Read an attribute of an asynchronous strategy."""
    return strategy.backoff_strategy


async def acquiring(people: triclinium.Collection, limited: LimitedTokens) -> None:
    """Require the attributes where the design's protocol is the type, and pass a strategy without them to calls."""
    assert_type(limits(triclinium.StandardRetryStrategy()), tuple[smithy.RetryBackoffStrategy, int])
    limits(limited)
    limits(Tokens())  # type: ignore[arg-type]
    assert_type(smithy.as_async(limited), smithy.AsyncRetryStrategy)
    delays(smithy.as_async(triclinium.SimpleRetryStrategy()))
    delays(smithy.as_async(Tokens()))  # type: ignore[arg-type]
    await triclinium.retry(fetch, "u", strategy=Tokens())
    await people.get("ada", retry_strategy=Tokens())
    with triclinium.retrying(retries.TokenScope(Tokens(), "reports")):
        await people.get("ada", retry_strategy=limited)
    await people.get("ada", retry_strategy=smithy.as_async(Tokens()))
    least: smithy.MinimalRetryStrategy = limited
    assert_type(smithy.as_async(least), smithy.AsyncMinimalRetryStrategy)


async def failing(people: triclinium.Collection) -> None:
    """Read typed data of exceptions."""
    try:
        with triclinium.fail_after(0.2) as scope:
            assert_type(scope, trio.CancelScope)
            await people.get("ada")
    except errors.AmbiguousTooSlowError as error:
        assert_type(error.operations, tuple[triclinium.AbandonedOperation, ...])
        assert_type(error.operations[0].ambiguous, bool)
    except errors.CouchbaseException as error:
        assert_type(error.context, errors.ErrorContext)


class Csv:
    """Transcoder."""

    def encode(self, value: object, /) -> triclinium.EncodedValue:
        """Return a line."""
        return triclinium.EncodedValue(str(value).encode(), 0)

    def decode(self, data: bytes, flags: int, as_type: type[T], /) -> T:
        """Return an empty value of the type."""
        return as_type()


TRANSCODER: triclinium.Transcoder = Csv()
