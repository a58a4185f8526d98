"""HTTP connections of one fake node, and the choice of the service for each request."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.cluster.network import FakeNetwork
from triclinium_core.testing.fakes.cluster.outbox import NodeAction
from triclinium_core.testing.fakes.fault_table import Faults
from triclinium_core.testing.fakes.faults import ServiceFaultBeforeApplying
from triclinium_core.testing.fakes.services.answers import ServiceReply
from triclinium_core.testing.fakes.services.connection.connection import ServedConnection
from triclinium_core.testing.fakes.services.connection.credentials import is_let_in, is_public
from triclinium_core.testing.fakes.services.fake_request import FakeRequest
from triclinium_core.testing.fakes.services.management import management
from triclinium_core.testing.fakes.services.request_log import LoggedRequest, request_log_limit
from triclinium_core.testing.fakes.services.search import search
from triclinium_core.testing.fakes.services.statements import analytics, query
from triclinium_core.testing.fakes.services.views import views
from triclinium_core.testing.fakes.store.state import NodeState

Answering = Callable[[NodeState, FakeRequest], ServiceReply]

NO_TUNNEL = ServiceReply(
    status=501,
    body=b"this fake server does not support CONNECT\n",
    content_type="text/plain",
    headers={"Connection": "close"},
    applied=False,
)
"""Reply to every CONNECT (RFC 9110 §9.3.6). No fault or script replaces it: a 2xx status would begin a tunnel."""


class ServiceRole(NamedTuple):
    """Functions that implement one service of a node."""

    answer: Answering
    unauthorized: Answering
    """Function that answers a client without valid credentials."""
    script_key: Callable[[NodeState, FakeRequest], str | None]
    """Function that returns the key of a request in the script, or None if it has none."""


ROLES: Mapping[Service, ServiceRole] = {
    service: ServiceRole(module.answer, module.unauthorized, module.script_key)
    for service, module in (
        (Service.MANAGEMENT, management),
        (Service.VIEWS, views),
        (Service.QUERY, query),
        (Service.SEARCH, search),
        (Service.ANALYTICS, analytics),
    )
}


class ServiceServer:
    """Services of one node; ``log`` holds their requests."""

    def __init__(self, node: NodeState, faults: Faults, network: FakeNetwork) -> None:
        self.log: list[LoggedRequest] = []
        self._log_limit = request_log_limit()
        self.listener: Callable[[LoggedRequest], None] | None = None
        """Callback for each logged request; None without one."""
        self._node = node
        self._faults = faults
        self._network = network
        self._connections: dict[int, ServedConnection] = {}

    def __contains__(self, number: int) -> bool:
        return number in self._connections

    def __len__(self) -> int:
        return len(self._connections)

    @property
    def due(self) -> float:
        """Time at which the node must send something; ``-inf`` for immediately, infinity for never."""
        if not self._connections:
            return math.inf
        return min(map(self._due_of, self._connections.values()))

    def open(self, number: int, service: Service, unsent_size_max: float) -> None:
        """Open a connection."""
        self._connections[number] = ServedConnection(number, service, unsent_size_max)

    def certificate_shown(self, number: int) -> None:
        """Record that the client of a connection has presented an accepted certificate."""
        self._connections[number].has_certificate = True

    def may_be_read(self, number: int) -> bool:
        """Return whether the node reads more bytes from a client."""
        return self._connections[number].may_be_read

    def receive(self, number: int, data: bytes, now: float) -> list[NodeAction]:
        """Process bytes from a client, split at any position."""
        connection = self._connections[number]
        return self._go_on(connection, connection.receive(data, self._faults), now)

    def written(self, number: int, size: int, now: float) -> list[NodeAction]:
        """Record that ``size`` bytes were written, and send the data that waited for this."""
        connection = self._connections[number]
        connection.written(size)
        return self._go_on(connection, None, now)

    def time_passed(self, now: float) -> list[NodeAction]:
        """Return the actions that send all due data."""
        actions: list[NodeAction] = []
        for connection in list(self._connections.values()):
            if self._due_of(connection) <= now:
                actions += self._go_on(connection, None, now)
        return actions

    def lost(self, number: int) -> None:
        """Forget a connection that its client closed or lost."""
        logged = self._connections.pop(number).logged
        if logged is not None:
            logged.client_hung_up = True

    def hang_up(self, services: Collection[Service]) -> Sequence[int]:
        """Forget all connections to these services, and return their numbers."""
        numbers = [number for number, connection in self._connections.items() if connection.service in services]
        for number in numbers:
            del self._connections[number]
        return numbers

    def _go_on(self, connection: ServedConnection, request: FakeRequest | None, now: float) -> list[NodeAction]:
        """Answer a request, and then the requests that arrived after it, until a response cannot be completed now."""
        actions: list[NodeAction] = []
        while True:
            if request is not None:
                self._take_up(connection, request, now)
            self._follow(connection, now)
            was_answering = connection.is_answering
            actions += connection.leave(now)
            if connection.is_over:
                del self._connections[connection.number]
                return actions
            if connection.follows(self._node.map.version):
                request = None
            elif connection.is_answering or not was_answering:
                return actions
            else:
                request = connection.next_request(self._faults)

    def _due_of(self, connection: ServedConnection) -> float:
        is_due = connection.follows(self._node.map.version) or self._follows_nothing(connection)
        return -math.inf if is_due else connection.due

    def _follows_nothing(self, connection: ServedConnection) -> bool:
        """Return whether a client listens to configs of a bucket that was dropped."""
        return bool(connection.followed) and connection.followed not in self._node.cluster.buckets

    def _follow(self, connection: ServedConnection, now: float) -> None:
        """Send the newest config to a client that listens and does not have it."""
        version = self._node.map.version
        if self._follows_nothing(connection):
            # Source: ns_server, the streaming endpoints: the stream ends with the bucket.
            connection.is_over = True
        elif connection.followed is not None and connection.follows(version):
            connection.known_version = version
            config = management.config_of(self._node, connection.followed or None)
            # Source: ns_server, the streaming endpoints: each config ends with four line feeds.
            connection.push(config + b"\n\n\n\n", now)

    def _take_up(self, connection: ServedConnection, request: FakeRequest, now: float) -> None:
        fault, connection.fault = connection.fault, None
        self._node.cluster.schedule.request_arrived()
        role = ROLES[connection.service]
        reply = ServiceReply(applied=False)
        if request.method == "CONNECT":
            fault, reply = None, NO_TUNNEL
        elif not isinstance(fault, ServiceFaultBeforeApplying):
            reply = self._reply(connection, role, request)
            fault = reply.fault if fault is None else fault
        connection.logged = logged = LoggedRequest(
            connection=connection.number,
            service=connection.service,
            method=request.method,
            target=request.target,
            statement=role.script_key(self._node, request),
            body=request.body,
            now=now,
            fault=fault,
            status=None,
            applied=reply.applied,
        )
        logged.status = connection.travel(reply, fault, self._network.slowness, now).status
        self._log_limit.add(self.log, logged)
        if self.listener is not None:
            self.listener(logged)

    def _reply(self, connection: ServedConnection, role: ServiceRole, request: FakeRequest) -> ServiceReply:
        users = self._node.cluster.services.users
        is_entitled = connection.has_certificate or is_let_in(request, self._node.options, users)
        if is_entitled or is_public(connection.service, request):
            return role.answer(self._node, request)
        return replace(role.unauthorized(self._node, request), applied=False)
