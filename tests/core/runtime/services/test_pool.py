"""Endpoints of services: their choice, removed nodes, and the warning about credentials over plain HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from tests.core.runtime.services.asking import ADMINISTRATOR, Asking, asking
from tests.rows import rows
from triclinium_core.contract.couchbase import Action
from triclinium_core.contract.neutral import ReportConnection, ReportLevel
from triclinium_core.kv.address import Address
from triclinium_core.kv.operation.inquiries import Ping
from triclinium_core.kv.topology.topology import Topology, TopologyNode
from triclinium_core.options import Authenticator, ClientOptions, JwtAuthenticator
from triclinium_core.retry.couchbase import BreakerEvent, CircuitBreakerOptions, RetryReason, Service
from triclinium_core.runtime.services import pool
from triclinium_core.runtime.services.pool import NODES_NAMED_MAX
from triclinium_core.runtime.toolkit import toolkit_of
from triclinium_core.testing.simulation import MIDPOINT


def warnings(simulation: Asking) -> list[str]:
    """Return the node in each warning that recommends ``couchbases://``."""
    return [
        action.node
        for action in simulation.actions
        if isinstance(action, ReportConnection)
        and action.level is ReportLevel.WARNING
        and "couchbases://" in action.text
    ]


@pytest.mark.parametrize(
    "authenticator",
    [ADMINISTRATOR, JwtAuthenticator("a.b.c", allow_unencrypted=True)],
    ids=["basic", "bearer"],
)
def test_credentials_over_plain_http(authenticator: Authenticator) -> None:
    """For any number of requests and nodes, one warning names the first node that receives credentials."""
    simulation = Asking(hosts=["a.example", "b.example"], tokens=("a.b.c",), authenticator=authenticator)
    for _ in range(10):
        simulation.request(asking())
    simulation.run()
    simulation.finish(asking())

    (node,) = warnings(simulation)
    assert node in {each.node for each in simulation.machine.statistics().endpoints}


def test_pings_alone_cause_no_warning() -> None:
    """If a program uses key-value and only pings other services, it sends no credentials and gets no warning."""
    simulation = Asking(hosts=["a.example"])
    simulation.inquire(Ping(None, "i"))
    simulation.run()

    assert [] == warnings(simulation)
    assert simulation.asked


LOOPBACK = ("127.0.0.1", "127.8.9.10", "::1", "localhost", "LocalHost.")


@pytest.mark.parametrize(
    "host", [*LOOPBACK, "10.0.0.5", "fd00::1", "127.evil.example", "localhost.evil.example", "128.0.0.1"]
)
def test_credentials_on_loopback(host: str) -> None:
    """Credentials over plain HTTP cause one warning unless the node is on loopback; a similar name does not count."""
    simulation = Asking(hosts=[host])
    simulation.finish(asking())

    assert (host not in LOOPBACK) == len(warnings(simulation))


class Changing:
    """Pool of a cluster with one node, which a test can replace."""

    def __init__(self) -> None:
        options = ClientOptions(connection_string="couchbase://a.example", authenticator=ADMINISTRATOR)
        tools = toolkit_of(options, rng=MIDPOINT, emit=list[Action]().append)
        self.timers = tools.timers
        self.topologies: dict[str | None, Topology] = {None: self._topology(0)}
        self.pool = pool.Pool(self.topologies, tools, tls=False)

    def move(self, number: int) -> None:
        """Replace the node with another one."""
        self.topologies[None] = self._topology(number)

    def _topology(self, number: int) -> Topology:
        return Topology(None, (1, number + 1), (TopologyNode("a.example", {"n1ql": 1000 + number}),))


def test_endpoints_of_nodes_that_left_are_forgotten() -> None:
    """Even if a client is never idle, it keeps only the endpoints of nodes in the topology."""
    changing = Changing()
    (endpoint,) = changing.pool.endpoints_of(Service.QUERY)
    for number in range(1, 100):
        changing.move(number)
        (endpoint,) = changing.pool.endpoints_of(Service.QUERY)
        for _ in range(100):
            changing.pool.feed_breaker(endpoint, BreakerEvent.OPERATION_TIMED_OUT, 0.0)

    assert [endpoint] == list(changing.pool.endpoints)
    assert 1 == len(changing.timers)


