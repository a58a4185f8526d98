"""Calls that send several requests: the order of the requests, and the result or error of the call."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from types import MappingProxyType

import pytest

from tests.core.services.answers import anything
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.inquiries import WaitForNodes
from triclinium_core.kv.operation.reports import NodesServe
from triclinium_core.retry.backoff import CONTROLLED_DELAY_MAX
from triclinium_core.services.management import buckets, collections, query_indexes, steps
from triclinium_core.services.management.call_time import TimeIsUp
from triclinium_core.services.management.management_request import ManagementRequest
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
DONE: dict[type, Sequence[object]] = {
    buckets.CreateBucket: [Acknowledged()],
    buckets.DropBucket: [Acknowledged()],
    buckets.GetBucket: [bucket("healthy")],
    collections.CreateScope: [collections.ManifestChanged(5)],
    collections.CreateCollection: [collections.ManifestChanged(5)],
    collections.UpdateCollection: [collections.ManifestChanged(5)],
    collections.DropCollection: [collections.ManifestChanged(5)],
    WaitForNodes: [SERVED],
}
"""Successful responses."""


def driven(call: steps.Steps[object], answers: Mapping[type, Sequence[object]] = MappingProxyType({})) -> Driven:
    """Run a call to its end with these responses, or else successful ones. Return its driver."""
    driver = Driven(call)
    driver.run({**DONE, **answers})
    return driver


def test_create_bucket() -> None:
    """``create_bucket`` waits until all nodes are healthy and each node accepts the bucket over key-value."""
    call = driven(steps.create_bucket(SETTINGS), {buckets.GetBucket: [bucket("healthy", "healthy")]})

    assert [buckets.CreateBucket(SETTINGS), buckets.GetBucket("travel"), WaitForNodes("travel")] == call.requests


def test_create_bucket_polls_with_growing_pauses() -> None:
    """``create_bucket`` requests the bucket again after growing pauses until all nodes are healthy."""
    missing = errors.BucketNotFoundException()
    states = [missing, bucket(), bucket("warmup"), bucket("healthy", "warmup"), bucket("healthy")]
    call = driven(steps.create_bucket(SETTINGS), {buckets.GetBucket: states})

    assert ["create_bucket", *(["get_bucket", "pause"] * 4), "get_bucket", "wait_for_nodes"] == call.asked
    assert sorted(call.pauses) == call.pauses
    assert 0 < call.pauses[0] < call.pauses[-1] <= CONTROLLED_DELAY_MAX


def test_create_bucket_retries_key_value() -> None:
    """While key-value refuses access to the bucket, ``create_bucket`` pauses and waits for the nodes again."""
    refusals = [errors.BucketAccessException(), errors.BucketAccessException(), SERVED]
    call = driven(steps.create_bucket(SETTINGS), {WaitForNodes: refusals})

    assert ["wait_for_nodes", "pause", "wait_for_nodes", "pause", "wait_for_nodes"] == call.asked[2:]


def test_create_bucket_without_access() -> None:
    """If the user may not access the bucket, ``create_bucket`` returns after ``REFUSALS_MAX`` refusals."""
    call = driven(steps.create_bucket(SETTINGS), {WaitForNodes: [errors.BucketAccessException()]})

    assert steps.REFUSALS_MAX == call.asked.count("wait_for_nodes")


def test_a_bucket_that_stays_unhealthy() -> None:
    """If a node stays unhealthy for ``HEALTH_SECONDS_MAX``, key-value decides; after a refusal, polling continues."""
    states = [*[bucket("healthy", "unhealthy")] * 20, bucket("healthy")]
    for outcome, asks_on in ((SERVED, False), (errors.BucketAccessException(), True)):
        call = driven(steps.create_bucket(SETTINGS), {buckets.GetBucket: states, WaitForNodes: [outcome]})
        first = call.asked.index("wait_for_nodes")
        pauses = call.pauses[: call.asked[:first].count("pause")]

        assert steps.HEALTH_SECONDS_MAX <= sum(pauses) <= steps.HEALTH_SECONDS_MAX + CONTROLLED_DELAY_MAX
        assert asks_on is ("get_bucket" in call.asked[first:])


def test_a_memcached_bucket() -> None:
    """On a memcached bucket ``create_bucket`` does not wait for key-value, which the client does not support there."""
    settings = buckets.BucketSettings(name="cache", ram_quota_mb=100, bucket_type=buckets.BucketType.MEMCACHED)

    assert ["create_bucket", "get_bucket"] == driven(steps.create_bucket(settings)).asked


@rows(
    ("call", "error", "first"),
    [
        (steps.create_bucket(SETTINGS), errors.BucketExistsException(), buckets.CreateBucket),
        (steps.drop_bucket("travel"), errors.BucketNotFoundException(), buckets.DropBucket),
    ],
)
def test_a_failed_change_ends_the_call(
    call: steps.Steps[None], error: errors.CouchbaseException, first: type[ManagementRequest]
) -> None:
    """If the first request fails, the call raises its error without waiting."""
    driver = Driven(call)
    with pytest.raises(type(error)):
        driver.run({first: [error]})

    assert [first.name] == driver.asked


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
    states = [bucket("healthy"), bucket(), errors.BucketNotFoundException()]
    call = driven(steps.drop_bucket("travel"), {buckets.GetBucket: states})

    assert ["drop_bucket", "get_bucket", "pause", "get_bucket", "pause", "get_bucket"] == call.asked


def test_change_manifest() -> None:
    """``change_manifest`` waits until every node has the changed manifest or a later manifest."""
    change = collections.CreateScope("travel", "inventory")

    assert [change, WaitForNodes("travel", 5)] == driven(steps.change_manifest(change)).requests


@rows(
    ("call", "known"),
    [
        (
            steps.change_manifest(collections.DropCollection("travel", "inventory", "hotel")),
            ("drop_collection", "travel", "inventory", "hotel"),
        ),
        (steps.create_bucket(SETTINGS), ("create_bucket", "travel", None, None)),
    ],
)
def test_a_timeout_while_waiting_for_nodes(call: steps.Steps[None], known: tuple[str | None, ...]) -> None:
    """A timeout while waiting for nodes has the operation that the user called, and the state of each connection."""
    late = ErrorContext(
        operation="wait_for_nodes", bucket="travel", timeout=75.0, elapsed=75.0, connections=("b: down",)
    )
    with pytest.raises(errors.AmbiguousTimeoutException, match="b: down") as caught:
        driven(call, {WaitForNodes: [errors.AmbiguousTimeoutException("wait_for_nodes: b: down", late)]})

    context = caught.value.context
    assert known == (context.operation, context.bucket, context.scope, context.collection)
    assert (75.0, 75.0, ("b: down",)) == (context.timeout, context.elapsed, context.connections)
    assert "wait_for_nodes" not in caught.value.message


def test_change_manifest_without_access() -> None:
    """If the user may not access the bucket, ``change_manifest`` returns after the first refusal."""
    change = collections.DropCollection("travel", "inventory", "hotel")
    call = driven(steps.change_manifest(change), {WaitForNodes: [errors.BucketAccessException()]})

    assert ["drop_collection", "wait_for_nodes"] == call.asked


HISTORIC = bucket("healthy", capabilities=frozenset({"nonDedupedHistory"}))
HISTORY: Sequence[collections.ManifestChange] = (
    collections.CreateCollection("travel", "inventory", "hotel", collections.CreateCollectionSettings(history=False)),
    collections.UpdateCollection("travel", "inventory", "hotel", collections.UpdateCollectionSettings(history=True)),
)


@rows("change", HISTORY)
def test_history_requires_a_capability(change: collections.ManifestChange) -> None:
    """A change of history first checks the bucket's capability, and fails unsent if the bucket lacks the capability."""
    able = driven(steps.change_manifest(change), {buckets.GetBucket: [HISTORIC]})

    assert ["get_bucket", change.name, "wait_for_nodes"] == able.asked

    unable = Driven(steps.change_manifest(change))
    with pytest.raises(errors.FeatureNotAvailableException) as caught:
        unable.run({buckets.GetBucket: [bucket("healthy")]})

    assert change.name == caught.value.context.operation
    assert ["get_bucket"] == unable.asked


