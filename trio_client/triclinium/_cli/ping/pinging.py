"""Ping of one node and of the services of all nodes, with the negotiated features.

The ping of a node opens a client with a strategy that refuses every retry, so the report shows the first failure.
"""

from __future__ import annotations

import math
import ssl
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from urllib.parse import urlencode

import trio

from triclinium import Cluster, PasswordAuthenticator, Service, TimeoutOptions, open_cluster
from triclinium._driver.connector import TcpConnector
from triclinium._driver.tls_stream import TlsStream
from triclinium.abc import ConnectedStream
from triclinium.health import ConnectionStatistics, EndpointPingReport, PingState
from triclinium_core import errors
from triclinium_core.contract.neutral import LossCause
from triclinium_core.kv.address import Address
from triclinium_core.kv.topology import connection_string
from triclinium_core.kv.topology.connection_string import DEFAULT_PORTS, Scheme
from triclinium_core.options import SECONDS_MAX
from triclinium_core.retry.couchbase import FailFastRetryStrategy, subject
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.shown import printable

NOOPS = 9
"""Number of measured round trips; the report shows their median."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Settings of a ping. ``limit`` is the time limit in seconds for each node and each service."""

    authenticator: PasswordAuthenticator | None
    bucket: str | None
    ssl_context: ssl.SSLContext | None
    limit: float


@dataclass(frozen=True, slots=True)
class PingedConnection:
    """Connection that became ready. Durations are in seconds."""

    negotiated: ConnectionStatistics
    tls: str | None
    """Version of TLS; None without TLS."""
    ready_after: float
    round_trip: float
    """Median of ``NOOPS`` NOOPs."""


@dataclass(frozen=True, slots=True)
class PingedNode:
    """Result of one node: the connections that answered, and the problem that ended the ping, if any."""

    node: str
    connections: tuple[PingedConnection, ...]
    problem: str | None
    itself: Address | None = None
    """Key-value address of the node in its config; None without one. Its host name may differ from the pinged one."""
    cluster: Sequence[Address] = ()
    """Key-value addresses of all nodes with key-value in the node's config."""


@dataclass(frozen=True, slots=True)
class PingedCluster:
    """Results of all nodes and services."""

    nodes: Sequence[PingedNode]
    endpoints: Mapping[Service, Sequence[EndpointPingReport]] = field(default_factory=dict)
    """Reports of the HTTP services, and of key-value if no node has listed any services."""

    @property
    def problems(self) -> list[str]:
        """All problems, one line each."""
        of_nodes = [node.problem for node in self.nodes if node.problem is not None]
        return of_nodes + [
            _one_line(
                f"{found.remote}: {service}: {(found.error or found.state.value).removeprefix(f'{found.remote}: ')}"
            )
            for service, reports in self.endpoints.items()
            for found in reports
            if found.state is not PingState.OK
        ]


def written(target: connection_string.ConnectionString) -> str | None:
    """Return ``target`` as text. None if a host from a config makes the text invalid or changes its meaning."""
    text = f"{target.scheme}://{','.join(map(str, target.addresses))}?{urlencode(target.options)}".removesuffix("?")
    try:
        read = connection_string.parse_connection_string(text)
    except errors.InvalidArgumentException:
        return None
    return text if (read.addresses, read.options) == (target.addresses, target.options) else None


async def ping_node(target: connection_string.ConnectionString, plan: Plan) -> PingedNode:
    """Ping the only node of ``target``. Return its negotiated features, and a problem instead of an exception."""
    text = written(target)
    if text is None:
        node = printable(str(target.addresses[0]))
        return PingedNode(
            node, (), f"{node}: not pinged, because a connection string cannot name this host from the config"
        )
    connector = _NotingConnector(plan.ssl_context)
    connections: list[PingedConnection] = []
    problem = None
    async with open_cluster(
        text,
        plan.authenticator,
        timeouts=TimeoutOptions(kv=math.inf, connect=math.inf),
        retry_strategy=FailFastRetryStrategy(),
        connector=connector,
    ) as cluster:
        with trio.move_on_after(plan.limit) as scope:
            try:
                buckets = [None] if plan.bucket is None else [None, plan.bucket]
                for bucket in buckets:
                    # Connect one by one, so that the report has the connections made before a problem.
                    connections += [await _ping_connection(cluster, bucket, connector)]
            except errors.TimeoutException as error:
                # The timeout is not that of the plan if the connection string sets one.
                limit = error.context.timeout or plan.limit
                problem = describe_silence(_own_connections(cluster, target), limit, tls=target.tls)
            except errors.CouchbaseException as error:
                problem = describe_error(error, target)
        if scope.cancelled_caught:
            problem = describe_silence(_own_connections(cluster, target), plan.limit, tls=target.tls)
        itself, nodes = _nodes_in_config(cluster, tls=target.tls)
    return PingedNode(str(target.addresses[0]), tuple(connections), problem, itself, nodes)


def _own_connections(cluster: Cluster, target: connection_string.ConnectionString) -> Sequence[ConnectionStatistics]:
    # A bucket also has connections to the other nodes, which are not part of this ping.
    found = cluster.statistics().connections
    return [connection for connection in found if connection.node == str(target.addresses[0])] or found


def _nodes_in_config(cluster: Cluster, *, tls: bool) -> tuple[Address | None, Sequence[Address]]:
    """Return the key-value addresses of the sender of the cluster's config and of all nodes with key-value.

    Without a config, or if the sender has no key-value port, the first address is missing (None).
    """
    topology = next((found for found in cluster.statistics().topologies if found.bucket is None), None)
    if topology is None:
        return None, ()
    service = "kvSSL" if tls else "kv"
    addresses = {node: Address(node.host, node.ports[service]) for node in topology.nodes if service in node.ports}
    itself = next((address for node, address in addresses.items() if node == topology.source), None)
    return itself, tuple(addresses.values())


