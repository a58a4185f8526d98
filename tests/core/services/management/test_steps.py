"""Calls that send several requests: the order of the requests, and the result or error of the call."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

import pytest

from tests.core.services.management.answers import anything
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.inquiries import WaitForNodes
from triclinium_core.kv.operation.reports import NodesServe
from triclinium_core.retry.backoff import CONTROLLED_DELAY_MAX
from triclinium_core.services.management import buckets, collections, query_indexes, steps
from triclinium_core.services.management.call_time import TimeIsUp
from triclinium_core.services.service_request import Acknowledged

SETTINGS = buckets.BucketSettings(name="travel", ram_quota_mb=100)
HOTELS = query_indexes.IndexKeyspace("travel", "inventory", "hotel")


class Driven:
    """Test driver of a call: for each kind of request, it has a list of responses to return or exceptions to raise."""

    def __init__(self, call: steps.Steps[object]) -> None:
        self._call: Generator[steps.Step, object, object] = call
        self.asked: list[str] = []
        """Names of the requests in their order, with ``pause`` for each pause."""
        self.requests: list[steps.Step] = []
        self.pauses: list[float] = []

    def run(self, answers: dict[type, Sequence[object]]) -> object:
        """Run the call to its end. The last response of each kind of request is repeated.

        Returns:
            The result of the call.
        """
        left = {kind: list(each) for kind, each in answers.items()}
        step = next(self._call)
        try:
            while True:
                self.requests.append(step)
                if isinstance(step, steps.Pause):
                    self.asked.append("pause")
                    self.pauses.append(step.seconds)
                    assert len(self.pauses) < 50
                    step = self._call.send(None)
                    continue
                self.asked.append(step.name)
                queue = left[type(step)]
                answer = queue.pop(0) if len(queue) > 1 else queue[0]
                step = self._call.throw(answer) if isinstance(answer, Exception) else self._call.send(answer)
        except StopIteration as end:
            return end.value


def bucket(*states: str, capabilities: frozenset[str] = frozenset()) -> buckets.BucketResult:
    """Return a bucket whose nodes have these statuses."""
    return buckets.BucketResult(
        SETTINGS, tuple((f"node{place}:8091", state) for place, state in enumerate(states)), capabilities
    )


SERVED = NodesServe(("127.0.0.1:11210",))


def test_create_bucket() -> None:
    """``create_bucket`` waits until all nodes are healthy and each node accepts the bucket over key-value."""
    driven = Driven(steps.create_bucket(SETTINGS))
    driven.run(
        {
            buckets.CreateBucket: [Acknowledged()],
            buckets.GetBucket: [bucket("healthy", "healthy")],
            WaitForNodes: [SERVED],
        }
    )

    assert [
        buckets.CreateBucket(SETTINGS),
        buckets.GetBucket("travel"),
        WaitForNodes("travel"),
    ] == driven.requests


def test_create_bucket_polls_with_growing_pauses() -> None:
    """``create_bucket`` requests the bucket again after growing pauses until all nodes are healthy."""
    states = [
        errors.BucketNotFoundException(),
        bucket(),
        bucket("warmup"),
        bucket("healthy", "warmup"),
        bucket("healthy"),
    ]
    driven = Driven(steps.create_bucket(SETTINGS))
    driven.run({buckets.CreateBucket: [Acknowledged()], buckets.GetBucket: states, WaitForNodes: [SERVED]})

    assert ["create_bucket", *(["get_bucket", "pause"] * 4), "get_bucket", "wait_for_nodes"] == driven.asked
    assert sorted(driven.pauses) == driven.pauses
    assert 0 < driven.pauses[0] < driven.pauses[-1] <= CONTROLLED_DELAY_MAX


def test_create_bucket_retries_key_value() -> None:
    """While key-value refuses access to the bucket, ``create_bucket`` pauses and waits for the nodes again."""
    driven = Driven(steps.create_bucket(SETTINGS))
    refusals = [errors.BucketAccessException(), errors.BucketAccessException(), SERVED]
    driven.run({buckets.CreateBucket: [Acknowledged()], buckets.GetBucket: [bucket("healthy")], WaitForNodes: refusals})

    assert ["wait_for_nodes", "pause", "wait_for_nodes", "pause", "wait_for_nodes"] == driven.asked[2:]


def test_create_bucket_without_access() -> None:
    """If the user may not access the bucket, ``create_bucket`` returns after ``REFUSALS_MAX`` refusals."""
    driven = Driven(steps.create_bucket(SETTINGS))
    driven.run(
        {
            buckets.CreateBucket: [Acknowledged()],
            buckets.GetBucket: [bucket("healthy")],
            WaitForNodes: [errors.BucketAccessException()],
        }
    )

    assert steps.REFUSALS_MAX == driven.asked.count("wait_for_nodes")


def test_a_bucket_that_stays_unhealthy() -> None:
    """If a node stays unhealthy for ``HEALTH_SECONDS_MAX``, key-value decides; after a refusal, polling continues."""
    for outcome, asks_on in ((SERVED, False), (errors.BucketAccessException(), True)):
        driven = Driven(steps.create_bucket(SETTINGS))
        states = [*[bucket("healthy", "unhealthy")] * 20, bucket("healthy")]
        driven.run({buckets.CreateBucket: [Acknowledged()], buckets.GetBucket: states, WaitForNodes: [outcome]})
        first = driven.asked.index("wait_for_nodes")
        pauses = driven.pauses[: driven.asked[:first].count("pause")]

        assert steps.HEALTH_SECONDS_MAX <= sum(pauses) <= steps.HEALTH_SECONDS_MAX + CONTROLLED_DELAY_MAX
        assert asks_on is ("get_bucket" in driven.asked[first:])


def test_a_memcached_bucket() -> None:
    """On a memcached bucket ``create_bucket`` does not wait for key-value, which the client does not support there."""
    settings = buckets.BucketSettings(name="cache", ram_quota_mb=100, bucket_type=buckets.BucketType.MEMCACHED)
    driven = Driven(steps.create_bucket(settings))
    driven.run({buckets.CreateBucket: [Acknowledged()], buckets.GetBucket: [bucket("healthy")]})

    assert ["create_bucket", "get_bucket"] == driven.asked


def test_create_bucket_fails() -> None:
    """``create_bucket`` raises the error of its request without waiting."""
    driven = Driven(steps.create_bucket(SETTINGS))
    with pytest.raises(errors.BucketExistsException):
        driven.run({buckets.CreateBucket: [errors.BucketExistsException()]})

    assert ["create_bucket"] == driven.asked


@rows("error", [errors.AuthenticationFailureException("no"), errors.CouchbaseException("no")])
def test_a_failed_poll_ends_the_call(error: errors.CouchbaseException) -> None:
    """If a poll fails, the call raises the error of the poll."""
    for call, first in (
        (steps.create_bucket(SETTINGS), buckets.CreateBucket),
        (steps.drop_bucket("travel"), buckets.DropBucket),
    ):
        with pytest.raises(type(error)) as caught:
            Driven(call).run({first: [Acknowledged()], buckets.GetBucket: [error]})

        assert caught.value is error


def test_drop_bucket() -> None:
    """``drop_bucket`` polls until the service does not find the bucket."""
    driven = Driven(steps.drop_bucket("travel"))
    driven.run(
        {
            buckets.DropBucket: [Acknowledged()],
            buckets.GetBucket: [bucket("healthy"), bucket(), errors.BucketNotFoundException()],
        }
    )

    assert ["drop_bucket", "get_bucket", "pause", "get_bucket", "pause", "get_bucket"] == driven.asked


def test_drop_bucket_fails() -> None:
    """``drop_bucket`` raises the error of its request."""
    with pytest.raises(errors.BucketNotFoundException):
        Driven(steps.drop_bucket("travel")).run({buckets.DropBucket: [errors.BucketNotFoundException()]})


def test_change_manifest() -> None:
    """``change_manifest`` waits until every node has the changed manifest or a later manifest."""
    change = collections.CreateScope("travel", "inventory")
    driven = Driven(steps.change_manifest(change))
    driven.run({collections.CreateScope: [collections.ManifestChanged(5)], WaitForNodes: [SERVED]})

    assert [change, WaitForNodes("travel", 5)] == driven.requests


@rows(
    ("call", "done", "known"),
    [
        (
            steps.change_manifest(collections.DropCollection("travel", "inventory", "hotel")),
            {collections.DropCollection: [collections.ManifestChanged(5)]},
            ("drop_collection", "travel", "inventory", "hotel"),
        ),
        (
            steps.create_bucket(SETTINGS),
            {buckets.CreateBucket: [Acknowledged()], buckets.GetBucket: [bucket("healthy")]},
            ("create_bucket", "travel", None, None),
        ),
    ],
)
def test_a_timeout_while_waiting_for_nodes(
    call: steps.Steps[None], done: dict[type, Sequence[object]], known: tuple[str | None, ...]
) -> None:
    """A timeout while waiting for nodes has the operation that the user called, and the state of each connection."""
    late = ErrorContext(
        operation="wait_for_nodes", bucket="travel", timeout=75.0, elapsed=75.0, connections=("b: down",)
    )
    with pytest.raises(errors.AmbiguousTimeoutException, match="b: down") as caught:
        Driven(call).run({**done, WaitForNodes: [errors.AmbiguousTimeoutException("wait_for_nodes: b: down", late)]})

    context = caught.value.context
    assert known == (context.operation, context.bucket, context.scope, context.collection)
    assert (75.0, 75.0, ("b: down",)) == (context.timeout, context.elapsed, context.connections)
    assert "wait_for_nodes" not in caught.value.message


def test_change_manifest_without_access() -> None:
    """If the user may not access the bucket, ``change_manifest`` returns after the first refusal."""
    change = collections.DropCollection("travel", "inventory", "hotel")
    driven = Driven(steps.change_manifest(change))
    driven.run(
        {collections.DropCollection: [collections.ManifestChanged(5)], WaitForNodes: [errors.BucketAccessException()]}
    )

    assert ["drop_collection", "wait_for_nodes"] == driven.asked


HISTORY: Sequence[collections.ManifestChange] = (
    collections.CreateCollection("travel", "inventory", "hotel", collections.CreateCollectionSettings(history=False)),
    collections.UpdateCollection("travel", "inventory", "hotel", collections.UpdateCollectionSettings(history=True)),
)


@rows("change", HISTORY)
def test_history_requires_a_capability(change: collections.ManifestChange) -> None:
    """A change of history first checks the bucket's capability, and fails unsent if the bucket lacks the capability."""
    able = bucket("healthy", capabilities=frozenset({"nonDedupedHistory"}))
    driven = Driven(steps.change_manifest(change))
    driven.run({buckets.GetBucket: [able], type(change): [collections.ManifestChanged(1)], WaitForNodes: [SERVED]})

    assert ["get_bucket", change.name, "wait_for_nodes"] == driven.asked

    unable = Driven(steps.change_manifest(change))
    with pytest.raises(errors.FeatureNotAvailableException) as caught:
        unable.run({buckets.GetBucket: [bucket("healthy")]})

    assert change.name == caught.value.context.operation
    assert ["get_bucket"] == unable.asked


