"""Couchbase node without a network: client bytes in, replies out; the driver supplies time and faults.

A node has a port for KV and one for each HTTP service; the caller that opens a connection names the service. This
module covers KV; ``fakes.services`` covers the HTTP services.

Theory of operation. The driver identifies each connection by a number and reports its events to the node; the node
returns actions, to be carried out in order. The node has no clock: calls pass ``now``, in monotonic seconds, which
never goes back. The node first sends due replies, then reads the new bytes.

The node handles a command in four steps: it parses the frame, looks for a fault, carries the command out unless the
fault strikes before that, and sends, delays, damages or omits its reply, depending on the fault. Every command is
logged. Without random faults, the same calls produce the same bytes.

Commands are carried out in order of arrival, even behind a delayed reply. Without unordered execution, later replies
wait for that reply; with it, those of commands that may not be reordered do (``fakes.store.pipeline``).

Example::

    node = FakeNode()
    node.faults.next(Opcode.GET, drop_response())
    node.connection_opened(1, now=0.0)
    actions = node.bytes_received(1, data, now=0.0)
    node.wakeup  # when to call time_passed, at the latest

Source: kv_engine docs/BinaryProtocol.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from triclinium_core import errors
from triclinium_core.checks import check_random, check_type
from triclinium_core.kv.address import Address
from triclinium_core.kv.wire.constants import HelloFeature, Magic
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.couchbase import Service, Status
from triclinium_core.shown import total_repr
from triclinium_core.testing.fakes import faults
from triclinium_core.testing.fakes.answers import CommandAnswer, CommandRefused
from triclinium_core.testing.fakes.cluster.command_log import LoggedCommand, command_log_limit, log_command
from triclinium_core.testing.fakes.cluster.network import FakeNetwork
from triclinium_core.testing.fakes.cluster.outbox import Delivery, HangUp, NodeAction, Outbox, SendReply, strike_after
from triclinium_core.testing.fakes.commands import replies
from triclinium_core.testing.fakes.commands.durable import HeldCommand, carry_out
from triclinium_core.testing.fakes.commands.index import COMMANDS, DATA_OPCODES, unknown_command
from triclinium_core.testing.fakes.commands.read_request import read_request
from triclinium_core.testing.fakes.fault_table import Faults
from triclinium_core.testing.fakes.options import HTTP_SERVICES, FakeNodeOptions
from triclinium_core.testing.fakes.services.request_log import LoggedRequest
from triclinium_core.testing.fakes.services.script import FakeScript
from triclinium_core.testing.fakes.services.server import ServiceServer
from triclinium_core.testing.fakes.services.statements.indexes import FakeIndexes
from triclinium_core.testing.fakes.services.statements.plans import FakePlans
from triclinium_core.testing.fakes.store.cluster_map import ConfigVersion
from triclinium_core.testing.fakes.store.collections import FakeCollections
from triclinium_core.testing.fakes.store.documents import FakeDocuments
from triclinium_core.testing.fakes.store.state import ClientConnection, ClusterStore, NodeState

LogListener = Callable[[LoggedCommand | LoggedRequest], None]
"""Function that gets each logged command or request, with its result."""


class FakeNode:
    """One node: a complete cluster, or one of several in ``FakeNodes``.

    ``faults`` holds the faults to inject, ``command_log`` and ``request_log`` the received KV commands and HTTP
    requests, ``documents`` the stored documents, ``collections`` the scopes and collections of the initial buckets,
    and ``network`` the network between the node and its clients. ``script`` (scripted responses of services), ``plans``
    (prepared statements) and ``indexes`` (query indexes) belong to the cluster.

    Every method that takes ``now`` raises ValueError if the time goes back. The node ignores events of connections that
    it does not know or has closed.

    Args:
        options: options of the node. Default: ``FakeNodeOptions()``.
        rng: source of randomness for faults with a probability. Default: None, which permits no such faults.

    Raises:
        InvalidArgumentException: ``options`` or ``rng`` has the wrong type.
    """

    def __init__(self, options: FakeNodeOptions | None = None, *, rng: Random | None = None) -> None:
        options = FakeNodeOptions() if options is None else options
        check_type(options, "options", FakeNodeOptions)
        self._begin(NodeState(ClusterStore([options], None if rng is None else check_random(rng)), 0))

    @classmethod
    def in_cluster(cls, cluster: ClusterStore, index: int) -> FakeNode:
        """Return the node with this index in a cluster."""
        node = cls.__new__(cls)
        node._begin(NodeState(cluster, index))
        return node

    @total_repr
    def __repr__(self) -> str:
        return f"<FakeNode {Address(self.options.host, self.options.port)}>"

    def _begin(self, state: NodeState) -> None:
        self._state = state
        self._connections: dict[int, ClientConnection] = {}
        self._outbox = Outbox()
        self.network: FakeNetwork = FakeNetwork()
        self._held: list[HeldCommand] = []
        """Commands whose durable writes are not settled, in order of arrival."""
        self._now = -math.inf
        self._known_drops = 0
        """Number of dropped buckets when the node last closed the connections to such buckets."""
        self._hung_up: list[int] = []
        """Connections that the node has closed, but for which it has not returned a ``HangUp`` yet."""
        self._announced = state.map
        """Map of the last notification to clients; before the first notification, the initial map."""
        self.faults: Faults = Faults(state.cluster.fault_clock)
        self.command_log: list[LoggedCommand] = []
        self._command_log_limit = command_log_limit()
        self._listener: LogListener | None = None
        self.documents: FakeDocuments = self._state.documents
        self.collections: FakeCollections = self._state.collections
        self.script: FakeScript = state.cluster.services.script
        self.plans: FakePlans = state.cluster.services.plans
        self.indexes: FakeIndexes = state.cluster.services.indexes
        self._services = ServiceServer(state, self.faults, self.network)
        self.request_log: list[LoggedRequest] = self._services.log

    @property
    def options(self) -> FakeNodeOptions:
        """Options of the node."""
        return self._state.options

    @property
    def config_version(self) -> ConfigVersion:
        """Version of the cluster config that the node currently sends."""
        return self._state.map.version

    @property
    def open_scans(self) -> int:
        """Number of open range scans on the node."""
        return len(self._state.open_scans())

    @property
    def connections(self) -> int:
        """Number of KV and HTTP connections."""
        return len(self._connections) + len(self._services)

    @property
    def is_alive(self) -> bool:
        """Whether clients can connect: not between ``kill`` and ``revive``."""
        return self._state.index not in self._state.cluster.dead

    @property
    def is_listening(self) -> bool:
        """Whether the ports of the node are open. A dead node that is cut off keeps them open: it cannot refuse."""
        return self.is_alive or self.network.cuts_all

    @property
    def holds_clients_up(self) -> bool:
        """Whether commands on a connection wait for an earlier one, would if they arrived now, or have until now."""
        return any(connection.pipeline.is_held_up(self._now) for connection in self._connections.values())

    @property
    def cluster(self) -> ClusterStore:
        """State that all nodes of the cluster share."""
        return self._state.cluster

    @property
    def wakeup(self) -> float:
        """Time at which ``time_passed`` is due.

        That is when the next delayed reply, the next piece of a response or the next scheduled command is due, or when
        a durable write has taken too long; ``-inf`` if something is due now, such as a notification, infinity if
        nothing is due.
        """
        state = self._state
        if self._hung_up or self._announced is not state.map:
            return -math.inf
        if self._known_drops != state.cluster.buckets.dropped:
            return -math.inf
        if self._held and any(held.write.is_settled for held in self._held):
            return -math.inf
        writes_due = state.cluster.sync_writes.due_of(state.index)
        return min(self._outbox.due, self.network.wakeup, writes_due, self._services.due, state.cluster.schedule.due)

    def accepts(self, now: float) -> bool:
        """Return whether the node accepts a connection attempt; each call is one attempt."""
        self._see(now)
        # A node that is cut off from all clients cannot refuse: the attempt gets no response.
        return self.network.cuts_all or (self.is_alive and not self.faults.take_refusal())

    def connection_opened(
        self,
        connection: int,
        now: float,
        *,
        service: Service = Service.KV,
        unsent_size_max: float = math.inf,
    ) -> Sequence[NodeAction]:
        """Open a connection with a number that no open connection has.

        Hang up if the node is killed, or does not offer the service.

        Args:
            service: service whose port the client has reached. Default: key-value.
            unsent_size_max: number of bytes in unsent replies at which the node carries out no more commands of the
                client until ``replies_written`` reports progress. A single reply may be larger. Default: infinite, for
                a driver that never calls ``replies_written``.

        Raises:
            ValueError: an open connection has this number.
        """
        if connection in self._connections or connection in self._services:
            raise ValueError(f"connection {connection} is already open; give each connection a different number")
        actions = self._see_and_send(now)
        if not self.is_alive or service not in self.options.services:
            return [*actions, *self.network.let_through([HangUp(connection)])]
        if service is not Service.KV:
            self._services.open(connection, service, unsent_size_max)
            return actions
        self._connections[connection] = ClientConnection(connection, unsent_size_max)
        return actions

    def certificate_shown(self, connection: int, names: Collection[str]) -> None:
        """Record that the client of a new connection has presented a certificate, which TLS has verified.

        If the node accepts the certificate, the client needs no SASL and no request needs credentials.
        """
        known, users = self._connections.get(connection), self.options.certificate_users
        if users is not None and set(users).isdisjoint(names):
            return
        if known is not None:
            known.has_certificate = known.is_authenticated = True
        elif connection in self._services:
            self._services.certificate_shown(connection)

    def bytes_received(self, connection: int, data: bytes, now: float) -> Sequence[NodeAction]:
        """Process bytes from a client, split at any position."""
        actions = self._see_and_send(now)
        if not self.network.holds(connection, data):
            actions += self.network.let_through(self._take_bytes(connection, data))
        return actions

    def _take_bytes(self, connection: int, data: bytes) -> list[NodeAction]:
        if connection in self._services:
            return self._services.receive(connection, data, self._now)
        known = self._connections.get(connection)
        if known is None:
            return []
        # Drop the client's responses to notifications, as a real node does.
        known.backlog += (frame for frame in known.frames.receive(data) if frame.magic != Magic.SERVER_RESPONSE)
        actions = self._work_off(known)
        if known.frames.malformed is not None and self._is_connected(known):
            actions.append(self._hang_up(known))
        return actions

    def has_room(self, connection: int) -> bool:
        """Return whether the driver may read more bytes from a client; if not, replies must be sent first."""
        if connection in self._services:
            return self._services.may_be_read(connection)
        known = self._connections.get(connection)
        return known is None or known.has_room

    def replies_written(self, connection: int, size: int, now: float) -> Sequence[NodeAction]:
        """Record that ``size`` bytes of replies were written; process the commands and responses that waited."""
        actions = self._see_and_send(now)
        known = self._connections.get(connection)
        if known is not None:
            known.unsent_size -= size
            actions += self.network.let_through(self._work_off(known))
        elif connection in self._services:
            actions += self.network.let_through(self._services.written(connection, size, self._now))
        return actions

    def connection_lost(self, connection: int, now: float) -> None:
        """Forget a connection that its client closed or lost, with its pending replies."""
        self._see(now)
        self.network.lost(connection)
        known = self._connections.get(connection)
        if known is not None:
            self._forget(known)
        elif connection in self._services:
            self._services.lost(connection)
        elif connection in self._hung_up:
            self._hung_up.remove(connection)

    def time_passed(self, now: float) -> Sequence[NodeAction]:
        """Return all due actions, such as delayed replies and notifications of changes."""
        return self._see_and_send(now)

    def set_config_revision(self, revision: int, now: float, *, epoch: int | None = None) -> Sequence[NodeAction]:
        """Set the version of all configs, and return all due actions, such as notifications to subscribed connections.

        In a cluster every node without a frozen map then has that version; other nodes notify their clients at their
        next event.

        Raises:
            InvalidArgumentException: the revision or the epoch is invalid.
        """
        self._state.cluster.set_version(revision, epoch)
        return self._see_and_send(now)

    def set_ports(
        self,
        port: int,
        tls_port: int | None = None,
        *,
        services: Mapping[Service, int] | None = None,
        tls_services: Mapping[Service, int] | None = None,
    ) -> None:
        """Set the ports of the node in configs. The driver passes the ports that it listens on, before clients connect.

        Args:
            port: port of KV.
            tls_port: port of KV over TLS; None if the node does not support TLS.
            services: ports of the other services; an unlisted service has no port. Default: unchanged.
            tls_services: ports of the other services over TLS, likewise. Default: unchanged.

        Raises:
            InvalidArgumentException: a port is invalid.
        """
        options = self.options
        self.cluster.nodes[self._state.index] = replace(
            options,
            port=port,
            tls_port=tls_port,
            service_ports=options.service_ports if services is None else services,
            tls_service_ports=options.tls_service_ports if tls_services is None else tls_services,
        )

    def set_services(self, services: Collection[Service]) -> None:
        """Offer exactly these services. Clients of removed services lose their connections.

        Configs reflect this from the next change to the map; ``FakeNodes.set_services`` makes such a change.

        Raises:
            InvalidArgumentException: a service is unknown.
        """
        lost = self.options.services.difference(services)
        self.cluster.nodes[self._state.index] = replace(self.options, services=frozenset(services))
        self._hung_up += self._services.hang_up(lost)
        if Service.KV in lost:
            self._hang_up_on_everybody()

    def kill(self) -> None:
        """Close all client connections without their pending replies, and accept none until ``revive``.

        All range scans of the node end. The node keeps its stored data and its place in the map.
        """
        self._state.cluster.dead.add(self._state.index)
        self._hung_up += self._services.hang_up(HTTP_SERVICES)
        self._state.scans.clear()
        self._hang_up_on_everybody()
        self._state.cluster.ring()

    def revive(self) -> None:
        """Let clients connect again.

        Raises:
            InvalidArgumentException: the driver cannot open a port of the node, which stays killed.
        """
        self._state.cluster.dead.discard(self._state.index)
        try:
            self._state.cluster.ring()
        except errors.InvalidArgumentException:
            # Close the ports that the driver has opened.
            self._state.cluster.dead.add(self._state.index)
            self._state.cluster.ring()
            raise

    def set_log_listener(self, listener: LogListener | None) -> None:
        """Call ``listener`` with each command and each request as soon as it is logged; None removes the listener."""
        self._listener = self._services.listener = listener

    def hold_config(self) -> None:
        """Freeze the map: send its config and serve its vbuckets, regardless of changes to the cluster."""
        self._state.held_map = self._state.map

    def release_config(self) -> None:
        """Follow the cluster's map again."""
        self._state.held_map = None
        self._state.cluster.ring()

    # Time and connections.

    def _see(self, now: float) -> None:
        self._state.cluster.see(now)
        self._now = now

    def _see_and_send(self, now: float) -> list[NodeAction]:
        self._see(now)
        actions = self.network.released() + self._outbox.take_due(now) + self._services.time_passed(now)
        actions += self._answer_settled()
        self._leave_dropped_buckets()
        actions += map(HangUp, self._hung_up)
        self._hung_up.clear()
        if self._announced is not self._state.map:
            self._announced = self._state.map
            actions += self._notifications()
        actions = self.network.let_through(actions)
        for connection, data in self.network.arrived():
            actions += self.network.let_through(self._take_bytes(connection, data))
        return actions

    def _notifications(self) -> Iterator[NodeAction]:
        for connection in self._connections.values():
            notification = replies.encode_notification(self._state, connection)
            if notification is not None:
                connection.unsent_size += len(notification)
                yield SendReply(connection.number, notification)

    def _leave_dropped_buckets(self) -> None:
        buckets = self._state.cluster.buckets
        if self._known_drops == buckets.dropped:
            return
        self._known_drops = buckets.dropped
        for connection in list(self._connections.values()):
            if connection.bucket is not None and connection.bucket not in buckets:
                self._hung_up.append(connection.number)
                self._forget(connection)

    def _hang_up_on_everybody(self) -> None:
        self._hung_up += self._connections
        for connection in list(self._connections.values()):
            self._forget(connection)

    def _hang_up(self, connection: ClientConnection) -> NodeAction:
        self._forget(connection)
        return HangUp(connection.number)

    def _forget(self, connection: ClientConnection) -> None:
        del self._connections[connection.number]
        self._outbox.forget(connection)

    def _is_connected(self, connection: ClientConnection) -> bool:
        return self._connections.get(connection.number) is connection

    # Single commands.

    def _work_off(self, connection: ClientConnection) -> list[NodeAction]:
        actions: list[NodeAction] = []
        while connection.backlog and self._is_connected(connection) and connection.has_room:
            frame = connection.backlog[0]
            if not connection.pipeline.admits(may_reorder=connection.may_reorder(frame)):
                break
            connection.backlog.popleft()
            actions += self._deliver(connection, frame, self._take_up(connection, frame))
            # A command such as a kill "after 100 requests" may start between two requests that arrived together.
            self._state.cluster.schedule.run_due()
        return actions

    def _deliver(self, connection: ClientConnection, frame: Frame, delivery: Delivery | None) -> list[NodeAction]:
        """Return the actions for a command's delivery, or no actions while its durable write is pending."""
        if delivery is None:
            return []
        actions: list[NodeAction] = []
        due = connection.pipeline.complete(
            self._now, delivery.delay, self.network.slowness, may_reorder=connection.may_reorder(frame)
        )
        if delivery.data:
            connection.unsent_size += len(delivery.data)
            actions += self._outbox.send(connection, delivery.data, self._now, due)
        if delivery.hangs_up:
            actions.append(self._hang_up(connection))
        return actions

    def _answer_settled(self) -> list[NodeAction]:
        settled = [held for held in self._held if held.write.is_settled]
        self._held = [held for held in self._held if not held.write.is_settled]
        actions: list[NodeAction] = []
        for held in settled:
            connection = held.connection
            connection.pipeline.release()
            delivery = self._reply(connection, held.frame, held.fault, held.settled)
            assert delivery is not None, "a settled write has an answer"
            is_connected = self._is_connected(connection)
            self._log(
                connection,
                held.frame,
                came_at=held.came_at,
                fault=held.fault,
                status=delivery.status if is_connected else None,
                applied=held.write.outcome is Status.SUCCESS,
            )
            if is_connected:
                actions += self._deliver(connection, held.frame, delivery)
                actions += self._work_off(connection)
        return actions

    def _take_up(self, connection: ClientConnection, frame: Frame) -> Delivery | None:
        fault = self.faults.take(frame.opcode)
        if frame.opcode in DATA_OPCODES:
            self._state.cluster.schedule.request_arrived()
        changes = self.documents.changes
        delivery = (
            self._strike_before(connection, frame, fault)
            if isinstance(fault, faults.FaultBeforeApplying)
            else self._reply(connection, frame, fault, lambda: self._carry_out(connection, frame, fault))
        )
        # A held command is logged once its result is known.
        if delivery is not None:
            self._log(
                connection,
                frame,
                came_at=self._now,
                fault=fault,
                status=delivery.status,
                applied=self.documents.changes != changes,
            )
        return delivery

    def _log(
        self,
        connection: ClientConnection,
        frame: Frame,
        *,
        came_at: float,
        fault: faults.CommandFault | None,
        status: int | None,
        applied: bool,
    ) -> None:
        logged = log_command(
            self.command_log,
            self._command_log_limit,
            connection,
            frame,
            came_at=came_at,
            fault=fault,
            status=status,
            applied=applied,
        )
        if self._listener is not None:
            self._listener(logged)

    def _reply(
        self,
        connection: ClientConnection,
        frame: Frame,
        fault: faults.FaultAfterApplying | None,
        carry_out: Callable[[], CommandAnswer | None],
    ) -> Delivery | None:
        """Return the delivery of a command's reply or refusal; None if ``carry_out`` returns no answer."""
        try:
            answer = carry_out()
        except CommandRefused as refusal:
            status = replies.visible_status(connection, frame.opcode, refusal.status)
            if status is None:
                return Delivery(hangs_up=True)
            answer = refusal.answer(status, with_context=connection.has(HelloFeature.XERROR))
        if answer is None:
            return None
        delay = fault.seconds if isinstance(fault, faults.Delay) else 0.0
        reply = replies.encode_answer(connection, frame, answer, delay=delay)
        return strike_after(reply, answer.status, fault)

    def _carry_out(
        self, connection: ClientConnection, frame: Frame, fault: faults.FaultAfterApplying | None
    ) -> CommandAnswer | None:
        """Return the reply; None if it has to wait for a durable write."""
        command = COMMANDS.get(frame.opcode)
        if command is None:
            raise unknown_command(frame.opcode)
        request = read_request(command, self._state, connection, frame)
        answer, write = carry_out(command, self._state, connection, request)
        if write is None:
            return answer
        connection.pipeline.hold(may_reorder=connection.may_reorder(frame))
        self._held.append(HeldCommand(connection, frame, fault, answer, write, self._now))
        return None

    def _strike_before(self, connection: ClientConnection, frame: Frame, fault: faults.FaultBeforeApplying) -> Delivery:
        match fault:
            case faults.HangUpBeforeApplying():
                return Delivery(hangs_up=True)
            case faults.AnswerStatus(code, body, datatype):
                answer = CommandAnswer(code, value=body, datatype=datatype)
                return Delivery(replies.encode_reply(connection, frame, answer), code)
            case faults.AnswerNotMyVbucket(with_config):
                body = self._state.config_for(connection) if with_config else b""
                answer = CommandRefused(Status.NOT_MY_VBUCKET, body=body).answer(
                    Status.NOT_MY_VBUCKET, with_context=False
                )
                return Delivery(
                    replies.encode_reply(connection, frame, replies.fitted(connection, answer)), answer.status
                )
            case _:
                assert_never(fault)
