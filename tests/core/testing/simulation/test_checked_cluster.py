"""Checked simulation of several nodes, in which an excuse applies only to the nodes that it concerns."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.core.runtime.kv import simulated
from tests.core.testing.books import COLLECTION_IDS
from tests.core.testing.distorted import TRAVEL_NODE, DistortedMachine, fails_instead
from triclinium_core import errors
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.document_operations import Keyspace
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.faults import hang_up
from triclinium_core.testing.oracle.submissions import Violation
from triclinium_core.testing.simulation.checked import CheckedSimulation

NO_EXCUSE = " failed "
THERE = "found no document"
ALL = range(128)


class TwoNodes(CheckedSimulation):
    """A simulation of two nodes whose client can be made to fail any operation."""

    def __init__(self) -> None:
        client = simulated.client_options("couchbase://127.0.0.1:11210,127.0.0.1:11212")
        super().__init__(FakeNodes(TRAVEL_NODE, nodes=2), client, COLLECTION_IDS)
        self.client = DistortedMachine(self.options, None)
        self.clients = (self.client,)
        self.machine = self.client

    def key_of(self, node: int) -> str:
        """Return a key that a node has."""
        return next(key for key in map(str, range(99)) if self.nodes.owner_of(key) == node)

    def fail(self, node: int = 0, keyspace: Keyspace = simulated.TRAVEL) -> None:
        """Read a document that a node has, and fail the operation regardless of its response."""
        self.client.distort = fails_instead(errors.UnambiguousTimeoutException("", ErrorContext()))
        self.submit(simulated.get(self.key_of(node), keyspace))
        self.flow()
        self.client.distort = None


@pytest.fixture
def simulation() -> TwoNodes:
    """Return a simulation that is connected to both nodes and knows the collection's id."""
    simulation = TwoNodes()
    simulation.tick()
    for node in (0, 1):
        for keyspace in (simulated.TRAVEL, simulated.HOTELS):
            value = simulation.model.unique_values.fragment()
            simulation.submit(simulated.upsert(simulation.key_of(node), keyspace, value=value))
    simulation.flow()
    assert 4 == len(simulation.results)
    return simulation


@pytest.mark.parametrize(
    "trouble",
    [
        lambda nodes: nodes.slow_down(1, 0.001),
        lambda nodes: nodes.cut_off(1, [99]),
        lambda nodes: (nodes.hold_config(1), nodes.set_config_revision(9)),
        lambda nodes: nodes[1].faults.next(None, hang_up()),
    ],
    ids=["slow", "cut off from somebody", "stale", "hanging up"],
)
def test_problem_at_one_node(simulation: TwoNodes, trouble: Callable[[FakeNodes], object]) -> None:
    """A problem of one node excuses operations on that node only."""
    trouble(simulation.nodes)
    simulation.look_around()
    simulation.fail(1)
    simulation.flow_for(0.001)

    with pytest.raises(Violation, match=NO_EXCUSE):
        simulation.fail(0)


def test_any_node_may_resolve_a_collection(simulation: TwoNodes) -> None:
    """Any node may receive a collection id request, so its problem excuses operations in a named collection only."""
    simulation.nodes.slow_down(1, 0.001)
    simulation.look_around()
    simulation.fail(0, simulated.HOTELS)

    with pytest.raises(Violation, match=NO_EXCUSE):
        simulation.fail(0)


def test_document_without_a_node(simulation: TwoNodes) -> None:
    """The read of a document without a node fails; one of a document with a node succeeds, and must not fail."""
    lost, kept = simulation.key_of(1), simulation.key_of(0)
    simulation.nodes.move(simulation.nodes.vbuckets_of(1), to=None)
    simulation.look_around()
    tokens = [simulation.submit(simulated.get(key)) for key in (lost, kept)]
    simulation.flow_for(3.0)

    assert [tokens[0]] == [*simulation.errors]
    with pytest.raises(Violation, match=NO_EXCUSE):
        simulation.fail(0)


def test_old_owner_may_still_be_contacted(simulation: TwoNodes) -> None:
    """A client without the newest map may contact the document's former node, whose problem is an excuse."""
    simulation.nodes.slow_down(1, 0.001)
    simulation.nodes.move(ALL, to=0)
    simulation.look_around()
    simulation.fail(0)
    simulation.flow_for(0.01)

    with pytest.raises(Violation, match=NO_EXCUSE):
        simulation.fail(0)


def test_dropped_collection(simulation: TwoNodes) -> None:
    """After a collection was dropped and created again, it is empty, and a failure in it has no excuse."""
    key = simulation.key_of(0)
    simulation.drop_collection(simulated.HOTELS)
    simulation.submit(simulated.get(key, simulated.HOTELS))
    simulation.flow_for(3.0)
    simulation.create_collection(simulated.HOTELS)
    simulation.flow_for(3.0)
    token = simulation.submit(simulated.get(key, simulated.HOTELS))
    simulation.submit(simulated.upsert(key, simulated.HOTELS, value=simulation.model.unique_values.fragment()))
    simulation.flow()
    simulation.check_frames()

    assert isinstance(simulation.errors[token], errors.DocumentNotFoundException)
    with pytest.raises(Violation, match=NO_EXCUSE):
        simulation.fail(0, simulated.HOTELS)
