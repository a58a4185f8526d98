"""Valid causes of failures, such as the faults between clients and nodes, and their times.

Without such a cause, an operation may fail only with an error in ``ANSWERS``.

A node is *out of order* while it is dead, cut off, slow, uses an old map, or completes the commands of a client in
order, so that a delayed command or a pending durable write delays others. A stream is *suspect* once a fault struck
it, its bytes were withheld, or its node was out of order: the client may close the stream. A stream is *stuck* while
the delivered bytes end within a frame: the client waits for the rest, or closes the stream later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Set as AbstractSet
from typing import NamedTuple

from triclinium_core import errors
from triclinium_core.kv.operation.document_operations import Keyspace
from triclinium_core.kv.wire.header import MalformedFrame, scan_headers
from triclinium_core.retry.couchbase import CircuitBreakerOptions, RetryReason
from triclinium_core.testing.fakes.cluster.command_log import LoggedCommand
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.commands.index import DATA_OPCODES
from triclinium_core.testing.fakes.faults import AnswerNotMyVbucket, AnswerStatus, CommandFault, Delay, DropResponse
from triclinium_core.testing.fakes.store.cluster_map import NO_NODE, FakeMap
from triclinium_core.testing.fakes.store.documents import vbucket_of
from triclinium_core.testing.fault_catalogue import HARMLESS_STATUSES
from triclinium_core.testing.oracle.ledger import Ledger
from triclinium_core.testing.oracle.model import Model
from triclinium_core.testing.oracle.submissions import NEVER, Instant, Submission, Violation

ANSWERS = (
    errors.CasMismatchException,
    errors.DocumentExistsException,
    errors.DocumentNotFoundException,
    errors.DocumentNotLockedException,
)
"""Failures that describe the document. They need no fault, but a history in which they are possible."""

LONG_AGO: Instant = (-1.0, 0)

Revision = tuple[int, int]
"""Epoch and revision of a cluster config."""


class Outset(NamedTuple):
    """State at the submission of an operation."""

    ill: AbstractSet[int]
    """Nodes with a problem, such as a stuck stream, a connection that was not ready, or an open breaker."""
    known: Revision | None
    """Version of the config that the client had; None before its first config."""
    oldest: Revision
    """Version of the oldest config that the client may use: the config that it had, or one that a node may send."""
    is_patient: bool
    """Whether the operation's retry strategy survives faults that permit a retry."""


