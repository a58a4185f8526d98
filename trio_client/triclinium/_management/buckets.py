"""Manager of the buckets of a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from triclinium._management.call import carry_out
from triclinium._management.manager import Manager
from triclinium._telemetry.wrapping import Wrapping
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.services.management import buckets, steps
from triclinium_core.services.service_request import Acknowledged
from triclinium_core.telemetry.attributes import keyspace_attributes
from triclinium_core.telemetry.span_names import WrappingCall
from triclinium_core.telemetry.tracing import RequestSpan


class BucketManager(Manager):
    """Buckets of a cluster.

    The reference describes the common parts of all managers under "Managing a cluster".

    Source: SDK-RFC 0054 "BucketManager".
    """

    async def create_bucket(
        self,
        settings: buckets.BucketSettings,
        *,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> None:
        """Create a bucket, and wait until each of its key-value nodes has opened it.

        After the creation, the method first waits, for at most about 10 s, until all nodes are healthy. For a memcached
        bucket, or if the user may create buckets but not use them, it waits only until the nodes are healthy.

        Args:
            settings: ``CreateBucketSettings`` to choose the conflict resolution.

        Raises:
            BucketExistsException: a bucket of that name exists.
            InvalidArgumentException: the settings are not valid, for example because the cluster lacks the memory.
            AmbiguousTimeoutException: ``TimeoutOptions.management`` passed without a response. Or the bucket is
                created, and ``context.connections`` lists the key-value nodes that have not opened it, or
                ``context.awaited`` those on which it is not healthy.

        Cancellation: the bucket may be created; the server continues.
        """
        # If this is not a BucketSettings, the span gets no bucket name, and creating the request raises an error.
        name = settings.name if isinstance(settings, buckets.BucketSettings) else None
        wrapping = Wrapping(WrappingCall.CREATE_BUCKET, parent_span, keyspace_attributes(name))
        await carry_out(self._driver, lambda: steps.create_bucket(settings), retry_strategy, wrapping)

    async def update_bucket(
        self,
        settings: buckets.BucketSettings,
        *,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> None:
        """Change a bucket.

        Give every setting its intended value: the server may reset a missing setting to its default. Begin with the
        result of ``get_bucket``: ``dataclasses.replace(settings, flush_enabled=True)``. Settings that are fixed when a
        bucket is created are not sent.

        Raises:
            BucketNotFoundException: the bucket does not exist.
            InvalidArgumentException: the settings are not valid, for example because they contradict each other.
        """
        await self._driver.perform(Acknowledged, buckets.UpdateBucket, retry_strategy, parent_span, settings)

    async def drop_bucket(
        self, name: str, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> None:
        """Remove a bucket with all its data, and wait until the cluster does not list it any more.

        Raises:
            BucketNotFoundException: the bucket does not exist.
            InvalidArgumentException: ``name`` is not a valid bucket name.
        """
        wrapping = Wrapping(WrappingCall.DROP_BUCKET, parent_span, keyspace_attributes(name))
        await carry_out(self._driver, lambda: steps.drop_bucket(name), retry_strategy, wrapping)

    async def get_bucket(
        self, name: str, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> buckets.BucketSettings:
        """Return the settings of a bucket.

        Raises:
            BucketNotFoundException: the bucket does not exist.
            InvalidArgumentException: ``name`` is not a valid bucket name.
        """
        return (
            await self._driver.perform(buckets.BucketResult, buckets.GetBucket, retry_strategy, parent_span, name)
        ).settings

    async def get_all_buckets(
        self, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> Sequence[buckets.BucketSettings]:
        """Return the settings of all buckets that the user may see."""
        result = await self._driver.perform(
            buckets.AllBucketsResult, buckets.GetAllBuckets, retry_strategy, parent_span
        )
        return [each.settings for each in result.buckets]

    async def flush_bucket(
        self, name: str, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> None:
        """Remove all documents of a bucket.

        Raises:
            BucketNotFoundException: the bucket does not exist.
            BucketNotFlushableException: the bucket's settings do not allow a flush; see
                ``BucketSettings.flush_enabled``.
            InvalidArgumentException: ``name`` is not a valid bucket name.
        """
        await self._driver.perform(Acknowledged, buckets.FlushBucket, retry_strategy, parent_span, name)
