"""Full-text and vector search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import ClassVar

from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._context import strategy_for
from triclinium._services.rows import RowResult, RowsBlock
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.services.mutation_state import MutationState, tokens_of
from triclinium_core.services.search import search_request
from triclinium_core.services.search.facets import Facet
from triclinium_core.services.search.queries import SearchQuery
from triclinium_core.services.search.result import SearchFacetResult, SearchMetaData, SearchRow, decode_row
from triclinium_core.services.search.search_request import SearchOptions, SearchQueryRequest, SearchRequest
from triclinium_core.services.search.sorting import Sort
from triclinium_core.services.search.vectors import VectorSearch
from triclinium_core.services.statement.statement_request import QueryContext
from triclinium_core.telemetry.tracing import RequestSpan


class SearchResult(RowResult[SearchMetaData, SearchRow]):
    """Hits of a search, followed by its metadata and the results of its facets."""

    _has_own_decoder: ClassVar[bool] = True
    _way_out: ClassVar[str] = "request fewer fields, or neither locations, fragments nor explanations"

    async def facets(self) -> Mapping[str, SearchFacetResult]:
        """Return the result of each facet by its name.

        Exceptions and cancellation are those of ``metadata``, which contains the facets.
        """
        return (await self.metadata()).facets


class Searches:
    """Searches of ``Cluster`` and ``Scope``."""

    _driver: ClusterDriver
    _query_context: QueryContext | None = None

    def search(
        self,
        index: str,
        request: SearchRequest | SearchQuery | VectorSearch,
        /,
        *,
        limit: int | None = None,
        skip: int | None = None,
        fields: Sequence[str] | None = None,
        sort: Sequence[str | Sort] | None = None,
        facets: Mapping[str, Facet] | None = None,
        highlight_style: search_request.HighlightStyle | None = None,
        highlight_fields: Sequence[str] | None = None,
        include_locations: bool = False,
        explain: bool = False,
        disable_scoring: bool = False,
        collections: Sequence[str] | None = None,
        scan_consistency: search_request.SearchScanConsistency | None = None,
        consistent_with: MutationState | None = None,
        raw: Mapping[str, object] | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> AbstractAsyncContextManager[SearchResult]:
        """Run a search, and give the block its hits.

        ``async with scope.search(...) as result: async for row in result: ...``. A ``Scope`` searches one of its own
        indexes, a ``Cluster`` an index that belongs to no scope.
        Options: :class:`SearchOptions <triclinium_core.services.search.search_request.SearchOptions>`.

        Args:
            request: a query, a vector search, or a ``SearchRequest`` of both.

        Raises:
            InvalidArgumentException: an argument is wrong.
            EncodingFailureException: ``raw`` cannot be encoded as JSON, or the queries are nested too deeply.
            CouchbaseException: on entering, the reason why no rows arrive, such as IndexNotFoundException.

        Cancellation: the search is abandoned and its connection closed, so that the service stops working on it.
        """
        context = self._query_context
        options = SearchOptions(
            limit=limit,
            skip=skip,
            fields=fields,
            sort=sort,
            facets=facets,
            highlight_style=highlight_style,
            highlight_fields=highlight_fields,
            include_locations=include_locations,
            explain=explain,
            disable_scoring=disable_scoring,
            collections=collections,
            scan_consistency=scan_consistency,
            consistent_with=tokens_of(consistent_with),
            raw=raw,
        )
        asked = SearchQueryRequest(
            index=index,
            search=request if isinstance(request, SearchRequest) else SearchRequest.create(request),
            options=options,
            bucket_name=context.bucket if context is not None else None,
            scope_name=context.scope if context is not None else None,
        )
        return RowsBlock(
            lambda opened: SearchResult(self._driver, opened, decode_row),
            self._driver,
            asked,
            strategy_for(retry_strategy),
            parent_span,
        )