class Excuses:
    """Excuses for failures of all clients of one cluster, derived from calls and from the bytes that clients receive.

    Call ``look`` after each change to nodes or map, so that no state is missed.
    """

    def __init__(self, nodes: FakeNodes, model: Model, ledger: Ledger, breaker: CircuitBreakerOptions) -> None:
        self._nodes = nodes
        self._model = model
        self._ledger = ledger
        self._timeouts_least = breaker.volume_threshold * breaker.error_threshold_percentage / 100
        """Number of operations that must time out before a breaker may open."""
        self._timeouts = 0
        self._outsets: dict[int, Outset] = {}
        self._maps: list[FakeMap] = [nodes.map]
        """All maps so far, oldest first."""
        self._out_of_order: frozenset[int] = frozenset()
        self._newest: dict[int | None, Instant] = {}
        """Time of the last problem that may affect an operation without striking it, by node; None for all nodes."""
        self._dropped: dict[Keyspace, Instant] = {}
        """Time at which each dropped collection exists again on all nodes."""
        self._suspect: set[int] = set()
        self._received: defaultdict[int, bytearray] = defaultdict(bytearray)
        """Bytes received on each stream after its last whole frame."""
        self._broken: set[int] = set()
        self._withholds = False

    # Events.

    def submitted(
        self,
        submission: Submission,
        *,
        ill: AbstractSet[int] = frozenset(),
        known: Revision | None = None,
        is_patient: bool = False,
    ) -> None:
        """Record the state at the submission of an operation; see ``Outset``."""
        oldest = min(node.config_version for node in self._nodes) if known is None else known
        self._outsets[submission.token] = Outset(ill, known, oldest, is_patient)

    def struck(self, command: LoggedCommand, instant: Instant, node: int) -> None:
        """Record a command that a fault struck, and its node."""
        if command.fault is None or command.opcode not in DATA_OPCODES or not _is_of_one_operation(command.fault):
            self._newest[node] = instant
            self._suspect.add(command.connection)

    def lost(self, instant: Instant, node: int | None) -> None:
        """Record that a stream was lost, for any reason, and its node."""
        self._newest[node] = instant

    def out_of_order(self, node: int, streams: Iterable[int], instant: Instant) -> None:
        """Record that a node is out of order, or was until now, and that its streams are suspect."""
        self._newest[node] = instant
        self._suspect.update(streams)

    def withholding(self, instant: Instant) -> None:
        """Record that time begins to pass while bytes are withheld."""
        self._newest[None] = instant
        self._withholds = True

    def withheld(self, streams: Iterable[int], instant: Instant) -> None:
        """Record that the bytes of these streams were withheld up to now."""
        self._newest[None] = instant
        self._withholds = False
        self._suspect.update(streams)

    def delivered(self, stream: int, data: bytes, node: int, instant: Instant) -> None:
        """Record bytes that the client received from a node. The bytes of a fault may arrive long after it struck."""
        received = self._received[stream]
        received += data
        try:
            if fields := scan_headers(received, 0, len(received)):
                del received[: fields[-1]]
            scan_headers(received, 0, len(received))
        except MalformedFrame:
            self._broken.add(stream)
        if received and stream in self._suspect:
            self._newest[node] = instant

    def dropped(self, keyspace: Keyspace) -> None:
        """Record that a collection was dropped."""
        self._dropped[keyspace] = NEVER

    def created(self, keyspace: Keyspace, instant: Instant) -> None:
        """Record that a dropped collection was created again, and the time at which all nodes have it again."""
        self._dropped[keyspace] = instant

    def learned(self, instant: Instant) -> None:
        """Record that all nodes have the current collections."""
        for keyspace, until in self._dropped.items():
            if until != NEVER:
                self._dropped[keyspace] = min(until, instant)

    def look(self) -> AbstractSet[int]:
        """Record the map and the nodes that are out of order; return these and those of the last call."""
        if self._nodes.map is not self._maps[-1]:
            self._maps.append(self._nodes.map)
        before = self._out_of_order
        self._out_of_order = frozenset(index for index, node in enumerate(self._nodes) if self._is_wrong(node))
        return before | self._out_of_order

    # Knowledge about nodes and streams.

    def newest_at(self, nodes: Iterable[int]) -> Instant:
        """Return the time of the last problem that affected one of these nodes or all nodes."""
        return max(self._newest.get(node, LONG_AGO) for node in (None, *nodes))

    def is_out_of_order(self, index: int) -> bool:
        """Return whether a node was out of order at the last call of ``look``."""
        return index in self._out_of_order

    def is_broken(self, stream: int) -> bool:
        """Return whether the client has received bytes that do not start a frame."""
        return stream in self._broken

    def is_stuck(self, stream: int) -> bool:
        """Return whether the client has received part of a frame."""
        return bool(self._received[stream])

    # Checks for excuses.

    def check_end(self, stream: int, reason: str) -> None:
        """Raise ``Violation`` if a stream ends without an excuse."""
        if stream not in self._suspect and not self._withholds:
            raise Violation(f"the client closed stream {stream} without a cause: {reason}")

    def check_failure(self, submission: Submission, error: errors.CouchbaseException) -> None:
        """Raise ``Violation`` if an operation fails without an excuse."""
        self._timeouts += isinstance(error, errors.TimeoutException)
        if not isinstance(error, ANSWERS) and not self._is_excused(submission, error):
            raise Violation(f"{submission} failed without a cause: {type(error).__name__}: {error}")

    def _is_excused(self, submission: Submission, error: errors.CouchbaseException) -> bool:
        outset = self._outsets[submission.token]
        nodes = self.nodes_asked(submission)
        reasons = {*error.context.retry_reasons, error.context.refused_reason}
        return (
            bool(outset.ill & nodes)
            or self.newest_at(nodes) > submission.begin
            or self.had_no_node(submission)
            or self._dropped.get(submission.place.keyspace, LONG_AGO) > submission.begin
            or (self._ledger.was_struck(submission) and not outset.is_patient)
            or self._ledger.is_struck_down(submission)
            or self._model.may_be_locked(submission)
            or (RetryReason.CIRCUIT_BREAKER_OPEN in reasons and self._timeouts >= self._timeouts_least)
        )

    def nodes_asked(self, submission: Submission) -> AbstractSet[int]:
        """Return the nodes on which an operation depends: all if the client may request a map or a collection id."""
        known = self._outsets[submission.token].known
        if known is None or not submission.place.keyspace.is_default_collection:
            return set(range(len(self._nodes)))
        return {owner for owner in self._owners(submission, known) if owner != NO_NODE}

    def had_no_node(self, submission: Submission) -> bool:
        """Return whether the client's map may have had no node for the document."""
        return NO_NODE in self._owners(submission, self._outsets[submission.token].oldest)

    def _owners(self, submission: Submission, known: Revision) -> list[int]:
        vbucket = vbucket_of(submission.place.key.encode(), len(self._maps[0].owners))
        return [each.owners[vbucket] for each in self._maps if each.version >= known]

    def _is_wrong(self, node: FakeNode) -> bool:
        is_stale = node.config_version != self._nodes.map.version
        is_slow = node.network.slowness > 0 or node.holds_clients_up
        return not node.is_alive or node.network.cuts_some or is_slow or is_stale


def _is_of_one_operation(fault: CommandFault) -> bool:
    """Return whether a fault on a document command affects only this command, and not others on the connection."""
    if isinstance(fault, AnswerStatus):
        return fault.code in HARMLESS_STATUSES
    return isinstance(fault, Delay | DropResponse | AnswerNotMyVbucket)
