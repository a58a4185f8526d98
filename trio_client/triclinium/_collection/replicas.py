"""The operations that read a document from any of its copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

import trio

from triclinium._collection.base import CollectionBase, transcoder_or_json
from triclinium._collection.replica_results import ReplicaResults, reading_copies
from triclinium._context import strategy_for
from triclinium_core.kv.operation.replica.copies import (
    as_copy,
    as_partial_copy,
    partial_reads,
    unretrievable,
    whole_document_reads,
)
from triclinium_core.kv.operation.results import (
    GetReplicaResult,
    GetResult,
    LookupInReplicaResult,
    LookupInResult,
)
from triclinium_core.kv.operation.subdocument.specs import LookupInSpec, check_specs
from triclinium_core.retry.couchbase.strategy import AnyRetryStrategy
from triclinium_core.transcoding.transcoder import Transcoder

R = TypeVar("R")


class ReplicaOperations(CollectionBase):
    """Reading replicas; part of ``Collection``, which says what all operations have in common.

    A replica may be behind the active copy: what was written and acknowledged may be missing there.
    """

    async def get_any_replica(
        self, key: str, *, transcoder: Transcoder | None = None, retry_strategy: AnyRetryStrategy | None = None
    ) -> GetReplicaResult:
        """Read a document from whichever copy answers first, the active one among them; the others are given up.

        Raises:
            DocumentUnretrievableException: no copy has it.
        """
        return await _first(lambda: self.get_all_replicas(key, transcoder=transcoder, retry_strategy=retry_strategy))

    def get_all_replicas(
        self, key: str, *, transcoder: Transcoder | None = None, retry_strategy: AnyRetryStrategy | None = None
    ) -> AbstractAsyncContextManager[ReplicaResults[GetReplicaResult]]:
        """Give a block all copies of a document, read at once, each as soon as it arrives.

        A copy that cannot be read is left out, and ``errors`` says why. Leaving the block gives up what has not come::

            async with people.get_all_replicas("ada") as copies:
                async for copy in copies:
                    print(copy.is_replica, copy.content)

        Raises:
            InvalidArgumentException: an argument is wrong.

        Cancellation: reads are given up when the block is left.
        """
        reads = whole_document_reads(self._keyspace, key, transcoder_or_json(transcoder))
        return reading_copies(self._driver, reads, GetResult, as_copy, strategy_for(retry_strategy))

    async def lookup_in_any_replica(
        self,
        key: str,
        specs: Sequence[LookupInSpec],
        *,
        transcoder: Transcoder | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
    ) -> LookupInReplicaResult:
        """Read parts of a document from whichever copy answers first, the active one among them.

        Args:
            specs: what to read, 1 to 16 of them.

        Raises:
            DocumentUnretrievableException: no copy has the document.
        """
        return await _first(
            lambda: self.lookup_in_all_replicas(key, specs, transcoder=transcoder, retry_strategy=retry_strategy)
        )

    def lookup_in_all_replicas(
        self,
        key: str,
        specs: Sequence[LookupInSpec],
        *,
        transcoder: Transcoder | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
    ) -> AbstractAsyncContextManager[ReplicaResults[LookupInReplicaResult]]:
        """Give a block parts of all copies of a document, as ``get_all_replicas`` does with whole ones.

        Where the servers are too old to do that, the replicas are left out: FeatureNotAvailableException stands among
        the ``errors``.

        Args:
            specs: what to read, 1 to 16 of them.

        Raises:
            InvalidArgumentException: an argument is wrong.

        Cancellation: reads are given up when the block is left.
        """
        checked = check_specs(specs, LookupInSpec)
        reads = partial_reads(self._keyspace, key, checked, transcoder_or_json(transcoder))
        return reading_copies(self._driver, reads, LookupInResult, as_partial_copy, strategy_for(retry_strategy))


async def _first(read_all: Callable[[], AbstractAsyncContextManager[ReplicaResults[R]]]) -> R:
    """Return the first copy that arrives; a checkpoint in every case."""
    await trio.lowlevel.checkpoint_if_cancelled()
    try:
        reading = read_all()
    except Exception:
        await trio.lowlevel.cancel_shielded_checkpoint()
        raise
    async with reading as copies:
        async for copy in copies:
            return copy
    raise unretrievable(copies.errors)
