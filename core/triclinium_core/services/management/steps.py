"""Calls that make requests and pauses in sequence, such as creating a bucket and waiting until it is usable.

Each call is a generator. The driver of a call waits and sends, and decides nothing:

1. ``next`` returns the first step. Sleep for a ``Pause``; submit everything else.
2. After a pause, ``send(None)`` returns the next step. After a request, ``send`` its result, or ``throw`` the
   ``CouchbaseException`` with which the request failed.
3. ``StopIteration`` has the result of the call. Any other exception is the error of the call.
4. To stop, abandon the submitted request, if any, and get the error from ``last_words``. Applied changes stay.

A call reads no clock. Its driver ends the call after ``TimeoutOptions.management``, counted from the beginning of the
call, but not before the first request has ended. The first request and the wait for the key-value nodes have their own
timeouts. Only ``watch_indexes`` has no timeout: its caller can cancel it (decision D60).

Source: SDK-RFC 0054; SDK-RFC 0049 "Controlled Backoff for Always Retry" for the pauses between requests.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import TypeVar

import msgspec

from triclinium_core import errors
from triclinium_core.checks import check_flag, check_text
from triclinium_core.kv.operation.document_operations import Operation
from triclinium_core.kv.operation.inquiries import Inquiry, WaitForNodes
from triclinium_core.kv.operation.validation import DEFAULT_NAME
from triclinium_core.kv.topology.capabilities import BucketCapability
from triclinium_core.retry.backoff import controlled
from triclinium_core.services.management import buckets, collections, query_indexes
from triclinium_core.services.management.call_time import Progress, TimeIsUp, progress_of
from triclinium_core.services.management.management_request import ManagementRequest
from triclinium_core.services.service_request import ServiceRequest
from triclinium_core.shown import shown

REFUSALS_MAX = 5
"""Number of times that key-value may refuse a new bucket, over two thirds of a second in all. After that, the client
concludes that the user may create buckets but has no access to them."""
HEALTH_SECONDS_MAX = 10.0
"""Sum of pauses in seconds after which the client stops checking that all nodes of a new bucket are healthy, if it then
waits for key-value. A node that is down never becomes healthy; the wait for key-value has a deadline, and its error
names the node."""

R = TypeVar("R")


class Pause(msgspec.Struct, frozen=True):
    """Step that waits for some seconds."""

    seconds: float


Step = Pause | ServiceRequest | Operation | Inquiry
Steps = Generator[Step, object, R]


def last_words(call: Steps[R], up: TimeIsUp) -> errors.TimeoutException | None:
    """End a call whose time is up. Return its error, or None if the error of the abandoned step is sufficient."""
    try:
        call.throw(up)
    except TimeIsUp:
        return None
    except errors.TimeoutException as error:
        return error
    raise AssertionError("a call continued after its deadline")


def create_bucket(settings: buckets.BucketSettings) -> Steps[None]:
    """Create a bucket, and wait until clients can select it on each key-value node.

    For a memcached bucket, or without access to the bucket, wait until all nodes of the bucket are healthy.
    """
    create = buckets.CreateBucket(settings)
    yield create
    with progress_of(create.error_context()) as progress:
        progress.is_applied = True
        if settings.bucket_type is buckets.BucketType.MEMCACHED:
            yield from _wait_for_health(settings.name, progress)
            return
        is_healthy = yield from _wait_for_health(settings.name, progress, seconds_max=HEALTH_SECONDS_MAX)
        is_served = yield from _wait_for_key_value(create)
        if not is_served and not is_healthy:
            yield from _wait_for_health(settings.name, progress)


def _wait_for_health(bucket: str, progress: Progress, *, seconds_max: float = math.inf) -> Steps[bool]:
    """Return whether the service reports all nodes of a bucket healthy within about ``seconds_max`` s of pauses."""
    paused = 0.0
    for pause in _pauses():
        try:
            found = yield from _result_of(buckets.GetBucket(bucket), buckets.BucketResult)
            if found.is_healthy:
                return True
            progress.awaited = found.unhealthy or (f"bucket {bucket!r} has no nodes yet",)
        except errors.BucketNotFoundException:
            # The node that responded does not have the bucket yet.
            progress.awaited = (f"bucket {bucket!r} is not known to the node",)
        if paused >= seconds_max:
            break
        yield pause
        paused += pause.seconds
    return False


def _wait_for_key_value(create: buckets.CreateBucket) -> Steps[bool]:
    """Wait until every key-value node serves a new bucket. Return False if the user has no access to the bucket."""
    for _, pause in zip(range(REFUSALS_MAX), _pauses(), strict=False):
        try:
            yield from _wait_for_nodes(WaitForNodes(create.settings.name), create)
            return True
        except errors.BucketAccessException:
            yield pause
    return False


def drop_bucket(name: str) -> Steps[None]:
    """Drop a bucket, and wait until the service no longer reports it.

    The service responds to the drop after the bucket is shut down on all nodes, so the first check normally succeeds.
    """
    drop = buckets.DropBucket(name)
    yield drop
    with progress_of(drop.error_context()) as progress:
        progress.is_applied = True
        for pause in _pauses():
            try:
                yield buckets.GetBucket(name)
            except errors.BucketNotFoundException:
                return
            progress.awaited = (f"bucket {name!r} is still there",)
            yield pause


def change_manifest(change: collections.ManifestChange) -> Steps[None]:
    """Change scopes or collections, and wait until every key-value node has the new manifest.

    Do not wait if the user has no access to the bucket.
    """
    settings = (
        change.settings if isinstance(change, collections.CreateCollection | collections.UpdateCollection) else None
    )
    with progress_of(change.error_context()) as progress:
        if settings is not None and settings.history is not None:
            yield from _check_history(change)
        changed = yield from _result_of(change, collections.ManifestChanged)
        progress.is_applied = True
        try:
            yield from _wait_for_nodes(WaitForNodes(change.bucket_name, changed.uid), change)
        except errors.BucketAccessException:
            # The user may change collections, but has no access to the bucket, so the client cannot check its nodes.
            return


def _wait_for_nodes(wait: WaitForNodes, change: ManagementRequest) -> Steps[None]:
    try:
        yield wait
    except errors.AmbiguousTimeoutException as error:
        # Use the name of the call that the user made.
        text = f"{change.name}: done, but {error.message.removeprefix(f'{wait.name}: ')}"
        known = error.context
        context = replace(
            change.error_context(), elapsed=known.elapsed, timeout=known.timeout, connections=known.connections
        )
        raise errors.AmbiguousTimeoutException(text, context) from error


def _check_history(change: collections.ManifestChange) -> Steps[None]:
    # RFC 0054 "CreateCollectionSettings": history requires a capability of the bucket.
    found = yield from _result_of(buckets.GetBucket(change.bucket_name), buckets.BucketResult)
    if BucketCapability.NON_DEDUPED_HISTORY not in found.capabilities:
        text = f"{change.name}: bucket {change.bucket_name} keeps no history, which needs server 7.2 and storage MAGMA"
        raise errors.FeatureNotAvailableException(text, change.error_context())


def create_index(
    statement: query_indexes.CreateIndex | query_indexes.CreatePrimaryIndex, *, ignore_if_exists: bool
) -> Steps[None]:
    """Create an index.

    Args:
        statement: request that creates the index.
        ignore_if_exists: whether an existing index counts as success.
    """
    check_flag(ignore_if_exists, "ignore_if_exists")
    try:
        yield statement
    except errors.IndexExistsException:
        if not ignore_if_exists:
            raise


def drop_index(
    statement: query_indexes.DropIndex | query_indexes.DropPrimaryIndex, *, ignore_if_not_exists: bool
) -> Steps[None]:
    """Drop an index.

    Args:
        statement: request that drops the index.
        ignore_if_not_exists: whether a missing index counts as success.
    """
    check_flag(ignore_if_not_exists, "ignore_if_not_exists")
    try:
        yield statement
    except errors.IndexNotFoundException:
        if not ignore_if_not_exists:
            raise


def watch_indexes(
    keyspace: query_indexes.IndexKeyspace, index_names: Sequence[str], *, watch_primary: bool
) -> Steps[None]:
    """Wait until indexes are online.

    Args:
        keyspace: bucket or collection of the indexes.
        index_names: names of the indexes.
        watch_primary: whether to wait for the primary index as well, under any name.

    Raises:
        InvalidArgumentException: an argument is invalid, or there is nothing to watch.
        IndexNotFoundException: an index does not exist, or was dropped.
    """
    if isinstance(index_names, str) or not isinstance(index_names, Sequence):
        raise errors.InvalidArgumentException(
            f"index_names={shown(index_names)} must be a list of index names", parameter="index_names"
        )
    watched = {check_text(name, "index_names") for name in index_names}
    check_flag(watch_primary, "watch_primary")
    if not watched and not watch_primary:
        raise errors.InvalidArgumentException(
            "index_names is empty; name the indexes to wait for, or set watch_primary", parameter="index_names"
        )
    request = query_indexes.all_indexes(keyspace)
    with progress_of(replace(request.error_context(), operation=_WATCH, statement=None, parameters=())) as progress:
        for pause in _pauses():
            found = (yield from _result_of(request, query_indexes.QueryIndexesResult)).indexes
            awaited = [
                index
                for index in found
                if _is_on(index, keyspace) and (index.name in watched or (watch_primary and index.is_primary))
            ]
            missing = sorted(watched - {index.name for index in awaited})
            if watch_primary and not any(index.is_primary for index in awaited):
                missing.append("the primary index")
            if missing:
                text = f"{_WATCH}: {keyspace.path} lacks {', '.join(missing)}; create each missing index first"
                raise errors.IndexNotFoundException(text, replace(request.error_context(), index=missing[0]))
            progress.awaited = tuple(
                f"index {shown(index.name)} is {index.state or 'in an unknown state'}"
                for index in awaited
                if index.state != query_indexes.ONLINE
            )
            if not progress.awaited:
                return
            yield pause


_WATCH = "watch_indexes"


def _is_on(index: query_indexes.QueryIndex, keyspace: query_indexes.IndexKeyspace) -> bool:
    # The result for a bucket contains the indexes of all its collections.
    return keyspace.scope is not None or (index.scope_name, index.collection_name) in _OF_A_BUCKET


_OF_A_BUCKET = ((None, None), (DEFAULT_NAME, DEFAULT_NAME))


def build_deferred_indexes(keyspace: query_indexes.IndexKeyspace) -> Steps[tuple[str, ...]]:
    """Start to build the deferred indexes of a keyspace, and return their names. Building continues afterwards."""
    # RFC 0054 "BuildDeferredIndexes": older servers lack a single statement for this.
    deferred = query_indexes.deferred_indexes(keyspace)
    call = replace(
        deferred.error_context(), operation="build_deferred_indexes", idempotent=False, statement=None, parameters=()
    )
    with progress_of(call):
        names = (yield from _result_of(deferred, query_indexes.IndexNamesResult)).names
        if names:
            yield query_indexes.build_indexes(keyspace, names)
        return names


def _result_of(request: ServiceRequest | Operation, kind: type[R]) -> Steps[R]:
    result = yield request
    assert isinstance(result, kind), f"{request.name} returned {result!r}"
    return result


def _pauses() -> Iterator[Pause]:
    return (Pause(controlled(attempt)) for attempt in count())