def test_no_capability_check_without_history() -> None:
    """A change without history does not request the bucket."""
    change = collections.UpdateCollection(
        "travel", "inventory", "hotel", collections.UpdateCollectionSettings(max_expiry=1)
    )
    driven = Driven(steps.change_manifest(change))
    driven.run({collections.UpdateCollection: [collections.ManifestChanged(1)], WaitForNodes: [SERVED]})

    assert ["update_collection", "wait_for_nodes"] == driven.asked


def test_creating_an_existing_index() -> None:
    """Creating an existing index fails unless ``ignore_if_exists`` is set; the option suppresses no other error."""
    for statement in (query_indexes.create_index(HOTELS, "i", ["a"]), query_indexes.create_primary_index(HOTELS)):
        there: dict[type, Sequence[object]] = {type(statement): [errors.IndexExistsException()]}
        Driven(steps.create_index(statement, ignore_if_exists=True)).run(there)
        Driven(steps.create_index(statement, ignore_if_exists=False)).run({type(statement): [Acknowledged()]})

        with pytest.raises(errors.IndexExistsException):
            Driven(steps.create_index(statement, ignore_if_exists=False)).run(there)
        with pytest.raises(errors.IndexNotFoundException):
            Driven(steps.create_index(statement, ignore_if_exists=True)).run(
                {type(statement): [errors.IndexNotFoundException()]}
            )


