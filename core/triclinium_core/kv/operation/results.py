"""Results of operations.

Source: SDK-RFC 0053 "Return Types".
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NewType, TypeVar

import msgspec

from triclinium_core import errors
from triclinium_core.checks import check_integer
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.manifest.collections_manifest import CollectionsManifest
from triclinium_core.kv.operation.reports import NodesServe, PingResult, Ready
from triclinium_core.kv.operation.subdocument.specs import LookupInSpec
from triclinium_core.kv.wire.compression import MalformedCompression, inflate
from triclinium_core.kv.wire.subdocument import PathOpcode
from triclinium_core.retry.couchbase import FailedPath, Status, at_path
from triclinium_core.shown import shown
from triclinium_core.transcoding.flags import JSON_FLAGS
from triclinium_core.transcoding.transcoder import Transcoder

T = TypeVar("T")

Cas = NewType("Cas", int)
"""Version of a document: an opaque, unsigned 64-bit number, which changes with every mutation."""


class MutationToken(msgspec.Struct, frozen=True, gc=False):
    """Position of a mutation in the history of its vbucket."""

    bucket: str
    vbucket: int
    vbucket_uuid: int
    sequence_number: int


class GetResult(msgspec.Struct, frozen=True):
    """Content and CAS of a document."""

    cas: Cas
    flags: int
    data: bytes
    """Stored bytes, inflated."""
    transcoder: Transcoder

    @property
    def content(self) -> object:
        """The document, decoded by its transcoder.

        Raises:
            DecodingFailureException: the transcoder cannot decode the stored bytes.
        """
        return self.transcoder.decode(self.data, self.flags, object)

    def content_as(self, as_type: type[T]) -> T:
        """Return the document converted to ``as_type`` in one pass.

        Raises:
            DecodingFailureException: the document cannot be decoded as ``as_type``.
        """
        return self.transcoder.decode(self.data, self.flags, as_type)


class GetReplicaResult(GetResult, frozen=True):
    """Content of one copy of a document. A replica may be older than the active copy."""

    is_replica: bool
    """Whether the content came from a replica rather than from the active copy."""


class MutationResult(msgspec.Struct, frozen=True, gc=False):
    """CAS and token of an applied mutation."""

    cas: Cas
    mutation_token: MutationToken | None = None
    """Token of the mutation; None if the server did not send one."""


class ExistsResult(msgspec.Struct, frozen=True, gc=False):
    """Result of ``exists``: whether a document exists. The truth value of the result is ``exists``."""

    exists: bool
    cas: Cas
    """CAS of the document; 0 if the document does not exist, or if a plain memcached sends no CAS."""

    def __bool__(self) -> bool:
        return self.exists


class CounterResult(msgspec.Struct, frozen=True, gc=False):
    """Value of a counter after its change."""

    content: int
    cas: Cas
    mutation_token: MutationToken | None = None


class Done(msgspec.Struct, frozen=True, gc=False):
    """Success of an operation without a result, such as an unlock or a NOOP."""


class LookupInResult(msgspec.Struct, frozen=True):
    """Parts of a document, in the order of the specs."""

    cas: Cas
    specs: tuple[LookupInSpec, ...]
    outcomes: tuple[tuple[int, bytes], ...]
    """Status and JSON of each spec."""
    transcoder: Transcoder
    context: ErrorContext
    """Error context of the operation; empty if no path failed."""
    is_deleted: bool = False
    """Whether the document was removed, so that the parts come from its tombstone."""

    def content_as(self, as_type: type[T], index: int) -> T:
        """Return the value of the spec at ``index``, counted from 0, converted to ``as_type`` in one pass.

        An ``exists`` has a bool as its value, a ``count`` an int. With ``object``, the value has its natural type.

        Raises:
            InvalidArgumentException: no spec has this index.
            PathNotFoundException: the path does not exist. Other failures of a path raise other exceptions.
            DecodingFailureException: the value does not fit ``as_type``.
        """
        if self._spec(index).opcode is PathOpcode.EXISTS:
            data = b"true" if self.exists(index) else b"false"
            return self.transcoder.decode(data, JSON_FLAGS, as_type)
        status, data = self.outcomes[index]
        if status != Status.SUCCESS:
            raise self._failure(index)
        return self.transcoder.decode(data, JSON_FLAGS, as_type)

    def exists(self, index: int) -> bool:
        """Return whether the path of the spec at ``index``, counted from 0, exists.

        Raises:
            InvalidArgumentException: no spec has this index.
            PathMismatchException: the path does not fit the document. Other failures raise other exceptions.
        """
        self._spec(index)
        status = self.outcomes[index][0]
        if status not in (Status.SUCCESS, Status.SUBDOC_PATH_NOT_FOUND):
            raise self._failure(index)
        return status == Status.SUCCESS

    def _spec(self, index: int) -> LookupInSpec:
        return self.specs[check_integer(index, "index", 0, len(self.specs) - 1)]

    def _failure(self, index: int) -> errors.CouchbaseException:
        return at_path(self.context, FailedPath(index, self.specs[index].path, self.outcomes[index][0]))


class LookupInReplicaResult(LookupInResult, frozen=True, kw_only=True):
    """Parts of one copy of a document. A replica may be older than the active copy."""

    is_replica: bool
    """Whether the parts came from a replica rather than from the active copy."""


def as_lookup_of_copy(result: LookupInResult, *, is_replica: bool) -> LookupInReplicaResult:
    """Return ``result`` as the result of a lookup in one copy: a replica or the active copy."""
    return LookupInReplicaResult(**msgspec.structs.asdict(result), is_replica=is_replica)


class MutateInResult(msgspec.Struct, frozen=True):
    """CAS, token and returned values of an applied mutation of parts of a document."""

    cas: Cas
    values: tuple[bytes | None, ...]
    """JSON that each spec returned; None for a spec that returns nothing."""
    transcoder: Transcoder
    mutation_token: MutationToken | None = None
    """Token of the mutation; None if the server did not send one."""
    is_deleted: bool = False
    """Whether the document is a tombstone, so that only its extended attributes were changed."""

    def content_as(self, as_type: type[T], index: int) -> T:
        """Return the value of the spec at ``index``, counted from 0, converted to ``as_type``.

        Only ``increment`` and ``decrement`` return a value: the new number.

        Raises:
            InvalidArgumentException: no spec has this index, or the spec returns no value.
            DecodingFailureException: the number does not fit ``as_type``.
        """
        data = self.values[check_integer(index, "index", 0, len(self.values) - 1)]
        if data is None:
            raise errors.InvalidArgumentException(
                f"index={index} names a spec that returns no value; only increment and decrement return one",
                parameter="index",
            )
        return self.transcoder.decode(data, JSON_FLAGS, as_type)


class RangeScanCreated(msgspec.Struct, frozen=True, gc=False):
    """Id of an open scan. The scan stays open on its node until it completes, is cancelled or expires."""

    scan_id: bytes


class ScanResult(msgspec.Struct, frozen=True):
    """One document of a scan."""

    id: str
    """Document id. Bytes that are not UTF-8, which other clients may write, become lone surrogates (PEP 383)."""
    transcoder: Transcoder
    cas: Cas = Cas(0)
    """CAS of the document; 0 if only ids were requested."""
    flags: int = 0
    expiry: int = 0
    """Unix time at which the document expires, in seconds; 0 for never, or if only ids were requested."""
    stored: bytes | None = None
    """The stored bytes, compressed if ``is_deflated``; None if only ids were requested."""
    is_deflated: bool = False
    """Whether ``stored`` is still a snappy block, which each access to ``data`` inflates."""

    @property
    def data(self) -> bytes | None:
        """The stored bytes, inflated; None if only ids were requested.

        Raises:
            DecodingFailureException: the bytes cannot be inflated.
        """
        if self.stored is None or not self.is_deflated:
            return self.stored
        try:
            return inflate(self.stored)
        except MalformedCompression as error:
            raise errors.DecodingFailureException(
                f"the document {shown(self.id)} cannot be decompressed: {error}"
            ) from error

    @property
    def content(self) -> object:
        """The document, decoded by its transcoder.

        Raises:
            DecodingFailureException: the stored bytes cannot be inflated or decoded.
            InvalidArgumentException: only ids were requested.
        """
        return self.content_as(object)

    @property
    def expiry_time(self) -> datetime | None:
        """Time at which the document expires; None for never, or if only ids were requested."""
        return datetime.fromtimestamp(self.expiry, UTC) if self.expiry else None

    def content_as(self, as_type: type[T]) -> T:
        """Return the document converted to ``as_type`` in one pass.

        Raises:
            DecodingFailureException: the document cannot be decoded as ``as_type``.
            InvalidArgumentException: only ids were requested.
        """
        data = self.data
        if data is None:
            raise errors.InvalidArgumentException(
                "ids_only=True scans without documents; omit it to receive them too", parameter="ids_only"
            )
        return self.transcoder.decode(data, self.flags, as_type)


class ScanPage(msgspec.Struct, frozen=True):
    """Next documents of a scan."""

    items: tuple[ScanResult, ...]
    is_complete: bool
    """Whether this is the last page, so that the node has closed the scan."""


Result = (
    GetResult
    | MutationResult
    | ExistsResult
    | CounterResult
    | LookupInResult
    | MutateInResult
    | RangeScanCreated
    | ScanPage
    | CollectionsManifest
    | Done
    | PingResult
    | Ready
    | NodesServe
)
