"""Occurrence of every exception that a public docstring names under "Raises".

``TRIGGERS`` has an action for each call and each class of the SDK that its docstring names. ``ELSEWHERE`` names a test
for each of the other classes.
"""

from __future__ import annotations

import inspect
import re
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import pytest
import trio
from trio.testing import MockClock

import triclinium
from tests.docs.named_tests import TEST_FOLDERS, exists
from tests.public_names import PUBLIC
from tests.trio_client.pair import OPTIONS, PATIENCE, Never
from triclinium import (
    Cas,
    Cluster,
    Collection,
    GetResult,
    JsonTranscoder,
    PasswordAuthenticator,
    RawBinaryTranscoder,
    errors,
    open_cluster,
)
from triclinium.abc import ConnectedStream
from triclinium.management import BucketSettings, CreateCollectionSettings, SearchIndex, UpdateCollectionSettings
from triclinium.scans import PrefixScan, ScanResult
from triclinium.search import MatchAllQuery, RawQuery, SearchRow
from triclinium.subdocument import LookupInSpec, MutateInSpec, StoreSemantics
from triclinium.testing import (
    FakeCluster,
    Opcode,
    Service,
    drop_response,
    hang_up,
    http_status,
    open_fake_cluster,
    status,
    temporary_failure,
)
from triclinium.views import ViewRow
from triclinium_core.kv.wire.constants import VALUE_SIZE_MAX, HelloFeature
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES
from triclinium_core.transcoding.flags import JSON_FLAGS

T = TypeVar("T")
BIG, RAW, NEVER = bytes(VALUE_SIZE_MAX + 1), RawBinaryTranscoder(), Never()
UNENCODABLE = object()
VECTORS = {"mapping": {"types": {"a": {"properties": {"b": {"fields": [{"type": "vector"}]}}}}}}
OLD_CONFIG = b'{"rev":9,"revEpoch":9,"nodesExt":[{"services":{"kv":11210,"fts":8094},"thisNode":true}]}'
"""Global config of a cluster without vector search."""


class Stage(NamedTuple):
    """Fake nodes with documents, and a client."""

    fake: FakeCluster
    cluster: Cluster
    people: Collection


Trigger = Callable[[Stage], object]


async def run(trigger: Trigger, stage: Stage) -> None:
    """Run a trigger, and wait for it if it is a call."""
    outcome = trigger(stage)
    if inspect.isawaitable(outcome):
        await outcome


async def then(call: Awaitable[T], use: Callable[[T], object]) -> None:
    """Wait for a call, and use its result."""
    use(await call)


async def entered(block: AbstractAsyncContextManager[object]) -> None:
    """Enter a block, and read its items."""
    async with block as found:
        async for item in found:  # type: ignore[attr-defined]  # results are rows or documents
            item.content  # noqa: B018 - a property


async def run_alone(block: AbstractAsyncContextManager[object]) -> None:
    """Run a block with an empty body."""
    async with block:
        pass


async def twice(call: Callable[[], Awaitable[object]]) -> None:
    """Make a call that succeeds, and repeat it."""
    await call()
    await call()


def struck(opcode: Opcode, fault: Any, call: Callable[[Stage], Awaitable[object]]) -> Trigger:
    """Return a trigger that makes a call while all requests with ``opcode`` meet a fault."""

    def trigger(stage: Stage) -> object:
        stage.fake.node.faults.always(opcode, fault)
        return call(stage)

    return trigger


def against(call: Callable[[Cluster], Awaitable[object]], *, authenticator: Any = None, **changes: Any) -> Trigger:
    """Return a trigger that makes a call with a separate client and separate nodes, which have other options."""

    async def trigger(_: Stage) -> None:
        options = replace(OPTIONS, **changes)
        async with open_fake_cluster(options=options) as fake, fake.open_client(authenticator=authenticator) as cluster:
            await call(cluster)

    return trigger


