"""Waits until every key-value node of a bucket serves the bucket, and has a new enough manifest if one is required.

The nodes are those in the bucket's newest map: the wait drops a node that leaves the map, and includes a node that
joins the map. A node serves the bucket once a connection has selected the bucket. A wait for a manifest requests the
manifest of each node, repeatedly with a backoff, until the manifest is new enough. If a node restarts, its earlier
result remains valid.

A wait that is still open after the management timeout fails. The timeout error names each node that has not met the
condition, and the reason.

Source: SDK-RFC 0049 "Controlled Backoff for Always Retry"; kv_engine ``docs/Collections.md``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from triclinium_core import decoder_faults, errors
from triclinium_core.contract.couchbase import CompleteOperation, FailOperation, ReportAnswer, TimerKind
from triclinium_core.contract.neutral import StreamId, TimerId, Token
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.codec_parts import MalformedResponse
from triclinium_core.kv.operation.inquiries import WaitForNodes
from triclinium_core.kv.operation.manifest.manifest_codec import decode_manifest
from triclinium_core.kv.operation.reports import NodesServe
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.kv.wire.frame import Frame, encode_request
from triclinium_core.kv.wire.framing_extras import server_duration
from triclinium_core.retry.backoff import controlled
from triclinium_core.retry.couchbase import TERMINAL_ERRORS, RetryReason, Service, Status, refused
from triclinium_core.runtime.kv.collection_lookups import CollectionLookups
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.connection.in_flight import ManifestQuestion
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.runtime.kv.dispatcher import dispatch_report
from triclinium_core.runtime.kv.known_cluster import KnownCluster
from triclinium_core.runtime.kv.pool.connection_texts import status_text
from triclinium_core.runtime.kv.pool.connections import Connections
from triclinium_core.runtime.toolkit import Toolkit
from triclinium_core.telemetry.attributes import answer_attributes
from triclinium_core.telemetry.tracing import AttributeValue

_NEXT_STEP = (
    "the change remains in effect: bring the node back, fail it over, or use a longer TimeoutOptions(management=...)"
)


@dataclass(slots=True)
class _LateNode:
    """Node whose manifest was requested, and which has not sent a new enough manifest."""

    requested_on: int | None = None
    """Stream of the pending or last answered request; None before the first request, and when it must be repeated."""
    reported_on: int | None = None
    """Stream of the request whose start was reported to a tracer and whose end was not; None without such a request."""
    answers: int = 0
    """Number of manifest responses from the node."""
    text: str | None = None
    """Reason why the last response did not end the wait for the node; None before the first response."""
    timer: TimerId | None = None
    """Timer for the next request; None before the first request."""


@dataclass(slots=True, eq=False)
class OpenNodeWait:
    """One open wait for the nodes of a bucket."""

    token: int
    request: WaitForNodes
    began_at: float
    timer: TimerId
    is_traced: bool
    """Whether the requests of the wait are reported to a tracer."""
    failure: errors.CouchbaseException | None = None
    """Error with which the wait must fail; None while it can succeed."""
    late: dict[Connection, _LateNode] = field(default_factory=dict)
    serving: set[Connection] = field(default_factory=set)
    """Connections whose node is done: the connection has selected the bucket and, in a wait for a manifest, the node
    has sent a new enough manifest."""


class NodeWaits:
    """All open waits for nodes, by token."""

    def __init__(
        self,
        connections: Connections,
        collections: CollectionLookups,
        cluster: KnownCluster,
        tools: Toolkit,
    ) -> None:
        self._connections = connections
        self._collections = collections
        self._own_addresses = cluster.own_addresses
        self._terminal_states = cluster.terminal_states
        self._timeouts = tools.options.timeouts
        self._timers = tools.timers
        self._emit = tools.emit
        self.open: dict[int, OpenNodeWait] = {}
        """Open waits by token."""

    def submit(self, token: int, wait: WaitForNodes, now: float, *, is_traced: bool) -> None:
        """Begin a wait, and schedule its deadline."""
        timer = self._timers.schedule(now + self._timeouts.management, TimerKind.NODES_DEADLINE, token)
        self.open[token] = OpenNodeWait(token, wait, now, timer, is_traced)

    def abandon(self, token: int) -> None:
        """Forget a wait. Ignore an unknown token."""
        wait = self.open.pop(token, None)
        if wait is not None:
            self._timers.cancel(wait.timer)
            for node in wait.late.values():
                self._timers.cancel(node.timer)

    def behind(self, token: int) -> Sequence[str]:
        """Return, in words, the nodes that have not met the condition of a wait yet."""
        wait = self.open.get(token)
        if wait is None:
            return ()
        return [
            _standing(connection, wait.late.get(connection))
            for connection in self._connections.routes.all_of(wait.request.bucket)
            if connection not in wait.serving
        ]

    def review(self, fresh: Collection[Connection], now: float) -> None:
        """Send the manifest requests that can be sent now, and end the waits that are over.

        Args:
            fresh: connections whose state changed.
        """
        for wait in list(self.open.values()):
            for connection in fresh:
                if connection.bucket == wait.request.bucket:
                    self._look_at(wait, connection, now)
            self._end_if_over(wait)

    def answered(self, connection: Connection, question: ManifestQuestion, frame: Frame, now: float) -> bool:
        """Record the manifest of a node. Return False if the wait that requested it no longer needs it."""
        wait = self.open.get(question.wait)
        node = wait.late.get(connection) if wait is not None else None
        if wait is None or node is None:
            return False
        self._timers.cancel(node.timer)
        self._end_question(wait, node, answer_attributes(server_duration(frame.framing_extras)))
        node.text = self._problem(wait.request, connection, frame, now)
        if node.text is None:
            del wait.late[connection]
            wait.serving.add(connection)
            self._end_if_over(wait)
        else:
            self._schedule_request(wait, connection, node, now + controlled(node.answers))
            node.answers += 1
        return True

    def request_again(self, wait: OpenNodeWait, connection: Connection, now: float) -> None:
        """Repeat the request to a node that has not sent a new enough manifest in time."""
        node = wait.late[connection]
        node.requested_on = None
        self._end_question(wait, node, {})
        self._look_at(wait, connection, now)
        self._end_if_over(wait)

    def deadline_passed(self, token: int, now: float) -> None:
        """Fail a wait at its deadline."""
        wait = self.open[token]
        behind, count = self.behind(token), len(self._connections.routes.all_of(wait.request.bucket))
        text = (
            f"{wait.request.name}: {len(behind)} of {count} key-value nodes of bucket {wait.request.bucket!r} "
            f"{'is' if len(behind) == 1 else 'are'} behind after {self._timeouts.management:g} s: "
            f"{'; '.join(behind)}; {_NEXT_STEP}"
        )
        context = ErrorContext(
            operation=wait.request.name,
            idempotent=wait.request.idempotent,
            bucket=wait.request.bucket,
            elapsed=now - wait.began_at,
            timeout=self._timeouts.management,
            connections=tuple(behind),
        )
        self._fail(wait, errors.AmbiguousTimeoutException(text, context))

    def unsupported(self, connection: Connection, detail: str) -> None:
        """Fail the waits for a connection whose server or bucket type the client does not support."""
        for wait in list(self.open.values()):
            if connection.bucket == wait.request.bucket and not connection.is_leaving:
                text = f"{wait.request.name}: {detail}"
                self._fail(wait, errors.UnsupportedOperationException(text, _context(wait.request, connection)))

    def _look_at(self, wait: OpenNodeWait, connection: Connection, now: float) -> None:
        if connection.is_leaving:
            wait.serving.discard(connection)
            removed = wait.late.pop(connection, None)
            if removed is not None:
                self._timers.cancel(removed.timer)
                self._end_question(wait, removed, {})
        elif connection.state is ConnectionState.LOST:
            if connection in wait.late:
                self._end_question(wait, wait.late[connection], {})
            self._connections.expect(connection, now)
        elif connection.state is ConnectionState.READY and connection not in wait.serving:
            if wait.request.manifest_uid is None:
                wait.serving.add(connection)
            elif HelloFeature.COLLECTIONS not in connection.dialect.features:
                text = f"{wait.request.name}: {connection.node} does not support collections, which need server 7.0"
                wait.failure = errors.FeatureNotAvailableException(text, _context(wait.request, connection))
            else:
                self._request_manifest(wait, connection, now)

    def _request_manifest(self, wait: OpenNodeWait, connection: Connection, now: float) -> None:
        """Request the manifest of a node, unless a request on the current stream is pending or scheduled."""
        node = wait.late.setdefault(connection, _LateNode())
        if node.requested_on == connection.stream_number:
            return
        self._timers.cancel(node.timer)
        node.requested_on, opaque = connection.stream_number, connection.in_flight.next_opaque
        frame = encode_request(Opcode.GET_COLLECTIONS_MANIFEST, opaque=opaque)
        connection.in_flight.send(ManifestQuestion(wait.token), frame)
        if wait.is_traced:
            node.reported_on = connection.stream_number
            self._emit(dispatch_report(wait.token, connection, opaque, self._own_addresses))
        # If the response is lost, the timer repeats the request.
        self._schedule_request(wait, connection, node, now + self._timeouts.kv)

    def _end_question(self, wait: OpenNodeWait, node: _LateNode, attributes: Mapping[str, AttributeValue]) -> None:
        """Report the end of a request to a tracer, if the start of the request was reported."""
        if node.reported_on is not None:
            self._emit(ReportAnswer(Token(wait.token), attributes, StreamId(node.reported_on)))
            node.reported_on = None

    def _schedule_request(self, wait: OpenNodeWait, connection: Connection, node: _LateNode, when: float) -> None:
        node.timer = self._timers.schedule(when, TimerKind.MANIFEST_QUESTION, (wait, connection))

    def _problem(self, wait: WaitForNodes, connection: Connection, frame: Frame, now: float) -> str | None:
        """Return, in words, the reason why a node's manifest does not end the wait; None if it is new enough."""
        if frame.status != Status.SUCCESS:
            return f"{connection.node}: the request for its manifest failed with status 0x{frame.status:02x}"
        try:
            manifest = decode_manifest(frame.value)
        except MalformedResponse as error:
            return f"{connection.node}: sent {error}"
        except Exception as error:
            fault = decoder_faults.unexpected(decoder_faults.Decoder.COLLECTIONS_MANIFEST, error)
            self._connections.close_after_fault(connection, fault, now)
            return f"{connection.node}: {fault}"
        if wait.manifest_uid is not None and manifest.uid < wait.manifest_uid:
            return f"{connection.node}: has manifest {manifest.uid}, but the wait is for {wait.manifest_uid}"
        self._collections.take_manifest(wait.bucket, manifest)
        return None

    def _end_if_over(self, wait: OpenNodeWait) -> None:
        connections = self._connections.routes.all_of(wait.request.bucket)
        error = wait.failure or self._obstacle(wait.request, connections)
        if error is not None:
            self._fail(wait, error)
        elif 0 < len(connections) <= len(wait.serving) and wait.serving.issuperset(connections):
            self.abandon(wait.token)
            self._emit(CompleteOperation(Token(wait.token), NodesServe(tuple(each.node for each in connections))))

    def _obstacle(self, wait: WaitForNodes, connections: Collection[Connection]) -> errors.CouchbaseException | None:
        """Return the terminal error of the bucket if one of its connections is lost and none is ready.

        Return None if a connection is ready, because the other nodes may only be late.
        """
        reason = self._terminal_states.reason_for(Service.KV, bucket=wait.bucket)
        if (
            reason is None
            and self._connections.refused
            and all(each.history.last_end.is_refused for each in connections)
        ):
            reason = RetryReason.AUTHENTICATION_ERROR
        if reason is None or self._connections.routes.ready_count(wait.bucket):
            return None
        lost = [each for each in connections if each.state is ConnectionState.LOST]
        return refused(TERMINAL_ERRORS[reason], reason, _context(wait, lost[-1])) if lost else None

    def _fail(self, wait: OpenNodeWait, error: errors.CouchbaseException) -> None:
        self.abandon(wait.token)
        self._emit(FailOperation(Token(wait.token), error))


def _standing(connection: Connection, node: _LateNode | None) -> str:
    if connection.state is not ConnectionState.READY or node is None:
        return status_text(connection)
    return node.text or f"{connection.node}: has not sent its manifest"


def _context(wait: WaitForNodes, connection: Connection) -> ErrorContext:
    return ErrorContext(
        operation=wait.name,
        idempotent=wait.idempotent,
        bucket=wait.bucket,
        last_dispatched_to=connection.node,
        last_dispatch_error=connection.history.last_end.error,
    )
