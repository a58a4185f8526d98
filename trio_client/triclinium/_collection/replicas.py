"""Operations that read a document from any of its copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

import trio

from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._collection.base import CollectionBase, transcoder_or_json
from triclinium._collection.fan_out import FanOutResults, FanOutTasks, in_block
from triclinium._context import strategy_for
from triclinium._telemetry.wrapping import Wrapping
from triclinium_core.errors import CouchbaseException
from triclinium_core.kv.operation.replica.reads import ReplicaReads, partial_reads, whole_document_reads
from triclinium_core.kv.operation.results import GetReplicaResult, LookupInReplicaResult
from triclinium_core.kv.operation.subdocument.specs import LookupInSpec
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.shown import total_repr
from triclinium_core.telemetry.span_names import WrappingCall
from triclinium_core.telemetry.tracing import RequestSpan
from triclinium_core.transcoding.transcoder import Transcoder

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class ReplicaResults(FanOutResults[R_co]):
    """Copies of a document in the order in which they arrive: ``async for copy in copies``.

    Several tasks may read from the iterator; each copy goes to one of them. After its block, reading raises
    ``trio.ClosedResourceError``.
    """

    def __init__(self, reads: ReplicaReads[R_co], tasks: FanOutTasks) -> None:
        super().__init__(reads, tasks)
        self._reads = reads

    @total_repr
    def __repr__(self) -> str:
        return f"<ReplicaResults errors={len(self.errors)}>"

    @property
    def errors(self) -> tuple[CouchbaseException, ...]:
        """Errors of the copies that could not be read so far, the active copy first.

        A configured replica that no node has counts as an error; a replica that the bucket does not configure does not.
        """
        return self._reads.errors


class ReplicaOperations(CollectionBase):
    """Replica reads of ``Collection``, which describes the common arguments and exceptions.

    A replica may be behind the active copy: an acknowledged write may be missing there.
    """

    async def get_any_replica(
        self,
        key: str,
        *,
        transcoder: Transcoder | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> GetReplicaResult:
        """Read a document from the copy that responds first, active or replica, and abandon the other reads.

        Raises:
            DocumentUnretrievableException: no copy has the document.
        """
        return await _first(
            self._driver,
            lambda: whole_document_reads(self._keyspace, key, transcoder_or_json(transcoder), first_only=True),
            retry_strategy,
            self._wrapping(WrappingCall.GET_ANY_REPLICA, parent_span),
        )

    def get_all_replicas(
        self,
        key: str,
        *,
        transcoder: Transcoder | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> AbstractAsyncContextManager[ReplicaResults[GetReplicaResult]]:
        """Read all copies of a document at the same time, and give the block each copy as it arrives.

        A copy that cannot be read is omitted; ``errors`` gives the reason. Leaving the block abandons the pending
        reads::

            async with people.get_all_replicas("ada") as copies:
                async for copy in copies:
                    print(copy.is_replica, copy.content)

        Raises:
            InvalidArgumentException: an argument is wrong.

        Cancellation: harmless; the pending reads are abandoned.
        """
        reads = whole_document_reads(self._keyspace, key, transcoder_or_json(transcoder))
        return in_block(
            ReplicaResults,
            self._driver,
            reads,
            strategy_for(retry_strategy),
            self._wrapping(WrappingCall.GET_ALL_REPLICAS, parent_span),
        )

    async def lookup_in_any_replica(
        self,
        key: str,
        specs: Sequence[LookupInSpec],
        *,
        transcoder: Transcoder | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> LookupInReplicaResult:
        """Read parts of a document from the copy that responds first, active or replica.

        Args:
            specs: 1 to 16 parts to read.

        Raises:
            DocumentUnretrievableException: no copy has the document.
        """
        return await _first(
            self._driver,
            lambda: partial_reads(self._keyspace, key, specs, transcoder_or_json(transcoder), first_only=True),
            retry_strategy,
            self._wrapping(WrappingCall.LOOKUP_IN_ANY_REPLICA, parent_span),
        )

    def lookup_in_all_replicas(
        self,
        key: str,
        specs: Sequence[LookupInSpec],
        *,
        transcoder: Transcoder | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> AbstractAsyncContextManager[ReplicaResults[LookupInReplicaResult]]:
        """Read parts of all copies of a document at the same time; see ``get_all_replicas``.

        A replica whose server does not support such reads is omitted, with FeatureNotAvailableException in ``errors``.

        Args:
            specs: 1 to 16 parts to read.

        Raises:
            InvalidArgumentException: an argument is wrong.

        Cancellation: harmless; the pending reads are abandoned.
        """
        reads = partial_reads(self._keyspace, key, specs, transcoder_or_json(transcoder))
        return in_block(
            ReplicaResults,
            self._driver,
            reads,
            strategy_for(retry_strategy),
            self._wrapping(WrappingCall.LOOKUP_IN_ALL_REPLICAS, parent_span),
        )


async def _first(
    driver: ClusterDriver,
    make_reads: Callable[[], ReplicaReads[R]],
    retry_strategy: AnyRetryStrategy | None,
    wrapping: Wrapping,
) -> R:
    """Return the first copy that arrives. Always a checkpoint."""
    await trio.lowlevel.checkpoint_if_cancelled()
    try:
        reading = in_block(ReplicaResults, driver, make_reads(), strategy_for(retry_strategy), wrapping)
    except Exception:
        await trio.lowlevel.cancel_shielded_checkpoint()
        raise
    async with reading as copies:
        return await anext(copies)