def test_dropping_a_missing_index() -> None:
    """Dropping a missing index fails unless ``ignore_if_not_exists`` is set; the option suppresses no other error."""
    for statement in (query_indexes.drop_index(HOTELS, "i"), query_indexes.drop_primary_index(HOTELS)):
        gone: dict[type, Sequence[object]] = {type(statement): [errors.IndexNotFoundException()]}
        Driven(steps.drop_index(statement, ignore_if_not_exists=True)).run(gone)
        Driven(steps.drop_index(statement, ignore_if_not_exists=False)).run({type(statement): [Acknowledged()]})

        with pytest.raises(errors.IndexNotFoundException):
            Driven(steps.drop_index(statement, ignore_if_not_exists=False)).run(gone)
        with pytest.raises(errors.IndexExistsException):
            Driven(steps.drop_index(statement, ignore_if_not_exists=True)).run(
                {type(statement): [errors.IndexExistsException()]}
            )


def index(
    name: str, state: str = "online", *, is_primary: bool = False, scope: str | None = "inventory"
) -> query_indexes.QueryIndex:
    """Return an index on a collection, or on a bucket without collections."""
    return query_indexes.QueryIndex(
        name=name,
        is_primary=is_primary,
        type=query_indexes.QueryIndexType.GSI,
        state=state,
        keyspace="travel",
        index_key=(),
        condition=None,
        partition=None,
        bucket_name="travel",
        scope_name=scope,
        collection_name={None: None, "_default": "_default"}.get(scope, "hotel"),
    )


