"""Operations on parts of documents."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from triclinium._collection.base import ANY_CAS, CollectionBase, expiry_field, transcoder_or_json
from triclinium._collection.encoding import encoded
from triclinium_core import errors
from triclinium_core.checks import Duration, check_flag
from triclinium_core.kv.operation.durability import DurabilityLevel
from triclinium_core.kv.operation.results import Cas, LookupInResult, MutateInResult
from triclinium_core.kv.operation.subdocument.specs import (
    EncodedMutation,
    LookupInSpec,
    MutateInSpec,
    StoreSemantics,
    check_specs,
)
from triclinium_core.kv.operation.subdocument.subdocument_requests import LookupIn, MutateIn
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.shown import shown
from triclinium_core.telemetry.tracing import RequestSpan
from triclinium_core.transcoding.transcoder import Transcoder


class SubdocumentOperations(CollectionBase):
    """Operations of ``Collection`` on parts of documents. ``Collection`` describes the common parameters and errors."""

    async def lookup_in(
        self,
        key: str,
        specs: Sequence[LookupInSpec],
        *,
        access_deleted: bool = False,
        transcoder: Transcoder | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> LookupInResult:
        """Read parts of a document, all of the same version.

        The result raises the error of a failed path when that path is read.

        Args:
            specs: 1 to 16 parts to read.
            access_deleted: whether to read the remains of a removed document: its system attributes.

        Raises:
            DocumentNotFoundException: the document does not exist.
            FeatureNotAvailableException: the server does not support extended attributes.
        """

        def operation() -> LookupIn:
            checked = check_specs(specs, LookupInSpec)
            return LookupIn(self._keyspace, key, checked, access_deleted, transcoder_or_json(transcoder))

        return await self._driver.perform(LookupInResult, operation, retry_strategy, parent_span)

    async def mutate_in(
        self,
        key: str,
        specs: Sequence[MutateInSpec],
        *,
        cas: Cas = ANY_CAS,
        expiry: Duration | datetime | None = None,
        preserve_expiry: bool = False,
        store_semantics: StoreSemantics = StoreSemantics.REPLACE,
        access_deleted: bool = False,
        durability: DurabilityLevel = DurabilityLevel.NONE,
        transcoder: Transcoder | None = None,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> MutateInResult:
        """Change parts of a document, all of them or none.

        Args:
            specs: 1 to 16 changes, applied in this order, except that extended attributes come first.
            preserve_expiry: whether an existing document keeps its expiry; ``expiry`` then applies only to a new
                document, and cannot be given with REPLACE.
            store_semantics: whether the document must exist (the default), may exist, or must not. If the document is
                created, so are the objects along each path.
            access_deleted: whether to change the extended attributes of a removed document.

        Raises:
            DocumentNotFoundException: the document does not exist, and ``store_semantics`` is REPLACE.
            DocumentExistsException: the document exists, and ``store_semantics`` is INSERT.
            CasMismatchException: the document's CAS is not ``cas``.
            PathNotFoundException: a path does not exist; ``context.path_index`` is its index. Nothing was changed.
                Other failures of a path raise their own exceptions: PathExistsException, PathMismatchException …
            DocumentLockedException: the document is locked, and a retry was refused.
            EncodingFailureException: the transcoder cannot store a value; nothing was sent.
            ValueTooLargeException: the document would become larger than the server stores.
            FeatureNotAvailableException: the server does not support extended attributes.
        """

        def operation() -> MutateIn:
            checked = check_specs(specs, MutateInSpec)
            keeps = check_flag(preserve_expiry, "preserve_expiry")
            if keeps and expiry is not None and store_semantics is StoreSemantics.REPLACE:
                raise errors.InvalidArgumentException(
                    f"expiry={shown(expiry)} cannot be combined with preserve_expiry under REPLACE; omit one of them",
                    parameter="expiry",
                )
            coder = transcoder_or_json(transcoder)
            make = partial(
                MutateIn,
                self._keyspace,
                key,
                cas=cas,
                expiry=expiry_field(expiry),
                preserve_expiry=keeps,
                store_semantics=store_semantics,
                access_deleted=access_deleted,
                transcoder=coder,
                durability=durability,
            )
            mutations, seconds = encoded(
                self._driver, partial(_encode, coder), checked, lambda: make(specs=_without_values(checked))
            )
            return make(specs=mutations, encode_seconds=seconds)

        return await self._driver.perform(MutateInResult, operation, retry_strategy, parent_span)


def _encode(transcoder: Transcoder, specs: Sequence[MutateInSpec]) -> tuple[EncodedMutation, ...]:
    return tuple(spec.encode(transcoder) for spec in specs)


def _without_values(specs: Sequence[MutateInSpec]) -> tuple[EncodedMutation, ...]:
    return tuple(EncodedMutation(spec.opcode, spec.flags, spec.path) for spec in specs)