class NoTls:
    """Connector whose TLS handshakes fail."""

    async def connect(self, host: str, port: int, *, tls: bool) -> ConnectedStream:
        """Raise SSLError."""
        await trio.lowlevel.checkpoint()
        raise ssl.SSLError("certificate has expired")


async def wait_without_tls(_: Stage) -> None:
    """Wait for a cluster whose certificate is refused."""
    async with open_cluster("couchbases://h", PasswordAuthenticator("a", "b"), connector=NoTls()) as cluster:
        await cluster.wait_until_ready()


async def flush_protected(stage: Stage) -> None:
    """Create a bucket without permission to flush, and flush it."""
    await stage.cluster.buckets().create_bucket(BucketSettings(name="kept", ram_quota_mb=100))
    await stage.cluster.buckets().flush_bucket("kept")


async def many_indexes(stage: Stage) -> None:
    """Create a search index at a service that reports too many indexes."""
    stage.fake.node.faults.next(Service.SEARCH, http_status(400, b'{"error":"num_fts_indexes exceeded"}'))
    await stage.cluster.search_indexes().upsert_index(SearchIndex(name="a", source_name="travel"))


async def vectors(stage: Stage) -> None:
    """Create a vector search index in a cluster without vector search."""
    stage.fake.node.faults.always(Opcode.GET_CLUSTER_CONFIG, status(Status.SUCCESS, OLD_CONFIG))
    index = SearchIndex(name="a", source_name="travel", params=VECTORS)
    async with stage.fake.open_client() as cluster:
        await cluster.bucket("travel").default_scope().search_indexes().upsert_index(index)


async def failed_metadata(stage: Stage) -> None:
    """Request the metadata of a query that fails."""
    async with stage.cluster.query("NONSENSE") as result:
        await result.metadata()


def of_document(method: str, *arguments: Any, **options: Any) -> Mapping[type[Exception], Trigger]:
    """Return triggers of a collection method for a missing document and for a locked one."""
    return {
        errors.DocumentNotFoundException: lambda s: getattr(s.people, method)("missing", *arguments, **options),
        errors.DocumentLockedException: lambda s: getattr(s.people, method)(
            "locked", *arguments, **options, retry_strategy=NEVER
        ),
    }


def with_other_cas(method: str, *arguments: Any) -> Mapping[type[Exception], Trigger]:
    """Return the trigger of a collection method with a CAS that is not the document's."""
    return {errors.CasMismatchException: lambda s: getattr(s.people, method)("ada", *arguments, cas=Cas(1))}


def of_value(method: str, key: str) -> Mapping[type[Exception], Trigger]:
    """Return triggers of a collection method for values that cannot be stored."""
    return {
        errors.EncodingFailureException: lambda s: getattr(s.people, method)(key, UNENCODABLE),
        errors.ValueTooLargeException: lambda s: getattr(s.people, method)(key, BIG, transcoder=RAW),
    }


def of_indexes(manager: Callable[[Stage], Any], *bucket: str) -> Mapping[str, Mapping[type[Exception], Trigger]]:
    """Return triggers of the methods of a manager of query indexes."""
    exist, missing = errors.IndexExistsException, errors.IndexNotFoundException
    return {
        "create_index": {exist: lambda s: twice(lambda: manager(s).create_index(*bucket, "a", ["b"]))},
        "create_primary_index": {exist: lambda s: twice(lambda: manager(s).create_primary_index(*bucket))},
        "drop_index": {missing: lambda s: manager(s).drop_index(*bucket, "a")},
        "drop_primary_index": {missing: lambda s: manager(s).drop_primary_index(*bucket)},
        "watch_indexes": {missing: lambda s: manager(s).watch_indexes(*bucket, ["a"])},
    }