def found(*indexes: query_indexes.QueryIndex) -> query_indexes.QueryIndexesResult:
    """Return a result with these indexes."""
    return query_indexes.QueryIndexesResult(indexes)


ASKED = type(query_indexes.all_indexes(HOTELS))


def test_watch_indexes() -> None:
    """``watch_indexes`` polls until all named indexes are online, and ignores the other indexes."""
    driven = Driven(steps.watch_indexes(HOTELS, ["a", "b"], watch_primary=False))
    late = index("c", "deferred")
    driven.run(
        {
            ASKED: [
                found(index("a", "building"), index("b", "pending"), late),
                found(index("a"), index("b", "building"), late),
                found(index("a"), index("b"), late),
            ]
        }
    )

    assert ["get_all_query_indexes", "pause"] * 2 + ["get_all_query_indexes"] == driven.asked


def test_watch_indexes_with_the_primary_index() -> None:
    """``watch_indexes`` waits for the primary index under any name, with or without named indexes."""
    for names in ([], ["a"]):
        driven = Driven(steps.watch_indexes(HOTELS, names, watch_primary=True))
        driven.run(
            {
                ASKED: [
                    found(index("a"), index("p", "building", is_primary=True)),
                    found(index("a"), index("p", is_primary=True)),
                ]
            }
        )

        assert 1 == len(driven.pauses)


@rows(
    ("names", "watch_primary", "there"),
    [
        (["a"], False, []),
        (["a", "b"], False, [index("a", "building")]),
        ([], True, [index("a")]),
        (["a"], True, [index("a")]),
        (["a"], False, [index("A")]),
    ],
)
def test_watching_missing_indexes(names: list[str], watch_primary: bool, there: list[query_indexes.QueryIndex]) -> None:
    """``watch_indexes`` raises IndexNotFoundException immediately if an index is missing."""
    driven = Driven(steps.watch_indexes(HOTELS, names, watch_primary=watch_primary))
    with pytest.raises(errors.IndexNotFoundException):
        driven.run({ASKED: [found(*there)]})

    assert not driven.pauses


def test_watching_a_dropped_index() -> None:
    """``watch_indexes`` raises IndexNotFoundException if an index is dropped while the call waits for it."""
    driven = Driven(steps.watch_indexes(HOTELS, ["a"], watch_primary=False))
    with pytest.raises(errors.IndexNotFoundException) as caught:
        driven.run({ASKED: [found(index("a", "building")), found()]})

    assert "a" == caught.value.context.index