def test_no_capability_check_without_history() -> None:
    """A change without history does not request the bucket."""
    settings = collections.UpdateCollectionSettings(max_expiry=1)
    change = collections.UpdateCollection("travel", "inventory", "hotel", settings)

    assert ["update_collection", "wait_for_nodes"] == driven(steps.change_manifest(change)).asked


EXISTS, MISSING = errors.IndexExistsException(), errors.IndexNotFoundException()


@rows(
    ("step", "option", "statement", "ignored", "other"),
    [
        (steps.create_index, "ignore_if_exists", query_indexes.create_index(HOTELS, "i", ["a"]), EXISTS, MISSING),
        (steps.create_index, "ignore_if_exists", query_indexes.create_primary_index(HOTELS), EXISTS, MISSING),
        (steps.drop_index, "ignore_if_not_exists", query_indexes.drop_index(HOTELS, "i"), MISSING, EXISTS),
        (steps.drop_index, "ignore_if_not_exists", query_indexes.drop_primary_index(HOTELS), MISSING, EXISTS),
    ],
)
def test_an_index_that_exists_or_is_missing(
    step: Callable[..., steps.Steps[None]],
    option: str,
    statement: query_indexes.IndexStatement,
    ignored: errors.CouchbaseException,
    other: errors.CouchbaseException,
) -> None:
    """Creating an existing index, or dropping a missing one, fails unless an option suppresses exactly this error."""
    driven(step(statement, **{option: True}), {type(statement): [ignored]})
    driven(step(statement, **{option: False}), {type(statement): [Acknowledged()]})
    for is_set, error in ((False, ignored), (True, other)):
        with pytest.raises(type(error)):
            driven(step(statement, **{option: is_set}), {type(statement): [error]})


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
    late = index("c", "deferred")
    answers = [
        found(index("a", "building"), index("b", "pending"), late),
        found(index("a"), index("b", "building"), late),
        found(index("a"), index("b"), late),
    ]
    call = driven(steps.watch_indexes(HOTELS, ["a", "b"], watch_primary=False), {ASKED: answers})

    assert ["get_all_query_indexes", "pause"] * 2 + ["get_all_query_indexes"] == call.asked


