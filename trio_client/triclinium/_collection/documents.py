"""Operations on whole documents."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from triclinium._collection.base import ANY_CAS, CollectionBase, expiry_field, transcoder_or_json
from triclinium._collection.encoding import encoded
from triclinium._telemetry.call_spans import encoding_call
from triclinium_core.checks import Duration, check_flag, check_type
from triclinium_core.errors import DocumentNotFoundException, InvalidArgumentException
from triclinium_core.kv.operation.document_operations import (
    JSON_TRANSCODER,
    Exists,
    Get,
    GetAndLock,
    GetAndTouch,
    Insert,
    Keyspace,
    Remove,
    Replace,
    Store,
    Touch,
    Unlock,
    Upsert,
)
from triclinium_core.kv.operation.durability import DurabilityLevel
from triclinium_core.kv.operation.results import Cas, Done, ExistsResult, GetResult, MutationResult
from triclinium_core.kv.operation.validation import encode_lock_time
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.shown import shown
from triclinium_core.telemetry.tracing import RequestSpan
from triclinium_core.transcoding.transcoder import EncodedValue, Transcoder


class DocumentOperations(CollectionBase):
    """Operations of ``Collection`` on whole documents. ``Collection`` describes the common arguments and exceptions."""

    async def get(
        self,
        key: str,
        *,
        transcoder: Transcoder | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> GetResult:
        """Read a document.

        Raises:
            DocumentNotFoundException: the document does not exist.
        """
        transcoder = JSON_TRANSCODER if transcoder is None else transcoder
        return await self._driver.perform(GetResult, Get, retry_strategy, parent_span, self._keyspace, key, transcoder)

    async def get_or_none(
        self,
        key: str,
        *,
        transcoder: Transcoder | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> GetResult | None:
        """Read a document; return None if it does not exist."""
        transcoder = JSON_TRANSCODER if transcoder is None else transcoder
        make = Get if self._driver.telemetry is None else _get_that_may_miss
        try:
            return await self._driver.perform(
                GetResult, make, retry_strategy, parent_span, self._keyspace, key, transcoder
            )
        except DocumentNotFoundException:
            return None

    async def exists(
        self, key: str, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> ExistsResult:
        """Check whether a document exists. ``.exists`` of the result is True or False."""
        return await self._driver.perform(ExistsResult, Exists, retry_strategy, parent_span, self._keyspace, key)

    async def get_and_touch(
        self,
        key: str,
        expiry: Duration | datetime | None,
        *,
        transcoder: Transcoder | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> GetResult:
        """Read a document and give it a new expiry.

        Raises:
            DocumentNotFoundException: the document does not exist.
            DocumentLockedException: the document is locked, and a retry was refused.
        """
        return await self._driver.perform(
            GetResult,
            lambda: GetAndTouch(self._keyspace, key, expiry_field(expiry), transcoder_or_json(transcoder)),
            retry_strategy,
            parent_span,
        )

    async def touch(
        self,
        key: str,
        expiry: Duration | datetime | None,
        *,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> MutationResult:
        """Give a document a new expiry.

        Raises:
            DocumentNotFoundException: the document does not exist.
            DocumentLockedException: the document is locked, and a retry was refused.
        """
        return await self._driver.perform(MutationResult, self._touch, retry_strategy, parent_span, key, expiry)

    async def get_and_lock(
        self,
        key: str,
        lock_time: Duration,
        *,
        transcoder: Transcoder | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> GetResult:
        """Read a document and lock it: until the lock ends, only calls with the returned CAS can write or unlock it.

        Args:
            lock_time: time until the server releases the lock, in seconds or as a ``timedelta``: above 0 and at most
                30 s. Rounded up to whole seconds.

        Raises:
            DocumentNotFoundException: the document does not exist.
            DocumentLockedException: the document is already locked, and a retry was refused.
        """
        return await self._driver.perform(
            GetResult,
            lambda: GetAndLock(self._keyspace, key, encode_lock_time(lock_time), transcoder_or_json(transcoder)),
            retry_strategy,
            parent_span,
        )

    async def unlock(
        self,
        key: str,
        cas: Cas,
        *,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> None:
        """Release a lock.

        Args:
            cas: the CAS that ``get_and_lock`` returned.

        Raises:
            DocumentNotFoundException: the document does not exist.
            DocumentNotLockedException: the document is not locked.
            CasMismatchException: the document is locked with another CAS.
        """
        await self._driver.perform(Done, Unlock, retry_strategy, parent_span, self._keyspace, key, cas)

    async def insert(
        self,
        key: str,
        value: object,
        *,
        expiry: Duration | datetime | None = None,
        durability: DurabilityLevel = DurabilityLevel.NONE,
        transcoder: Transcoder | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> MutationResult:
        """Create a document.

        Raises:
            DocumentExistsException: the document already exists.
            EncodingFailureException: the transcoder cannot store ``value``; nothing was sent.
            ValueTooLargeException: the document is larger than the server stores.
        """
        return await self._driver.perform(
            MutationResult,
            self._insert,
            retry_strategy,
            parent_span,
            key,
            value,
            expiry=expiry,
            durability=durability,
            transcoder=transcoder,
        )

    async def upsert(
        self,
        key: str,
        value: object,
        *,
        expiry: Duration | datetime | None = None,
        preserve_expiry: bool = False,
        durability: DurabilityLevel = DurabilityLevel.NONE,
        transcoder: Transcoder | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> MutationResult:
        """Create a document, or replace the existing one.

        Args:
            preserve_expiry: whether an existing document keeps its expiry; ``expiry`` then applies only to a new
                document.

        Raises:
            EncodingFailureException: the transcoder cannot store ``value``; nothing was sent.
            DocumentLockedException: the document is locked, and a retry was refused.
            ValueTooLargeException: the document is larger than the server stores.
        """
        return await self._driver.perform(
            MutationResult,
            self._upsert,
            retry_strategy,
            parent_span,
            key,
            value,
            expiry=expiry,
            preserve_expiry=preserve_expiry,
            durability=durability,
            transcoder=transcoder,
        )

    async def replace(
        self,
        key: str,
        value: object,
        *,
        cas: Cas = ANY_CAS,
        expiry: Duration | datetime | None = None,
        preserve_expiry: bool = False,
        durability: DurabilityLevel = DurabilityLevel.NONE,
        transcoder: Transcoder | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> MutationResult:
        """Replace an existing document.

        Args:
            preserve_expiry: whether the document keeps its expiry; cannot be combined with ``expiry``.

        Raises:
            DocumentNotFoundException: the document does not exist.
            CasMismatchException: the document's CAS is not ``cas``.
            EncodingFailureException: the transcoder cannot store ``value``; nothing was sent.
            DocumentLockedException: the document is locked, and a retry was refused.
            ValueTooLargeException: the document is larger than the server stores.
        """
        return await self._driver.perform(
            MutationResult,
            self._replace,
            retry_strategy,
            parent_span,
            key,
            value,
            expiry=expiry,
            preserve_expiry=preserve_expiry,
            durability=durability,
            transcoder=transcoder,
            cas=cas,
        )

    async def remove(
        self,
        key: str,
        *,
        cas: Cas = ANY_CAS,
        durability: DurabilityLevel = DurabilityLevel.NONE,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> MutationResult:
        """Delete a document.

        Raises:
            DocumentNotFoundException: the document does not exist.
            CasMismatchException: the document's CAS is not ``cas``.
            DocumentLockedException: the document is locked, and a retry was refused.
        """
        return await self._driver.perform(
            MutationResult, Remove, retry_strategy, parent_span, self._keyspace, key, cas, durability=durability
        )

    # -- Operations on one document. The calls above and the bulk calls use them.

    def _insert(
        self,
        key: str,
        value: object,
        *,
        expiry: Duration | datetime | None,
        durability: DurabilityLevel,
        transcoder: Transcoder | None,
    ) -> Insert:
        document, seconds = self._encoded(
            value, transcoder, lambda: Insert(self._keyspace, key, b"", 0, expiry_field(expiry), durability=durability)
        )
        return Insert(
            self._keyspace,
            key,
            document.data,
            document.flags,
            expiry_field(expiry),
            durability=durability,
            encode_seconds=seconds,
        )

    def _upsert(
        self,
        key: str,
        value: object,
        *,
        expiry: Duration | datetime | None,
        preserve_expiry: bool,
        durability: DurabilityLevel,
        transcoder: Transcoder | None,
    ) -> Upsert:
        document, seconds = self._encoded(
            value,
            transcoder,
            lambda: Upsert(self._keyspace, key, b"", 0, expiry_field(expiry), preserve_expiry, durability=durability),
        )
        return Upsert(
            self._keyspace,
            key,
            document.data,
            document.flags,
            expiry_field(expiry),
            preserve_expiry,
            durability=durability,
            encode_seconds=seconds,
        )

    def _replace(
        self,
        key: str,
        value: object,
        *,
        expiry: Duration | datetime | None,
        preserve_expiry: bool,
        durability: DurabilityLevel,
        transcoder: Transcoder | None,
        cas: Cas = ANY_CAS,
    ) -> Replace:
        check_kept_expiry(expiry, preserve_expiry=preserve_expiry)
        document, seconds = self._encoded(
            value,
            transcoder,
            lambda: Replace(
                self._keyspace, key, b"", 0, expiry_field(expiry), preserve_expiry, cas, durability=durability
            ),
        )
        return Replace(
            self._keyspace,
            key,
            document.data,
            document.flags,
            expiry_field(expiry),
            preserve_expiry,
            cas,
            durability=durability,
            encode_seconds=seconds,
        )

    def _touch(self, key: str, expiry: Duration | datetime | None) -> Touch:
        return Touch(self._keyspace, key, expiry_field(expiry))

    def _encoded(
        self, value: object, transcoder: Transcoder | None, without_payload: Callable[[], Store]
    ) -> tuple[EncodedValue, float]:
        """Return the encoded value, and the seconds that encoding took, or 0 if they are not measured."""
        document, seconds = encoded(self._driver, transcoder_or_json(transcoder).encode, value, without_payload)
        if type(document) is not EncodedValue:
            check_type(document, "transcoder.encode(value)", EncodedValue)
        return document, seconds


def _get_that_may_miss(keyspace: Keyspace, key: str, transcoder: Transcoder) -> Get:
    """Return the operation of a call for which a missing document is a result and not an error."""
    call = encoding_call.get()
    if call is not None:
        call.expected = (DocumentNotFoundException,)
    return Get(keyspace, key, transcoder)


def check_kept_expiry(expiry: Duration | datetime | None, *, preserve_expiry: bool) -> None:
    """Refuse ``expiry`` together with ``preserve_expiry``.

    Raises:
        InvalidArgumentException: both are given, or ``preserve_expiry`` is not a bool.
    """
    if check_flag(preserve_expiry, "preserve_expiry") and expiry is not None:
        raise InvalidArgumentException(
            f"expiry={shown(expiry)} cannot be combined with preserve_expiry; omit one of them",
            parameter="expiry",
        )
