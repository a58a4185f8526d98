"""The health of connections, without asking anybody."""

from __future__ import annotations

import pytest

from tests.core.runtime.kv.simulated import Recorded, get
from tests.core.runtime.kv.test_cluster import RecordedCluster, owner_of
from triclinium_core import errors
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.client.health.diagnostics import ENDPOINT_STATES
from triclinium_core.kv.operation.inquiries import WaitUntilReady
from triclinium_core.kv.operation.reports import ClusterState, DiagnosticsResult, EndpointDiagnostics, EndpointState
from triclinium_core.retry.couchbase import Service
from triclinium_core.runtime.kv.connection.states import ConnectionState


def diagnostics(simulation: Recorded, report_id: str = "i") -> DiagnosticsResult:
    """Return the report of the client."""
    assert isinstance(simulation.machine, ClientMachine)
    return simulation.machine.diagnostics(report_id, simulation.now)


def endpoints(simulation: Recorded) -> tuple[EndpointDiagnostics, ...]:
    """Return what is known of each connection now."""
    return diagnostics(simulation).endpoints[Service.KV]


def test_every_state_is_reported() -> None:
    """All that a connection goes through has a word for users."""
    assert set(ConnectionState) == set(ENDPOINT_STATES)


def test_before_the_beginning() -> None:
    """There is no connection yet, so nothing is reached."""
    result = diagnostics(Recorded())

    assert (ClusterState.OFFLINE, {Service.KV: ()}) == (result.state, result.endpoints)


def test_how_connections_come_and_go() -> None:
    """Each as it stands, with the silence since it was heard last; a new stream has a new number."""
    simulation = RecordedCluster()
    simulation.advance(0)
    (connecting,) = endpoints(simulation)
    simulation.inquire(WaitUntilReady("travel"))
    simulation.run()
    simulation.advance(1.5)
    connected = endpoints(simulation)
    simulation.nodes.kill(0)
    simulation.live(0.5)
    lost = [found for found in endpoints(simulation) if found.remote == "127.0.0.1:11210"]

    assert (EndpointState.CONNECTING, None, "0x1") == (connecting.state, connecting.last_activity, connecting.id)
    assert {(EndpointState.CONNECTED, 1.5, None)} == {
        (found.state, found.last_activity, found.details) for found in connected
    }
    assert ["0x1", "0x2", "0x3", "0x4"] == [found.id for found in connected]
    assert [None, "travel", "travel", "travel"] == [found.namespace for found in connected]
    assert {EndpointState.DISCONNECTED} == {found.state for found in lost}
    assert {"127.0.0.1:11210: connection refused"} == {found.details for found in lost}
    assert {2.0} == {found.last_activity for found in lost}
    assert {"0x1", "0x2"}.isdisjoint(found.id for found in lost)


def test_a_node_that_is_leaving() -> None:
    """As long as it owes an answer it is told of, and does not count any more."""
    simulation = RecordedCluster()
    simulation.write()
    key = next(f"k{number}" for number in range(60) if owner_of(simulation, f"k{number}") == 2)
    simulation.submit_in_flight(get(key))
    simulation.nodes.remove_node(2)
    simulation.flow()
    states = {found.remote: found.state for found in endpoints(simulation) if found.namespace == "travel"}
    result = diagnostics(simulation)

    assert EndpointState.DISCONNECTING is states["127.0.0.1:11214"]
    assert EndpointState.CONNECTED is states["127.0.0.1:11212"]
    assert ClusterState.ONLINE is result.state


def test_a_report_that_cannot_be_called_so() -> None:
    """It is refused by name."""
    with pytest.raises(errors.InvalidArgumentException, match="report_id="):
        diagnostics(Recorded(), "")
