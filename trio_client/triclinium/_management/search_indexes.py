"""Manager of the search indexes of a cluster or a scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._management.manager import Manager
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.services.management import search_indexes
from triclinium_core.services.service_request import Acknowledged
from triclinium_core.services.statement.statement_request import QueryContext
from triclinium_core.shown import total_repr
from triclinium_core.telemetry.tracing import RequestSpan


class SearchIndexManager(Manager):
    """Search indexes of a cluster or of a scope.

    The reference describes the common parts of all managers under "Managing a cluster".

    Indexes of a scope have short names, without bucket and scope. On a cluster before server 7.6, methods for such
    indexes raise ``FeatureNotAvailableException``. Each method for one index raises ``InvalidArgumentException`` if the
    name of the index is not valid. Each such method except ``upsert_index`` raises ``IndexNotFoundException`` if the
    index does not exist.

    Source: SDK-RFC 0054 "SearchIndexManager", "ScopeSearchIndexManager".
    """

    def __init__(self, driver: ClusterDriver, scope: QueryContext | None = None) -> None:
        super().__init__(driver)
        self._scope = search_indexes.SearchScope(scope.bucket, scope.scope) if scope is not None else None

    @total_repr
    def __repr__(self) -> str:
        if self._scope is None:
            return "<SearchIndexManager>"
        return f"<SearchIndexManager {self._scope.bucket_name}.{self._scope.scope_name}>"

    async def get_index(
        self, index_name: str, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> search_indexes.SearchIndex:
        """Return the definition of an index."""
        make = search_indexes.GetSearchIndex
        return (
            await self._driver.perform(
                search_indexes.SearchIndexResult, make, retry_strategy, parent_span, index_name, scope=self._scope
            )
        ).index

    async def get_all_indexes(
        self, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> Sequence[search_indexes.SearchIndex]:
        """Return the definitions of all indexes."""
        result = await self._driver.perform(
            search_indexes.AllSearchIndexesResult,
            search_indexes.GetAllSearchIndexes,
            retry_strategy,
            parent_span,
            scope=self._scope,
        )
        return result.indexes

    async def upsert_index(
        self,
        index: search_indexes.SearchIndex,
        *,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> None:
        """Create an index, or change an existing index, for which ``index`` needs the ``uuid`` from ``get_index``.

        The server builds the index afterwards; see ``get_indexed_documents_count``.

        Raises:
            InvalidArgumentException: ``index`` has ``unknown`` parameters, which an update would lose.
            IndexExistsException: an index of that name exists, and ``index`` has no ``uuid``.
            FeatureNotAvailableException: the index of a scope has vectors, which the cluster does not support.
            EncodingFailureException: the parameters of the index cannot be encoded as JSON.
            QuotaLimitedException: the cluster has too many indexes.
        """
        await self._driver.perform(
            Acknowledged, search_indexes.UpsertSearchIndex, retry_strategy, parent_span, index, scope=self._scope
        )

    async def drop_index(
        self, index_name: str, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> None:
        """Remove an index."""
        await self._driver.perform(
            Acknowledged, search_indexes.DropSearchIndex, retry_strategy, parent_span, index_name, scope=self._scope
        )

    async def get_indexed_documents_count(
        self, index_name: str, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> int:
        """Return the number of documents that are in an index so far."""
        make = search_indexes.GetIndexedDocumentsCount
        return (
            await self._driver.perform(
                search_indexes.DocumentCount, make, retry_strategy, parent_span, index_name, scope=self._scope
            )
        ).count

    async def pause_ingest(
        self, index_name: str, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> None:
        """Stop the updates of an index until ``resume_ingest``."""
        await self._driver.perform(
            Acknowledged, search_indexes.PauseIngest, retry_strategy, parent_span, index_name, scope=self._scope
        )

    async def resume_ingest(
        self, index_name: str, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> None:
        """Resume the updates of an index."""
        await self._driver.perform(
            Acknowledged, search_indexes.ResumeIngest, retry_strategy, parent_span, index_name, scope=self._scope
        )

    async def allow_querying(
        self, index_name: str, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> None:
        """Allow searches in an index again."""
        await self._driver.perform(
            Acknowledged, search_indexes.AllowQuerying, retry_strategy, parent_span, index_name, scope=self._scope
        )

    async def disallow_querying(
        self, index_name: str, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> None:
        """Disallow searches in an index until ``allow_querying``."""
        await self._driver.perform(
            Acknowledged, search_indexes.DisallowQuerying, retry_strategy, parent_span, index_name, scope=self._scope
        )

    async def freeze_plan(
        self, index_name: str, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> None:
        """Keep the partitions of an index on their nodes until ``unfreeze_plan``."""
        await self._driver.perform(
            Acknowledged, search_indexes.FreezePlan, retry_strategy, parent_span, index_name, scope=self._scope
        )

    async def unfreeze_plan(
        self, index_name: str, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> None:
        """Allow the partitions of an index to move between nodes again."""
        await self._driver.perform(
            Acknowledged, search_indexes.UnfreezePlan, retry_strategy, parent_span, index_name, scope=self._scope
        )

    async def analyze_document(
        self,
        index_name: str,
        document: object,
        *,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> Sequence[Mapping[str, object]]:
        """Return an index's analysis of a document without storing it: one object for each part of the document.

        Raises:
            EncodingFailureException: the document cannot be encoded as JSON.
        """
        make = search_indexes.AnalyzeDocument
        result = await self._driver.perform(
            search_indexes.AnalyzedDocument, make, retry_strategy, parent_span, index_name, document, scope=self._scope
        )
        return result.analyzed
