"""Waits until connections are ready and services respond.

A wait has no deadline. It ends when the cluster reaches the desired state. A terminal error that keeps the cluster from
this state fails the wait. The wait then raises the exception that an operation under the default retry strategy would
raise. An HTTP service has no permanent connection, so it is ready once it has responded to a ping of the wait.

Source: SDK-RFC 0061 "The waitUntilReady Command"; SDK-RFC 0049 rev 16 "Fail Fast (Terminal Errors)"; decision C6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from triclinium_core import errors
from triclinium_core.client.health.diagnostics import cluster_state
from triclinium_core.client.health.service_pings import endpoints_of, error_text, unanswered_text
from triclinium_core.contract.couchbase import CompleteOperation, FailOperation, TimerKind
from triclinium_core.contract.neutral import TimerId, Token
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.inquiries import WaitUntilReady
from triclinium_core.kv.operation.reports import ClusterState, Ready
from triclinium_core.retry.couchbase import TERMINAL_ERRORS, RetryReason, Service, refused
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.runtime.kv.known_cluster import KnownCluster
from triclinium_core.runtime.kv.pool.connection_texts import status_text
from triclinium_core.runtime.kv.pool.connections import Connections
from triclinium_core.runtime.services.pings import PingOutcome, ServicePings
from triclinium_core.runtime.services.pool import Endpoint, Pool
from triclinium_core.runtime.toolkit import Toolkit

PING_SECONDS_MAX = 10.0
"""Maximum timeout of one ping of a wait, in seconds. A service that has just started may never respond to the first
ping. The timeout of the service's requests would delay the next ping too long."""
PAUSE_SECONDS = 0.5
"""Seconds between a failed ping and the next ping: the longest backoff of SDK-RFC 0049 "Best Effort"."""


WORST_FIRST = (ClusterState.OFFLINE, ClusterState.DEGRADED, ClusterState.ONLINE)


class EndpointLife(Enum):
    """State of one HTTP endpoint in a wait."""

    PINGED = auto()
    ANSWERED = auto()
    FAILED = auto()
    """The last ping failed, and the wait pings the endpoint again."""


@dataclass(slots=True)
class _Answering:
    """Progress of a wait at one HTTP endpoint."""

    life: EndpointLife = EndpointLife.PINGED
    text: str | None = None
    """Reason why the last ping failed; None unless it failed."""
    timer: TimerId | None = None
    """Timer for the next ping; None unless the last ping failed."""


@dataclass(slots=True, eq=False)
class OpenWait:
    """One open wait for readiness."""

    token: int
    request: WaitUntilReady
    is_traced: bool
    """Whether the pings of the wait are reported to a tracer."""
    endpoints: dict[Endpoint, _Answering] = field(default_factory=dict)
    """HTTP endpoints that the wait has pinged, with its progress at each."""


