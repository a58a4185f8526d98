"""What a type checker makes of the public interface. Checked, never run."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import TypeVar, assert_type

import trio

import triclinium
from triclinium import (
    AbandonedOperation,
    AdaptiveRetryStrategy,
    AttemptRecord,
    BestEffortRetryStrategy,
    BinaryCollection,
    Bucket,
    Cas,
    ClientStatistics,
    Cluster,
    Collection,
    CounterResult,
    EncodedValue,
    ErrorInfo,
    ErrorMapRetryStrategy,
    ExistsResult,
    FastFailOnTerminalErrorRetryStrategy,
    GetReplicaResult,
    GetResult,
    LookupInMacro,
    LookupInReplicaResult,
    LookupInResult,
    LookupInSpec,
    MutateInResult,
    MutateInSpec,
    MutationMacro,
    MutationResult,
    MutationToken,
    PasswordAuthenticator,
    PrefixScan,
    RangeScan,
    RawBinaryTranscoder,
    ReplicaResults,
    RetryAction,
    RetryGivenUp,
    RetryReason,
    RetryReport,
    RetryRequest,
    RetryScheduled,
    RetrySucceeded,
    SamplingScan,
    ScanResult,
    ScanResults,
    ScanTerm,
    Scope,
    SimpleRetryStrategy,
    StandardRetryStrategy,
    StoreSemantics,
    TimeoutOptions,
    Transcoder,
)
from triclinium.abc import ConnectedStream, Connector
from triclinium.errors import AmbiguousTooSlowError, CouchbaseException, ErrorContext
from triclinium_core.retry import smithy

T = TypeVar("T")


class Person:
    """A type of the application."""


class NeverRetry:
    """A strategy."""

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Give up."""
        assert_type(request.retry_attempts, int)
        assert_type(request.client_context["tenant"], object)
        return RetryAction.no_retry()


