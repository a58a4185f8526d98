"""Manager of the query indexes of a bucket or a collection."""

from __future__ import annotations

from collections.abc import Sequence

from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._management.call import carry_out
from triclinium._management.manager import Manager
from triclinium._telemetry.wrapping import Wrapping
from triclinium_core.kv.operation.document_operations import Keyspace
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.services.management import query_indexes, steps
from triclinium_core.services.management.query_indexes import IndexKeyspace, QueryIndex, QueryIndexesResult
from triclinium_core.shown import total_repr
from triclinium_core.telemetry.attributes import keyspace_attributes
from triclinium_core.telemetry.span_names import WrappingCall
from triclinium_core.telemetry.tracing import RequestSpan


class QueryIndexManager(Manager):
    """Query indexes of buckets.

    The reference describes the common parts of all managers under "Managing a cluster".

    An index on a bucket is an index on its default collection. ``collection.query_indexes()`` manages the indexes
    of other collections, for server 7.0 and later.

    Source: SDK-RFC 0054 "QueryIndexManager".
    """

    async def get_all_indexes(
        self,
        bucket_name: str,
        *,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> Sequence[QueryIndex]:
        """Return the indexes on a bucket and on all its collections, primary ones first."""
        async with _wrapping(WrappingCall.GET_ALL_QUERY_INDEXES, parent_span, bucket_name).around(
            self._driver.telemetry
        ) as parent:
            result = await self._driver.perform(
                QueryIndexesResult,
                lambda: query_indexes.all_indexes(IndexKeyspace(bucket_name)),
                retry_strategy,
                parent,
            )
        return result.indexes

    async def create_index(
        self,
        bucket_name: str,
        index_name: str,
        keys: Sequence[str],
        *,
        ignore_if_exists: bool = False,
        num_replicas: int | None = None,
        deferred: bool | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> None:
        """Create an index, and wait until it is built, unless it is deferred.

        Args:
            keys: fields; each is one literal name, never parsed as an expression.
            ignore_if_exists: whether to succeed if an index of that name exists.
            num_replicas: number of replicas, in addition to the index itself; None for the server's default.
            deferred: whether ``build_deferred_indexes`` builds it later; None for the server's default.

        Raises:
            IndexExistsException: an index of that name exists.
            InvalidArgumentException: a name or an option is not valid, or there are no keys.
        """
        await carry_out(
            self._driver,
            lambda: steps.create_index(
                query_indexes.create_index(
                    IndexKeyspace(bucket_name), index_name, keys, num_replicas=num_replicas, deferred=deferred
                ),
                ignore_if_exists=ignore_if_exists,
            ),
            retry_strategy,
            _wrapping(WrappingCall.CREATE_QUERY_INDEX, parent_span, bucket_name),
        )

    async def create_primary_index(
        self,
        bucket_name: str,
        *,
        index_name: str | None = None,
        ignore_if_exists: bool = False,
        num_replicas: int | None = None,
        deferred: bool | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> None:
        """Create an index of the ids of all documents, and wait until it is built, unless it is deferred.

        Args:
            index_name: name of the index. Default: ``#primary``.
            ignore_if_exists: whether to succeed if an index of that name exists.
            num_replicas: number of replicas, in addition to the index itself; None for the server's default.
            deferred: whether ``build_deferred_indexes`` builds it later; None for the server's default.

        Raises:
            IndexExistsException: an index of that name exists.
            InvalidArgumentException: a name or an option is not valid.
        """
        await carry_out(
            self._driver,
            lambda: steps.create_index(
                query_indexes.create_primary_index(
                    IndexKeyspace(bucket_name), index_name=index_name, num_replicas=num_replicas, deferred=deferred
                ),
                ignore_if_exists=ignore_if_exists,
            ),
            retry_strategy,
            _wrapping(WrappingCall.CREATE_PRIMARY_QUERY_INDEX, parent_span, bucket_name),
        )

    async def drop_index(
        self,
        bucket_name: str,
        index_name: str,
        *,
        ignore_if_not_exists: bool = False,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> None:
        """Remove an index.

        Args:
            ignore_if_not_exists: whether to succeed if the index does not exist.

        Raises:
            IndexNotFoundException: the index does not exist.
            InvalidArgumentException: a name is not valid.
        """
        await carry_out(
            self._driver,
            lambda: steps.drop_index(
                query_indexes.drop_index(IndexKeyspace(bucket_name), index_name),
                ignore_if_not_exists=ignore_if_not_exists,
            ),
            retry_strategy,
            _wrapping(WrappingCall.DROP_QUERY_INDEX, parent_span, bucket_name),
        )

    async def drop_primary_index(
        self,
        bucket_name: str,
        *,
        index_name: str | None = None,
        ignore_if_not_exists: bool = False,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> None:
        """Remove the primary index.

        Args:
            index_name: name of the index. Default: ``#primary``.
            ignore_if_not_exists: whether to succeed if the index does not exist.

        Raises:
            IndexNotFoundException: the index does not exist.
            InvalidArgumentException: a name is not valid.
        """
        await carry_out(
            self._driver,
            lambda: steps.drop_index(
                query_indexes.drop_primary_index(IndexKeyspace(bucket_name), index_name=index_name),
                ignore_if_not_exists=ignore_if_not_exists,
            ),
            retry_strategy,
            _wrapping(WrappingCall.DROP_PRIMARY_QUERY_INDEX, parent_span, bucket_name),
        )

    async def watch_indexes(
        self,
        bucket_name: str,
        index_names: Sequence[str],
        *,
        watch_primary: bool = False,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> None:
        """Wait until indexes are online. Only the caller's cancel scope limits the wait.

        Args:
            watch_primary: whether to wait for the primary index too, whatever its name is.

        Raises:
            IndexNotFoundException: an awaited index does not exist, or was dropped meanwhile.
            InvalidArgumentException: a name is not valid, or there is nothing to wait for.

        Cancellation: harmless.
        """
        await carry_out(
            self._driver,
            lambda: steps.watch_indexes(IndexKeyspace(bucket_name), index_names, watch_primary=watch_primary),
            retry_strategy,
            _wrapping(WrappingCall.WATCH_QUERY_INDEXES, parent_span, bucket_name),
            is_limited=False,
        )

    async def build_deferred_indexes(
        self,
        bucket_name: str,
        *,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> Sequence[str]:
        """Start to build the deferred indexes of the default collection, and return their names.

        ``watch_indexes`` waits for them.
        """
        return await carry_out(
            self._driver,
            lambda: steps.build_deferred_indexes(IndexKeyspace(bucket_name)),
            retry_strategy,
            _wrapping(WrappingCall.BUILD_DEFERRED_QUERY_INDEXES, parent_span, bucket_name),
        )


class CollectionQueryIndexManager(Manager):
    """Query indexes of a collection. For server 7.0 and later.

    The reference describes the common parts of all managers under "Managing a cluster".

    Source: SDK-RFC 0054 "CollectionQueryIndexManager".
    """

    def __init__(self, driver: ClusterDriver, keyspace: Keyspace) -> None:
        super().__init__(driver)
        self._on = IndexKeyspace(keyspace.bucket or "", keyspace.scope, keyspace.collection)

    @total_repr
    def __repr__(self) -> str:
        return f"<CollectionQueryIndexManager {self._on.bucket}.{self._on.scope}.{self._on.collection}>"

    async def get_all_indexes(
        self, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> Sequence[QueryIndex]:
        """Return the indexes on the collection, primary ones first."""
        async with self._wrapping(WrappingCall.GET_ALL_QUERY_INDEXES, parent_span).around(
            self._driver.telemetry
        ) as parent:
            result = await self._driver.perform(
                QueryIndexesResult, lambda: query_indexes.all_indexes(self._on), retry_strategy, parent
            )
        return result.indexes

    async def create_index(
        self,
        index_name: str,
        keys: Sequence[str],
        *,
        ignore_if_exists: bool = False,
        num_replicas: int | None = None,
        deferred: bool | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> None:
        """Create an index, and wait until it is built, unless it is deferred.

        Args:
            keys: fields; each is one literal name, never parsed as an expression.
            ignore_if_exists: whether to succeed if an index of that name exists.
            num_replicas: number of replicas, in addition to the index itself; None for the server's default.
            deferred: whether ``build_deferred_indexes`` builds it later; None for the server's default.

        Raises:
            IndexExistsException: an index of that name exists.
            InvalidArgumentException: a name or an option is not valid, or there are no keys.
        """
        await carry_out(
            self._driver,
            lambda: steps.create_index(
                query_indexes.create_index(self._on, index_name, keys, num_replicas=num_replicas, deferred=deferred),
                ignore_if_exists=ignore_if_exists,
            ),
            retry_strategy,
            self._wrapping(WrappingCall.CREATE_QUERY_INDEX, parent_span),
        )

    async def create_primary_index(
        self,
        *,
        index_name: str | None = None,
        ignore_if_exists: bool = False,
        num_replicas: int | None = None,
        deferred: bool | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> None:
        """Create an index of the ids of all documents, and wait until it is built, unless it is deferred.

        Args:
            index_name: name of the index. Default: ``#primary``.
            ignore_if_exists: whether to succeed if an index of that name exists.
            num_replicas: number of replicas, in addition to the index itself; None for the server's default.
            deferred: whether ``build_deferred_indexes`` builds it later; None for the server's default.

        Raises:
            IndexExistsException: an index of that name exists.
            InvalidArgumentException: a name or an option is not valid.
        """
        await carry_out(
            self._driver,
            lambda: steps.create_index(
                query_indexes.create_primary_index(
                    self._on, index_name=index_name, num_replicas=num_replicas, deferred=deferred
                ),
                ignore_if_exists=ignore_if_exists,
            ),
            retry_strategy,
            self._wrapping(WrappingCall.CREATE_PRIMARY_QUERY_INDEX, parent_span),
        )

    async def drop_index(
        self,
        index_name: str,
        *,
        ignore_if_not_exists: bool = False,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> None:
        """Remove an index.

        Args:
            ignore_if_not_exists: whether to succeed if the index does not exist.

        Raises:
            IndexNotFoundException: the index does not exist.
            InvalidArgumentException: a name is not valid.
        """
        await carry_out(
            self._driver,
            lambda: steps.drop_index(
                query_indexes.drop_index(self._on, index_name), ignore_if_not_exists=ignore_if_not_exists
            ),
            retry_strategy,
            self._wrapping(WrappingCall.DROP_QUERY_INDEX, parent_span),
        )

    async def drop_primary_index(
        self,
        *,
        index_name: str | None = None,
        ignore_if_not_exists: bool = False,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> None:
        """Remove the primary index.

        Args:
            index_name: name of the index. Default: ``#primary``.
            ignore_if_not_exists: whether to succeed if the index does not exist.

        Raises:
            IndexNotFoundException: the index does not exist.
            InvalidArgumentException: a name is not valid.
        """
        await carry_out(
            self._driver,
            lambda: steps.drop_index(
                query_indexes.drop_primary_index(self._on, index_name=index_name),
                ignore_if_not_exists=ignore_if_not_exists,
            ),
            retry_strategy,
            self._wrapping(WrappingCall.DROP_PRIMARY_QUERY_INDEX, parent_span),
        )

    async def watch_indexes(
        self,
        index_names: Sequence[str],
        *,
        watch_primary: bool = False,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> None:
        """Wait until indexes are online. Only the caller's cancel scope limits the wait.

        Args:
            watch_primary: whether to wait for the primary index too, whatever its name is.

        Raises:
            IndexNotFoundException: an awaited index does not exist, or was dropped meanwhile.
            InvalidArgumentException: a name is not valid, or there is nothing to wait for.

        Cancellation: harmless.
        """
        await carry_out(
            self._driver,
            lambda: steps.watch_indexes(self._on, index_names, watch_primary=watch_primary),
            retry_strategy,
            self._wrapping(WrappingCall.WATCH_QUERY_INDEXES, parent_span),
            is_limited=False,
        )

    async def build_deferred_indexes(
        self, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> Sequence[str]:
        """Start to build all deferred indexes of the collection, and return their names.

        ``watch_indexes`` waits for them.
        """
        return await carry_out(
            self._driver,
            lambda: steps.build_deferred_indexes(self._on),
            retry_strategy,
            self._wrapping(WrappingCall.BUILD_DEFERRED_QUERY_INDEXES, parent_span),
        )

    def _wrapping(self, call: WrappingCall, parent: RequestSpan | None) -> Wrapping:
        on = self._on
        return Wrapping(call, parent, keyspace_attributes(on.bucket, on.scope, on.collection))


def _wrapping(call: WrappingCall, parent: RequestSpan | None, bucket_name: str) -> Wrapping:
    return Wrapping(call, parent, keyspace_attributes(bucket_name))
