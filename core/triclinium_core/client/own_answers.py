"""Key-value responses that belong to no open operation.

The client sent the request for itself or for an inquiry, or the operation has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import NoneType

from triclinium_core.client.wiring import Parts
from triclinium_core.contract.neutral import ReportConnection, StreamId
from triclinium_core.decoder_faults import DecoderFault
from triclinium_core.kv.operation.codec_parts import MalformedResponse
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.retry.couchbase import DispatchFailed, Status
from triclinium_core.runtime.kv.connection import in_flight
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.connection.connection_events import Answered
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.runtime.lifecycle.measured import Measured
from triclinium_core.runtime.toolkit import Toolkit


class OwnAnswers:
    """Handler of responses without an open operation.

    It passes the response to a request of the client or of an inquiry to the part that sent it, and counts orphans.
    """

    def __init__(self, parts: Parts, tools: Toolkit) -> None:
        self._connections = parts.connections
        self._keep_alive = parts.keep_alive
        self._collections = parts.collections
        self._follower = parts.follower
        self._operations = parts.operations
        self._inquiries = parts.inquiries
        self._emit = tools.emit
        self.orphans: int = 0
        """Number of responses without a recipient."""

    def answered(self, connection: Connection, answered: Answered, now: float) -> None:
        """Pass a response to the handler for the owner of its request."""
        owner = answered.request.owner
        handler = _ON_OWN_ANSWER[owner if isinstance(owner, in_flight.Purpose) else type(owner)]
        handler(self, connection, owner, answered.frame, now)

    def _on_sign_of_life(self, connection: Connection, purpose: in_flight.Purpose, frame: Frame, now: float) -> None:
        self._keep_alive.answered(connection, purpose, now)

    def _on_manifest(self, connection: Connection, purpose: in_flight.Purpose, frame: Frame, now: float) -> None:
        self._collections.manifest_received(connection, frame, now)

    def _on_config(self, connection: Connection, purpose: in_flight.Purpose, frame: Frame, now: float) -> None:
        connection.own_requests.config_answered()
        self._follower.take(connection, frame.value if frame.status == Status.SUCCESS else None, now)
        # If the node has announced a newer config than the client has now, request the config once more. A connection
        # that authenticates again keeps the announcement, and requests the config afterwards.
        if connection.state is ConnectionState.READY:
            self._keep_alive.fetch_announced(connection, now)
            connection.own_requests.forget_announced()

    def _on_opened_scan(self, connection: Connection, scan: in_flight.AbandonedScan, frame: Frame, now: float) -> None:
        self.orphans += scan.is_orphan
        self._operations.end_scan(connection, scan, frame, now)

    def _on_late_answer(self, connection: Connection, measured: Measured, frame: Frame, now: float) -> None:
        self.orphans += 1
        if in_flight.is_last(frame.opcode, frame.status):
            self._operations.orphaned(measured, frame, now)

    def _on_forgotten(self, connection: Connection, owner: None, frame: Frame, now: float) -> None:
        self.orphans += 1

    def _on_needless(self, connection: Connection, purpose: in_flight.Purpose, frame: Frame, now: float) -> None:
        """Do nothing, because no part of the client needs the response."""

    def _on_probe(self, connection: Connection, probe: in_flight.Probe, frame: Frame, now: float) -> None:
        self.orphans += not self._inquiries.answered(connection, probe, frame, now)

    def _on_node_manifest(
        self, connection: Connection, question: in_flight.ManifestQuestion, frame: Frame, now: float
    ) -> None:
        self.orphans += not self._inquiries.manifest_received(connection, question, frame, now)

    def _on_collection_id(
        self, connection: Connection, question: in_flight.CollectionQuestion, frame: Frame, now: float
    ) -> None:
        try:
            answer = self._collections.take_id(connection, question, frame)
        except MalformedResponse as error:
            # The operations stay queued for the collection id. A timer repeats the request, as after a lost response.
            self._emit(ReportConnection(StreamId(connection.stream_number), connection.node, str(error)))
            return
        except DecoderFault as fault:
            self._connections.close_after_fault(connection, fault, now)
            return
        if answer.reason is None and answer.error is None:
            self._operations.resume(answer.waiters, now)
            return
        for token in answer.waiters:
            if answer.reason is not None:
                failed = DispatchFailed(answer.reason, answer.detail, answer.error, connection.node)
                self._operations.collection_not_found(token, failed, now)
            elif answer.error is not None:
                self._operations.fail_waiting(token, answer.error, answer.detail, now)
        if answer.close_connection is not None:
            self._connections.close(connection, answer.close_connection, now)


_ON_OWN_ANSWER: Mapping[object, Callable[..., None]] = {
    in_flight.Purpose.KEEP_ALIVE: OwnAnswers._on_sign_of_life,
    in_flight.Purpose.CANARY: OwnAnswers._on_sign_of_life,
    in_flight.Purpose.CONFIG: OwnAnswers._on_config,
    in_flight.Purpose.MANIFEST: OwnAnswers._on_manifest,
    in_flight.Purpose.AUTHENTICATION: OwnAnswers._on_needless,
    in_flight.Purpose.SCAN_CANCEL: OwnAnswers._on_needless,
    in_flight.Purpose.NOT_NEEDED: OwnAnswers._on_needless,
    in_flight.AbandonedScan: OwnAnswers._on_opened_scan,
    Measured: OwnAnswers._on_late_answer,
    in_flight.CollectionQuestion: OwnAnswers._on_collection_id,
    in_flight.Probe: OwnAnswers._on_probe,
    in_flight.ManifestQuestion: OwnAnswers._on_node_manifest,
    NoneType: OwnAnswers._on_forgotten,
}
"""Handler of each response, by the purpose of the request or by the type of its owner."""
