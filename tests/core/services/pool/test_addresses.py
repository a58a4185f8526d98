"""Where each service is reached, by what is known of a cluster and its buckets."""

from __future__ import annotations

from collections.abc import Sequence

from tests.rows import rows
from triclinium_core.kv.address import Address
from triclinium_core.kv.topology.topology import Topology, TopologyNode
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.services.pool.addresses import addresses_of

PORTS = {"kv": 11210, "capi": 8092, "capiSSL": 18092, "n1ql": 8093, "mgmt": 8091}
A, B = TopologyNode("10.0.0.1", PORTS), TopologyNode("10.0.0.2", {"kv": 11210, "capi": 8092, "mgmt": 8091})
QUERY_ONLY = TopologyNode("10.0.0.3", {"n1ql": 8093, "mgmt": 8091})
CLUSTER = Topology(None, (1, 5), (A, B, QUERY_ONLY))
TRAVEL = Topology("travel", (1, 4), (B,))
HOTELS = Topology("hotels", (1, 9), (A, QUERY_ONLY))


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
    assert hosts == [each.host for each in addresses_of(service, known, bucket=bucket, tls=False)]


def test_tls() -> None:
    """It has ports of its own; a node without one for it is passed over."""
    assert (Address("10.0.0.1", 18092),) == addresses_of(Service.VIEWS, (CLUSTER,), bucket=None, tls=True)
    assert (Address("10.0.0.1", 8092), Address("10.0.0.2", 8092)) == addresses_of(
        Service.VIEWS, (CLUSTER,), bucket=None, tls=False
    )


def test_nodes_in_no_network_of_the_client() -> None:
    """Nothing is sent to them: where they say that they are, another machine may take the credentials."""
    elsewhere = TopologyNode("10.0.0.2", PORTS, is_reached=False)

    assert (Address("10.0.0.1", 8093),) == addresses_of(
        Service.QUERY, (Topology(None, (1, 5), (A, elsewhere)),), bucket=None, tls=False
    )