class AskSomebody:
    """A strategy that may do I/O."""

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Wait a second."""
        await trio.lowlevel.checkpoint()
        return RetryAction.after(1.0)


class Tunnel:
    """A connector."""

    async def connect(self, host: str, port: int, *, tls: bool) -> ConnectedStream:
        """Return a stream."""
        return ConnectedStream(await trio.open_tcp_stream(host, port))


async def opening(authenticator: PasswordAuthenticator, connector: Connector) -> None:
    """Both doors."""
    assert_type(triclinium.open_cluster("memcached://10.0.0.5"), AbstractAsyncContextManager[Cluster])
    async with triclinium.open_cluster(
        "couchbase://10.0.0.5",
        authenticator,
        timeouts=TimeoutOptions(kv=1),
        retry_strategy=NeverRetry(),
        circuit_breaker=triclinium.CircuitBreakerOptions(enabled=False),
        connector=connector,
    ) as cluster:
        assert_type(cluster, Cluster)
    async with trio.open_nursery() as nursery:
        await nursery.start(triclinium.run_cluster, "couchbase://10.0.0.5", authenticator)
    await opening(authenticator, Tunnel())


def walking(cluster: Cluster) -> None:
    """From the cluster to a collection."""
    assert_type(cluster.bucket("travel"), Bucket)
    assert_type(cluster.bucket("travel").scope("inventory"), Scope)
    assert_type(cluster.bucket("travel").scope("inventory").collection("people"), Collection)
    assert_type(cluster.bucket("travel").default_collection(), Collection)
    assert_type(cluster.default_collection(), Collection)
    assert_type(cluster.statistics(), ClientStatistics)


async def reading(people: Collection) -> None:
    """Results are typed, and so is what is made of them."""
    ada = await people.get("ada")
    assert_type(ada, GetResult)
    assert_type(ada.content, object)
    assert_type(ada.content_as(Person), Person)
    assert_type(ada.cas, Cas)
    assert_type(await people.get_or_none("bob"), GetResult | None)
    assert_type(await people.exists("bob"), ExistsResult)
    assert_type(await people.get_and_touch("ada", timedelta(hours=1)), GetResult)
    assert_type(await people.get_and_lock("ada", lock_time=timedelta(seconds=15)), GetResult)
    assert_type(await people.get_and_lock("ada", lock_time=15), GetResult)
    assert_type(await people.unlock("ada", cas=ada.cas), None)


async def writing(people: Collection, cas: Cas) -> None:
    """Options are keyword-only, and checked."""
    assert_type(await people.insert("ada", {"born": 1815}, expiry=datetime(2100, 1, 1, tzinfo=UTC)), MutationResult)
    assert_type(await people.upsert("ada", Person(), preserve_expiry=True), MutationResult)
    replaced = await people.replace("ada", b"x", cas=cas, transcoder=RawBinaryTranscoder())
    assert_type(replaced.mutation_token, MutationToken | None)
    assert_type(await people.remove("ada", cas=cas), MutationResult)
    assert_type(await people.touch("ada", None), MutationResult)
    assert_type(people.binary, BinaryCollection)
    assert_type(await people.binary.append("log", b"x"), MutationResult)
    visits = await people.binary.increment("visits", delta=1, initial=1)
    assert_type(visits, CounterResult)
    assert_type(visits.content, int)
    await people.get("ada", RawBinaryTranscoder())  # type: ignore[call-arg]
    await people.replace("ada", 1, cass=cas)  # type: ignore[call-arg]
    await people.replace("ada", 1, cas=7)  # type: ignore[arg-type]
    await people.get("ada", timeout=2)  # type: ignore[call-arg]


async def parts(people: Collection, cas: Cas) -> None:
    """Specs are of one kind, and what they read has the type that is asked for."""
    found = await people.lookup_in("ada", [LookupInSpec.get("a"), LookupInSpec.get(LookupInMacro.CAS, xattr=True)])
    assert_type(found, LookupInResult)
    assert_type(found.content_as(Person, 0), Person)
    assert_type(found.exists(1), bool)
    specs = [MutateInSpec.upsert("a", 1, create_parents=True), MutateInSpec.upsert("x", MutationMacro.CAS, xattr=True)]
    changed = await people.mutate_in("ada", specs, cas=cas, store_semantics=StoreSemantics.UPSERT)
    assert_type(changed, MutateInResult)
    assert_type(changed.content_as(int, 0), int)
    assert_type(changed.mutation_token, MutationToken | None)
    await people.lookup_in("ada", specs)  # type: ignore[arg-type]
    await people.mutate_in("ada", [LookupInSpec.get("a")])  # type: ignore[list-item]
    await people.lookup_in("ada", LookupInSpec.get("a"))  # type: ignore[arg-type]


async def copies(people: Collection) -> None:
    """Replicas and scans are read in blocks, item by item."""
    assert_type(await people.get_any_replica("ada"), GetReplicaResult)
    assert_type(await people.lookup_in_any_replica("ada", [LookupInSpec.get("a")]), LookupInReplicaResult)
    async with people.get_all_replicas("ada") as found:
        assert_type(found, ReplicaResults[GetReplicaResult])
        async for copy in found:
            assert_type((copy.content_as(Person), copy.is_replica), tuple[Person, bool])
    async with people.lookup_in_all_replicas("ada", [LookupInSpec.get("a")]) as parts_found:
        assert_type(await anext(parts_found), LookupInReplicaResult)
    for scan_type in (RangeScan("a", ScanTerm("b", exclusive=True)), PrefixScan("a"), SamplingScan(5, seed=1)):
        async with people.scan(scan_type, ids_only=False, concurrency=4) as items:
            assert_type(items, ScanResults)
            async for item in items:
                assert_type(item, ScanResult)
                assert_type((item.id, item.content_as(Person), item.expiry_time), tuple[str, Person, datetime | None])
    people.scan("a")  # type: ignore[arg-type]
    people.scan(PrefixScan("a"), consistent_with=["token"])  # type: ignore[list-item]


async def deciding(people: Collection) -> None:
    """Strategies of both kinds fit wherever a strategy does."""
    with triclinium.retrying(AskSomebody()), triclinium.client_context(is_robot=True):
        await people.get("ada", retry_strategy=BestEffortRetryStrategy(triclinium.exponential(jitter=0.2)))
    with triclinium.retrying(ErrorMapRetryStrategy(FastFailOnTerminalErrorRetryStrategy())):
        await people.get("ada", retry_strategy=NeverRetry())
    with triclinium.retrying(5):  # type: ignore[arg-type]
        pass


async def fetch(url: str, *, size: int = 1) -> bytes:
    """Stand for what is retried."""
    return url.encode()


@triclinium.retried(strategy=StandardRetryStrategy(), on=(OSError, ValueError))
async def fetch_again(url: str, *, size: int = 1) -> bytes:
    """Keep the signature."""
    return url.encode()


def is_short(found: list[str]) -> bool:
    """Judge a result."""
    return len(found) < 2


@triclinium.retried(strategy=SimpleRetryStrategy(), retry_result=is_short)
async def fetch_until(url: str) -> list[str]:
    """Keep it where results are judged, too."""
    return [url]


def judge(error: Exception) -> bool | ErrorInfo:
    """Say more than yes or no."""
    return ErrorInfo(is_retry_safe=True, retry_after=1.0)


def listen(report: RetryReport) -> None:
    """Take every kind of report."""
    assert_type(report, RetryScheduled | RetryGivenUp | RetrySucceeded)
    if isinstance(report, RetryScheduled):
        assert_type((report.attempt, report.delay, report.error), tuple[int, float, Exception | None])


async def retrying_anything(quota: AdaptiveRetryStrategy) -> None:
    """What is retried returns what it returns, and takes what it takes."""
    assert_type(await triclinium.retry(fetch, "u", strategy=quota, on=OSError, hooks=[listen]), bytes)
    assert_type(await triclinium.retry(fetch, "u", strategy=quota, on=judge, retry_result=lambda b: not b), bytes)
    assert_type(await fetch_again("u", size=2), bytes)
    assert_type(await fetch_until("u"), list[str])
    async for attempt in triclinium.attempts(quota, on=judge, token_scope="u"):
        assert_type(attempt, triclinium.Attempt)
        with attempt:
            attempt.retry(ErrorInfo(is_retry_safe=True))
        async with attempt:
            assert_type(attempt.number, int)
    with triclinium.watching_retries(listen):
        assert_type(triclinium.attempts_of(OSError()), tuple[AttemptRecord, ...])
    await triclinium.retry(fetch, 1, strategy=quota)  # type: ignore[arg-type]
    assert_type(await triclinium.retry(fetch, "u", strategy=BestEffortRetryStrategy()), bytes)
    await triclinium.retry(fetch, "u", strategy=quota, on=KeyboardInterrupt)  # type: ignore[arg-type]
    triclinium.retried(strategy=quota, retry_result=is_short)(fetch)  # type: ignore[arg-type]
    await fetch_again(1)  # type: ignore[arg-type]


class Tokens:
    """The methods of a token strategy, and nothing else."""

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> smithy.RetryToken:
        """Stand for a strategy of another library."""
        raise smithy.RetryError

    def refresh_retry_token_for_retry(
        self, *, token_to_renew: smithy.RetryToken, error: Exception
    ) -> smithy.RetryToken:
        """Refuse."""
        raise smithy.RetryError from error

    def record_success(self, *, token: smithy.RetryToken) -> None:
        """Do nothing."""


class LimitedTokens(Tokens):
    """A token strategy as the Smithy design has it: with the two attributes."""

    max_attempts = 3

    def __init__(self, backoff: smithy.RetryBackoffStrategy) -> None:
        self.backoff_strategy = backoff


def limits(strategy: smithy.RetryStrategy) -> tuple[smithy.RetryBackoffStrategy, int]:
    """Read what every strategy of the design has."""
    return strategy.backoff_strategy, strategy.max_attempts


def delays(strategy: smithy.AsyncRetryStrategy) -> smithy.RetryBackoffStrategy:
    """Read it from a strategy that is awaited."""
    return strategy.backoff_strategy


async def lending(people: Collection, limited: LimitedTokens) -> None:
    """The protocol of the design has the attributes; arguments accept a strategy without them."""
    assert_type(limits(StandardRetryStrategy()), tuple[smithy.RetryBackoffStrategy, int])
    limits(limited)
    limits(Tokens())  # type: ignore[arg-type]
    assert_type(smithy.as_async(limited), smithy.AsyncRetryStrategy)
    delays(smithy.as_async(SimpleRetryStrategy()))
    delays(smithy.as_async(Tokens()))  # type: ignore[arg-type]
    await triclinium.retry(fetch, "u", strategy=Tokens())
    await people.get("ada", retry_strategy=Tokens())
    with triclinium.retrying(triclinium.TokenScope(Tokens(), "reports")):
        await people.get("ada", retry_strategy=limited)
    await people.get("ada", retry_strategy=smithy.as_async(Tokens()))
    least: smithy.MinimalRetryStrategy = limited
    assert_type(smithy.as_async(least), smithy.AsyncMinimalRetryStrategy)


async def failing(people: Collection) -> None:
    """Exceptions carry typed data."""
    try:
        with triclinium.fail_after(0.2) as scope:
            assert_type(scope, trio.CancelScope)
            await people.get("ada")
    except AmbiguousTooSlowError as error:
        assert_type(error.operations, tuple[AbandonedOperation, ...])
        assert_type(error.operations[0].ambiguous, bool)
    except CouchbaseException as error:
        assert_type(error.context, ErrorContext)


class Csv:
    """A transcoder."""

    def encode(self, value: object, /) -> EncodedValue:
        """Return a line."""
        return EncodedValue(str(value).encode(), 0)

    def decode(self, data: bytes, flags: int, as_type: type[T], /) -> T:
        """Return what was a line."""
        return as_type()


TRANSCODER: Transcoder = Csv()
