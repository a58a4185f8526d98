"""Networks: if nodes have several addresses, the client uses those of one network."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.runtime.kv.simulated import Recorded, client_options, node_options, upsert
from tests.core.runtime.kv.test_cluster import KEYS
from triclinium_core import errors
from triclinium_core.retry.couchbase import RetryReason
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes

EXTERNAL = "ext.example"
INSIDE = "couchbase://127.0.0.1:11210"
OUTSIDE = f"couchbase://{EXTERNAL}:31210"


class Forwarded(Recorded):
    """Simulation of two nodes that also have external addresses."""

    def __init__(self, connection_string: str, **options: Any) -> None:
        nodes = FakeNodes(node_options(alternate_addresses={"external": (EXTERNAL, 31210)}), nodes=2)
        super().__init__(nodes, client_options(connection_string, **options))

    def write(self) -> None:
        """Write documents on both nodes."""
        for key in KEYS:
            self.result(upsert(key))


@pytest.mark.parametrize(
    ("connection_string", "network", "addresses"),
    [
        (INSIDE, "auto", {"127.0.0.1:11210", "127.0.0.1:11212"}),
        (OUTSIDE, "auto", {f"{EXTERNAL}:31210", f"{EXTERNAL}:31212"}),
        (INSIDE, "external", {"127.0.0.1:11210", f"{EXTERNAL}:31212"}),
        (OUTSIDE, "default", {f"{EXTERNAL}:31210", "127.0.0.1:11212"}),
        (f"{OUTSIDE}?network=default", "external", {f"{EXTERNAL}:31210", "127.0.0.1:11212"}),
    ],
)
def test_all_nodes_are_reached_in_one_network(connection_string: str, network: str, addresses: set[str]) -> None:
    """The connection string selects the network, else the options do, else the seed does, whose connection stays."""
    simulation = Forwarded(connection_string, network=network)
    simulation.write()

    assert addresses == simulation.addresses()


def test_a_node_that_is_not_in_the_network() -> None:
    """If a node has no address in the network, its documents are unavailable, and the error names the node and the
    network.
    """
    simulation = Forwarded(OUTSIDE)
    simulation.nodes.set_alternate_addresses(1, {})
    lost = next(key for key in KEYS if simulation.nodes.owner_of(key) == 1)
    found = next(key for key in KEYS if simulation.nodes.owner_of(key) == 0)
    simulation.result(upsert(found))
    error = simulation.failure(errors.UnambiguousTimeoutException, upsert(lost))

    assert {f"{EXTERNAL}:31210"} == simulation.addresses()
    assert [RetryReason.NODE_NOT_AVAILABLE.name] == list(error.context.retry_reasons)
    assert "is on node 1 of the map, which has no address in network 'external'" in str(error)

    simulation.nodes.set_alternate_addresses(1, {"external": (EXTERNAL, 31212)})
    simulation.write()


def test_an_unknown_network() -> None:
    """If no node is in the network, the error lists the networks; the client keeps its connection for new configs."""
    simulation = Forwarded(INSIDE, network="extern")
    error = simulation.failure(errors.UnambiguousTimeoutException, upsert())

    assert "no node of the cluster is in network 'extern'" in str(error)
    assert "default, external" in str(error)

    simulation.nodes.set_alternate_addresses(0, {"extern": ("x.example", 1)})
    simulation.nodes.set_alternate_addresses(1, {"extern": ("x.example", 2)})
    simulation.write()

    assert {"127.0.0.1:11210", "x.example:2"} == simulation.addresses()