def test_watch_indexes_with_the_primary_index() -> None:
    """``watch_indexes`` waits for the primary index under any name, with or without named indexes."""
    answers = [found(index("a"), index("p", state, is_primary=True)) for state in ("building", "online")]
    for names in ([], ["a"]):
        call = driven(steps.watch_indexes(HOTELS, names, watch_primary=True), {ASKED: answers})

        assert 1 == len(call.pauses)


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
    driver = Driven(steps.watch_indexes(HOTELS, names, watch_primary=watch_primary))
    with pytest.raises(errors.IndexNotFoundException):
        driver.run({ASKED: [found(*there)]})

    assert not driver.pauses


def test_watching_a_dropped_index() -> None:
    """``watch_indexes`` raises IndexNotFoundException if an index is dropped while the call waits for it."""
    call = steps.watch_indexes(HOTELS, ["a"], watch_primary=False)
    with pytest.raises(errors.IndexNotFoundException) as caught:
        driven(call, {ASKED: [found(index("a", "building")), found()]})

    assert "a" == caught.value.context.index


def test_watching_indexes_of_a_bucket() -> None:
    """In both formats of the server, ``watch_indexes`` on a bucket finds the indexes of the default collection only."""
    bucket_alone = query_indexes.IndexKeyspace("travel")
    for scope in (None, "_default"):
        driven(steps.watch_indexes(bucket_alone, ["a"], watch_primary=False), {ASKED: [found(index("a", scope=scope))]})
    with pytest.raises(errors.IndexNotFoundException):
        driven(steps.watch_indexes(bucket_alone, ["a"], watch_primary=False), {ASKED: [found(index("a"))]})


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
    call = Driven(steps.build_deferred_indexes(HOTELS))

    assert ("a", "b") == call.run({asked: [query_indexes.IndexNamesResult(("a", "b"))], built: [Acknowledged()]})
    assert [query_indexes.deferred_indexes(HOTELS), query_indexes.build_indexes(HOTELS, ["a", "b"])] == call.requests

    idle = Driven(steps.build_deferred_indexes(HOTELS))
    assert () == idle.run({asked: [query_indexes.IndexNamesResult(())]})
    assert 1 == len(idle.requests)


