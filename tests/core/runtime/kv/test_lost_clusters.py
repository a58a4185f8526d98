"""Lost clusters: if no node is reachable, the client returns to its seed nodes."""

from __future__ import annotations

import pytest

from tests.core.runtime.kv.simulated import Recorded, client_options, get, node_options, upsert
from tests.core.runtime.kv.test_cluster import KEYS, MUTE, RecordedCluster, stream_to, written
from triclinium_core.contract.neutral import LossCause, StreamId
from triclinium_core.kv.operation.document_operations import Keyspace, Noop
from triclinium_core.kv.wire.config_version import CONFIG_VERSION
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes, NodePort
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES

NODES = [(f"{name}.example", 11210) for name in "abcdef"]
OLD, NEW = range(3), range(3, 6)
SEED = "seed.example"


class Moving(Recorded):
    """Simulation of three nodes with three spare nodes; the seeds are the first node and an alias."""

    def __init__(self, features: frozenset[HelloFeature] = IMPLEMENTED_FEATURES) -> None:
        self.lead: int | None = 0
        """Index of the node to which the alias leads; None if it leads to no node."""
        nodes = FakeNodes(node_options(buckets=("travel", "beer"), features=features), nodes=NODES)
        for place in NEW:
            nodes.remove_node(place)
        super().__init__(nodes, client_options(f"couchbase://a.example:11210,{SEED}:11210"))

    def _port_at(self, host: str, port: int, *, tls: bool) -> NodePort | None:
        if host != SEED:
            return super()._port_at(host, port, tls=tls)
        return NodePort(self.nodes[self.lead], Service.KV) if self.lead is not None else None

    def write(self) -> None:
        """Write documents on all nodes."""
        for key in KEYS[:20]:
            self.result(upsert(key))

    def replace_all(self) -> None:
        """Replace all nodes at the same time, so that no old node can announce a new one."""
        for place in NEW:
            self.nodes.add_node(place)
        for place in OLD:
            self.nodes.hold_config(place)
            self.nodes.kill(place)
            self.nodes.remove_node(place)
        self.lead = NEW[0]


@pytest.mark.parametrize("features", [IMPLEMENTED_FEATURES, MUTE], ids=["announced", "polled"])
def test_all_nodes_are_replaced_at_once(features: frozenset[HelloFeature]) -> None:
    """If all nodes are replaced at the same time, the client finds the new ones through its seed nodes."""
    simulation = Moving(features=features)
    simulation.write()
    simulation.replace_all()
    simulation.live(5.0)
    simulation.write()
    simulation.live(5.0)

    assert {"d.example:11210", "e.example:11210", "f.example:11210"} == simulation.addresses()
    assert 4 == len(simulation.links)


@pytest.mark.parametrize("epoch", [1, 2])
def test_a_recreated_cluster(epoch: int) -> None:
    """If a cluster is created again, the client accepts its lower revisions once all old nodes are lost."""
    simulation = Moving()
    simulation.nodes.set_config_revision(900, epoch=epoch)
    simulation.write()
    simulation.live(1.0)
    simulation.replace_all()
    simulation.nodes.set_config_revision(2, epoch=1)
    simulation.live(5.0)
    simulation.write()

    assert (1, 2) == simulation.machine.statistics().connections[-1].config_revision


def test_recreated_nodes() -> None:
    """If the same nodes form a new cluster, the client accepts its lower revision and opens no further connections."""
    simulation = Moving()
    simulation.nodes.set_config_revision(900)
    simulation.write()
    simulation.live(1.0)
    for place in OLD:
        simulation.nodes.kill(place)
    simulation.live(3.0)
    simulation.nodes.set_config_revision(2)
    for place in OLD:
        simulation.nodes.revive(place)
    simulation.live(3.0)
    simulation.write()

    assert (1, 2) == simulation.machine.statistics().connections[-1].config_revision
    assert 4 == len(simulation.links)


def opening(simulation: RecordedCluster, bucket: str | None, place: int) -> StreamId:
    """Let time pass until the client opens a connection of a bucket to a node again; return the stream."""
    while True:
        for name, link in simulation.links.items():
            node = simulation.clients[0]._connections.streams.connection(name)
            if node is not None and node.bucket == bucket and link.node is simulation.nodes[place] and not link.is_open:
                return name
        simulation.now = simulation.machine.wakeup
        simulation.tick()


