"""Operations on counters, and concatenation of bytes."""

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
    """Collection as a store of bytes and counters; ``Collection.binary`` returns it.

    Exceptions, locks, checkpoints and cancellation are those of ``Collection``. None of these operations is idempotent,
    so none is sent again while it is unknown whether the server has applied it.

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
        """Append ``value`` to an existing document.

        Raises:
            DocumentNotFoundException: the document does not exist.
            CasMismatchException: the document's CAS is not ``cas``.
            DocumentLockedException: the document is locked, and a retry was refused.
            ValueTooLargeException: the document would become too large.
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
        """Prepend ``value`` to an existing document. The exceptions are those of ``append``."""
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
        """Add ``delta`` to a counter, which wraps around at 2**64, and return its new value.

        Args:
            delta: from 0 to 2**64 - 1. Default: 1.
            initial: value of a new counter, to which ``delta`` is not added; None to create no counter.
            expiry: expiry of a new counter. None, the default, for no expiry.

        Raises:
            DocumentNotFoundException: the counter does not exist, and there is no ``initial``.
            DeltaInvalidException: the document is not a counter.
            DocumentLockedException: the document is locked, and a retry was refused.
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
        """Subtract ``delta`` from a counter, which stops at 0, and return its new value.

        The arguments and exceptions are those of ``increment``.
        """
        return await self._driver.perform(
            CounterResult,
            lambda: Decrement(self._keyspace, key, delta, initial, expiry_field(expiry), durability=durability),
            retry_strategy,
            parent_span,
        )
