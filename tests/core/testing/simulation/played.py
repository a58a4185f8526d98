"""Histories that several tests read, and a simulation whose clients have just started."""

from __future__ import annotations

from functools import cache

from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.simulation.chance import Chance
from triclinium_core.testing.simulation.history import COLLECTION_IDS, NODE_OPTIONS, ClusterHistory
from triclinium_core.testing.simulation.logged import LoggedSimulation
from triclinium_core.testing.simulation.simulation import client_options


@cache
def played(seed: int) -> ClusterHistory:
    """Return the complete history of a seed. A process plays each history once, so tests must not change it."""
    history = ClusterHistory(seed)
    history.run()
    return history


def two_nodes(clients: int = 1) -> LoggedSimulation:
    """Return a simulation of two nodes whose clients have started."""
    nodes = FakeNodes(NODE_OPTIONS, 2)
    simulation = LoggedSimulation(nodes, client_options(nodes), COLLECTION_IDS, rng=Chance(1), clients=clients)
    simulation.tick()
    simulation.flow()
    return simulation
