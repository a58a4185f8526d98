"""Operations on many documents, one for each item of a source."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from triclinium._bulk.outcomes import BulkReads, BulkWrites
from triclinium._bulk.sources import Keys, Pairs
from triclinium._bulk.work import Errors, Operations
from triclinium._collection.base import expiry_field, transcoder_or_json
from triclinium._collection.documents import DocumentOperations, check_kept_expiry
from triclinium._context import strategy_for
from triclinium_core.checks import Duration, check_flag
from triclinium_core.kv.operation.document_operations import Exists, Get, Remove
from triclinium_core.kv.operation.durability import DurabilityLevel, check_durability
from triclinium_core.kv.operation.results import ExistsResult, GetResult, MutationResult
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.telemetry.tracing import RequestSpan
from triclinium_core.transcoding.transcoder import Transcoder

CONCURRENCY = 64
"""Default of ``concurrency``."""


class BulkOperations(DocumentOperations):
    """Operations of ``Collection`` on many documents. ``Collection`` describes the common arguments and exceptions.

    Each call returns a block, which makes one operation for each item. Each operation has its own time limit, span and
    retries, as a single call has; the block has no time limit.

    Args:
        keys: iterable or asynchronous iterable of keys.
        items: mapping, or iterable or asynchronous iterable of pairs of a key and a value.
        concurrency: maximum number of items taken from the source whose outcomes the body has not taken: 1 to 16,384.
            Default: 64.
        errors: ``"raise"``, the default, raises ``BulkFailure`` on leaving the block normally, unless the body looked
            at the exception of each failed operation. ``"collect"`` only records the exceptions.

    Raises:
        TypeError: ``keys`` or ``items`` is not iterable, or is a string or bytes. For an item that is not a pair, it is
            raised like an exception of the source.
        RuntimeError: the caller is outside of the cluster's trio run.
        InvalidArgumentException: an option is wrong; the source was not read. The error of a wrong key or value is the
            outcome of its item.
    """

    def get_many(
        self,
        keys: Keys,
        *,
        concurrency: int = CONCURRENCY,
        errors: Errors = "raise",
        transcoder: Transcoder | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> BulkReads[GetResult]:
        """Read many documents. A missing document is an outcome with DocumentNotFoundException."""
        keyspace, checked = self._keyspace, transcoder_or_json(transcoder)

        def make(key: str) -> Get:  # A partial with a keyword would make a get in bulk 2 % slower.
            return Get(keyspace, key, checked)

        operations = Operations(GetResult, make, strategy_for(retry_strategy), parent_span, concurrency, errors)
        return BulkReads(self._driver, keys, operations)

    def exists_many(
        self,
        keys: Keys,
        *,
        concurrency: int = CONCURRENCY,
        errors: Errors = "raise",
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> BulkReads[ExistsResult]:
        """Check whether documents exist."""
        make = partial(Exists, self._keyspace)
        operations = Operations(ExistsResult, make, strategy_for(retry_strategy), parent_span, concurrency, errors)
        return BulkReads(self._driver, keys, operations)

    def insert_many(
        self,
        items: Pairs,
        *,
        concurrency: int = CONCURRENCY,
        errors: Errors = "raise",
        expiry: Duration | datetime | None = None,
        durability: DurabilityLevel = DurabilityLevel.NONE,
        transcoder: Transcoder | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> BulkWrites[MutationResult]:
        """Create many documents. An existing document is an outcome with DocumentExistsException."""
        expiry_field(expiry)
        check_durability(durability)
        make = partial(self._insert, expiry=expiry, durability=durability, transcoder=transcoder_or_json(transcoder))
        operations = Operations(
            MutationResult, make, strategy_for(retry_strategy), parent_span, concurrency, errors, has_values=True
        )
        return BulkWrites(self._driver, items, operations)

    def upsert_many(
        self,
        items: Pairs,
        *,
        concurrency: int = CONCURRENCY,
        errors: Errors = "raise",
        expiry: Duration | datetime | None = None,
        preserve_expiry: bool = False,
        durability: DurabilityLevel = DurabilityLevel.NONE,
        transcoder: Transcoder | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> BulkWrites[MutationResult]:
        """Create or replace many documents::

            async with people.upsert_many(items) as outcomes:
                async for key, outcome in outcomes:
                    print(key, outcome.error)

        Args:
            preserve_expiry: whether an existing document keeps its expiry; ``expiry`` then applies only to a new
                document.
        """
        expiry_field(expiry)
        check_flag(preserve_expiry, "preserve_expiry")
        check_durability(durability)
        make = partial(
            self._upsert,
            expiry=expiry,
            preserve_expiry=preserve_expiry,
            durability=durability,
            transcoder=transcoder_or_json(transcoder),
        )
        operations = Operations(
            MutationResult, make, strategy_for(retry_strategy), parent_span, concurrency, errors, has_values=True
        )
        return BulkWrites(self._driver, items, operations)

    def replace_many(
        self,
        items: Pairs,
        *,
        concurrency: int = CONCURRENCY,
        errors: Errors = "raise",
        expiry: Duration | datetime | None = None,
        preserve_expiry: bool = False,
        durability: DurabilityLevel = DurabilityLevel.NONE,
        transcoder: Transcoder | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> BulkWrites[MutationResult]:
        """Replace many existing documents. A missing document is an outcome with DocumentNotFoundException.

        To compare the CAS of each document, call ``replace``.

        Args:
            preserve_expiry: whether each document keeps its expiry; cannot be combined with ``expiry``.
        """
        check_kept_expiry(expiry, preserve_expiry=preserve_expiry)
        expiry_field(expiry)
        check_durability(durability)
        make = partial(
            self._replace,
            expiry=expiry,
            preserve_expiry=preserve_expiry,
            durability=durability,
            transcoder=transcoder_or_json(transcoder),
        )
        operations = Operations(
            MutationResult, make, strategy_for(retry_strategy), parent_span, concurrency, errors, has_values=True
        )
        return BulkWrites(self._driver, items, operations)

    def remove_many(
        self,
        keys: Keys,
        *,
        concurrency: int = CONCURRENCY,
        errors: Errors = "raise",
        durability: DurabilityLevel = DurabilityLevel.NONE,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> BulkWrites[MutationResult]:
        """Delete many documents. A missing document is an outcome with DocumentNotFoundException."""
        check_durability(durability)
        make = partial(Remove, self._keyspace, durability=durability)
        operations = Operations(MutationResult, make, strategy_for(retry_strategy), parent_span, concurrency, errors)
        return BulkWrites(self._driver, keys, operations)

    def touch_many(
        self,
        keys: Keys,
        expiry: Duration | datetime | None,
        *,
        concurrency: int = CONCURRENCY,
        errors: Errors = "raise",
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> BulkWrites[MutationResult]:
        """Give many documents the same new expiry. A missing document is an outcome with DocumentNotFoundException."""
        expiry_field(expiry)
        make = partial(self._touch, expiry=expiry)
        operations = Operations(MutationResult, make, strategy_for(retry_strategy), parent_span, concurrency, errors)
        return BulkWrites(self._driver, keys, operations)
