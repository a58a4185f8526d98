"""Results of analytics queries, searches and views: rows, followed by metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from triclinium._services.rows import Row, RowResult
from triclinium_core.services.analytics.result import AnalyticsMetaData
from triclinium_core.services.search.result import SearchFacetResult, SearchMetaData, SearchRow
from triclinium_core.services.views.result import ViewMetaData, ViewRow


class AnalyticsResult(RowResult[AnalyticsMetaData, Row]):
    """Rows of an analytics query, followed by its metadata."""


class SearchResult(RowResult[SearchMetaData, SearchRow]):
    """Hits of a search, followed by its metadata and the results of its facets."""

    _has_own_decoder: ClassVar[bool] = True
    _way_out: ClassVar[str] = "request fewer fields, or neither locations, fragments nor explanations"

    async def facets(self) -> Mapping[str, SearchFacetResult]:
        """Return the result of each facet by its name.

        Exceptions and cancellation are those of ``metadata``, which contains the facets.
        """
        return (await self.metadata()).facets


class ViewResult(RowResult[ViewMetaData, ViewRow]):
    """Rows of a view, followed by its metadata."""

    _has_own_decoder: ClassVar[bool] = True
    _keeps_text: ClassVar[bool] = True
