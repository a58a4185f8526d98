"""Diagnostics of connections, which the client reports without sending a request."""

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
    """Return the current diagnostics of each key-value connection."""
    return diagnostics(simulation).endpoints[Service.KV]


def test_every_state_is_reported() -> None:
    """The table of endpoint states has an entry for each connection state."""
    assert set(ConnectionState) == set(ENDPOINT_STATES)


def test_diagnostics_before_the_first_event() -> None:
    """A client without connections reports the cluster state OFFLINE."""
    result = diagnostics(Recorded())

    assert (ClusterState.OFFLINE, {Service.KV: ()}) == (result.state, result.endpoints)


def test_states_of_connections() -> None:
    """The report lists each connection with its state and its idle time; a new stream has a new id."""
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


def test_a_removed_node_is_disconnecting() -> None:
    """A removed node is DISCONNECTING while it has requests in flight, and does not affect the cluster state."""
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


def test_an_invalid_report_id() -> None:
    """An invalid report id raises an error that names the parameter."""
    with pytest.raises(errors.InvalidArgumentException, match="report_id="):
        diagnostics(Recorded(), "")