def test_watching_indexes_of_a_bucket() -> None:
    """In both formats of the server, ``watch_indexes`` on a bucket finds the indexes of the default collection only."""
    bucket_alone = query_indexes.IndexKeyspace("travel")
    for scope in (None, "_default"):
        Driven(steps.watch_indexes(bucket_alone, ["a"], watch_primary=False)).run(
            {ASKED: [found(index("a", scope=scope))]}
        )
    with pytest.raises(errors.IndexNotFoundException):
        Driven(steps.watch_indexes(bucket_alone, ["a"], watch_primary=False)).run({ASKED: [found(index("a"))]})


@rows(
    "call",
    [
        lambda: steps.watch_indexes(HOTELS, [], watch_primary=False),
        lambda: steps.watch_indexes(HOTELS, "abc", watch_primary=False),
        lambda: steps.watch_indexes(HOTELS, [""], watch_primary=False),
        lambda: steps.watch_indexes(HOTELS, anything(None), watch_primary=False),
        lambda: steps.watch_indexes(HOTELS, ["a"], watch_primary=anything(1)),
        lambda: steps.create_index(query_indexes.create_index(HOTELS, "i", ["a"]), ignore_if_exists=anything(1)),
        lambda: steps.drop_index(query_indexes.drop_index(HOTELS, "i"), ignore_if_not_exists=anything("yes")),
        lambda: steps.create_bucket(anything("travel")),
        lambda: steps.drop_bucket(".."),
    ],
)
def test_invalid_arguments(call: Callable[[], steps.Steps[object]]) -> None:
    """An invalid argument raises an error before the first request."""
    with pytest.raises(errors.InvalidArgumentException):
        next(call())


def test_build_deferred_indexes() -> None:
    """All deferred indexes are built in one request; without deferred indexes, only the query for them is sent."""
    asked, built = type(query_indexes.deferred_indexes(HOTELS)), type(query_indexes.build_indexes(HOTELS, ["a"]))
    driven = Driven(steps.build_deferred_indexes(HOTELS))

    assert ("a", "b") == driven.run({asked: [query_indexes.IndexNamesResult(("a", "b"))], built: [Acknowledged()]})
    assert [query_indexes.deferred_indexes(HOTELS), query_indexes.build_indexes(HOTELS, ["a", "b"])] == driven.requests

    idle = Driven(steps.build_deferred_indexes(HOTELS))
    assert () == idle.run({asked: [query_indexes.IndexNamesResult(())]})
    assert 1 == len(idle.requests)


CHANGE = collections.CreateCollection(
    "travel", "inventory", "hotel", collections.CreateCollectionSettings(history=True)
)
BUILDING = {ASKED: [found(index("a", "building"), index("b"))]}
HISTORIC = bucket("healthy", capabilities=frozenset({"nonDedupedHistory"}))


def stopped(
    call: steps.Steps[object], answers: dict[type, Sequence[object]], at: int, up: TimeIsUp
) -> errors.TimeoutException | None:
    """Return the error of a call that runs out of time during step ``at``, or None if the call adds no error."""
    left = {kind: list(each) for kind, each in answers.items()}
    step = next(call)
    for _ in range(at):
        answer = None if isinstance(step, steps.Pause) else left[type(step)].pop(0)
        step = call.throw(answer) if isinstance(answer, Exception) else call.send(answer)
    return steps.last_words(call, up)


