"""Full-text and vector search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial

from triclinium import _services
from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._context import strategy_for
from triclinium._services.rows import RowsBlock
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.services import search as search_service
from triclinium_core.services.mutation_state import MutationState, tokens_of
from triclinium_core.services.statement.statement_request import QueryContext
from triclinium_core.telemetry.tracing import RequestSpan


class Searches:
    """Searches of ``Cluster`` and ``Scope``."""

    _driver: ClusterDriver
    _query_context: QueryContext | None = None

    def search(
        self,
        index: str,
        request: search_service.search_request.SearchRequest
        | search_service.queries.SearchQuery
        | search_service.vectors.VectorSearch,
        /,
        *,
        limit: int | None = None,
        skip: int | None = None,
        fields: Sequence[str] | None = None,
        sort: Sequence[str | search_service.sorting.Sort] | None = None,
        facets: Mapping[str, search_service.facets.Facet] | None = None,
        highlight_style: search_service.search_request.HighlightStyle | None = None,
        highlight_fields: Sequence[str] | None = None,
        include_locations: bool = False,
        explain: bool = False,
        disable_scoring: bool = False,
        collections: Sequence[str] | None = None,
        scan_consistency: search_service.search_request.SearchScanConsistency | None = None,
        consistent_with: MutationState | None = None,
        raw: Mapping[str, object] | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> AbstractAsyncContextManager[_services.results.SearchResult]:
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
        options = search_service.search_request.SearchOptions(
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
        kind = search_service.search_request.SearchRequest
        asked = search_service.search_request.SearchQueryRequest(
            index=index,
            search=request if isinstance(request, kind) else kind.create(request),
            options=options,
            bucket_name=context.bucket if context is not None else None,
            scope_name=context.scope if context is not None else None,
        )
        result = partial(_services.results.SearchResult, self._driver, decode=search_service.result.decode_row)
        return RowsBlock(result, self._driver, asked, strategy_for(retry_strategy), parent_span)
