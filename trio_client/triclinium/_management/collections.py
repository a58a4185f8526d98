"""Manager of the scopes and collections of a bucket."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._management.call import carry_out
from triclinium._management.manager import Manager
from triclinium._telemetry.wrapping import Wrapping
from triclinium_core.kv.operation.manifest.collections_manifest import ScopeSpec
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.services.management import collections, steps
from triclinium_core.shown import total_repr
from triclinium_core.telemetry.attributes import keyspace_attributes
from triclinium_core.telemetry.span_names import WrappingCall
from triclinium_core.telemetry.tracing import RequestSpan


class CollectionManager(Manager):
    """Scopes and collections of a bucket.

    The reference describes the common parts of all managers under "Managing a cluster".

    If the user may use the bucket, a method that changes something waits until every key-value node of the bucket has
    the change. If a node does not have it within ``TimeoutOptions.management``, the method raises
    ``AmbiguousTimeoutException``, whose ``context.connections`` gives the state of each such node; the change
    remains.

    Source: SDK-RFC 0054 "CollectionsManager".
    """

    def __init__(self, driver: ClusterDriver, bucket: str) -> None:
        super().__init__(driver)
        self._bucket = bucket

    @total_repr
    def __repr__(self) -> str:
        return f"<CollectionManager {self._bucket}>"

    async def get_all_scopes(
        self, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> Sequence[ScopeSpec]:
        """Return all scopes of the bucket, each with its collections.

        Raises:
            BucketNotFoundException: the bucket does not exist.
        """
        result = await self._driver.perform(
            collections.ScopesResult, collections.GetAllScopes, retry_strategy, parent_span, self._bucket
        )
        return result.manifest.scopes

    async def create_scope(
        self, scope_name: str, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> None:
        """Create a scope.

        Raises:
            ScopeExistsException: a scope of that name exists.
            BucketNotFoundException: the bucket does not exist.
            InvalidArgumentException: ``scope_name`` is not a valid scope name.
        """
        await self._change(
            lambda: collections.CreateScope(self._bucket, scope_name),
            retry_strategy,
            self._wrapping(WrappingCall.CREATE_SCOPE, parent_span, scope_name),
        )

    async def drop_scope(
        self, scope_name: str, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> None:
        """Remove a scope with all its data.

        Raises:
            ScopeNotFoundException: the scope does not exist.
            BucketNotFoundException: the bucket does not exist.
            InvalidArgumentException: ``scope_name`` is not a valid scope name.
        """
        await self._change(
            lambda: collections.DropScope(self._bucket, scope_name),
            retry_strategy,
            self._wrapping(WrappingCall.DROP_SCOPE, parent_span, scope_name),
        )

    async def create_collection(
        self,
        scope_name: str,
        collection_name: str,
        settings: collections.CreateCollectionSettings | None = None,
        *,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> None:
        """Create a collection.

        Args:
            settings: settings of the collection. None, the default, for ``CreateCollectionSettings()``.

        Raises:
            CollectionExistsException: the scope has a collection of that name.
            ScopeNotFoundException: the scope does not exist.
            BucketNotFoundException: the bucket does not exist.
            FeatureNotAvailableException: the settings include history, which the bucket does not support.
            InvalidArgumentException: a name is not valid, or the settings are wrong.
        """
        chosen = collections.CreateCollectionSettings() if settings is None else settings
        await self._change(
            lambda: collections.CreateCollection(self._bucket, scope_name, collection_name, chosen),
            retry_strategy,
            self._wrapping(WrappingCall.CREATE_COLLECTION, parent_span, scope_name, collection_name),
        )

    async def update_collection(
        self,
        scope_name: str,
        collection_name: str,
        settings: collections.UpdateCollectionSettings,
        *,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> None:
        """Change a collection. Settings with the value None do not change.

        Raises:
            CollectionNotFoundException: the scope has no collection of that name.
            ScopeNotFoundException: the scope does not exist.
            BucketNotFoundException: the bucket does not exist.
            FeatureNotAvailableException: the settings include history, which the bucket does not support.
            InvalidArgumentException: a name is not valid, or the settings are wrong.
        """
        await self._change(
            lambda: collections.UpdateCollection(self._bucket, scope_name, collection_name, settings),
            retry_strategy,
            self._wrapping(WrappingCall.UPDATE_COLLECTION, parent_span, scope_name, collection_name),
        )

    async def drop_collection(
        self,
        scope_name: str,
        collection_name: str,
        *,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> None:
        """Remove a collection with all its data.

        Raises:
            CollectionNotFoundException: the scope has no collection of that name.
            ScopeNotFoundException: the scope does not exist.
            BucketNotFoundException: the bucket does not exist.
            InvalidArgumentException: a name is not valid.
        """
        await self._change(
            lambda: collections.DropCollection(self._bucket, scope_name, collection_name),
            retry_strategy,
            self._wrapping(WrappingCall.DROP_COLLECTION, parent_span, scope_name, collection_name),
        )

    async def _change(
        self, make: Callable[[], collections.ManifestChange], strategy: AnyRetryStrategy | None, wrapping: Wrapping
    ) -> None:
        await carry_out(self._driver, lambda: steps.change_manifest(make()), strategy, wrapping)

    def _wrapping(
        self, call: WrappingCall, parent: RequestSpan | None, scope_name: str, collection_name: str | None = None
    ) -> Wrapping:
        return Wrapping(call, parent, keyspace_attributes(self._bucket, scope_name, collection_name))
