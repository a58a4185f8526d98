"""Readable log of a simulation."""

from __future__ import annotations

import pytest

from tests.core.runtime.kv import simulated
from tests.core.testing.books import COLLECTION_IDS
from tests.core.testing.distorted import TRAVEL_NODE
from triclinium_core.kv.operation.document_operations import Exists, Increment, Noop, Operation, Unlock
from triclinium_core.kv.operation.results import Cas
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.faults import drop_response, hang_up, refuse_connection
from triclinium_core.testing.simulation import MIDPOINT
from triclinium_core.testing.simulation.logged import LoggedSimulation


@pytest.fixture
def simulation() -> LoggedSimulation:
    """Return a simulation of one node whose client is connected."""
    nodes = FakeNodes(TRAVEL_NODE, nodes=1)
    simulation = LoggedSimulation(nodes, simulated.client_options(), COLLECTION_IDS, rng=MIDPOINT, clients=1)
    simulation.tick()
    simulation.submit(simulated.get())
    simulation.flow()
    simulation.timeline.clear()
    return simulation


@pytest.mark.parametrize(
    ("operation", "asked", "reported"),
    [
        (simulated.upsert("k", value=b"<1>"), "upsert k <1>", "done"),
        (simulated.upsert("k", simulated.HOTELS, value=b"<1>"), "upsert hotel/k <1>", "done"),
        (Increment(simulated.TRAVEL, "hits", 1, 1 << 48), "increment hits by 0x1", "0x1000000000000"),
        (Exists(simulated.TRAVEL, "k"), "exists k", "it does not exist"),
        (Noop(simulated.TRAVEL), "noop ", "done"),
    ],
)
def test_operations_are_logged(simulation: LoggedSimulation, operation: Operation, asked: str, reported: str) -> None:
    """The log names each operation's client, token and arguments, and its result."""
    if operation.name == "upsert":
        simulation.model.unique_values.fragment()
    token = simulation.submit(operation)
    simulation.flow()

    for line, text in zip(simulation.timeline, (asked, reported), strict=True):
        assert line.startswith("     0.000  client 0 ")
        assert line.endswith(f" {token}: {text}")
    value = simulation.model.unique_values.fragment()
    for later in (simulated.upsert("read", value=value), Exists(simulated.TRAVEL, "read"), simulated.get("read")):
        simulation.submit(later)
    simulation.flow()
    assert ["it exists", value.decode()] == [line.rpartition(": ")[2] for line in simulation.timeline[-2:]]


def test_outcomes_are_counted(simulation: LoggedSimulation) -> None:
    """Results are counted by their kind."""
    before = simulation.figures.outcomes.copy()
    mark = simulation.model.unique_values.fragment
    simulation.submit(simulated.upsert(value=mark()))
    simulation.submit(Unlock(simulated.TRAVEL, "nobody", Cas(7)))
    simulation.abandon(simulation.submit(simulated.get()))
    simulation.flow()
    simulation.node.faults.next(Opcode.GET, drop_response())
    simulation.node.faults.next(Opcode.SET, drop_response())
    simulation.submit(simulated.get())
    simulation.submit(simulated.upsert(value=mark()))
    simulation.flow_for(3.0)
    simulation.node.faults.next(Opcode.SET, hang_up())
    simulation.submit(simulated.upsert(value=mark()))
    simulation.flow()

    assert 1 == before.total()
    assert {
        "done": 1,
        "refused by the document": 1,
        "abandoned by their callers": 1,
        "timed out, not applied": 1,
        "timed out, ambiguous": 1,
        "failed in trouble": 1,
    } == simulation.figures.outcomes - before
    assert 8 - 1 == simulation.figures.operations


def test_connections_are_logged(simulation: LoggedSimulation) -> None:
    """The log names a lost connection's client, address and cause; only a living node's refusals are counted."""
    simulation.node.faults.next(None, refuse_connection())
    simulation.lose(min(simulation.links))
    simulation.note("-- something happens")
    simulation.flow_for(0.1)
    simulation.node.kill()
    simulation.look_around()
    simulation.flow_for(0.1)

    assert "     0.000  client 0, stream 1 to 127.0.0.1:11210: connection reset" == simulation.timeline[0]
    assert "     0.000  -- something happens" == simulation.timeline[1]
    assert 1 == simulation.figures.faults["refused connections"]