@rows(
    ("call", "answers", "at", "ambiguous", "known"),
    [
        (
            steps.create_bucket(SETTINGS),
            {buckets.CreateBucket: [Acknowledged()]},
            1,
            True,
            ("create_bucket", "travel", ()),
        ),
        (
            steps.create_bucket(SETTINGS),
            {buckets.CreateBucket: [Acknowledged()], buckets.GetBucket: [errors.BucketNotFoundException()]},
            2,
            True,
            ("create_bucket", "travel", ("bucket 'travel' is not known to the node",)),
        ),
        (
            steps.create_bucket(SETTINGS),
            {buckets.CreateBucket: [Acknowledged()], buckets.GetBucket: [bucket()]},
            2,
            True,
            ("create_bucket", "travel", ("bucket 'travel' has no nodes yet",)),
        ),
        (
            steps.create_bucket(SETTINGS),
            {buckets.CreateBucket: [Acknowledged()], buckets.GetBucket: [bucket("healthy", "warmup")]},
            2,
            True,
            ("create_bucket", "travel", ("node1:8091: warmup",)),
        ),
        (
            steps.drop_bucket("travel"),
            {buckets.DropBucket: [Acknowledged()], buckets.GetBucket: [bucket("healthy")]},
            2,
            True,
            ("drop_bucket", "travel", ("bucket 'travel' is still there",)),
        ),
        (steps.change_manifest(CHANGE), {}, 0, False, ("create_collection", "travel", ())),
        (
            steps.change_manifest(CHANGE),
            {buckets.GetBucket: [HISTORIC], collections.CreateCollection: [collections.ManifestChanged(5)]},
            2,
            True,
            ("create_collection", "travel", ()),
        ),
        (steps.build_deferred_indexes(HOTELS), {}, 0, False, ("build_deferred_indexes", "travel", ())),
        (
            steps.watch_indexes(HOTELS, ["a", "b"], watch_primary=False),
            BUILDING,
            1,
            False,
            ("watch_indexes", "travel", ("index 'a' is building",)),
        ),
    ],
)
def test_timeouts_between_steps(
    call: steps.Steps[object],
    answers: dict[type, Sequence[object]],
    at: int,
    ambiguous: bool,
    known: tuple[str, str, tuple[str, ...]],
) -> None:
    """A timeout has the operation that the user called, its ambiguity, and the conditions for which the call waited."""
    error = stopped(call, answers, at, TimeIsUp(5.5, 5.0))

    assert error is not None
    context = error.context
    assert ambiguous is isinstance(error, errors.AmbiguousTimeoutException)
    assert known == (context.operation, context.bucket, context.awaited)
    assert (5.5, 5.0, None) == (context.elapsed, context.timeout, context.statement)
    assert error.message.startswith(f"{context.operation}: {'done, but' if ambiguous else 'not done'}")
    assert all(awaited in error.message for awaited in context.awaited)


def test_a_timeout_during_a_step() -> None:
    """A timeout during a step has the retries and connections of that step."""
    step = ErrorContext(operation="wait_for_nodes", retry_attempts=3, state="in_flight", connections=("b: down",))
    answers: dict[type, Sequence[object]] = {
        buckets.GetBucket: [HISTORIC],
        collections.CreateCollection: [collections.ManifestChanged(5)],
    }
    error = stopped(steps.change_manifest(CHANGE), answers, 2, TimeIsUp(5.0, 5.0, step, is_ambiguous=True))

    assert error is not None
    assert ("create_collection", "inventory", 3, None, ("b: down",)) == (
        error.context.operation,
        error.context.scope,
        error.context.retry_attempts,
        error.context.state,
        error.context.connections,
    )


@rows("is_ambiguous", [False, True])
def test_a_timeout_during_a_change(is_ambiguous: bool) -> None:
    """A timeout during a change is ambiguous if the change may have been applied."""
    step = ErrorContext(operation="create_collection")
    up = TimeIsUp(5.0, None, step, is_ambiguous=is_ambiguous)
    error = stopped(steps.change_manifest(CHANGE), {buckets.GetBucket: [HISTORIC]}, 1, up)

    assert is_ambiguous is isinstance(error, errors.AmbiguousTimeoutException)
    assert is_ambiguous is ("may have been applied" in str(error))


def test_a_timeout_during_the_first_step() -> None:
    """If the first request makes the change, the call does not replace the timeout of that request."""
    for call in (
        steps.create_bucket(SETTINGS),
        steps.create_index(query_indexes.create_index(HOTELS, "i", ["a"]), ignore_if_exists=True),
        steps.drop_index(query_indexes.drop_index(HOTELS, "i"), ignore_if_not_exists=True),
    ):
        assert None is stopped(call, {}, 0, TimeIsUp(5.0, None))