CHANGE = collections.CreateCollection(
    "travel", "inventory", "hotel", collections.CreateCollectionSettings(history=True)
)


def stopped(
    call: steps.Steps[object], answers: Mapping[type, Sequence[object]], at: int, up: TimeIsUp
) -> errors.TimeoutException | None:
    """Return the error of a call that runs out of time during step ``at``, or None if the call adds no error."""
    left = {kind: list(each) for kind, each in {**DONE, **answers}.items()}
    step = next(call)
    for _ in range(at):
        answer = None if isinstance(step, steps.Pause) else left[type(step)].pop(0)
        step = call.throw(answer) if isinstance(answer, Exception) else call.send(answer)
    return steps.last_words(call, up)


@rows(
    ("call", "answers", "at", "ambiguous", "known"),
    [
        (steps.create_bucket(SETTINGS), {}, 1, True, ("create_bucket", ())),
        *(
            (steps.create_bucket(SETTINGS), {buckets.GetBucket: [state]}, 2, True, ("create_bucket", (awaited,)))
            for state, awaited in (
                (errors.BucketNotFoundException(), "bucket 'travel' is not known to the node"),
                (bucket(), "bucket 'travel' has no nodes yet"),
                (bucket("healthy", "warmup"), "node1:8091: warmup"),
            )
        ),
        (steps.drop_bucket("travel"), {}, 2, True, ("drop_bucket", ("bucket 'travel' is still there",))),
        (steps.change_manifest(CHANGE), {}, 0, False, ("create_collection", ())),
        (steps.change_manifest(CHANGE), {buckets.GetBucket: [HISTORIC]}, 2, True, ("create_collection", ())),
        (steps.build_deferred_indexes(HOTELS), {}, 0, False, ("build_deferred_indexes", ())),
        (
            steps.watch_indexes(HOTELS, ["a", "b"], watch_primary=False),
            {ASKED: [found(index("a", "building"), index("b"))]},
            1,
            False,
            ("watch_indexes", ("index 'a' is building",)),
        ),
    ],
)
def test_timeouts_between_steps(
    call: steps.Steps[object],
    answers: Mapping[type, Sequence[object]],
    at: int,
    ambiguous: bool,
    known: tuple[str, tuple[str, ...]],
) -> None:
    """A timeout has the operation that the user called, its ambiguity, and the conditions for which the call waited."""
    error = stopped(call, answers, at, TimeIsUp(5.5, 5.0))

    assert error is not None
    context = error.context
    assert ambiguous is isinstance(error, errors.AmbiguousTimeoutException)
    assert (known, "travel") == ((context.operation, context.awaited), context.bucket)
    assert (5.5, 5.0, None) == (context.elapsed, context.timeout, context.statement)
    assert error.message.startswith(f"{context.operation}: {'done, but' if ambiguous else 'not done'}")
    assert all(each in error.message for each in context.awaited)


def test_a_timeout_during_a_step() -> None:
    """A timeout during a step has the retries and connections of that step."""
    step = ErrorContext(operation="wait_for_nodes", retry_attempts=3, state="in_flight", connections=("b: down",))
    up = TimeIsUp(5.0, 5.0, step, is_ambiguous=True)
    error = stopped(steps.change_manifest(CHANGE), {buckets.GetBucket: [HISTORIC]}, 2, up)

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
