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
"""Version of a document: opaque, unsigned 64 bit, different after every mutation."""


class MutationToken(msgspec.Struct, frozen=True, gc=False):
    """Where a mutation stands in the history of its vbucket."""

    bucket: str
    vbucket: int
    vbucket_uuid: int
    sequence_number: int


class GetResult(msgspec.Struct, frozen=True):
    """A document that was read."""

    cas: Cas
    flags: int
    data: bytes
    """The stored bytes, inflated."""
    transcoder: Transcoder

    @property
    def content(self) -> object:
        """The document as its transcoder sees it.

        Raises:
            DecodingFailureException: the stored bytes are not what the transcoder expects.
        """
        return self.transcoder.decode(self.data, self.flags, object)

    def content_as(self, as_type: type[T]) -> T:
        """Return the document converted to ``as_type`` in one pass.

        Raises:
            DecodingFailureException: it does not fit.
        """
        return self.transcoder.decode(self.data, self.flags, as_type)


class GetReplicaResult(GetResult, frozen=True):
    """A document that was read from any of its copies; a replica may be behind the active one."""

    is_replica: bool
    """Whether it came from a replica, and not from the active copy."""


class MutationResult(msgspec.Struct, frozen=True, gc=False):
    """A mutation that was applied."""

    cas: Cas
    mutation_token: MutationToken | None = None
    """None where the server does not send one."""


class ExistsResult(msgspec.Struct, frozen=True, gc=False):
    """Whether a document exists; true and false like its ``exists``."""

    exists: bool
    cas: Cas
    """0 where it does not exist, or where a plain memcached cannot tell."""

    def __bool__(self) -> bool:
        return self.exists


class CounterResult(msgspec.Struct, frozen=True, gc=False):
    """A counter after its change."""

    content: int
    cas: Cas
    mutation_token: MutationToken | None = None


class Done(msgspec.Struct, frozen=True, gc=False):
    """Success of an operation that has nothing to return: unlock, and our own NOOP."""


class LookupInResult(msgspec.Struct, frozen=True):
    """Parts of a document that were read, in the order of the specs that asked for them."""

    cas: Cas
    specs: tuple[LookupInSpec, ...]
    outcomes: tuple[tuple[int, bytes], ...]
    """For each spec its status, and the JSON that it read."""
    transcoder: Transcoder
    context: ErrorContext
    """What errors tell of the operation."""
    is_deleted: bool = False
    """Whether the document was removed, so that this is what is left of it."""

    def content_as(self, as_type: type[T], index: int) -> T:
        """Return what the spec at ``index``, counted from 0, has read, converted to ``as_type`` in one pass.

        An ``exists`` reads a bool, a ``count`` an int. ``object`` as type means whatever is natural.

        Raises:
            InvalidArgumentException: no spec has this index.
            PathNotFoundException: there is nothing at the path; other failures of the path raise their own exceptions.
            DecodingFailureException: the value does not fit.
        """
        if self._spec(index).opcode is PathOpcode.EXISTS:
            data = b"true" if self.exists(index) else b"false"
            return self.transcoder.decode(data, JSON_FLAGS, as_type)
        status, data = self.outcomes[index]
        if status != Status.SUCCESS:
            raise self._failure(index)
        return self.transcoder.decode(data, JSON_FLAGS, as_type)

    def exists(self, index: int) -> bool:
        """Return whether there is something at the path of the spec at ``index``, counted from 0.

        Raises:
            InvalidArgumentException: no spec has this index.
            PathMismatchException: the path does not fit the document; other failures raise their own exceptions.
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
    """Parts of a document that were read from any of its copies; a replica may be behind the active one."""

    is_replica: bool
    """Whether they came from a replica, and not from the active copy."""


def as_lookup_of_copy(result: LookupInResult, *, is_replica: bool) -> LookupInReplicaResult:
    """Return what was read as one copy of several."""
    return LookupInReplicaResult(**msgspec.structs.asdict(result), is_replica=is_replica)


class MutateInResult(msgspec.Struct, frozen=True):
    """A mutation of parts of a document that was applied."""

    cas: Cas
    values: tuple[bytes | None, ...]
    """For each spec the JSON that it returned; None for those that return nothing."""
    transcoder: Transcoder
    mutation_token: MutationToken | None = None
    """None where the server does not send one."""
    is_deleted: bool = False
    """Whether the document was removed, so that only its extended attributes were changed."""

    def content_as(self, as_type: type[T], index: int) -> T:
        """Return what the spec at ``index``, counted from 0, has returned, converted to ``as_type``.

        Only ``increment`` and ``decrement`` return something: the number as it is now.

        Raises:
            InvalidArgumentException: no spec has this index, or it returns nothing.
            DecodingFailureException: the number does not fit.
        """
        data = self.values[check_integer(index, "index", 0, len(self.values) - 1)]
        if data is None:
            raise errors.InvalidArgumentException(
                f"index={index} is that of a spec that returns nothing; only increment and decrement do",
                parameter="index",
            )
        return self.transcoder.decode(data, JSON_FLAGS, as_type)


class RangeScanCreated(msgspec.Struct, frozen=True, gc=False):
    """A scan that is open on the node of its vbucket, until it is complete, cancelled or forgotten."""

    scan_id: bytes


class ScanResult(msgspec.Struct, frozen=True):
    """A document that a scan has found."""

    id: str
    """Bytes that are not UTF-8, which other clients may write, stand as lone surrogates (PEP 383)."""
    transcoder: Transcoder
    cas: Cas = Cas(0)
    """0 where only ids were asked for."""
    flags: int = 0
    expiry: int = 0
    """Unix time in seconds; 0 for never, and where only ids were asked for."""
    stored: bytes | None = None
    """The stored bytes as received; None if only ids were requested."""
    is_deflated: bool = False
    """Whether ``stored`` is still a snappy block: a large document is inflated each time ``data`` is read."""

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
                f"the document {shown(self.id)} cannot be inflated: {error}"
            ) from error

    @property
    def content(self) -> object:
        """The document as its transcoder sees it.

        Raises:
            DecodingFailureException: the stored bytes are not what the transcoder expects.
            InvalidArgumentException: only ids were asked for.
        """
        return self.content_as(object)

    @property
    def expiry_time(self) -> datetime | None:
        """When the document expires; None for never, and where only ids were asked for."""
        return datetime.fromtimestamp(self.expiry, UTC) if self.expiry else None

    def content_as(self, as_type: type[T]) -> T:
        """Return the document converted to ``as_type`` in one pass.

        Raises:
            DecodingFailureException: it does not fit.
            InvalidArgumentException: only ids were asked for.
        """
        data = self.data
        if data is None:
            raise errors.InvalidArgumentException(
                "ids_only=True scans without the documents; leave it out to have them too", parameter="ids_only"
            )
        return self.transcoder.decode(data, self.flags, as_type)


class ScanPage(msgspec.Struct, frozen=True):
    """The next documents of a scan."""

    items: tuple[ScanResult, ...]
    is_complete: bool
    """Whether they are the last ones, and the scan is closed."""


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
