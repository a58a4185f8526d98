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
    """The buckets of a cluster.

    For what all managers have in common see the reference under "Managing a cluster".

    Source: SDK-RFC 0054 "BucketManager".
    """

    async def create_bucket(
        self,
        settings: buckets.BucketSettings,
        *,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> None:
        """Make a bucket, and wait until all its nodes are healthy and documents can be stored on each of them.

        Where the user may make buckets and not use them, it waits for the nodes alone.

        Args:
            settings: ``CreateBucketSettings`` to choose how conflicts are resolved.

        Raises:
            BucketExistsException: there is one of that name.
            InvalidArgumentException: the settings do not go together, or the cluster lacks the memory.
            AmbiguousTimeoutException: ``TimeoutOptions.management`` is over, and there was no answer; or the bucket is made,
                and ``context.connections`` tells of the key-value nodes that have not opened it, or ``context.awaited`` of
                those on which it is not healthy.

        Cancellation: the bucket may be made; the server goes on with it.
        """
        # What is no settings is refused when the request is made.
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

        Every setting must be what it is to be afterwards: the server may reset those that are left open to their
        defaults. Begin with what ``get_bucket`` returns: ``dataclasses.replace(settings, flush_enabled=True)``. What was
        settled when the bucket was made is not sent.

        Raises:
            BucketNotFoundException: there is no bucket of that name.
            InvalidArgumentException: the settings do not go together.
        """
        await self._driver.perform(Acknowledged, buckets.UpdateBucket, retry_strategy, parent_span, settings)

    async def drop_bucket(
        self, name: str, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> None:
        """Remove a bucket with all that is in it, and wait until it is gone.

        Raises:
            BucketNotFoundException: there is no bucket of that name.
            InvalidArgumentException: no bucket can be called so.
        """
        wrapping = Wrapping(WrappingCall.DROP_BUCKET, parent_span, keyspace_attributes(name))
        await carry_out(self._driver, lambda: steps.drop_bucket(name), retry_strategy, wrapping)

    async def get_bucket(
        self, name: str, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> buckets.BucketSettings:
        """Return what a bucket is like.

        Raises:
            BucketNotFoundException: there is no bucket of that name.
            InvalidArgumentException: no bucket can be called so.
        """
        return (
            await self._driver.perform(buckets.BucketResult, buckets.GetBucket, retry_strategy, parent_span, name)
        ).settings

    async def get_all_buckets(
        self, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> Sequence[buckets.BucketSettings]:
        """Return what all buckets are like that the user may see."""
        result = await self._driver.perform(
            buckets.AllBucketsResult, buckets.GetAllBuckets, retry_strategy, parent_span
        )
        return [each.settings for each in result.buckets]

    async def flush_bucket(
        self, name: str, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> None:
        """Remove all documents of a bucket.

        Raises:
            BucketNotFoundException: there is no bucket of that name.
            BucketNotFlushableException: its settings do not allow it; see ``BucketSettings.flush_enabled``.
            InvalidArgumentException: no bucket can be called so.
        """
        await self._driver.perform(Acknowledged, buckets.FlushBucket, retry_strategy, parent_span, name)