def of_scopes(method: str, *names: object, **missing: type[Exception]) -> Mapping[type[Exception], Trigger]:
    """Return triggers of a ``CollectionManager`` method for a missing bucket and for the scopes in ``missing``."""
    return {
        errors.BucketNotFoundException: lambda s: getattr(s.cluster.bucket("nowhere").collections(), method)(*names),
    } | {
        error: lambda s, scope=scope: getattr(s.cluster.bucket("travel").collections(), method)(scope, *names[1:])
        for scope, error in missing.items()
    }


def scopes_of(stage: Stage) -> Any:
    """Return the manager of the scopes of a bucket."""
    return stage.cluster.bucket("travel").collections()


UPDATE = UpdateCollectionSettings(max_expiry=1)
FEATURELESS = {"features": IMPLEMENTED_FEATURES - {HelloFeature.XATTR}}
ATTRIBUTE = [LookupInSpec.get("a", xattr=True)]
HOTELS, ODD = SearchIndex(name="a", source_name="travel"), SearchIndex(name="a", params={"a": UNENCODABLE})
GET_A, SET_A = [LookupInSpec.get("a")], [MutateInSpec.upsert("a", 1)]
NEW, TAKEN = (BucketSettings(name=name, ram_quota_mb=100) for name in ("new", "travel"))

