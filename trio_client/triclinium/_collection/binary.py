"""The operations on documents that are not JSON: counters and concatenation."""

from __future__ import annotations

from datetime import datetime

from triclinium._collection.base import ANY_CAS, CollectionBase, expiry_field
from triclinium_core.checks import Duration
from triclinium_core.kv.operation.document_operations import Append, Decrement, Increment, Prepend
from triclinium_core.kv.operation.durability import DurabilityLevel
from triclinium_core.kv.operation.results import Cas, CounterResult, MutationResult
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.telemetry.tracing import RequestSpan


class BinaryCollection(CollectionBase):
    """A collection, as a store of bytes and counters; ``Collection.binary`` returns it.

    What ``Collection`` says of exceptions, locks, checkpoints and cancellation holds here too. None of these operations is
    idempotent, so none is sent again once the server may have seen it.

    Source: SDK-RFC 0053 "The IBinaryCollection Interface".
    """

    async def append(
        self,
        key: str,
        value: bytes,
        *,
        cas: Cas = ANY_CAS,
        durability: DurabilityLevel = DurabilityLevel.NONE,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> MutationResult:
        """Add ``value`` at the end of a document that exists.

        Raises:
            DocumentNotFoundException: it does not exist.
            CasMismatchException: it has another CAS than ``cas``.
            DocumentLockedException: it is locked, and a retry was refused.
            ValueTooLargeException: it would become too large.
        """
        return await self._driver.perform(
            MutationResult, Append, retry_strategy, parent_span, self._keyspace, key, value, cas, durability=durability
        )

    async def prepend(
        self,
        key: str,
        value: bytes,
        *,
        cas: Cas = ANY_CAS,
        durability: DurabilityLevel = DurabilityLevel.NONE,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> MutationResult:
        """Add ``value`` at the beginning of a document that exists. It raises what ``append`` raises."""
        return await self._driver.perform(
            MutationResult, Prepend, retry_strategy, parent_span, self._keyspace, key, value, cas, durability=durability
        )

    async def increment(
        self,
        key: str,
        *,
        delta: int = 1,
        initial: int | None = None,
        expiry: Duration | datetime | None = None,
        durability: DurabilityLevel = DurabilityLevel.NONE,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> CounterResult:
        """Add ``delta`` to a counter, which wraps around at 2**64, and return what it is then.

        Args:
            delta: from 0 to 2**64 - 1.
            initial: what a counter that does not exist is created with, ``delta`` aside; None not to create it.
            expiry: of a counter that is created.

        Raises:
            DocumentNotFoundException: it does not exist, and ``initial`` is None.
            DeltaInvalidException: the document is no counter.
            DocumentLockedException: it is locked, and a retry was refused.
        """
        return await self._driver.perform(
            CounterResult,
            lambda: Increment(self._keyspace, key, delta, initial, expiry_field(expiry), durability=durability),
            retry_strategy,
            parent_span,
        )

    async def decrement(
        self,
        key: str,
        *,
        delta: int = 1,
        initial: int | None = None,
        expiry: Duration | datetime | None = None,
        durability: DurabilityLevel = DurabilityLevel.NONE,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> CounterResult:
        """Subtract ``delta`` from a counter, which stops at 0, and return what it is then.

        The arguments, and what it raises, are those of ``increment``.
        """
        return await self._driver.perform(
            CounterResult,
            lambda: Decrement(self._keyspace, key, delta, initial, expiry_field(expiry), durability=durability),
            retry_strategy,
            parent_span,
        )
