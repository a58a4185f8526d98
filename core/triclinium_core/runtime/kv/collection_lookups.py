"""Requests for collection ids, and the operations that wait for the responses.

Source: decisions C8, C9 and C37; kv_engine ``docs/Collections.md``.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triclinium_core import decoder_faults, errors
from triclinium_core.contract.couchbase import TimerKind
from triclinium_core.contract.neutral import ReportConnection, StreamId
from triclinium_core.kv.operation.codec_parts import MalformedResponse
from triclinium_core.kv.operation.document_operations import DocumentOperation, Keyspace, Operation
from triclinium_core.kv.operation.manifest.collections_manifest import CollectionsManifest
from triclinium_core.kv.operation.manifest.manifest_codec import decode_manifest
from triclinium_core.kv.operation.scan.scan_requests import RangeScanCreate
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.kv.wire.frame import Frame, encode_request
from triclinium_core.retry.couchbase import OF_A_LOOKUP, RetryReason, Status
from triclinium_core.retry.couchbase.tables import kv_responses
from triclinium_core.runtime.kv.collection_ids import QUESTION_SECONDS, CollectionIds
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.connection.in_flight import CollectionQuestion, Purpose
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.runtime.kv.connection.waiting_line import WAITING_MAX
from triclinium_core.runtime.kv.known_cluster import KnownCluster
from triclinium_core.runtime.kv.pool.connections import Connections
from triclinium_core.runtime.kv.pool.keepalive import KeepAlive
from triclinium_core.runtime.toolkit import Toolkit

_MANIFEST_AND_COLLECTION = struct.Struct(">QI")


@dataclass(frozen=True, slots=True)
class CollectionAnswer:
    """Effect of a GET_COLLECTION_ID response on the operations that wait for the id.

    With neither a reason nor an error, the id is known, and the client dispatches the operations. With a reason, the
    retry strategy of each operation decides. With an error alone, the operations fail.
    """

    waiters: Sequence[int]
    reason: RetryReason | None = None
    error: type[errors.CouchbaseException] | None = None
    detail: str = ""
    close_connection: str | None = None
    """Reason to close the connection after the response; None to keep it."""


class CollectionLookups:
    """Collection ids by bucket. The client requests an id when an operation first needs it."""

    def __init__(self, connections: Connections, keep_alive: KeepAlive, cluster: KnownCluster, tools: Toolkit) -> None:
        self._connections = connections
        self._keep_alive = keep_alive
        self._terminal_states = cluster.terminal_states
        self._error_maps = cluster.error_maps
        self._timers = tools.timers
        self._emit = tools.emit
        self._collections: dict[str | None, CollectionIds] = {}

    def prefixes(self, connection: Connection) -> Mapping[Keyspace, bytes]:
        """Return the key prefixes on a connection, by keyspace. They are valid until the connection's next bootstrap.

        The mapping changes with the responses of nodes. A collection without a known id is absent.
        """
        ids = self._ids_of(connection.bucket)
        return ids.prefixes if _has_collections(connection) else ids.no_prefixes

    def prefix(self, connection: Connection, operation: Operation) -> bytes | None:
        """Return the collection prefix of an operation: None if the id is not known, empty if none is needed.

        Raises:
            FeatureNotAvailableException: the server does not support collections, and the operation is not on the
                default collection.
        """
        keyspace = operation.keyspace
        if not keyspace.is_default_collection and not _has_collections(connection):
            raise errors.FeatureNotAvailableException(
                f"{keyspace.scope}.{keyspace.collection} is a collection, and this server "
                "does not support collections; use the default collection"
            )
        if not isinstance(operation, DocumentOperation | RangeScanCreate):
            return b""
        return self.prefixes(connection).get(keyspace)

    def wait(self, connection: Connection, keyspace: Keyspace, token: int, now: float) -> bool:
        """Queue ``token`` until the collection id is known, and request the id unless a recent request is pending.

        Returns:
            True if the operation is queued; False if the queue is full (decision C37).
        """
        ids = self._ids_of(keyspace.bucket)
        if ids.waiting(keyspace) >= WAITING_MAX:
            return False
        if ids.wait(keyspace, token, now, connection):
            self._request_id(connection, CollectionQuestion(keyspace), now)
        return True

    def question_overdue(self, connection: Connection, question: CollectionQuestion, now: float) -> None:
        """Request a collection id again if operations are queued for it, from another node if one is ready."""
        ids = self._collections.get(connection.bucket)
        # Prefer another node: a node that does not respond must not delay operations on documents on other nodes.
        source = self._connections.routes.ready_after(connection)
        if source is None and connection.state is ConnectionState.AUTHENTICATING and connection.is_in_use:
            self._timers.schedule(now + QUESTION_SECONDS, TimerKind.COLLECTION_QUESTION, (connection, question))
            return
        if ids is None or source is None or not ids.request_again(question.keyspace, now, source):
            return
        if self._keep_alive.may_request_again(source, now):
            self._request_id(source, question, now)

    def _request_id(self, connection: Connection, question: CollectionQuestion, now: float) -> None:
        path = _path(question.keyspace)
        frame = encode_request(Opcode.GET_COLLECTION_ID, opaque=connection.in_flight.next_opaque, value=path.encode())
        connection.in_flight.send(question, frame)
        self._timers.schedule(now + QUESTION_SECONDS, TimerKind.COLLECTION_QUESTION, (connection, question))

    def take_id(self, connection: Connection, question: CollectionQuestion, frame: Frame) -> CollectionAnswer:
        """Process a GET_COLLECTION_ID response, and return its effect on the queued operations.

        Raises:
            MalformedResponse: the response has neither an id nor a valid error status. The operations stay queued.
            DecoderFault: the decoder failed. The operations stay queued.
        """
        connection.own_requests.answered()
        keyspace = question.keyspace
        bucket, scope, collection = keyspace.bucket, keyspace.scope, keyspace.collection
        ids, path = self._ids_of(bucket), _path(keyspace)
        entry = self._error_maps.entry(connection.node, frame.status)
        verdict = kv_responses.classify("get_collection_id", frame.status, entry)
        if verdict.error is errors.DecodingFailureException:
            raise MalformedResponse(f"sent a get_collection_id response with the invalid status 0x{frame.status:02x}")
        if verdict.is_success:
            collection_id = _collection_id(frame)
            self._terminal_states.collection_found(bucket, scope, collection)
            answer = CollectionAnswer(ids.found(keyspace, collection_id))
            # The connection is not ready if an earlier response in the same bytes has closed the stream, or if it
            # reauthenticates.
            if connection.state is ConnectionState.READY and ids.has_to_be_reviewed():
                request = encode_request(Opcode.GET_COLLECTIONS_MANIFEST, opaque=connection.in_flight.next_opaque)
                connection.in_flight.send(Purpose.MANIFEST, request)
            return answer
        waiters = ids.missing(keyspace)
        detail = f"{connection.node}: bucket {bucket!r} has no collection {path}"
        if frame.status == Status.UNKNOWN_COLLECTION:
            self._terminal_states.collection_missing(bucket, scope, collection)
            return CollectionAnswer(waiters, RetryReason.COLLECTION_NOT_FOUND, detail=detail)
        if frame.status == Status.UNKNOWN_SCOPE:
            detail = f"{connection.node}: bucket {bucket!r} has no scope {scope}"
            self._terminal_states.scope_missing(bucket, scope)
            return CollectionAnswer(waiters, RetryReason.SCOPE_NOT_FOUND, detail=detail)
        detail = f"{connection.node}: the request for the id of {path} failed with status 0x{frame.status:02x}"
        # A lookup concerns no document, so ignore a retry reason that applies only to documents.
        reason = verdict.reason if verdict.reason in OF_A_LOOKUP else None
        return CollectionAnswer(waiters, reason, verdict.error, detail, verdict.close_connection)

    def outdated(self, keyspace: Keyspace) -> None:
        """Forget a collection id that a node has rejected (decision C9)."""
        ids = self._collections.get(keyspace.bucket)
        if ids is not None:
            ids.outdated(keyspace)

    def manifest_received(self, connection: Connection, frame: Frame, now: float) -> None:
        """Drop the ids that differ from the manifest in a response. Ignore a response with an error status."""
        if frame.status != Status.SUCCESS:
            return
        try:
            manifest = decode_manifest(frame.value)
        except MalformedResponse as error:
            text = f"sent {error}"
            self._emit(ReportConnection(StreamId(connection.stream_number), connection.node, text))
        except Exception as error:
            fault = decoder_faults.unexpected(decoder_faults.Decoder.COLLECTIONS_MANIFEST, error)
            self._connections.close_after_fault(connection, fault, now)
        else:
            self.take_manifest(connection.bucket, manifest)

    def take_manifest(self, bucket: str | None, manifest: CollectionsManifest) -> None:
        """Drop the collection ids that differ from a manifest, before a node rejects them."""
        ids = self._collections.get(bucket)
        if ids is not None:
            ids.agree({(scope.name, each.name): each.id for scope in manifest.scopes for each in scope.collections})

    def stop_waiting(self, keyspace: Keyspace, token: int) -> None:
        """Remove an operation from the queue for a collection id."""
        ids = self._collections.get(keyspace.bucket)
        if ids is not None:
            ids.stop_waiting(keyspace, token)

    def connection_lost(self, connection: Connection) -> Sequence[int]:
        """Drop the id requests pending on a connection. Return the tokens of the operations that wait for these ids."""
        ids = self._collections.get(connection.bucket)
        return ids.connection_lost(connection) if ids is not None else ()

    def forget_bucket(self, bucket: str) -> None:
        """Drop the collection ids of a bucket (decision C7)."""
        self._collections.pop(bucket, None)

    def _ids_of(self, bucket: str | None) -> CollectionIds:
        ids = self._collections.get(bucket)
        if ids is None:
            ids = self._collections[bucket] = CollectionIds(bucket)
        return ids


def _collection_id(frame: Frame) -> int:
    """Return the collection id in a response.

    Raises:
        MalformedResponse: the response has no id.
        DecoderFault: the decoder failed.
    """
    try:
        return _decode_collection_id(frame)
    except MalformedResponse:
        raise
    except Exception as error:
        raise decoder_faults.unexpected(decoder_faults.Decoder.COLLECTION_ID, error) from None


def _decode_collection_id(frame: Frame) -> int:
    if frame.status != Status.SUCCESS or len(frame.extras) != _MANIFEST_AND_COLLECTION.size:
        raise MalformedResponse(
            f"sent an invalid get_collection_id response (status 0x{frame.status:02x}, extras of size "
            f"{len(frame.extras)}; expected status 0x00, extras of size 12)"
        )
    _, collection_id = _MANIFEST_AND_COLLECTION.unpack(frame.extras)
    return int(collection_id)


def _has_collections(connection: Connection) -> bool:
    return HelloFeature.COLLECTIONS in connection.dialect.features


def _path(keyspace: Keyspace) -> str:
    return f"{keyspace.scope}.{keyspace.collection}"