def test_an_endpoint_in_use_is_kept() -> None:
    """If an endpoint has a queued request when its node leaves, the endpoint is kept until the request has ended."""
    changing = Changing()
    (used,) = changing.pool.endpoints_of(Service.QUERY)
    used.waiting[1] = None
    changing.move(1)
    (second,) = changing.pool.endpoints_of(Service.QUERY)
    during = list(changing.pool.endpoints)
    used.waiting.clear()
    changing.move(2)
    (third,) = changing.pool.endpoints_of(Service.QUERY)

    assert [used, second] == during
    assert [third] == list(changing.pool.endpoints)


def endpoint(host: str, waiting: int = 0) -> pool.Endpoint:
    """Return the query endpoint of a node with this number of queued requests."""
    options = CircuitBreakerOptions(volume_threshold=1)
    made = pool.Endpoint(Service.QUERY, Address(host, 8093), connections_max=1, circuit_breaker=options)
    made.waiting.update(dict.fromkeys(range(waiting)))
    return made


def test_the_endpoint_with_the_least_to_do() -> None:
    """The pool chooses the endpoint with the least load and a closed breaker, and an endpoint to avoid only last."""
    busy, free, broken = endpoint("a", 2), endpoint("b", 1), endpoint("c")
    broken.breaker.handle(BreakerEvent.OPERATION_TIMED_OUT, 0.0)

    assert free is pool.choose([busy, free, broken], avoided=None)
    assert busy is pool.choose([busy, free, broken], avoided=free.address)
    assert free is pool.choose([free, broken], avoided=free.address)
    assert pool.choose([broken], avoided=None) is None


def test_streams_as_many_as_are_needed() -> None:
    """An endpoint needs a new stream if it has more queued requests than streams that are free or opening."""
    crowded, alone = endpoint("a", 3), endpoint("b", 0)

    assert crowded.needs_stream
    assert not alone.needs_stream
    assert "a:8093" in repr(crowded)
    assert 3 == crowded.load


PORTS = {"kv": 11210, "capi": 8092, "capiSSL": 18092, "n1ql": 8093, "mgmt": 8091}
A, B = TopologyNode("10.0.0.1", PORTS), TopologyNode("10.0.0.2", {"kv": 11210, "capi": 8092, "mgmt": 8091})
QUERY_ONLY = TopologyNode("10.0.0.3", {"n1ql": 8093, "mgmt": 8091})
CLUSTER = Topology(None, (1, 5), (A, B, QUERY_ONLY))
TRAVEL = Topology("travel", (1, 4), (B,))
HOTELS = Topology("hotels", (1, 9), (A, QUERY_ONLY))


def by_bucket(*topologies: Topology) -> Mapping[str | None, Topology]:
    """Return topologies by bucket name."""
    return {topology.bucket: topology for topology in topologies}


@rows(("known", "service", "bucket", "hosts"), [
        ((CLUSTER, HOTELS), Service.QUERY, None, ["10.0.0.1", "10.0.0.3"]),
        ((CLUSTER, HOTELS), Service.ANALYTICS, None, []),
        ((CLUSTER, TRAVEL), Service.VIEWS, "travel", ["10.0.0.2"]),
        ((CLUSTER, TRAVEL), Service.QUERY, "travel", []),
        ((CLUSTER, HOTELS), Service.VIEWS, "travel", ["10.0.0.1", "10.0.0.2"]),
        ((TRAVEL, HOTELS), Service.MANAGEMENT, None, ["10.0.0.1", "10.0.0.3"]),
        ((TRAVEL, HOTELS), Service.VIEWS, "beer", ["10.0.0.1"]),
        ((), Service.QUERY, None, []),
    ])  # fmt: skip
def test_nodes(known: Sequence[Topology], service: Service, bucket: str | None, hosts: list[str]) -> None:
    """The pool uses the nodes of the bucket, else those of the cluster, else those of the newest topology."""
    assert hosts == [each.host for each in pool.addresses_of(service, by_bucket(*known), bucket=bucket, tls=False)]


