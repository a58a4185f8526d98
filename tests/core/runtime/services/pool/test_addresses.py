"""Where each service is reached, by what is known of a cluster and its buckets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.rows import rows
from triclinium_core.kv.address import Address
from triclinium_core.kv.topology.topology import Topology, TopologyNode
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.runtime.services.pool.addresses import NODES_NAMED_MAX, addresses_of, obstacle_of, outside_of

PORTS = {"kv": 11210, "capi": 8092, "capiSSL": 18092, "n1ql": 8093, "mgmt": 8091}
A, B = TopologyNode("10.0.0.1", PORTS), TopologyNode("10.0.0.2", {"kv": 11210, "capi": 8092, "mgmt": 8091})
QUERY_ONLY = TopologyNode("10.0.0.3", {"n1ql": 8093, "mgmt": 8091})
CLUSTER = Topology(None, (1, 5), (A, B, QUERY_ONLY))
TRAVEL = Topology("travel", (1, 4), (B,))
HOTELS = Topology("hotels", (1, 9), (A, QUERY_ONLY))


def by_bucket(*topologies: Topology) -> Mapping[str | None, Topology]:
    """Return topologies by their buckets."""
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
    """Those of the bucket, of the cluster where nobody has opened it, or of whatever is newest."""
    assert hosts == [each.host for each in addresses_of(service, by_bucket(*known), bucket=bucket, tls=False)]


def test_tls() -> None:
    """It has ports of its own; a node without one for it is passed over."""
    assert (Address("10.0.0.1", 18092),) == addresses_of(Service.VIEWS, by_bucket(CLUSTER), bucket=None, tls=True)
    assert (Address("10.0.0.1", 8092), Address("10.0.0.2", 8092)) == addresses_of(
        Service.VIEWS, by_bucket(CLUSTER), bucket=None, tls=False
    )


def test_nodes_in_no_network_of_the_client() -> None:
    """Nothing is sent to them: where they say that they are, another machine may take the credentials."""
    elsewhere = TopologyNode("10.0.0.2", PORTS, is_reached=False)

    assert (Address("10.0.0.1", 8093),) == addresses_of(
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
    """No node has it; or those that do are not where the client is, which is told with the networks that there are."""
    known = by_bucket(Topology("travel", (1, 5), nodes, None, "external", ("default", "other")))

    assert (reason, text) == obstacle_of(Service.QUERY, known, bucket="travel", tls=tls)


def test_nodes_outside_the_network() -> None:
    """Each that has the service is told by its own address, and none that is reached."""
    nodes = (OUTSIDE, INSIDE, A, TopologyNode("b", {"kv": 1}, is_reached=False))
    known = by_bucket(Topology(None, (1, 5), nodes, None, "external"))
    told = "10.0.0.1:8093: the node has no address in network 'external'"

    assert ((Address("10.0.0.1", 8093), told),) == outside_of(Service.QUERY, known, bucket=None, tls=False)
    assert () == outside_of(Service.QUERY, known, bucket=None, tls=True)
    assert () == outside_of(Service.QUERY, {}, bucket=None, tls=False)


def test_nothing_is_known() -> None:
    """Then no node has it."""
    assert (RetryReason.SERVICE_NOT_AVAILABLE, "no node has the query service") == obstacle_of(
        Service.QUERY, {}, bucket=None, tls=True
    )
