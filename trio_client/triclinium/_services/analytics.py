"""SQL++ statements for the analytics service."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial

from triclinium import _services
from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._context import strategy_for
from triclinium._services.rows import Row, RowsBlock, decoder_of
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.services import analytics as analytics_service
from triclinium_core.services.statement.parameters import Parameters, RawOptions, check_keywords
from triclinium_core.services.statement.statement_request import QueryContext
from triclinium_core.telemetry.tracing import RequestSpan


class AnalyticsQueries:
    """Analytics queries of ``Cluster`` and ``Scope``."""

    _driver: ClusterDriver
    _query_context: QueryContext | None = None

    def analytics_query(
        self,
        statement: str,
        /,
        *positional: object,
        named_parameters: Mapping[str, object] | None = None,
        row_type: type[Row] | None = None,
        readonly: bool = False,
        priority: bool = False,
        scan_consistency: analytics_service.analytics_request.AnalyticsScanConsistency | None = None,
        client_context_id: str | None = None,
        raw: Mapping[str, object] | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
        **named: object,
    ) -> AbstractAsyncContextManager[_services.results.AnalyticsResult[Row]]:
        """Run a statement on the analytics service, and give the block its rows, as ``query`` does.

        Values for ``?`` or ``$1`` follow the statement. A keyword that is not an option is the parameter of that name,
        which must occur in the statement. :class:`AnalyticsRequest
        <triclinium_core.services.analytics.analytics_request.AnalyticsRequest>` describes the options.

        Args:
            named_parameters: parameters of any name, including names of options. None, the default, adds no parameters.
            row_type: type of a row; ``bytes`` for the JSON text. None, the default, decodes JSON into built-in types.
            client_context_id: id that logs and the response repeat. Default: a new UUID, with a suffix in each retry.

        Raises:
            InvalidArgumentException: an argument is wrong.
            EncodingFailureException: a parameter, or a value of ``raw``, cannot be encoded as JSON.
            CouchbaseException: on entering, the reason why no rows arrive, such as CompilationFailureException.

        Cancellation: the query is abandoned and its connection closed, so that the service stops working on it. A query
        that is not ``readonly`` may have been applied.
        """
        kind = analytics_service.analytics_request.AnalyticsRequest
        check_keywords(statement, named, kind.__struct_fields__)
        request = kind(
            statement=statement,
            parameters=Parameters(positional, named_parameters, named),
            query_context=self._query_context,
            readonly=readonly,
            priority=priority,
            scan_consistency=scan_consistency,
            client_context_id=client_context_id if client_context_id is not None else "",
            raw=RawOptions(raw),
        )
        result = partial(_services.results.AnalyticsResult[Row], self._driver, decode=decoder_of(row_type))
        return RowsBlock(result, self._driver, request, strategy_for(retry_strategy), parent_span)