TRIGGERS: Mapping[str, Mapping[type[Exception], Trigger]] = {
    "AnalyticsQueries.analytics_query": {
        errors.CouchbaseException: lambda s: entered(s.cluster.analytics_query("nonsense")),
        errors.EncodingFailureException: lambda s: entered(s.cluster.analytics_query("SELECT 1", UNENCODABLE)),
    },
    "BinaryCollection.append": {
        errors.DocumentNotFoundException: lambda s: s.people.binary.append("missing", b"1"),
        errors.DocumentLockedException: lambda s: s.people.binary.append("locked", b"1", retry_strategy=NEVER),
        errors.CasMismatchException: lambda s: s.people.binary.append("ada", b"1", cas=Cas(1)),
        errors.ValueTooLargeException: lambda s: s.people.binary.append("ada", BIG),
    },
    "BinaryCollection.prepend": {errors.ValueTooLargeException: lambda s: s.people.binary.prepend("ada", BIG)},
    "BinaryCollection.increment": {
        errors.DocumentNotFoundException: lambda s: s.people.binary.increment("missing"),
        errors.DocumentLockedException: lambda s: s.people.binary.increment("locked", retry_strategy=NEVER),
        errors.DeltaInvalidException: lambda s: s.people.binary.increment("ada"),
    },
    "BucketManager.create_bucket": {
        errors.BucketExistsException: lambda s: s.cluster.buckets().create_bucket(TAKEN),
        errors.AmbiguousTimeoutException: struck(
            Opcode.SELECT_BUCKET, drop_response(), lambda s: s.cluster.buckets().create_bucket(NEW)
        ),
    },
    "BucketManager.drop_bucket": {errors.BucketNotFoundException: lambda s: s.cluster.buckets().drop_bucket("nowhere")},
    "BucketManager.flush_bucket": {
        errors.BucketNotFoundException: lambda s: s.cluster.buckets().flush_bucket("nowhere"),
        errors.BucketNotFlushableException: flush_protected,
    },
    "BucketManager.get_bucket": {errors.BucketNotFoundException: lambda s: s.cluster.buckets().get_bucket("nowhere")},
    "BucketManager.update_bucket": {errors.BucketNotFoundException: lambda s: s.cluster.buckets().update_bucket(NEW)},
    "Collection": {
        errors.AmbiguousTimeoutException: struck(Opcode.SET, drop_response(), lambda s: s.people.upsert("a", 1)),
        errors.UnambiguousTimeoutException: struck(Opcode.GET, drop_response(), lambda s: s.people.get("a")),
        errors.RequestCanceledException: struck(Opcode.SET, hang_up(), lambda s: s.people.upsert("a", 1)),
        errors.TemporaryFailureException: struck(
            Opcode.GET, temporary_failure(), lambda s: s.people.get("a", retry_strategy=NEVER)
        ),
        errors.AuthenticationFailureException: against(
            lambda cluster: cluster.bucket("travel").default_collection().get("a"),
            authenticator=PasswordAuthenticator("wrong", "wrong"),
        ),
        errors.CollectionNotFoundException: lambda s: s.cluster.bucket("travel").collection("nowhere").get("a"),
        errors.ScopeNotFoundException: lambda s: s.cluster.bucket("travel").scope("nowhere").collection("a").get("a"),
        errors.FeatureNotAvailableException: against(
            lambda cluster: cluster.bucket("travel").default_collection().lookup_in("a", ATTRIBUTE), **FEATURELESS
        ),
        errors.CouchbaseException: struck(Opcode.GET, status(Status.INTERNAL_ERROR), lambda s: s.people.get("a")),
    },
    "BulkOutcomes": {errors.BulkFailure: lambda s: run_alone(s.people.insert_many([("ada", 1)]))},
    "CollectionManager.get_all_scopes": of_scopes("get_all_scopes"),
    "CollectionManager.create_scope": {
        **of_scopes("create_scope", "inventory"),
        errors.ScopeExistsException: lambda s: scopes_of(s).create_scope("inventory"),
    },
    "CollectionManager.drop_scope": of_scopes("drop_scope", "inventory", nowhere=errors.ScopeNotFoundException),
    "CollectionManager.create_collection": {
        **of_scopes("create_collection", "inventory", "new", nowhere=errors.ScopeNotFoundException),
        errors.CollectionExistsException: lambda s: scopes_of(s).create_collection("inventory", "people"),
        errors.FeatureNotAvailableException: lambda s: scopes_of(s).create_collection(
            "inventory", "new", CreateCollectionSettings(history=True)
        ),
    },
    "CollectionManager.update_collection": {
        **of_scopes("update_collection", "inventory", "new", UPDATE, nowhere=errors.ScopeNotFoundException),
        errors.CollectionNotFoundException: lambda s: scopes_of(s).update_collection("inventory", "new", UPDATE),
        errors.FeatureNotAvailableException: lambda s: scopes_of(s).update_collection(
            "inventory", "people", UpdateCollectionSettings(history=True)
        ),
    },
    "CollectionManager.drop_collection": {
        **of_scopes("drop_collection", "inventory", "new", nowhere=errors.ScopeNotFoundException),
        errors.CollectionNotFoundException: lambda s: scopes_of(s).drop_collection("inventory", "new"),
    },
    "DocumentOperations.get": {errors.DocumentNotFoundException: lambda s: s.people.get("missing")},
    "DocumentOperations.get_and_lock": of_document("get_and_lock", 5),
    "DocumentOperations.get_and_touch": of_document("get_and_touch", 5),
    "DocumentOperations.touch": of_document("touch", 5),
    "DocumentOperations.insert": {
        **of_value("insert", "new"),
        errors.DocumentExistsException: lambda s: s.people.insert("ada", 1),
    },
    "DocumentOperations.upsert": {
        **of_value("upsert", "ada"),
        errors.DocumentLockedException: lambda s: s.people.upsert("locked", 1, retry_strategy=NEVER),
    },
    "DocumentOperations.replace": {
        **of_value("replace", "ada"),
        **of_document("replace", 1),
        **with_other_cas("replace", 1),
    },
    "DocumentOperations.remove": {**of_document("remove"), **with_other_cas("remove")},
    "DocumentOperations.unlock": {
        errors.DocumentNotFoundException: lambda s: s.people.unlock("missing", Cas(1)),
        errors.DocumentNotLockedException: lambda s: s.people.unlock("ada", Cas(1)),
        errors.CasMismatchException: lambda s: s.people.unlock("locked", Cas(1)),
    },
    "FanOutResults.__anext__": {
        errors.CouchbaseException: struck(
            Opcode.RANGE_SCAN_CREATE, status(Status.NO_ACCESS), lambda s: entered(s.people.scan(PrefixScan("a")))
        )
    },
    "GetResult.content": {
        errors.DecodingFailureException: lambda _: GetResult(Cas(1), JSON_FLAGS, b"{", JsonTranscoder()).content
    },
    "GetResult.content_as": {
        errors.DecodingFailureException: lambda s: then(s.people.get("ada"), lambda r: r.content_as(int))
    },
    "LookupInResult.content_as": {
        errors.DecodingFailureException: lambda s: then(
            s.people.lookup_in("ada", GET_A), lambda r: r.content_as(list, 0)
        ),
        errors.PathNotFoundException: lambda s: then(
            s.people.lookup_in("ada", [LookupInSpec.get("b")]), lambda r: r.content_as(int, 0)
        ),
    },
    "LookupInResult.exists": {
        errors.PathMismatchException: lambda s: then(
            s.people.lookup_in("ada", [LookupInSpec.exists("a.b")]), lambda r: r.exists(0)
        )
    },
    "MutateInResult.content_as": {
        errors.DecodingFailureException: lambda s: then(
            s.people.mutate_in("ada", [MutateInSpec.increment("a")]), lambda r: r.content_as(list, 0)
        )
    },
    "MutateInSpec.encode": {
        errors.EncodingFailureException: lambda _: MutateInSpec.upsert("a", UNENCODABLE).encode(JsonTranscoder()),
        errors.ValueTooLargeException: lambda _: MutateInSpec.upsert("a", BIG).encode(RAW),
    },
    "Queries.query": {
        errors.CouchbaseException: lambda s: entered(s.cluster.query("nonsense")),
        errors.EncodingFailureException: lambda s: entered(s.cluster.query("SELECT 1", UNENCODABLE)),
    },
    **{
        f"QueryIndexManager.{name}": found
        for name, found in of_indexes(lambda s: s.cluster.query_indexes(), "travel").items()
    },
    **{
        f"CollectionQueryIndexManager.{name}": found
        for name, found in of_indexes(lambda s: s.people.query_indexes()).items()
    },
    "ReplicaOperations.get_any_replica": {
        errors.DocumentUnretrievableException: lambda s: s.people.get_any_replica("missing")
    },
    "ReplicaOperations.lookup_in_any_replica": {
        errors.DocumentUnretrievableException: lambda s: s.people.lookup_in_any_replica("missing", GET_A)
    },
    "RowResult.__anext__": {
        errors.CouchbaseException: lambda s: entered(s.cluster.query("NONSENSE")),
        errors.DecodingFailureException: lambda s: entered(s.cluster.query("SELECT 1", row_type=int)),
    },
    "RowResult.metadata": {errors.CouchbaseException: failed_metadata},
    "ScanResult.content": {
        errors.DecodingFailureException: lambda _: (
            ScanResult("a", JsonTranscoder(), Cas(1), JSON_FLAGS, 0, b"{").content
        )
    },
    "ScanResult.content_as": {
        errors.DecodingFailureException: lambda _: ScanResult(
            "a", JsonTranscoder(), Cas(1), JSON_FLAGS, 0, b"1"
        ).content_as(str)
    },
    "ScanResult.data": {
        errors.DecodingFailureException: lambda _: (
            ScanResult("a", RAW, Cas(1), 0, 0, b"no snappy", is_deflated=True).data
        )
    },
    "RawQuery": {errors.EncodingFailureException: lambda _: RawQuery({"a": UNENCODABLE})},
    "SearchIndex.to_json": {errors.EncodingFailureException: lambda _: ODD.to_json()},
    "SearchRow.fields_as": {
        errors.DecodingFailureException: lambda _: SearchRow("a", "ada", encoded_fields=b"[]").fields_as(dict[str, int])
    },
    "ViewRow.key_as": {errors.DecodingFailureException: lambda _: ViewRow(b"1", b"2").key_as(str)},
    "ViewRow.value_as": {errors.DecodingFailureException: lambda _: ViewRow(b"1", b"2").value_as(str)},
    "SearchIndexManager.analyze_document": {
        errors.EncodingFailureException: lambda s: s.cluster.search_indexes().analyze_document("a", UNENCODABLE)
    },
    "SearchIndexManager.upsert_index": {
        errors.EncodingFailureException: lambda s: s.cluster.search_indexes().upsert_index(ODD),
        errors.IndexExistsException: lambda s: twice(lambda: s.cluster.search_indexes().upsert_index(HOTELS)),
        errors.FeatureNotAvailableException: vectors,
        errors.QuotaLimitedException: many_indexes,
    },
    "Searches.search": {
        errors.CouchbaseException: lambda s: entered(s.cluster.search("missing", MatchAllQuery())),
        errors.EncodingFailureException: lambda s: entered(
            s.cluster.search("a", MatchAllQuery(), raw={"a": UNENCODABLE})
        ),
    },
    "SubdocumentOperations.lookup_in": {
        errors.DocumentNotFoundException: lambda s: s.people.lookup_in("missing", GET_A),
        errors.FeatureNotAvailableException: against(
            lambda cluster: cluster.bucket("travel").default_collection().lookup_in("a", ATTRIBUTE), **FEATURELESS
        ),
    },
    "SubdocumentOperations.mutate_in": {
        **of_document("mutate_in", SET_A),
        **with_other_cas("mutate_in", SET_A),
        errors.DocumentExistsException: lambda s: s.people.mutate_in(
            "ada", SET_A, store_semantics=StoreSemantics.INSERT
        ),
        errors.PathNotFoundException: lambda s: s.people.mutate_in("ada", [MutateInSpec.remove("b")]),
        errors.EncodingFailureException: lambda s: s.people.mutate_in("ada", [MutateInSpec.upsert("a", UNENCODABLE)]),
        errors.ValueTooLargeException: lambda s: s.people.mutate_in(
            "ada", [MutateInSpec.upsert("a", BIG)], transcoder=RAW
        ),
        errors.FeatureNotAvailableException: against(
            lambda cluster: (
                cluster.bucket("travel").default_collection().mutate_in("a", [MutateInSpec.upsert("a", 1, xattr=True)])
            ),
            **FEATURELESS,
        ),
    },
    "Transcoder.decode": {errors.DecodingFailureException: lambda _: JsonTranscoder().decode(b"{", JSON_FLAGS, object)},
    "Transcoder.encode": {errors.EncodingFailureException: lambda _: JsonTranscoder().encode(UNENCODABLE)},
    "UserManager.drop_group": {errors.GroupNotFoundException: lambda s: s.cluster.users().drop_group("missing")},
    "UserManager.drop_user": {errors.UserNotFoundException: lambda s: s.cluster.users().drop_user("missing")},
    "UserManager.get_group": {errors.GroupNotFoundException: lambda s: s.cluster.users().get_group("missing")},
    "UserManager.get_user": {errors.UserNotFoundException: lambda s: s.cluster.users().get_user("missing")},
    "ViewQueries.view_query": {
        errors.CouchbaseException: lambda s: entered(s.cluster.bucket("travel").view_query("missing", "missing")),
        errors.EncodingFailureException: lambda s: entered(
            s.cluster.bucket("travel").view_query("a", "a", key=UNENCODABLE)
        ),
    },
    "Watched.wait_until_ready": {
        errors.AuthenticationFailureException: against(
            lambda cluster: cluster.wait_until_ready(), authenticator=PasswordAuthenticator("wrong", "wrong")
        ),
        errors.BucketAccessException: lambda s: s.cluster.bucket("nowhere").wait_until_ready(),
        errors.TlsException: wait_without_tls,
        errors.UnsupportedOperationException: against(
            lambda cluster: cluster.bucket("old").wait_until_ready(), memcached_buckets=("old",)
        ),
    },
}


