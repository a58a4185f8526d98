"""Nodes that join and leave one after the other: the client keeps nothing of nodes that have left."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from types import FunctionType, ModuleType

import pytest

from tests.core.runtime.kv.simulated import ADDRESS, TRAVEL, Recorded, client_options, node_options
from triclinium_core.contract.neutral import ReportConnection, ReportLevel
from triclinium_core.kv.operation.document_operations import Noop
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.faults import status

GENERATIONS = 12
LASTING = 2
"""Number of nodes that stay in the cluster; the first of them is the seed node."""


def remembered(root: object) -> set[str]:
    """Return all strings that start with the host of the nodes and that an object holds at any depth."""
    seen, found, left = {id(root)}, set[str](), [root]
    while left:
        for value in _held(left.pop()):
            if isinstance(value, str) and value.startswith("127.0.0.1:"):
                found.add(value)
            elif id(value) not in seen and not isinstance(value, ModuleType | type):
                seen.add(id(value))
                left.append(value)
    return found


def _held(value: object) -> Iterable[object]:
    if isinstance(value, FunctionType):
        # A function also refers to its globals, which belong to the module.
        return value.__closure__ or ()
    if isinstance(value, dict):
        # The garbage collector does not list keys that are strings.
        return [*value, *value.values()]
    return gc.get_referents(value)


def is_well(nodes: FakeNodes, place: int) -> None:
    """Leave the node without a fault."""


def dies(nodes: FakeNodes, place: int) -> None:
    """Kill a node."""
    nodes.kill(place)


def speaks_nonsense(nodes: FakeNodes, place: int) -> None:
    """Corrupt the error map of the node, and restart the node."""
    nodes[place].faults.always(Opcode.GET_ERROR_MAP, status(Status.SUCCESS, b"corrupt"))
    nodes.kill(place)
    nodes.revive(place)


@pytest.mark.parametrize("happens", [is_well, dies, speaks_nonsense])
def test_nothing_is_kept_of_nodes_that_have_left(happens: Callable[[FakeNodes, int], None]) -> None:
    """After nodes have joined, served requests and left in any state, the client knows only the lasting nodes."""
    nodes = FakeNodes(node_options(), nodes=LASTING + GENERATIONS)
    for place in range(LASTING, len(nodes)):
        nodes.remove_node(place)
    simulation = Recorded(nodes, client_options(ADDRESS))
    simulation.finish(Noop(TRAVEL))
    for place in range(LASTING, len(nodes)):
        nodes.add_node(place)
        nodes.rebalance()
        simulation.live(5.0)
        happens(nodes, place)
        simulation.live(5.0)
        assert name_of(place) in remembered(simulation.machine)
        nodes.remove_node(place)
        simulation.live(5.0)
    # For part of this time, the client may still wait for responses to its requests.
    simulation.live(600.0)

    assert {name_of(place) for place in range(LASTING)} == remembered(simulation.machine)


def test_a_second_outage_is_logged_again() -> None:
    """If a node fails over, returns and is lost again, a second warning reports the loss."""
    nodes = FakeNodes(node_options(replicas=1), nodes=LASTING)
    simulation = Recorded(nodes, client_options(ADDRESS))
    simulation.finish(Noop(TRAVEL))
    for _ in range(2):
        nodes.kill(1)
        simulation.live(5.0)
        nodes.fail_over(1)
        simulation.live(5.0)
        nodes.revive(1)
        nodes.add_node(1)
        nodes.rebalance()
        simulation.live(5.0)
    reported = [
        action for action in simulation.actions if isinstance(action, ReportConnection) and action.node == name_of(1)
    ]

    assert 2 == [action.level for action in reported].count(ReportLevel.WARNING)
    assert ("ready", ReportLevel.INFO) == (reported[-1].text, reported[-1].level)


def name_of(place: int) -> str:
    """Return the name that the client gives to a node."""
    return f"127.0.0.1:{11210 + 2 * place}"
