"""A simulation in which every event and every action is held against what may be: the laws of a key-value client.

*Safety*: an operation settles exactly once, never after it was abandoned, and what its caller is told fits a history
(``model``); nothing is applied twice, lost after it was acknowledged, applied after it was denied, or sent more often than
reported (``ledger``). *Liveness*: without trouble there is no excuse (``troubles``): no timeout, no cancellation, no closed
connection; after its deadline no operation is open, and time never stands still.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence, Set as AbstractSet

from triclinium_core.errors import (
    AmbiguousTimeoutException,
    CasMismatchException,
    CouchbaseException,
    DocumentExistsException,
    DocumentNotFoundException,
    DocumentNotLockedException,
    TimeoutException,
)
from triclinium_core.kv.actions import (
    Action,
    CloseStream,
    CompleteOperation,
    FailOperation,
    OpenStream,
    ReportRetry,
    SendBytes,
)
from triclinium_core.kv.connection_texts import LEFT_THE_MAP
from triclinium_core.kv.events import (
    Event,
    LossCause,
    OperationAbandoned,
    OperationSubmitted,
    StreamId,
    StreamLost,
    Token,
)
from triclinium_core.kv.node.states import NodeState
from triclinium_core.kv.operation.operation import timeout_of
from triclinium_core.kv.operation.requests import Keyspace
from triclinium_core.kv.topology.connection_string import parse_connection_string
from triclinium_core.options import ClientOptions
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.couchbase.circuit_breaker import BreakerState
from triclinium_core.retry.couchbase.strategy import (
    TERMINAL_ERRORS,
    AnyRetryStrategy,
    BestEffortRetryStrategy,
    ErrorMapRetryStrategy,
    FastFailOnTerminalErrorRetryStrategy,
)
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.testing.fakes.cluster.command_log import LoggedCommand
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.store.config import address_of
from triclinium_core.testing.oracle.excuses import LONG_AGO, Excuses
from triclinium_core.testing.oracle.ledger import CHANGING_OPCODES, Ledger
from triclinium_core.testing.oracle.model import Model
from triclinium_core.testing.oracle.outages import Outages, Revision
from triclinium_core.testing.oracle.submissions import NEVER, Instant, Submission, Violation
from triclinium_core.testing.simulation.simulation import Simulation

TICKS_MAX = 1_000
"""More ticks than this at one moment, and time stands still."""

_ANSWERS = (
    CasMismatchException,
    DocumentExistsException,
    DocumentNotFoundException,
    DocumentNotLockedException,
)
"""Failures that are what the caller asked for: they need no excuse, but a history."""


class CheckedSimulation(Simulation):
    """A ``Simulation`` that raises ``Violation`` as soon as the client breaks a law.

    Args:
        node: the peer, or all nodes of a cluster; nobody but this client, or these, may change their documents.
        options: what the client is told.
        collection_ids: of all collections that operations will name.
        rng: randomness of the client.
        clients: how many there are.
    """

    def __init__(
        self,
        node: FakeNode | FakeNodes,
        options: ClientOptions,
        collection_ids: Mapping[Keyspace, int],
        *,
        rng: Random | None = None,
        clients: int = 1,
    ) -> None:
        super().__init__(node, options, rng=rng, clients=clients)
        self.options = options
        self._timeouts_given = parse_connection_string(options.connection_string).timeouts(options.timeouts)
        self._deadlines: dict[int, float] = {}
        """Of the operations that are open, by token."""
        self.model: Model = Model()
        self.ledger: Ledger = Ledger(collection_ids)
        self.troubles: Excuses = Excuses()
        self.outages: Outages = Outages(self.nodes)
        self._began_ill: dict[int, AbstractSet[int]] = {}
        """By token, the nodes whose connections were not ready when an operation was submitted."""
        self._known: dict[int, Revision | None] = {}
        """By token, the revision of the config that a client knew when it was asked; None for none."""
        self._oldest: dict[int, Revision] = {}
        """By token, the revision of the oldest config that a client may go by: what it knew, or what a node tells."""
        self._node_of: dict[int, int] = {}
        """By stream, the node that it leads to."""
        self._left: set[int] = set()
        """Streams to nodes that have left the map."""
        self._dropped: dict[Keyspace, Instant] = {}
        """Until when a collection was not there."""
        self._strategies: dict[int, AnyRetryStrategy] = {}
        self._commands_read = [0] * len(self.nodes)
        self._index_of = {id(node): index for index, node in enumerate(self.nodes)}
        self._index_at = {
            address_of(node.options.host, node.options.port): index for index, node in enumerate(self.nodes)
        }
        self._timeouts = 0
        self._ticks = 0
        self._ticked_at = -1.0

    @property
    def is_quiet(self) -> bool:
        """Whether no byte is under way, and no stream."""
        return next(self._busy_links(), None) is None

    @property
    def is_healthy(self) -> bool:
        """Whether every connection is ready to serve."""
        connections = self.machine.statistics().connections
        return (
            self.is_quiet
            and not any(self.troubles.is_stuck(stream) for stream in self.links)
            and all(connection.state == NodeState.READY.name for connection in connections)
            and not self._open_breakers()
        )

    def describe(self) -> str:
        """Return what is not as it should be, for a failing example."""
        connections = self.machine.statistics().connections
        states = [f"{connection.bucket}: {connection.state}, {connection.last_error}" for connection in connections]
        stuck = [f"stream {stream} is within a frame" for stream in self.links if self.troubles.is_stuck(stream)]
        return "; ".join([*states, *map(str, self._open_breakers()), *stuck, *map(repr, self.model.open)])

    def look_around(self) -> None:
        """Take note of how nodes and map are: after each change of them, and before anybody is blamed."""
        instant = self.model.instant()
        for index in self.outages.look():
            streams = [stream for stream in self.links if self._node_of.get(stream) == index]
            self.troubles.out_of_order(index, streams, instant)

    def drop_collection(self, keyspace: Keyspace) -> None:
        """Drop a collection, with all its documents."""
        self.nodes.collections.drop(keyspace.scope, keyspace.collection)
        self.model.dropped(keyspace)
        self._dropped[keyspace] = NEVER

    def create_collection(self, keyspace: Keyspace) -> None:
        """Create a collection that was dropped; it is another one, and empty."""
        self.ledger.renamed(keyspace, self.nodes.collections.create(keyspace.scope, keyspace.collection))
        self._dropped[keyspace] = self.model.instant()

    def open(self, stream: StreamId) -> None:
        """Let a connect succeed or fail; one to a node that is not as it should be may be given up."""
        index = self._node_of.get(stream)
        if index is not None and self.outages.is_out_of_order(index):
            self.troubles.out_of_order(index, [stream], self.model.instant())
        super().open(stream)

    def hand_over(self, stream: StreamId, size: int | None = None) -> None:
        """Let the node have bytes, and read what it notes of them."""
        super().hand_over(stream, size)
        self.ledger.left(stream, self.links[stream].handed_over)
        self._read_logs()

    def deliver(self, stream: StreamId, size: int | None = None) -> None:
        """Let the client have bytes, and see whether they make whole frames."""
        # A durable write that had to wait is logged when it is settled.
        self._read_logs()
        self.troubles.delivered(stream, bytes(self.links[stream].incoming[:size]))
        super().deliver(stream, size)
        if stream in self.links and self.troubles.is_broken(stream):
            raise Violation(f"the client goes on reading stream {stream}, which has bytes that are no frame")

    def tick(self) -> None:
        """Tell client and node what time it is, and check that this is the end of what was due."""
        super().tick()
        self._read_logs()
        self._ticks = self._ticks + 1 if self._ticked_at == self.now else 0
        self._ticked_at = self.model.now = self.now
        if self._ticks > TICKS_MAX:
            raise Violation(f"at {self.now:.6f} s the client is due again and again")
        for token, deadline in self._deadlines.items():
            if deadline < self.now:
                raise Violation(f"{self.model.submissions.get(token, f'operation {token}')} is open after its deadline")

    def advance(self, seconds: float) -> None:
        """Let time pass while no byte moves."""
        self.troubles.withholding(self.model.instant())
        super().advance(seconds)
        self.model.now = self.now
        self.troubles.withheld((stream for stream, _ in self._busy_links()), self.model.instant())

    def flow_for(self, seconds: float) -> None:
        """Let time pass while everything moves as soon as it can."""
        end = self.now + seconds
        self.flow()
        while (instant := self.wakeup) <= end:
            self.now = max(self.now, instant)
            self.flow()
        self.now: float = end
        self.model.now = end

    def check_frames(self) -> None:
        """Check, once nothing is under way, that frames, retries and results agree."""
        self.model.quieted()
        self.ledger.check_frames()

    def _handle(self, event: Event) -> Sequence[Action]:
        """Feed an event to the client, carry out what it orders, and check both."""
        self.model.now = self.now
        match event:
            case OperationSubmitted(token, operation, strategy):
                self._began_ill[token] = self._ill_nodes()
                known = self._known[token] = self._revision_known(token)
                self._oldest[token] = self.outages.oldest_told() if known is None else known
                self._deadlines[token] = self.now + timeout_of(operation, self._timeouts_given)
                self._strategies[token] = self.options.retry_strategy if strategy is None else strategy
                submission = self.model.submitted(token, operation)
                if submission is not None:
                    self.ledger.submitted(submission, self._deadlines[token])
            case OperationAbandoned(token):
                self._deadlines.pop(token, None)
                self._abandon(token)
            case StreamLost(stream, cause, _, handed_over):
                self._lose(stream, sys.maxsize if handed_over is None else handed_over)
                if cause is LossCause.END_OF_STREAM:
                    self.troubles.check_end(stream, "the node hung up")
            case _:
                pass
        actions = super()._handle(event)
        for action in actions:
            self._check(action)
        return actions

    def _check(self, action: Action) -> None:
        if isinstance(action, CompleteOperation | FailOperation):
            self._deadlines.pop(action.token, None)
        match action:
            case SendBytes(stream, data):
                self.ledger.ordered(stream, data)
            case CloseStream(stream, reason):
                if len(self.nodes) > 1 and reason == LEFT_THE_MAP:
                    self._left.add(stream)
                else:
                    self.troubles.check_end(stream, reason)
            case ReportRetry(token) if token in self.model.submissions:
                self.ledger.retried(self.model.submissions[token], action, self.now)
            case CompleteOperation(token, result) if token in self.model.submissions:
                submission = self._settled(token)
                self.ledger.completed(submission)
                if self.ledger.was_forged(submission):
                    self.model.abandoned(token, ambiguous=True)
                else:
                    self.model.completed(token, result)
            case FailOperation(token, error) if token in self.model.submissions:
                submission = self._settled(token)
                self.ledger.failed(submission, error)
                self.model.failed(token, error)
                self._check_excuse(submission, error)
            case _:
                pass

    def _carry_out(self, action: Action) -> None:
        super()._carry_out(action)
        if isinstance(action, OpenStream):
            node = self.links[action.stream].node
            if node is not None:
                self._node_of[action.stream] = self._index_of[id(node)]

    def _read_logs(self) -> None:
        for index, node in enumerate(self.nodes):
            self._read_commands(index, node.command_log[self._commands_read[index] :])
            self._commands_read[index] = len(node.command_log)

    def _read_commands(self, node: int, commands: Sequence[LoggedCommand]) -> None:
        for command in commands:
            instant = self.model.instant()
            if command.fault is not None:
                self.troubles.struck(command, instant, node)
            self.ledger.commanded(command, instant)

    def _settled(self, token: Token) -> Submission:
        submission = self.model.submissions[token]
        if not submission.is_open:
            raise Violation(f"{submission} is settled although its caller has left")
        return submission

    def _abandon(self, token: Token) -> None:
        submission = self.model.submissions.get(token)
        if submission is not None and submission.is_open:
            is_ambiguous = self.machine.is_ambiguous(token)
            self.model.abandoned(token, ambiguous=is_ambiguous)
            self.ledger.abandoned(submission, ambiguous=is_ambiguous)

    def _lose(self, stream: StreamId, handed_over: int) -> None:
        self.ledger.left(stream, handed_over)
        if stream not in self._left:
            self.troubles.lost(self.model.instant(), self._node_of.get(stream))

    def _check_excuse(self, submission: Submission, error: CouchbaseException) -> None:
        self._check_refusal(submission, error.context.refused_reason)
        if isinstance(error, AmbiguousTimeoutException) and not _may_change(submission):
            raise Violation(f"{submission} changes nothing, and still its timeout is called ambiguous")
        self._timeouts += isinstance(error, TimeoutException)
        if not isinstance(error, _ANSWERS) and not self._is_excused(submission, error):
            raise Violation(f"{submission} failed though nothing was wrong: {type(error).__name__}: {error}")

    def _check_refusal(self, submission: Submission, refused: str | None) -> None:
        if refused is None:
            return
        reason, strategy = RetryReason[refused], self._strategies[submission.token]
        if reason.always_retry:
            raise Violation(f"{submission} is not retried for {reason}, which is always retried")
        if isinstance(strategy, BestEffortRetryStrategy):
            is_forbidden = _may_change(submission) and not reason.allows_non_idempotent_retry
            is_terminal = isinstance(strategy, FastFailOnTerminalErrorRetryStrategy) and reason in TERMINAL_ERRORS
            if not is_forbidden and not is_terminal:
                raise Violation(f"{submission} is not retried for {reason}, although its strategy wants it")

    def _is_excused(self, submission: Submission, error: CouchbaseException) -> bool:
        self.look_around()
        is_patient = isinstance(self._strategies[submission.token], BestEffortRetryStrategy | ErrorMapRetryStrategy)
        nodes = self._nodes_of(submission)
        return (
            bool(self._began_ill[submission.token] & nodes)
            or self.troubles.newest_at(nodes) > submission.begin
            or self._had_no_node(submission)
            or self._dropped.get(submission.place.keyspace, LONG_AGO) > submission.begin
            or (self.ledger.was_struck(submission) and not is_patient)
            or self.ledger.is_struck_down(submission)
            or self.model.may_be_locked(submission)
            or self._is_excused_by_breaker(error)
        )

    def _had_no_node(self, submission: Submission) -> bool:
        return self.outages.had_no_node(submission.place.key, self._oldest[submission.token])

    def _nodes_of(self, submission: Submission) -> AbstractSet[int]:
        """Return the nodes that an operation has to do with: any may be asked for a map or for a collection's id."""
        known = self._known[submission.token]
        if known is None or not submission.place.keyspace.is_default_collection:
            return set(range(len(self.nodes)))
        return self.outages.nodes_of(submission.place.key, known)

    def _revision_known(self, token: Token) -> Revision | None:
        connections = self.clients[token % len(self.clients)].statistics().connections
        return next((each.config_revision for each in connections if each.bucket is not None), None)

    def _ill_nodes(self) -> AbstractSet[int]:
        """Return the nodes to which some connection is not ready to serve."""
        everywhere = set(range(len(self.nodes)))
        if len(self.nodes) == 1:
            return set() if self.is_healthy else everywhere
        ill = {self._node_of[stream] for stream in self.links if self.troubles.is_stuck(stream)}
        for connection in self.machine.statistics().connections:
            is_closed = connection.circuit_breaker is None or connection.circuit_breaker.state is BreakerState.CLOSED
            if connection.state != NodeState.READY.name or not is_closed:
                ill.add(self._index_at[connection.node])
        return ill

    def _is_excused_by_breaker(self, error: CouchbaseException) -> bool:
        options = self.options.circuit_breaker
        reasons = {*error.context.retry_reasons, error.context.refused_reason}
        failures_least = options.volume_threshold * options.error_threshold_percentage / 100
        return RetryReason.CIRCUIT_BREAKER_OPEN in reasons and self._timeouts >= failures_least

    def _open_breakers(self) -> list[BreakerState]:
        breakers = [connection.circuit_breaker for connection in self.machine.statistics().connections]
        return [breaker.state for breaker in breakers if breaker and breaker.state is not BreakerState.CLOSED]


def _may_change(submission: Submission) -> bool:
    return submission.operation.opcode in CHANGING_OPCODES