ELSEWHERE: Mapping[str, str] = {
    "AmbiguousTooSlowError": "test_deadlines.py::test_operations_of_adopted_tasks_are_reported",
    "ArgumentError": "_retry/test_retry.py::test_invalid_exception_types",
    "Exception": "_retry/test_retry.py::test_the_last_error_is_raised",
    "InternalError": "_cluster_driver/test_endings.py::test_queued_operations_at_the_end_were_not_sent",
    "InvalidArgumentException": "test_wrong_arguments.py::test_a_wrong_argument_is_named",
    "OSError": "_cluster_driver/test_resolver.py::test_a_server_that_fails",
    "RetryError": "core/retry/smithy/test_base.py::test_hopeless",
    "RowsNotReadError": "_services/test_rows.py::test_metadata_before_the_last_row",
    "RuntimeError": "test_trio_run.py::test_a_call_from_another_run_is_refused",
    "StopAsyncIteration": "_services/test_rows.py::test_no_rows",
    "TypeError": "_retry/test_retry.py::test_plain_functions_cannot_be_decorated",
    "UnambiguousTooSlowError": "test_deadlines.py::test_a_block_cancelled_through_its_scope",
    "trio.BusyResourceError": "_services/test_rows.py::test_only_one_task_may_wait",
    "trio.ClosedResourceError": "_services/test_rows.py::test_failure_after_rows",
}
"""Test for each class that has no trigger: classes outside the SDK, and those of wrong arguments, defects and blocks."""

