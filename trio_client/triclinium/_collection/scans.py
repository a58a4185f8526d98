"""Operation that scans a collection for a range of ids, a prefix, or a sample."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from zlib import crc32

from triclinium._collection.base import CollectionBase, transcoder_or_json
from triclinium._collection.fan_out import FanOutResults, FanOutTasks, in_block
from triclinium._context import strategy_for
from triclinium_core.kv.operation.results import MutationToken, ScanResult
from triclinium_core.kv.operation.scan.scan_machine import ScanMachine, ScanOptions, newest_tokens
from triclinium_core.kv.operation.scan.scans import ScanType
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.services.mutation_state import MutationState, tokens_of
from triclinium_core.shown import total_repr
from triclinium_core.telemetry.span_names import WrappingCall
from triclinium_core.telemetry.tracing import RequestSpan
from triclinium_core.transcoding.transcoder import Transcoder


class ScanResults(FanOutResults[ScanResult]):
    """Documents that a scan finds, in no particular order: ``async for item in results``.

    The first read starts the scan. Then at most one page of each scanned vbucket is ready, and the scan requests the
    next page once reading of the previous one begins. Several tasks may read from the iterator; each document goes to
    one of them. After its block, reading raises ``trio.ClosedResourceError``.
    """

    def __init__(self, scan: ScanMachine, tasks: FanOutTasks) -> None:
        super().__init__(scan, tasks)
        self._keyspace = scan.options.keyspace

    @total_repr
    def __repr__(self) -> str:
        return f"<ScanResults of {self._keyspace.bucket}.{self._keyspace.scope}.{self._keyspace.collection}>"


class ScanOperations(CollectionBase):
    """Scans of ``Collection``, which describes the common arguments and exceptions."""

    def scan(
        self,
        scan_type: ScanType,
        *,
        ids_only: bool = False,
        consistent_with: MutationState | Sequence[MutationToken] | None = None,
        concurrency: int = 1,
        batch_item_limit: int = 50,
        batch_byte_limit: int = 15_000,
        transcoder: Transcoder | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> AbstractAsyncContextManager[ScanResults]:
        """Give a block the documents that ``scan_type`` selects, in no particular order::

            async with people.scan(PrefixScan("person-")) as found:
                async for item in found:
                    print(item.id, item.content)

        Each vbucket is scanned separately, in its state at the start of its scan. ``TimeoutOptions.kv_scan`` limits
        each request to a vbucket, not the scan. A scan is for few callers that read many documents: for known ids,
        ``get`` is faster; for frequent searches, use an index. After the failure of a node or the move of a vbucket,
        the scan continues after the last document, up to ten times without a further document. A sample cannot
        continue, and may have fewer documents then.

        Args:
            scan_type: a range of ids, a prefix, or a sample.
            ids_only: whether to return only ids, without the content, the CAS and the expiry of the documents.
            consistent_with: mutations that the scan must include: a ``MutationState``, or tokens. None, the default,
                requires none.
            concurrency: number of vbuckets to scan at the same time, 1 to 1,024. Default: 1.
            batch_item_limit: maximum number of documents in one page; 0 for 8,192. Default: 50.
            batch_byte_limit: maximum number of bytes in one page, which the last document may exceed; 0 for no limit.
                Default: 15,000.

        Raises:
            InvalidArgumentException: an argument is wrong.

        Cancellation: leaving the block requests that the nodes close their open scans, and does not wait for the
        responses.
        """
        if consistent_with is None or isinstance(consistent_with, MutationState):
            consistent_with = tokens_of(consistent_with)
        options = ScanOptions(
            self._keyspace,
            scan_type,
            ids_only,
            batch_item_limit,
            batch_byte_limit,
            newest_tokens(consistent_with, self._keyspace),
            transcoder_or_json(transcoder),
            concurrency,
        )
        strategy = strategy_for(retry_strategy)
        scan = ScanMachine(options, seed=crc32(self._driver.make_nonce().encode()))
        return in_block(ScanResults, self._driver, scan, strategy, self._wrapping(WrappingCall.RANGE_SCAN, parent_span))