def test_a_cluster_lost_during_a_bootstrap() -> None:
    """If the cluster is lost during a bootstrap, the client requests the config again, without a known version."""
    simulation = written(2)
    simulation.lose(stream_to(simulation, 0))
    simulation.lose(opening(simulation, "travel", 0), LossCause.REFUSED)
    coming_back = opening(simulation, "travel", 0)
    simulation.open(coming_back)
    simulation.nodes.kill(1)
    simulation.lose(stream_to(simulation, 1))
    simulation.open(opening(simulation, "travel", 1))
    simulation.live(0.1)
    requests = simulation.requests[coming_back]

    assert [CONFIG_VERSION.pack(1, 1), b""] == [
        request.extras for request in requests if request.opcode == Opcode.GET_CLUSTER_CONFIG
    ]


def test_some_nodes_can_be_reached() -> None:
    """While some nodes are reachable, the client neither returns to its seeds nor accepts older configs."""
    simulation = Moving()
    simulation.write()
    opened = len(simulation.opened_at)
    simulation.nodes.kill(1)
    simulation.nodes.kill(2)
    simulation.live(30.0)

    assert {"b.example", "c.example"} == {order.host for _, order in simulation.opened_at[opened:]}
    assert (1, 4) == simulation.machine.statistics().connections[-1].config_revision


def test_attempts_are_bounded_during_an_outage() -> None:
    """In an outage, a connection makes at most about one attempt per second, and the client opens at most one more."""
    simulation = Moving()
    simulation.write()
    connections = len(simulation.machine.statistics().connections)
    for place in OLD:
        simulation.nodes.kill(place)
    opened = len(simulation.opened_at)
    simulation.live(60.0)

    assert connections + 1 >= len(simulation.machine.statistics().connections)
    assert 60 * (connections + 1) + 60 > len(simulation.opened_at) - opened


def test_a_seed_that_lists_dead_nodes_only() -> None:
    """If a seed lists only dead nodes, the client tries it every 2.5 s, and recovers when the nodes are back."""
    simulation = Moving()
    simulation.nodes.remove_node(0)
    simulation.write()
    for place in (1, 2):
        simulation.nodes.kill(place)
    opened = len(simulation.opened_at)
    simulation.live(30.0)
    asked = [order for _, order in simulation.opened_at[opened:] if order.host in {"a.example", SEED}]

    assert 10 <= len(asked) <= 14

    simulation.nodes.revive(1)
    simulation.nodes.revive(2)
    simulation.live(2.0)
    simulation.write()


def test_a_bucket_opened_after_the_seeds_died() -> None:
    """If the seed nodes have died, the connection without a bucket moves to a node of the global config."""
    simulation = Moving()
    simulation.write()
    simulation.lead = None
    simulation.nodes.remove_node(0)
    simulation.nodes.kill(0)
    simulation.live(5.0)
    simulation.finish(Noop(Keyspace("beer")))
    (global_connection,) = (each for each in simulation.machine.statistics().connections if each.bucket is None)

    assert "READY" == global_connection.state
    assert global_connection.node in {"b.example:11210", "c.example:11210"}


def test_a_bucket_skips_a_dead_seed() -> None:
    """The connection of a bucket starts with the seed that was reached, and does not try a dead seed again."""
    simulation = Recorded(
        FakeNodes(node_options(), nodes=NODES[:2]),
        client_options("couchbase://dead.example:1,b.example:11210"),
    )
    simulation.live(1.0)
    simulation.finish(get())
    hosts = [order.host for _, order in simulation.opened_at]

    assert ["dead.example", "b.example", "b.example", "a.example"] == hosts


def test_a_lost_cluster_chooses_its_network_again() -> None:
    """After a client has lost all nodes, the next config selects its network again."""
    simulation = Moving()
    simulation.write()
    simulation.replace_all()
    for place in NEW:
        host = SEED if place == NEW[0] else f"{place}.example"
        simulation.nodes.set_alternate_addresses(place, {"external": (host, 11210)})
    simulation.live(5.0)
    networks = [each.network for each in simulation.machine.statistics().topologies if each.bucket == "travel"]

    assert ["external"] == networks