ALIKE = {("BinaryCollection.prepend", "ValueTooLargeException")}
"""Calls and classes that have a trigger although the call's docstring only refers to that of another call."""

RAISES = re.compile(r"^Raises:\n((?:    .*\n|\n)+)", re.MULTILINE)

PRIVATE = re.compile(r"_(?!_)")


def raised(subject: object) -> list[str]:
    """Return the classes in the "Raises" section of a docstring."""
    section = RAISES.search(inspect.cleandoc(subject.__doc__ or "") + "\n")
    return [] if section is None else re.findall(r"^    ([A-Za-z_.]+):", section[1], re.MULTILINE)


def documented() -> Iterator[tuple[str, str]]:
    """Yield each public call with each class in its "Raises" section, except calls that users implement."""
    for name, public in PUBLIC.items():
        if name in triclinium.abc.__all__:
            continue
        members = [inspect.getattr_static(public, each) for each in dir(public)] if inspect.isclass(public) else []
        for found in (public, *members):
            subject = getattr(found, "fget", None) or getattr(found, "__func__", found)
            if (inspect.isclass(subject) or inspect.isfunction(subject)) and not PRIVATE.match(subject.__name__):
                yield from ((subject.__qualname__, error) for error in raised(subject))


def test_every_documented_error_has_a_trigger() -> None:
    """Each class under "Raises" has a trigger for its call, or a test that exists; no trigger is superfluous."""
    pairs = {pair for pair in documented() if pair[1] not in ELSEWHERE}

    assert pairs | ALIKE == {(call, error.__name__) for call, found in TRIGGERS.items() for error in found}
    assert set(ELSEWHERE) == {error for _, error in documented() if error in ELSEWHERE}
    assert [] == [test for test in ELSEWHERE.values() if not exists(test, TEST_FOLDERS)]


@pytest.mark.parametrize("call", TRIGGERS)
async def test_a_documented_error_occurs(autojump_clock: MockClock, call: str) -> None:
    """Each trigger raises an exception of the class that the docstring of its call names."""
    for error, trigger in TRIGGERS[call].items():
        with trio.fail_after(PATIENCE):
            async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
                people = cluster.bucket("travel").default_collection()
                await people.upsert("ada", {"a": 1})
                await people.upsert("locked", 1)
                await people.get_and_lock("locked", 30)
                with pytest.raises(error):
                    await run(trigger, Stage(fake, cluster, people))
