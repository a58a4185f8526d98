"""Simulation that checks every event and action against the laws of a client.

*Safety*: an operation settles exactly once, never after it was abandoned, and its result fits a history (``model``);
no write is applied twice, lost after it was acknowledged, or applied although the client reported it as not applied,
and no operation is sent more often than the client reports (``ledger``). *Liveness*: no operation fails, times out or
is cancelled, and no connection closes, without an excuse (``excuses``); no operation is open after its deadline, and
time never stands still.

Requests to services have similar laws (``requests``), and separate streams with their own rules. Token strategies have
laws too (``loans``) if they are, or wrap, a ``CheckedStrategy``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence, Set as AbstractSet
from types import MappingProxyType

from triclinium_core import errors
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.client.health.statistics import ConnectionStatistics
from triclinium_core.contract import couchbase, neutral
from triclinium_core.kv.address import Address
from triclinium_core.kv.operation.document_operations import Keyspace
from triclinium_core.kv.operation.operation import timeout_of
from triclinium_core.kv.topology.connection_string import parse_connection_string
from triclinium_core.options import ClientOptions
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.combined.permits import AsyncPermit
from triclinium_core.retry.combined.strategies import AnyRetryStrategy, TokenScope
from triclinium_core.retry.couchbase import (
    TERMINAL_ERRORS,
    BestEffortRetryStrategy,
    BreakerState,
    ErrorMapRetryStrategy,
    FastFailOnTerminalErrorRetryStrategy,
    RetryReason,
    RetryRequest,
    Service,
)
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.runtime.kv.pool.connection_texts import LEFT_THE_MAP
from triclinium_core.testing.fakes.cluster.command_log import LoggedCommand
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.oracle.checked_strategies import AwaitedStrategy, CheckedStrategy
from triclinium_core.testing.oracle.excuses import ANSWERS, Excuses, Revision
from triclinium_core.testing.oracle.ledger import Ledger
from triclinium_core.testing.oracle.loans import LoanBook
from triclinium_core.testing.oracle.model import Model
from triclinium_core.testing.oracle.request_book import RequestBook
from triclinium_core.testing.oracle.submissions import Submission, Violation
from triclinium_core.testing.request_templates import DrawnRequest
from triclinium_core.testing.simulation.consultations import Consultations, Question
from triclinium_core.testing.simulation.simulation import MIDPOINT, Simulation
from triclinium_core.testing.tapes import MakeMachine

TICKS_MAX = 1_000
"""Maximum number of ticks at one moment; with more, time stands still."""

RECOVERY_SECONDS = 60.0
"""Longest chain of waits after the last fault plus a margin: connect, silence, keep-alive, backoff, breaker, canary."""
RECOVERY_STEP = 0.5


class CheckedSimulation(Simulation):
    """A ``Simulation`` that raises ``Violation`` as soon as the client breaks a law.

    Only its clients may change the documents; ``collection_ids`` must contain all collections that they name. ``loans``
    records the tokens of the clients' token strategies, each of which must be a ``CheckedStrategy`` or wrap one.
    """

    def __init__(
        self,
        node: FakeNode | FakeNodes,
        options: ClientOptions,
        collection_ids: Mapping[Keyspace, int],
        *,
        rng: Random = MIDPOINT,
        clients: int = 1,
        loans: LoanBook | None = None,
        make_machine: MakeMachine = ClientMachine,
    ) -> None:
        super().__init__(node, options, rng=rng, clients=clients, is_traced=True, make_machine=make_machine)
        self.options = options
        self.loans: LoanBook = LoanBook() if loans is None else loans
        self.consultations: Consultations = Consultations(self.loans)
        self._timeouts_given = parse_connection_string(options.connection_string).timeouts(options.timeouts)
        self._deadlines: dict[int, float] = {}
        """Deadlines of the open operations, by token."""
        self.model: Model = Model()
        self.ledger: Ledger = Ledger(collection_ids)
        self.excuses: Excuses = Excuses(self.nodes, self.model, self.ledger, options.circuit_breaker)
        breaker = options.circuit_breaker
        self.requests: RequestBook = RequestBook(breaker.volume_threshold * breaker.error_threshold_percentage / 100)
        self._of_services: set[int] = set()
        """Streams to HTTP services."""
        self._requests_read = [0] * len(self.nodes)
        self._node_of: dict[int, int] = {}
        """Node of each stream."""
        self._left: set[int] = set()
        """Streams to nodes that have left the map."""
        self._strategies: dict[int, AnyRetryStrategy] = {}
        self._borrowers: set[int] = set()
        """Operations and requests with a checked token strategy."""
        self._commands_read = [0] * len(self.nodes)
        self._index_of = {id(node): index for index, node in enumerate(self.nodes)}
        self._index_at = {
            str(Address(node.options.host, node.options.port)): index for index, node in enumerate(self.nodes)
        }
        self._is_closing = False
        """Whether the application is closing a client."""
        self._ticks = 0
        self._ticked_at = -1.0

    @property
    def is_quiet(self) -> bool:
        """Whether no connect is in progress and no bytes are in transit, except to clients that have paused reading."""
        return next(self._busy_links(), None) is None

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is in transit, every connection is ready, and every circuit breaker is closed."""
        if not self.is_quiet or any(self.excuses.is_stuck(stream) for stream in self.links):
            return False
        connections = self.machine.statistics().connections
        return not _open_breakers(connections) and all(
            connection.state == ConnectionState.READY.name for connection in connections
        )

    def describe(self) -> str:
        """Return a description of the problems, which a failing example shows."""
        connections = self.machine.statistics().connections
        states = [f"{connection.bucket}: {connection.state}, {connection.last_error}" for connection in connections]
        stuck = [f"stream {stream} is within a frame" for stream in self.links if self.excuses.is_stuck(stream)]
        return "; ".join([*states, *map(str, _open_breakers(connections)), *stuck, *map(repr, self.model.open)])

    def look_around(self) -> None:
        """Record the state of nodes and map. Call this after each of their changes, and before judging a failure."""
        instant = self.model.instant()
        for index in self.excuses.look():
            streams = [stream for stream in self.links if self._node_of.get(stream) == index]
            self.excuses.out_of_order(index, streams, instant)

    def drop_collection(self, keyspace: Keyspace) -> None:
        """Drop a collection with all its documents."""
        self.nodes.collections.drop(keyspace.scope, keyspace.collection)
        self.model.dropped(keyspace)
        self.excuses.dropped(keyspace)

    def create_collection(self, keyspace: Keyspace, late: Mapping[int, float] = MappingProxyType({})) -> None:
        """Create a dropped collection again. The new collection has another id and is empty.

        Args:
            late: seconds until a node learns of the collection, by node; all other nodes learn of it immediately.
        """
        for index, seconds in late.items():
            self.nodes.learn_late(index, seconds)
        self.ledger.renamed(keyspace, self.nodes.collections.create(keyspace.scope, keyspace.collection))
        now, count = self.model.instant()
        self.excuses.created(keyspace, (now + max(late.values(), default=0.0), count))

    def learn_at_once(self) -> None:
        """Let all nodes learn of all past and future changes to collections immediately."""
        for index in range(len(self.nodes)):
            self.nodes.learn_late(index, 0)
        self.excuses.learned(self.model.instant())

    def close_client(self, index: int) -> None:
        """Close a client during its work, as an application would, and open another client in its place.

        Its waiting callers leave. Afterwards the client may have nothing open, and may send nothing.
        """
        waiting = [*(each.token for each in self.model.open), *(each.token for each in self.requests.open)]
        self._is_closing = True
        for token in waiting:
            if token % len(self.clients) == index:
                self.abandon(neutral.Token(token))
        self._is_closing = False
        left_over = self.clients[index].statistics().open_operations
        if left_over:
            raise Violation(f"the client is closed, but its number of open operations is {left_over}")
        self.replace_client(index)

    def ask(
        self, drawn: DrawnRequest, *, retry_strategy: AnyRetryStrategy | None = None, reads_slowly: bool
    ) -> neutral.Token:
        """Submit a service request for a user, and return its token.

        Args:
            reads_slowly: whether the reader requests more rows only if the test calls ``read_on``.
        """
        token = self._new_token()
        strategy = self.options.retry_strategy if retry_strategy is None else retry_strategy
        self.model.now = self.now
        self._take_strategy(token, strategy)
        is_patient = isinstance(strategy, BestEffortRetryStrategy | ErrorMapRetryStrategy)
        is_ill = bool(self._ill_nodes())
        self.requests.submitted(token, drawn, self.model.instant(), is_patient=is_patient, is_ill=is_ill)
        if reads_slowly:
            self.slow_readers.add(token)
        self.feed(couchbase.RequestSubmitted(token, drawn.request, retry_strategy, is_traced=self.is_traced))
        return token

    def go_on(self, token: neutral.Token) -> None:
        """Continue the pending call of a strategy about an operation."""
        self.loans.now = self.now
        decided = self.consultations.go_on(token)
        if decided is not None:
            self.feed(decided)

    def open(self, stream: neutral.StreamId) -> None:
        """Let a connect succeed or fail. The client may abandon a connect to a node that is out of order."""
        index = self._node_of.get(stream)
        if index is not None and self.excuses.is_out_of_order(index):
            self.excuses.out_of_order(index, [stream], self.model.instant())
        super().open(stream)

    def hand_over(self, stream: neutral.StreamId, size: int | None = None) -> None:
        """Pass bytes to the node, and read its logs."""
        super().hand_over(stream, size)
        handed_over = self.links[stream].handed_over
        if stream in self._of_services:
            self.requests.left(stream, handed_over)
        else:
            self.ledger.left(stream, handed_over)
        self._read_logs()

    def deliver(self, stream: neutral.StreamId, size: int | None = None) -> None:
        """Pass bytes to the client, and check that the client closes a stream with invalid frames."""
        # The node logs a held durable write only when the write is settled, so read the logs again.
        self._read_logs()
        data = bytes(self.links[stream].incoming[:size])
        if stream in self._of_services:
            self.requests.delivered(stream, len(data), is_paused=self.links[stream].is_paused)
            super().deliver(stream, size)
            return
        self.excuses.delivered(stream, data, self._node_of[stream], self.model.instant())
        super().deliver(stream, size)
        if stream in self.links and self.excuses.is_broken(stream):
            raise Violation(f"the client continues to read stream {stream}, which has bytes that are not a frame")

    def tick(self) -> None:
        """Pass the time to client and nodes. Check deadlines, paused streams, and that time does not stand still."""
        super().tick()
        self._read_logs()
        self._ticks = self._ticks + 1 if self._ticked_at == self.now else 0
        self._ticked_at = self.model.now = self.now
        if self._ticks > TICKS_MAX:
            raise Violation(f"the client is repeatedly due at {self.now:.6f} s")
        for token, deadline in self._deadlines.items():
            if deadline < self.now:
                raise Violation(f"{self.model.submissions.get(token, f'operation {token}')} is open after its deadline")
        self.requests.check_pauses(stream for stream, link in self.links.items() if link.is_paused)

    def advance(self, seconds: float) -> None:
        """Let time pass while no byte moves."""
        self.excuses.withholding(self.model.instant())
        super().advance(seconds)
        self.model.now = self.now
        self.excuses.withheld((stream for stream, _ in self._busy_links()), self.model.instant())

    def flow_for(self, seconds: float) -> None:
        """Let time pass while all bytes move as soon as possible."""
        end = self.now + seconds
        self.flow()
        while (instant := self.wakeup) <= end:
            self.now = max(self.now, instant)
            self.flow()
        self.now: float = end
        self.model.now = end

    def recover(self, submit: Callable[[], object] | None) -> None:
        """Let time pass until every client is healthy and every operation is settled. Then check the frames.

        Raise ``Violation`` if this takes ``RECOVERY_SECONDS`` or more.

        While a client is not healthy, call ``submit`` to submit an operation. None leaves the clients without work.
        """
        give_up = self.now + RECOVERY_SECONDS
        self.flow()
        while not self.is_healthy or self.open_operations:
            if self.now >= give_up:
                raise Violation(f"no recovery {RECOVERY_SECONDS:g} s after the last fault: {self.describe()}")
            if submit is not None and not self.is_healthy:
                submit()
            self.flow_for(RECOVERY_STEP)
        self.check_frames()

    def check_frames(self) -> None:
        """Check, when nothing is in progress, that frames, retries and results agree."""
        self.model.quieted()
        self.ledger.check_frames()

    def _handle(self, event: couchbase.Event) -> Sequence[couchbase.Action]:
        """Feed an event to the client, carry out the actions, and check the event and the actions."""
        self.model.now = self.loans.now = self.now
        match event:
            case couchbase.OperationSubmitted():
                self._submitted_together([event])
            case couchbase.OperationsSubmitted(submissions):
                self._submitted_together(submissions)
            case couchbase.OperationAbandoned(token):
                self._deadlines.pop(token, None)
                self._abandon(token)
            case couchbase.RequestSubmitted(token, request):
                self._deadlines[token] = self.now + self._timeouts_given.of_service(request.service)
            case couchbase.RowsWanted(token) if token in self.requests:
                service = self.requests[token].drawn.request.service
                self._deadlines[token] = self.now + self._timeouts_given.of_service(service)
                self.requests.wanted(token)
            case neutral.StreamLost(stream, cause, _, handed_over) if stream in self._of_services:
                self.requests.left(stream, sys.maxsize if handed_over is None else handed_over)
                if cause is not neutral.LossCause.CLOSED_BY_US:
                    self.requests.lost(stream, self.model.instant())
            case neutral.StreamLost(stream, cause, _, handed_over):
                self._lose(stream, sys.maxsize if handed_over is None else handed_over)
                if cause is neutral.LossCause.END_OF_STREAM:
                    self.excuses.check_end(stream, "the node hung up")
            case _:
                pass
        actions = super()._handle(event)
        if self._borrowers and isinstance(
            event, couchbase.OperationSubmitted | couchbase.OperationsSubmitted | couchbase.RequestSubmitted
        ):
            self._borrow(event)
        for action in actions:
            self._check(action)
        if self._borrowers:
            self._check_loans(event, actions)
        return actions

    def _check_loans(self, event: couchbase.Event, actions: Sequence[couchbase.Action]) -> None:
        """Check how clients have used the tokens that token strategies issued."""
        for action in actions:
            self._check_loan(action)
        if isinstance(event, couchbase.OperationAbandoned) and event.token in self._borrowers:
            rows = self.requests[event.token].rows if event.token in self.requests else ()
            self.loans.abandoned(event.token, has_rows=bool(rows))
            self.consultations.call_off(event.token)
        if not self._answers:
            # Check only when no event follows immediately, such as the answer of a strategy.
            self.loans.check()

    def _borrow(
        self, event: couchbase.OperationSubmitted | couchbase.OperationsSubmitted | couchbase.RequestSubmitted
    ) -> None:
        """Record the requests that acquired a first token in this event, in the order in which clients process them."""
        submitted = event.submissions if isinstance(event, couchbase.OperationsSubmitted) else [event]
        borrowers = [
            each.token for each in submitted if isinstance(_decider(self._strategies[each.token]), CheckedStrategy)
        ]
        # ``Clients`` splits a batch by client. The sort is stable, so it keeps the order within each part.
        self.loans.submitted(sorted(borrowers, key=lambda token: token % len(self.clients)))

    def _take_strategy(self, token: neutral.Token, strategy: AnyRetryStrategy) -> None:
        self._strategies[token] = strategy
        if isinstance(_decider(strategy), CheckedStrategy | AwaitedStrategy):
            self._borrowers.add(token)

    def _submitted_together(self, submissions: Sequence[couchbase.OperationSubmitted]) -> None:
        # All submissions of the batch see the same state of the clients, which is slow to compute: compute it once.
        ill = self._ill_nodes()
        clients = {each.token % len(self.clients) for each in submissions}
        known = {client: self._revision_known(client) for client in clients}
        for each in submissions:
            self._submitted(each, ill, known[each.token % len(self.clients)])

    def _submitted(self, event: couchbase.OperationSubmitted, ill: AbstractSet[int], known: Revision | None) -> None:
        strategy = self.options.retry_strategy if event.retry_strategy is None else event.retry_strategy
        self._take_strategy(event.token, strategy)
        deadline = self._deadlines[event.token] = self.now + timeout_of(event.operation, self._timeouts_given)
        submission = self.model.submitted(event.token, event.operation)
        if submission is not None:
            self.ledger.submitted(submission, deadline)
            self.excuses.submitted(
                submission,
                ill=ill,
                known=known,
                is_patient=isinstance(strategy, BestEffortRetryStrategy | ErrorMapRetryStrategy),
            )

    def _check(self, action: couchbase.Action) -> None:
        if isinstance(
            action,
            couchbase.CompleteOperation | couchbase.CompleteRequest | couchbase.FailOperation | couchbase.RowsReceived,
        ):
            self._deadlines.pop(action.token, None)
        match action:
            case neutral.SendBytes(stream) if self._is_closing:
                raise Violation(f"the client, which is closed, orders {action!r} on stream {stream}")
            case neutral.SendBytes(stream, data) if stream in self._of_services:
                self.requests.ordered(stream, data)
            case neutral.CloseStream(stream) if stream in self._of_services:
                pass
            case neutral.SendBytes(stream, data):
                self.ledger.ordered(stream, data)
            case neutral.CloseStream(stream, reason):
                if len(self.nodes) > 1 and reason == LEFT_THE_MAP:
                    self._left.add(stream)
                else:
                    self.excuses.check_end(stream, reason)
            case couchbase.ReportRetry(token) if token in self.model.submissions:
                self.ledger.retried(self.model.submissions[token], action, self.now)
            case couchbase.CompleteOperation(token, result) if token in self.model.submissions:
                submission = self._settled(token)
                self.ledger.completed(submission)
                if self.ledger.was_forged(submission):
                    self.model.abandoned(token, ambiguous=True)
                else:
                    self.model.completed(token, result)
            case couchbase.FailOperation(token, error) if token in self.model.submissions:
                submission = self._settled(token)
                self.ledger.failed(submission, error)
                self.model.failed(token, error)
                self._check_excuse(submission, error)
            case couchbase.ReportRetry(token) if token in self.requests:
                self.requests.retried(token, action)
            case couchbase.RowsReceived(token, rows) if token in self.requests:
                self.requests.handed_out(token, rows)
            case couchbase.CompleteRequest(token) if token in self.requests:
                self.requests.completed(token)
            case couchbase.FailOperation(token, error) if token in self.requests:
                self.look_around()
                troubled_at = self.excuses.newest_at(range(len(self.nodes)))
                self.requests.failed(token, error, troubled_at, was_held_back=self._was_held_back(token))
            case _:
                pass

    def _check_loan(self, action: couchbase.Action) -> None:
        match action:
            case couchbase.ReportDispatch(token) if token in self._borrowers:
                self.loans.begun(token)
            case couchbase.ReportRetry(token) if token in self._borrowers:
                self.loans.retried(action)
            case couchbase.CompleteOperation(token) | couchbase.CompleteRequest(token) if token in self._borrowers:
                self.loans.completed(token)
                self.consultations.call_off(token)
            case couchbase.FailOperation(token, error) if token in self._borrowers:
                has_rows = token in self.requests and bool(self.requests[token].rows)
                self.loans.failed(token, error, is_well=isinstance(error, ANSWERS), has_rows=has_rows)
                self.consultations.call_off(token)
            case neutral.ReportDecoderFault(_, node, fault):
                raise Violation(f"{node}: {fault}") from fault
            case neutral.ReportStrategyError(token, error):
                raise Violation(f"operation {token}: its strategy raised {error!r} while it recorded a success")
            case _:
                pass

    def _carry_out(self, action: couchbase.Action) -> None:
        if isinstance(action, neutral.PauseReading | neutral.ResumeReading):
            was_paused = self.links[action.stream].is_paused
            if was_paused is isinstance(action, neutral.PauseReading):
                raise Violation(
                    f"stream {action.stream} {'is paused' if was_paused else 'is read'} already: {action!r}"
                )
        super()._carry_out(action)
        if isinstance(action, neutral.OpenStream):
            self._opened(action.stream)

    def _ask(self, action: neutral.ConsultStrategy | neutral.AcquirePermit | neutral.RecordSuccess) -> None:
        """Consult a checked strategy; leave calls of other strategies to the test."""
        match action:
            case neutral.AcquirePermit(token, AsyncPermit() as permit) if token in self._borrowers:
                self._consult(token, permit.acquire())
            case neutral.ConsultStrategy(
                token, AsyncPermit() as permit, RetryRequest() as request, RetryReason() as reason
            ) if token in self._borrowers:
                self._consult(token, permit.retry_after(request, reason))
            case neutral.RecordSuccess(token, AsyncPermit() as permit) if token in self._borrowers:
                self.consultations.record(permit.record())
            case _:
                super()._ask(action)

    def _consult(self, token: neutral.Token, question: Question) -> None:
        """Start a call of a strategy. If the answer is immediate, feed it after the client has handled the event."""
        decided = self.consultations.begin(token, question)
        if decided is not None:
            self._answers.append(decided)

    def _opened(self, stream: neutral.StreamId) -> None:
        port = self.links[stream].port
        if port is not None:
            self._node_of[stream] = self._index_of[id(port.node)]
            if port.service is not Service.KV:
                self._of_services.add(stream)

    def _read_logs(self) -> None:
        for index, node in enumerate(self.nodes):
            read, self._requests_read[index] = self._requests_read[index], len(node.request_log)
            if read < len(node.request_log):
                for entry in node.request_log[read:]:
                    self.requests.logged(entry)
            read, self._commands_read[index] = self._commands_read[index], len(node.command_log)
            if read < len(node.command_log):
                self._read_commands(index, node.command_log[read:])

    def _read_commands(self, node: int, commands: Sequence[LoggedCommand]) -> None:
        for command in commands:
            instant = self.model.instant()
            if command.fault is not None:
                self.excuses.struck(command, instant, node)
            self.ledger.commanded(command, instant)

    def _settled(self, token: neutral.Token) -> Submission:
        submission = self.model.submissions[token]
        if not submission.is_open:
            raise Violation(f"{submission} is settled after its caller left or got its result")
        return submission

    def _abandon(self, token: neutral.Token) -> None:
        if token in self.requests and self.requests[token].is_open:
            self.requests.abandoned(token, ambiguous=self.machine.is_ambiguous(token))
        submission = self.model.submissions.get(token)
        if submission is not None and submission.is_open:
            is_ambiguous = self.machine.is_ambiguous(token)
            self.model.abandoned(token, ambiguous=is_ambiguous)
            self.ledger.abandoned(submission, ambiguous=is_ambiguous)

    def _lose(self, stream: neutral.StreamId, handed_over: int) -> None:
        self.ledger.left(stream, handed_over)
        if stream not in self._left:
            self.excuses.lost(self.model.instant(), self._node_of.get(stream))

    def _check_excuse(self, submission: Submission, error: errors.CouchbaseException) -> None:
        self._check_refusal(submission, error.context.refused_reason)
        if isinstance(error, errors.AmbiguousTimeoutException) and not submission.may_change:
            raise Violation(f"{submission} changes nothing, but its timeout is ambiguous")
        self.look_around()
        if not self._was_held_back(submission.token):
            self.excuses.check_failure(submission, error)

    def _was_held_back(self, token: int) -> bool:
        """Return whether the strategy of an operation delayed it or raised."""
        return token in self._borrowers and self.loans[token].is_excuse

    def _check_refusal(self, submission: Submission, refused: str | None) -> None:
        if refused is None:
            return
        reason, strategy = RetryReason[refused], self._strategies[submission.token]
        if reason.always_retry:
            raise Violation(f"{submission} is not retried for {reason}, which is always retried")
        if isinstance(strategy, BestEffortRetryStrategy):
            is_forbidden = submission.may_change and not reason.allows_non_idempotent_retry
            is_terminal = isinstance(strategy, FastFailOnTerminalErrorRetryStrategy) and reason in TERMINAL_ERRORS
            if not is_forbidden and not is_terminal:
                raise Violation(f"{submission} is not retried for {reason}, although its strategy permits the retry")

    def _revision_known(self, client: int) -> Revision | None:
        connections = self.clients[client].statistics().connections
        return next((each.config_revision for each in connections if each.bucket is not None), None)

    def _ill_nodes(self) -> AbstractSet[int]:
        """Return the nodes with a problem, such as a stuck stream, an unready connection, or an open breaker."""
        everywhere = set(range(len(self.nodes)))
        if len(self.nodes) == 1:
            return set() if self.is_healthy else everywhere
        ill = {self._node_of[stream] for stream in self.links if self.excuses.is_stuck(stream)}
        for connection in self.machine.statistics().connections:
            is_closed = connection.circuit_breaker is None or connection.circuit_breaker.state is BreakerState.CLOSED
            if connection.state != ConnectionState.READY.name or not is_closed:
                ill.add(self._index_at[connection.node])
        return ill


def _open_breakers(connections: Sequence[ConnectionStatistics]) -> list[BreakerState]:
    breakers = [connection.circuit_breaker for connection in connections]
    return [breaker.state for breaker in breakers if breaker and breaker.state is not BreakerState.CLOSED]


def _decider(strategy: AnyRetryStrategy) -> object:
    """Return the strategy that issues the tokens: ``strategy``, or the one inside a ``TokenScope``."""
    return strategy.strategy if isinstance(strategy, TokenScope) else strategy