class Readiness:
    """All open waits, by token."""

    def __init__(
        self,
        connections: Connections,
        pool: Pool,
        service_pings: ServicePings,
        cluster: KnownCluster,
        tools: Toolkit,
    ) -> None:
        self._connections = connections
        self._pool = pool
        self._service_pings = service_pings
        self._timeouts = tools.options.timeouts
        self._terminal_states = cluster.terminal_states
        self._timers = tools.timers
        self._emit = tools.emit
        self.open: dict[int, OpenWait] = {}
        """Open waits by token."""

    def submit(self, token: int, wait: WaitUntilReady, *, is_traced: bool) -> None:
        """Begin a wait. The next ``review`` pings its HTTP endpoints."""
        self.open[token] = OpenWait(token, wait, is_traced)

    def abandon(self, token: int, now: float) -> None:
        """Forget a wait, and close the HTTP connections on which its pings are unanswered. Ignore an unknown token."""
        wait = self.open.pop(token, None)
        if wait is not None:
            for known in wait.endpoints.values():
                self._timers.cancel(known.timer)
            self._service_pings.stop(wait, now)

    def not_ready(self, token: int) -> Sequence[str]:
        """Return, in words, what delays a wait: unready connections and services, or a network without addresses."""
        wait = self.open.get(token)
        if wait is None:
            return ()
        connections = [
            status_text(connection)
            for connection in self._connections.all
            if connection.bucket in (None, wait.request.bucket) and connection.state is not ConnectionState.READY
        ]
        services = [
            known.text or unanswered_text(endpoint)
            for endpoint, known in wait.endpoints.items()
            if known.life is not EndpointLife.ANSWERED
        ]
        obstacle = self._pool.network_obstacle()
        return connections + services + ([obstacle] if obstacle is not None else [])

    def review(self, now: float) -> None:
        """Ping the new endpoints of each wait. End the waits whose desired state is reached or impossible."""
        for wait in list(self.open.values()):
            self._look_at(wait, now)

    def service_answered(self, wait: OpenWait, outcome: PingOutcome, now: float) -> None:
        """Record the outcome of a wait's ping.

        If the ping failed, repeat it later, or fail the wait if a repetition cannot help.
        """
        known = wait.endpoints[outcome.endpoint]
        if outcome.error is None:
            known.life = EndpointLife.ANSWERED
        elif isinstance(outcome.error, errors.AuthenticationFailureException | errors.TlsException):
            text = f"{wait.request.name}: {error_text(outcome.endpoint, outcome.error)}"
            context = replace(outcome.error.context, operation=wait.request.name, bucket=wait.request.bucket)
            self._fail(wait, type(outcome.error)(text, context), now)
            return
        else:
            known.life, known.text = EndpointLife.FAILED, error_text(outcome.endpoint, outcome.error)
            subject = (wait, outcome.endpoint)
            known.timer = self._timers.schedule(now + PAUSE_SECONDS, TimerKind.READINESS, subject)
        self._look_at(wait, now)

    def ping_again(self, wait: OpenWait, endpoint: Endpoint, now: float) -> None:
        """Ping an endpoint again after a failed ping, if the cluster still has it."""
        del wait.endpoints[endpoint]
        self._look_at(wait, now)

    def unsupported(self, connection: Connection, detail: str, now: float) -> None:
        """Fail the waits for a connection whose server or bucket type the client does not support."""
        for wait in list(self.open.values()):
            if connection.bucket in (None, wait.request.bucket) and not connection.is_leaving:
                text = f"{wait.request.name}: {detail}"
                self._fail(wait, errors.UnsupportedOperationException(text, _context(wait.request, connection)), now)

    def _look_at(self, wait: OpenWait, now: float) -> None:
        endpoints = list(endpoints_of(wait.request, self._pool))
        for endpoint in endpoints:
            if endpoint not in wait.endpoints:
                wait.endpoints[endpoint] = _Answering()
                seconds = min(self._timeouts.of_service(endpoint.service), PING_SECONDS_MAX)
                self._service_pings.begin(
                    wait, endpoint, seconds, now, traced_as=Token(wait.token) if wait.is_traced else None
                )
        state = min(self._kv_state(wait.request), self._services_state(wait, endpoints), key=WORST_FIRST.index)
        if self._pool.network_obstacle() is not None:
            # The connection that sent the config works, but the config lists no address that the client can use.
            state = ClusterState.OFFLINE
        error = self._terminal_error(wait.request)
        if state is ClusterState.ONLINE or state is wait.request.desired_state:
            self.abandon(wait.token, now)
            self._emit(CompleteOperation(Token(wait.token), Ready(state)))
        elif error is not None:
            self._fail(wait, error, now)

    def _services_state(self, wait: OpenWait, endpoints: Sequence[Endpoint]) -> ClusterState:
        """Return the state of the endpoints; OFFLINE if none of the endpoints of a service has responded to a ping."""
        answered = [each for each in endpoints if wait.endpoints[each].life is EndpointLife.ANSWERED]
        if len(answered) == len(endpoints):
            return ClusterState.ONLINE
        has_all = {each.service for each in answered} == {each.service for each in endpoints}
        return ClusterState.DEGRADED if has_all else ClusterState.OFFLINE

    def _kv_state(self, wait: WaitUntilReady) -> ClusterState:
        routes = self._connections.routes
        if Service.KV not in wait.services:
            # Without key-value, a topology suffices unless the credentials are in doubt; so does a ready connection.
            is_known = self._pool.knows_topology and not self._credentials_in_doubt(wait)
            return ClusterState.ONLINE if is_known or routes.ready_count(wait.bucket) else ClusterState.OFFLINE
        state = cluster_state(routes.ready_count(wait.bucket), len(routes.all_of(wait.bucket)))
        # RFC 0061: the readiness of a bucket includes the connections without a bucket. Operations on documents need
        # only the connections of the bucket.
        is_whole = routes.ready_count(None) == len(routes.all_of(None))
        return ClusterState.DEGRADED if state is ClusterState.ONLINE and not is_whole else state

    def _credentials_in_doubt(self, wait: WaitUntilReady) -> bool:
        """Return whether a key-value node has refused the credentials or is checking them.

        Pings carry no credentials, so a successful ping does not prove that the credentials are valid.
        """
        if self._terminal_states.reason_for(Service.KV) is RetryReason.AUTHENTICATION_ERROR:
            return True
        connections = self._connections.routes.all_of(wait.bucket)
        return any(connection.state is ConnectionState.AUTHENTICATING for connection in connections)

    def _terminal_error(self, wait: WaitUntilReady) -> errors.CouchbaseException | None:
        reason = self._terminal_states.reason_for(Service.KV, bucket=wait.bucket)
        if reason is None and not self._connections.refused:
            return None
        concerned = [each for each in self._connections.all if each.bucket in (None, wait.bucket)]
        lost = [each for each in concerned if each.state is ConnectionState.LOST]
        if reason is None:
            reason = RetryReason.AUTHENTICATION_ERROR
            lost = [each for each in lost if each.history.last_end.is_refused]
            # Decision C6: the client's refusal of one node concerns that node alone, so it fails only a wait that
            # needs the node.
            if wait.desired_state is not ClusterState.ONLINE and len(lost) < len(concerned):
                return None
        # ``lost`` is empty while the client connects again, and if only connections of other buckets were refused.
        if not lost:
            return None
        return refused(TERMINAL_ERRORS[reason], reason, _context(wait, lost[-1]))

    def _fail(self, wait: OpenWait, error: errors.CouchbaseException, now: float) -> None:
        self.abandon(wait.token, now)
        self._emit(FailOperation(Token(wait.token), error))


def _context(wait: WaitUntilReady, connection: Connection) -> ErrorContext:
    return ErrorContext(
        service=str(Service.KV),
        operation=wait.name,
        idempotent=True,
        bucket=wait.bucket,
        last_dispatched_to=connection.node,
        last_dispatch_error=connection.history.last_end.error,
    )