async def _ping_connection(cluster: Cluster, bucket: str | None, connector: _NotingConnector) -> PingedConnection:
    began = trio.current_time()
    await cluster._noop(bucket)
    ready_after = trio.current_time() - began
    round_trips = []
    for _ in range(NOOPS):
        began = trio.current_time()
        await cluster._noop(bucket)
        round_trips.append(trio.current_time() - began)
    negotiated = next(found for found in cluster.statistics().connections if found.bucket == bucket)
    return PingedConnection(negotiated, connector.tls, ready_after, median(round_trips))


class _NotingConnector:
    """Connector that connects like the client and records the version of TLS."""

    def __init__(self, ssl_context: ssl.SSLContext | None) -> None:
        self._connector = TcpConnector(ssl_context)
        self.tls: str | None = None

    async def connect(self, host: str, port: int, *, tls: bool) -> ConnectedStream:
        connected = await self._connector.connect(host, port, tls=tls)
        if isinstance(connected.stream, TlsStream):
            self.tls = connected.stream.version()
        return connected


async def ping_services(
    target: connection_string.ConnectionString, plan: Plan, services: Collection[Service]
) -> Mapping[Service, Sequence[EndpointPingReport]]:
    """Ping the HTTP services of all nodes. Return their reports, which include failures."""
    limit = min(plan.limit, SECONDS_MAX)
    text = written(target)
    assert text is not None, "the hosts are from a parsed connection string"
    async with open_cluster(
        text,
        plan.authenticator,
        timeouts=TimeoutOptions(
            kv=limit, connect=limit, query=limit, analytics=limit, search=limit, views=limit, management=limit
        ),
        connector=TcpConnector(plan.ssl_context),
    ) as cluster:
        watched = cluster if plan.bucket is None else cluster.bucket(plan.bucket)
        return (await watched.ping(service_types=services)).endpoints


NEXT_STEPS: tuple[tuple[str, str], ...] = (
    ("hostname mismatch", "connect with a host name from the certificate"),
    ("IP address mismatch", "connect with a host name from the certificate"),
    ("CERTIFICATE_VERIFY_FAILED", "pass the certificate of its CA with --ca-file"),
    ("TLS failed", "if the port does not use TLS, connect with couchbase://"),
    ("host name not resolved", "check the host name"),
    ("ports of the web console", ""),
    ("refused the credentials", "check the user name and the password"),
    ("before it responded to HELLO", "if the port uses TLS, with couchbases://"),
)
"""Next step for each text in a problem; the first match applies. It is empty if the message contains a next step."""

NOTHING_LISTENS: Mapping[Scheme, str] = {
    Scheme.COUCHBASE: f"KV is on {DEFAULT_PORTS[Scheme.COUCHBASE]}, or {DEFAULT_PORTS[Scheme.COUCHBASES]} with TLS",
    Scheme.COUCHBASES: f"KV with TLS is on {DEFAULT_PORTS[Scheme.COUCHBASES]}",
    Scheme.MEMCACHED: f"memcached is on {DEFAULT_PORTS[Scheme.MEMCACHED]}",
}
"""Text on the usual ports, by scheme."""

IF_NOT_MEMCACHED = "if the server is not a plain memcached, connect with couchbase://"


def describe_error(error: errors.CouchbaseException, target: connection_string.ConnectionString) -> str:
    """Return the problem in one line, with the next step if it is known."""
    text = error.context.last_dispatch_error or error.message.removeprefix(f"{subject(error.context)}: ")
    address = f"{target.addresses[0]}: "
    return _one_line("; ".join(filter(None, (address + text.removeprefix(address), _next_step(text, target.scheme)))))


def _next_step(text: str, scheme: Scheme) -> str:
    for words, step in NEXT_STEPS:
        if words.casefold() in text.casefold():
            return step
    if LossCause.REFUSED.value in text:
        return f"nothing listens there; {NOTHING_LISTENS[scheme]}"
    return IF_NOT_MEMCACHED if scheme is Scheme.MEMCACHED else ""


SILENCE: Mapping[str, str] = {
    ConnectionState.CONNECTING.name: "accepted no connection; a firewall may block the port",
    ConnectionState.NEGOTIATING.name: "accepted a connection but did not answer HELLO; use memcached:// for a plain "
    "memcached, and couchbases:// for a TLS port",
    ConnectionState.AUTHENTICATING.name: "did not finish authentication",
    ConnectionState.JOINING.name: "did not finish selecting the bucket and sending a cluster config",
    ConnectionState.READY.name: "did not answer a NOOP",
}
"""Text on the step that a node failed to complete in time, by the state of its connection."""

SILENCE_BEFORE_TLS = "completed no TLS handshake; if the port does not use TLS, connect with couchbase://"


def describe_silence(connections: Sequence[ConnectionStatistics], limit: float, *, tls: bool) -> str:
    """Return in one line what did not happen within ``limit`` seconds."""
    newest = connections[-1]
    silence = SILENCE.get(newest.state)
    if silence is None:
        reason = (newest.last_error or "the connection was lost").removeprefix(f"{newest.node}: ")
        return _one_line(f"{newest.node}: {reason}; not ready within {limit:g} s")
    if tls and newest.state == ConnectionState.CONNECTING.name:
        silence = SILENCE_BEFORE_TLS
    return _one_line(f"{newest.node}: within {limit:g} s it {silence}")


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))