def test_tls() -> None:
    """With TLS, the pool uses only nodes that have a TLS port for the service."""
    assert (Address("10.0.0.1", 18092),) == pool.addresses_of(Service.VIEWS, by_bucket(CLUSTER), bucket=None, tls=True)
    assert (Address("10.0.0.1", 8092), Address("10.0.0.2", 8092)) == pool.addresses_of(
        Service.VIEWS, by_bucket(CLUSTER), bucket=None, tls=False
    )


def test_nodes_in_no_network_of_the_client() -> None:
    """The pool sends nothing to a node outside the client's network, where its address may be another machine."""
    elsewhere = TopologyNode("10.0.0.2", PORTS, is_reached=False)

    assert (Address("10.0.0.1", 8093),) == pool.addresses_of(
        Service.QUERY, by_bucket(Topology(None, (1, 5), (A, elsewhere))), bucket=None, tls=False
    )


OUTSIDE = TopologyNode("10.0.0.1", PORTS, is_reached=False)
INSIDE = TopologyNode("ext.example", {"kv": 31210}, is_reached=True)


@rows(("nodes", "tls", "reason", "text"), [
        ((), False, RetryReason.SERVICE_NOT_AVAILABLE, "no node of bucket travel has the query service"),
        ((B,), False, RetryReason.SERVICE_NOT_AVAILABLE, "no node of bucket travel has the query service"),
        (
            (A,), True, RetryReason.SERVICE_NOT_AVAILABLE,
            "no node of bucket travel has the query service over TLS, and some have it without: check their configuration",
        ),
        (
            (OUTSIDE, TopologyNode("b", {"kv": 11210}, is_reached=False)), False, RetryReason.NODE_NOT_AVAILABLE,
            ("the query service is on 10.0.0.1:8093, and no node of the cluster is in network 'external'; the networks of "
            "its config are default, other: open the cluster with network='auto', or with the name of one of them"),
        ),
        (
            (OUTSIDE, INSIDE), False, RetryReason.NODE_NOT_AVAILABLE,
            "the query service is on 10.0.0.1:8093, and none of them has an address in network 'external'",
        ),
        (
            (OUTSIDE,) * (NODES_NAMED_MAX + 2) + (INSIDE,), False, RetryReason.NODE_NOT_AVAILABLE,
            (f"the query service is on {'10.0.0.1:8093, ' * NODES_NAMED_MAX}2 more, and none of them has an address in "
            "network 'external'"),
        ),
    ])  # fmt: skip
def test_why_a_service_is_reached_nowhere(
    nodes: tuple[TopologyNode, ...], tls: bool, reason: RetryReason, text: str
) -> None:
    """The obstacle is that no node has the service, or that no node with it is in the client's network."""
    known = by_bucket(Topology("travel", (1, 5), nodes, None, "external", ("default", "other")))

    assert (reason, text) == pool.obstacle_of(Service.QUERY, known, bucket="travel", tls=tls)


def test_nodes_outside_the_network() -> None:
    """Nodes with the service outside the client's network are listed with their default addresses."""
    nodes = (OUTSIDE, INSIDE, A, TopologyNode("b", {"kv": 1}, is_reached=False))
    known = by_bucket(Topology(None, (1, 5), nodes, None, "external"))
    reported = "10.0.0.1:8093: the node has no address in network 'external'"

    assert ((Address("10.0.0.1", 8093), reported),) == pool.outside_of(Service.QUERY, known, bucket=None, tls=False)
    assert () == pool.outside_of(Service.QUERY, known, bucket=None, tls=True)
    assert () == pool.outside_of(Service.QUERY, {}, bucket=None, tls=False)


def test_nothing_is_known() -> None:
    """If there is no topology, the obstacle is that no node has the service."""
    assert (RetryReason.SERVICE_NOT_AVAILABLE, "no node has the query service") == pool.obstacle_of(
        Service.QUERY, {}, bucket=None, tls=True
    )
