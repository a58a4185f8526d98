"""SQL++ statements for the query service."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial

from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._context import strategy_for
from triclinium._services.rows import Row, RowResult, RowsBlock, decoder_of
from triclinium_core.checks import Duration, check_duration
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.services.mutation_state import MutationState, tokens_of
from triclinium_core.services.query.query_request import QueryProfile, QueryRequest, QueryScanConsistency
from triclinium_core.services.query.result import QueryMetaData
from triclinium_core.services.statement.parameters import Parameters, RawOptions, check_keywords
from triclinium_core.services.statement.statement_request import QueryContext
from triclinium_core.telemetry.tracing import RequestSpan


class QueryResult(RowResult[QueryMetaData, Row]):
    """Rows of a query, followed by its metadata."""


class Queries:
    """Queries of ``Cluster`` and ``Scope``."""

    _driver: ClusterDriver
    _query_context: QueryContext | None = None

    def query(
        self,
        statement: str,
        /,
        *positional: object,
        named_parameters: Mapping[str, object] | None = None,
        row_type: type[Row] | None = None,
        adhoc: bool = True,
        readonly: bool = False,
        scan_consistency: QueryScanConsistency | None = None,
        consistent_with: MutationState | None = None,
        client_context_id: str | None = None,
        metrics: bool = False,
        profile: QueryProfile = QueryProfile.OFF,
        flex_index: bool = False,
        preserve_expiry: bool = False,
        use_replica: bool | None = None,
        max_parallelism: int | None = None,
        pipeline_batch: int | None = None,
        pipeline_cap: int | None = None,
        scan_cap: int | None = None,
        scan_wait: Duration | None = None,
        raw: Mapping[str, object] | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
        **named: object,
    ) -> AbstractAsyncContextManager[QueryResult[Row]]:
        """Run a statement, and give the block its rows.

        ``async with cluster.query(...) as result: async for row in result: ...``. Values for ``?`` or ``$1`` follow the
        statement. A keyword that is not an option is the parameter of that name, which must occur in the statement.
        Options: :class:`QueryRequest <triclinium_core.services.query.query_request.QueryRequest>`.

        Args:
            named_parameters: parameters of any name, including names of options. None, the default, adds no parameters.
            row_type: type of a row; ``bytes`` for the JSON text. None, the default, decodes JSON into built-in types.
            client_context_id: id that logs and the response repeat. Default: a new UUID, with a suffix in each retry.

        Raises:
            InvalidArgumentException: an argument is wrong.
            EncodingFailureException: a parameter, or a value of ``raw``, cannot be encoded as JSON.
            CouchbaseException: on entering, the reason why no rows arrive, such as ParsingFailureException.

        Cancellation: abandons the query and closes its connection. A query without ``readonly`` may have been applied.
        """
        check_keywords(statement, named, QueryRequest.__struct_fields__)
        request = QueryRequest(
            statement=statement,
            parameters=Parameters(positional, named_parameters, named),
            query_context=self._query_context,
            adhoc=adhoc,
            readonly=readonly,
            scan_consistency=scan_consistency,
            consistent_with=tokens_of(consistent_with),
            client_context_id=client_context_id if client_context_id is not None else "",
            metrics=metrics,
            profile=profile,
            flex_index=flex_index,
            preserve_expiry=preserve_expiry,
            use_replica=use_replica,
            max_parallelism=max_parallelism,
            pipeline_batch=pipeline_batch,
            pipeline_cap=pipeline_cap,
            scan_cap=scan_cap,
            scan_wait=check_duration(scan_wait, "scan_wait") if scan_wait is not None else None,
            raw=RawOptions(raw),
        )
        result = partial(QueryResult[Row], self._driver, decode=decoder_of(row_type))
        return RowsBlock(result, self._driver, request, strategy_for(retry_strategy), parent_span)
