"""Queries of views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial

from triclinium import _services
from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._context import strategy_for
from triclinium._services.rows import RowsBlock
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.services import views
from triclinium_core.services.views.options import (
    DesignDocumentNamespace,
    ViewErrorMode,
    ViewOptions,
    ViewOrdering,
    ViewScanConsistency,
)
from triclinium_core.telemetry.tracing import RequestSpan


class ViewQueries:
    """View queries of ``Bucket``."""

    _driver: ClusterDriver
    _name: str

    def view_query(
        self,
        design_document: str,
        view_name: str,
        /,
        *,
        limit: int | None = None,
        skip: int | None = None,
        key: object = None,
        keys: Sequence[object] | None = None,
        startkey: object = None,
        endkey: object = None,
        startkey_docid: str | None = None,
        endkey_docid: str | None = None,
        inclusive_end: bool | None = None,
        order: ViewOrdering | None = None,
        reduce: bool | None = None,
        group: bool | None = None,
        group_level: int | None = None,
        scan_consistency: ViewScanConsistency | None = None,
        on_error: ViewErrorMode | None = None,
        namespace: DesignDocumentNamespace = DesignDocumentNamespace.PRODUCTION,
        debug: bool = False,
        raw: Mapping[str, str] | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> AbstractAsyncContextManager[_services.results.ViewResult]:
        """Query a view, and give the block its rows.

        ``async with bucket.view_query(...) as result: async for row in result: ...``. ``namespace`` is the namespace of
        the design document, whose name is given without ``dev_``.
        Options: :class:`ViewOptions <triclinium_core.services.views.options.ViewOptions>`.

        Raises:
            InvalidArgumentException: an argument is wrong.
            EncodingFailureException: a key cannot be encoded as JSON.
            CouchbaseException: on entering, the reason why no rows arrive, such as ViewNotFoundException.

        Cancellation: the request is abandoned and its connection closed, so that the service stops working on it.
        """
        options = ViewOptions(
            limit=limit,
            skip=skip,
            key=key,
            keys=keys,
            startkey=startkey,
            endkey=endkey,
            startkey_docid=startkey_docid,
            endkey_docid=endkey_docid,
            inclusive_end=inclusive_end,
            order=order,
            reduce=reduce,
            group=group,
            group_level=group_level,
            scan_consistency=scan_consistency,
            on_error=on_error,
            debug=debug,
            raw=raw,
        )
        asked = views.view_request.ViewRequest(
            bucket_name=self._name,
            design_document=design_document,
            view_name=view_name,
            namespace=namespace,
            options=options,
        )
        result = partial(_services.results.ViewResult, self._driver, decode=views.result.decode_row)
        return RowsBlock(result, self._driver, asked, strategy_for(retry_strategy), parent_span)
