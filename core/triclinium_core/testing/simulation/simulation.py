"""Client machine and fake nodes in one process, joined by streams that a test controls byte by byte.

Only the simulation advances the time; nothing sleeps, and only ``rng`` is random. The simulation follows the rules for
drivers: it carries out actions in order, feeds ``TimePassed`` at ``wakeup``, and after a stream is closed feeds only
the event that reports how many bytes were handed over.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from triclinium_core import errors
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.contract import couchbase, neutral
from triclinium_core.kv.operation.document_operations import Operation
from triclinium_core.kv.operation.inquiries import Inquiry
from triclinium_core.kv.operation.results import Result
from triclinium_core.kv.topology.topology import TopologyChange
from triclinium_core.options import ClientOptions, PasswordAuthenticator
from triclinium_core.retry.backoff import ConstantRandom, Random
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.retry.couchbase import Service
from triclinium_core.services.service_request import ServiceRequest, ServiceResult
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes, NodePort
from triclinium_core.testing.fakes.cluster.outbox import HangUp, NodeAction, SendReply
from triclinium_core.testing.simulation.clients import Clients
from triclinium_core.testing.tapes import MakeMachine

STEPS_MAX = 100_000
"""Maximum number of steps while the time stands still; more steps are a livelock."""
READ_SIZE = 64 * 1024
"""Number of bytes that a driver reads in one call."""
LIVELOCK = "client and node keep each other busy while the time does not pass"


def client_options(nodes: FakeNodes) -> ClientOptions:
    """Return default client options with the addresses and the credentials of the nodes."""
    connection_string, user = nodes.connection_string(), nodes[0].options
    assert connection_string is not None
    authenticator = PasswordAuthenticator(user.username, user.password)
    return ClientOptions(connection_string=connection_string, authenticator=authenticator)


MIDPOINT = ConstantRandom(0.5)
"""Random source that always returns 0.5, the middle of its range."""


@dataclass(slots=True)
class SimulatedStream:
    """One stream between client and node, with the state of both ends."""

    port: NodePort | None = field(default=None, compare=False, repr=False)
    """Port at the address that the client requested; None if the address is unused."""
    is_open: bool = False
    outgoing: bytearray = field(default_factory=bytearray)
    """Bytes that the client ordered to send and that are not handed over yet."""
    incoming: bytearray = field(default_factory=bytearray)
    """Bytes that the node sent and that are not delivered yet."""
    handed_over: int = 0
    is_paused: bool = False
    """Whether the client has paused reading."""
    is_hung_up: bool = False
    """Whether the node has closed; the client gets the loss after all incoming bytes."""

    @property
    def node(self) -> FakeNode | None:
        """Node of the port, or None if the address is unused."""
        return None if self.port is None else self.port.node


class Simulation:
    """Clients, nodes, and the streams between them.

    ``node`` is the first of ``nodes``. A ``FakeNode`` is reached at any address. The nodes of a ``FakeNodes`` are
    reached only at their own addresses.

    Args:
        node: the node, or all nodes of a cluster. Default: a new single node.
        options: options of the client. Default: the credentials and addresses of the nodes.
        rng: source of random numbers for the client.
        clients: number of independent clients; ``machine`` represents all of them.
        is_traced: whether the client reports the attempts of all submissions.
        make_machine: makes the machine of each client.
    """

    def __init__(
        self,
        node: FakeNode | FakeNodes | None = None,
        options: ClientOptions | None = None,
        *,
        rng: Random = MIDPOINT,
        clients: int = 1,
        is_traced: bool = False,
        make_machine: MakeMachine = ClientMachine,
    ) -> None:
        lone = FakeNode() if node is None else node
        self._reaches_by_address = isinstance(lone, FakeNodes)
        self.nodes: FakeNodes = lone if isinstance(lone, FakeNodes) else FakeNodes.around(lone)
        self.node: FakeNode = self.nodes[0]
        options = client_options(self.nodes) if options is None else options
        self.clients: tuple[ClientMachine, ...] = tuple(make_machine(options, rng=rng) for _ in range(clients))
        self.machine: ClientMachine | Clients = self.clients[0] if clients == 1 else Clients(self.clients)
        self._options, self._rng, self._make_machine = options, rng, make_machine
        self._streams_opened = 0
        """Number of streams opened so far."""
        self.is_traced: bool = is_traced
        self.now: float = 0.0
        self.links: dict[neutral.StreamId, SimulatedStream] = {}
        self.results: dict[neutral.Token, Result] = {}
        self.answers: dict[neutral.Token, ServiceResult] = {}
        """Results that the services sent, by request."""
        self.rows: dict[neutral.Token, list[bytes]] = {}
        """Rows that the reader received before the result, by request."""
        self.takes_rows: bool = True
        """Whether a reader requests more rows immediately after it gets some."""
        self.slow_readers: set[neutral.Token] = set()
        """Readers that request more rows only if the test calls ``read_on``."""
        self.errors: dict[neutral.Token, errors.CouchbaseException] = {}
        self.settled_at: dict[neutral.Token, float] = {}
        self.consulted: list[neutral.ConsultStrategy | neutral.AcquirePermit] = []
        """Calls of asynchronous strategies that the client ordered. The test makes the calls and feeds the answers."""
        self.recorded: list[neutral.RecordSuccess] = []
        """Successes to record with asynchronous token strategies."""
        self.strategy_errors: list[neutral.ReportStrategyError] = []
        self.decoder_faults: list[neutral.ReportDecoderFault] = []
        self.retries: list[couchbase.ReportRetry] = []
        self.refusals: list[couchbase.ReportRefusal] = []
        self.log: list[str] = []
        """Reports of the client about its connections, oldest first."""
        self.telemetry: list[couchbase.ReportTelemetry] = []
        """Reports of the client about its operations, oldest first."""
        self.lookups: list[str] = []
        """Names that the client looked up, oldest first."""
        self.services: Mapping[str, tuple[tuple[str, int], ...]] | None = {}
        """DNS records by name; None if DNS does not respond."""
        self.attempts: dict[neutral.Token, set[neutral.StreamId]] = {}
        """Streams of the attempts in progress that the client reported, by operation or request."""
        self._answers: deque[
            neutral.StreamLost | couchbase.ServiceLookedUp | couchbase.RowsWanted | neutral.StrategyDecided
        ] = deque()
        """Events that the client gets immediately.

        They are losses of streams that an action ended, responses of DNS, decisions of strategies, and row requests
        of readers.
        """
        self.changes: list[TopologyChange] = []
        """Topology changes that the client published, oldest first."""
        self._last_token = 0

    def request(self, request: ServiceRequest, *, retry_strategy: AnyRetryStrategy | None = None) -> neutral.Token:
        """Submit a service request for a user who reads all its rows, and return its token."""
        token = self._new_token()
        self.feed(couchbase.RequestSubmitted(token, request, retry_strategy, is_traced=self.is_traced))
        return token

    def read_on(self, token: neutral.Token) -> None:
        """Request more rows for a reader that has taken all rows so far."""
        self.feed(couchbase.RowsWanted(token))

    def submit(
        self,
        operation: Operation,
        *,
        retry_strategy: AnyRetryStrategy | None = None,
        client_context: dict[str, object] | None = None,
    ) -> neutral.Token:
        """Submit an operation now, and return its token."""
        token = self._new_token()
        self.feed(
            couchbase.OperationSubmitted(token, operation, retry_strategy, client_context, is_traced=self.is_traced)
        )
        return token

    def submit_together(self, operations: Iterable[tuple[Operation, AnyRetryStrategy | None]]) -> None:
        """Submit several operations as one event, each with its retry strategy; None for the client's strategy."""
        submissions = [
            couchbase.OperationSubmitted(self._new_token(), operation, strategy, is_traced=self.is_traced)
            for operation, strategy in operations
        ]
        self.feed(couchbase.OperationsSubmitted(submissions))

    def inquire(self, inquiry: Inquiry) -> neutral.Token:
        """Submit an inquiry now, and return its token."""
        token = self._new_token()
        self.feed(couchbase.InquirySubmitted(token, inquiry, self.is_traced))
        return token

    def abandon(self, token: neutral.Token) -> None:
        """Abandon an operation, an inquiry or a service request, as if its caller had left."""
        self.attempts.pop(token, None)
        self.feed(couchbase.OperationAbandoned(token))

    def replace_client(self, index: int) -> None:
        """Replace a client: cut its streams with all bytes in transit, and create a new client at its index."""
        for stream in [stream for stream in self.links if stream % len(self.clients) == index]:
            self._report_loss(stream, self.links.pop(stream))
        if not isinstance(self.machine, Clients):
            self.machine = Clients(self.clients, opened=self._streams_opened)
        client = self._make_machine(self._options, rng=self._rng)
        self.machine.replace(index, client)
        self.clients = (*self.clients[:index], client, *self.clients[index + 1 :])
        self.tick()

    def feed(self, event: couchbase.Event) -> Sequence[couchbase.Action]:
        """Feed an event to the client, and the events that follow immediately. Carry out and return all actions."""
        actions = list(self._handle(event))
        while self._answers:
            actions += self._handle(self._answers.popleft())
        return actions

    def open(self, stream: neutral.StreamId) -> None:
        """Let a connect succeed, or fail if the node refuses it or the address is unused."""
        link = self.links[stream]
        if link.port is None or not link.port.node.accepts(self.now):
            self.lose(stream, neutral.LossCause.REFUSED)
            return
        link.is_open = True
        node, service = link.port
        self._answer(node.connection_opened(stream, self.now, service=service))
        self.feed(neutral.StreamOpened(stream, f"nonce-of-stream-{stream:08d}"))

    def hand_over(self, stream: neutral.StreamId, size: int | None = None) -> None:
        """Pass the next ``size`` bytes from the client to the node. Default: all."""
        link = self.links[stream]
        data = bytes(link.outgoing[:size])
        del link.outgoing[: len(data)]
        link.handed_over += len(data)
        if data and link.node is not None and not link.is_hung_up:
            self._answer(link.node.bytes_received(stream, data, self.now))

    def deliver(self, stream: neutral.StreamId, size: int | None = None) -> None:
        """Pass the next ``size`` bytes from the node to the client, then the loss if the node has closed."""
        link = self.links[stream]
        data = bytes(link.incoming[:size])
        del link.incoming[: len(data)]
        if data:
            self.feed(neutral.BytesReceived(stream, data))
        if link.is_hung_up and not link.incoming and stream in self.links:
            self.lose(stream, neutral.LossCause.END_OF_STREAM)

    def lose(self, stream: neutral.StreamId, cause: neutral.LossCause = neutral.LossCause.RESET) -> None:
        """Break a stream: the bytes in transit are lost in both directions."""
        link = self.links.pop(stream)
        self._report_loss(stream, link)
        self.feed(neutral.StreamLost(stream, cause, handed_over=link.handed_over))

    def advance(self, seconds: float) -> None:
        """Let time pass. Stop at every moment at which a client or a node has something to do."""
        end = self.now + seconds
        steps = 0
        while (instant := self.wakeup) <= end:
            steps = steps + 1 if instant <= self.now else 0
            if steps > STEPS_MAX:
                raise AssertionError(LIVELOCK)
            self.now = max(self.now, instant)
            self.tick()
        self.now = end

    def tick(self) -> None:
        """Pass the time to client and nodes."""
        for node in self.nodes:
            if node.wakeup <= self.now:
                self._answer(node.time_passed(self.now))
        if self.machine.wakeup <= self.now:
            self.feed(neutral.TimePassed())

    def flow(self) -> None:
        """Let every stream connect and carry all bytes in both directions until nothing moves. Time stands still."""
        for _ in range(STEPS_MAX):
            if self.wakeup <= self.now:
                self.tick()
            elif (busy := next(self._busy_links(), None)) is not None:
                stream, link = busy
                if not link.is_open:
                    self.open(stream)
                elif link.outgoing:
                    self.hand_over(stream)
                else:
                    self.deliver(stream, READ_SIZE)
            else:
                return
        raise AssertionError(LIVELOCK)

    def run(self, seconds: float = 60.0) -> None:
        """Let bytes flow and time pass until every operation is settled or nothing is due, for at most ``seconds``."""
        end = self.now + seconds
        self.flow()
        while self.open_operations and self.now < end:
            instant = self.wakeup
            if instant == math.inf:
                return
            self.now = min(max(self.now, instant), end)
            self.flow()

    @property
    def wakeup(self) -> float:
        """Earliest time at which a client or a node has something to do."""
        return min(self.machine.wakeup, self.nodes.wakeup)

    @property
    def open_operations(self) -> int:
        """Number of operations that are not settled."""
        return self.machine.statistics().open_operations

    def _new_token(self) -> neutral.Token:
        self._last_token += 1
        return neutral.Token(self._last_token)

    def _busy_links(self) -> Iterator[tuple[neutral.StreamId, SimulatedStream]]:
        for stream, link in self.links.items():
            if not link.is_open or link.outgoing or ((link.incoming or link.is_hung_up) and not link.is_paused):
                yield stream, link

    def _handle(self, event: couchbase.Event) -> Sequence[couchbase.Action]:
        actions = self.machine.handle(event, self.now)
        for action in actions:
            self._carry_out(action)
        return actions

    def _carry_out(self, action: couchbase.Action) -> None:
        match action:
            case neutral.OpenStream(stream, host, port, tls):
                self.links[stream] = SimulatedStream(self._port_at(host, port, tls=tls))
                self._streams_opened += 1
            case couchbase.LookUpService(service):
                self.lookups.append(service)
                if self.services is not None:
                    self._answers.append(couchbase.ServiceLookedUp(service, self.services.get(service, ())))
            case neutral.SendBytes(stream, data, unless_readable):
                assert stream in self.links, f"bytes are ordered for stream {stream}, which does not exist"
                link = self.links[stream]
                if unless_readable and (link.incoming or link.is_hung_up):
                    self._drop(
                        stream, neutral.LossCause.UNSOLICITED if link.incoming else neutral.LossCause.END_OF_STREAM
                    )
                else:
                    link.outgoing += data
            case neutral.CloseStream(stream):
                assert stream in self.links, f"stream {stream} is to be closed, but does not exist"
                self._drop(stream, neutral.LossCause.CLOSED_BY_US)
            case couchbase.CompleteOperation(token, result):
                self._settle(token)
                self.results[token] = result
            case couchbase.CompleteRequest(token, answer):
                self._settle(token)
                self.answers[token] = answer
            case couchbase.RowsReceived(token, rows):
                self.rows.setdefault(token, []).extend(rows)
                if self.takes_rows and token not in self.slow_readers:
                    self._answers.append(couchbase.RowsWanted(token))
            case neutral.PauseReading(stream) | neutral.ResumeReading(stream):
                self.links[stream].is_paused = isinstance(action, neutral.PauseReading)
            case couchbase.FailOperation(token, error):
                self._settle(token)
                self.errors[token] = error
            case neutral.ConsultStrategy() | neutral.AcquirePermit() | neutral.RecordSuccess():
                self._ask(action)
            case neutral.ReportStrategyError():
                self.strategy_errors.append(action)
            case couchbase.ReportDispatch(token, _, stream):
                assert token not in self.settled_at, f"operation {token} is settled, but an attempt of it is reported"
                streams = self.attempts.setdefault(token, set())
                assert stream not in streams, f"operation {token} has two attempts on stream {stream}"
                streams.add(stream)
            case couchbase.ReportAnswer(token, _, stream):
                streams = self.attempts.get(token, set())
                assert stream in streams, f"an attempt of operation {token} ends that was not begun"
                streams.remove(stream)
            case couchbase.ReportEnd(token):
                assert not self.attempts.pop(token, None), f"request {token} is over, but an attempt of it is not"
            case couchbase.ReportRetry():
                self.retries.append(action)
            case couchbase.ReportRefusal():
                self.refusals.append(action)
            case neutral.ReportConnection(_, node, text):
                self.log.append(f"{self.now:.3f} {node} {text}")
            case neutral.ReportDecoderFault():
                self.decoder_faults.append(action)
            case couchbase.ReportTelemetry():
                self.telemetry.append(action)
            case couchbase.PublishTopology(change):
                self.changes.append(change)
            case _:
                assert_never(action)

    def _drop(self, stream: neutral.StreamId, cause: neutral.LossCause) -> None:
        """Close a stream, and report its loss after the current event."""
        link = self.links.pop(stream)
        self._report_loss(stream, link)
        self._answers.append(neutral.StreamLost(stream, cause, handed_over=link.handed_over))

    def _ask(self, action: neutral.ConsultStrategy | neutral.AcquirePermit | neutral.RecordSuccess) -> None:
        """Store the call of an asynchronous strategy; the test makes the call and feeds the answer."""
        if isinstance(action, neutral.RecordSuccess):
            self.recorded.append(action)
        else:
            self.consulted.append(action)

    def _port_at(self, host: str, port: int, *, tls: bool) -> NodePort | None:
        if self._reaches_by_address:
            return self.nodes.find(host, port, tls=tls)
        return NodePort(self.node, self.node.options.service_at(port, tls=tls) or Service.KV)

    def _report_loss(self, stream: neutral.StreamId, link: SimulatedStream) -> None:
        if link.node is not None and link.is_open and not link.is_hung_up:
            link.node.connection_lost(stream, self.now)

    def _settle(self, token: neutral.Token) -> None:
        assert token not in self.settled_at, f"operation {token} was settled twice"
        self.settled_at[token] = self.now
        # A tracer ends the attempt in progress when its operation ends.
        self.attempts.pop(token, None)

    def _answer(self, actions: Sequence[NodeAction]) -> None:
        for action in actions:
            link = self.links.get(neutral.StreamId(action.connection))
            if link is None:
                continue
            match action:
                case SendReply(_, data):
                    link.incoming += data
                case HangUp():
                    link.is_hung_up = True
