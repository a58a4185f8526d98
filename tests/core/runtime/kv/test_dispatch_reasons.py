"""Reasons why the client cannot send an operation: each is reported in the state that it describes.

Source: SDK-RFC 0049 "Client Dispatch", "RetryReason".
"""

from __future__ import annotations

from tests.core.runtime.kv.simulated import Recorded, client_options, get, node_options, ready, upsert
from tests.core.runtime.kv.test_cluster import KEYS, RecordedCluster, owner_of
from triclinium_core import errors
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import BreakerState, CircuitBreakerOptions, FailFastRetryStrategy, RetryReason
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.faults import drop_response, refuse_connection


def test_socket_not_available() -> None:
    """If a node was reached before and all connections are lost, the reason is SOCKET_NOT_AVAILABLE."""
    simulation = ready()
    simulation.node.faults.always(None, refuse_connection())
    for stream in tuple(simulation.links):
        simulation.lose(stream)
    error = simulation.failure(errors.UnambiguousTimeoutException, upsert())

    assert {RetryReason.SOCKET_NOT_AVAILABLE.name} == error.context.retry_reasons


def test_node_not_available() -> None:
    """If the client has never reached a node, the reason is NODE_NOT_AVAILABLE."""
    simulation = Recorded()
    simulation.node.faults.always(None, refuse_connection())
    error = simulation.failure(errors.UnambiguousTimeoutException, upsert())

    assert {RetryReason.NODE_NOT_AVAILABLE.name} == error.context.retry_reasons


class Encrypted(RecordedCluster):
    """Simulation of three nodes to which the client connects with TLS; the second one has no TLS port."""

    def __init__(self) -> None:
        nodes = FakeNodes(node_options(port=11210, tls_port=11207), nodes=3)
        nodes[1].set_ports(nodes[1].options.port, None)
        Recorded.__init__(self, nodes, client_options("couchbases://127.0.0.1:11207"))


def test_service_not_available() -> None:
    """If a node has no TLS port, the reason is SERVICE_NOT_AVAILABLE, and the client sends nothing without TLS."""
    simulation = Encrypted()
    there = next(key for key in KEYS if owner_of(simulation, key) == 0)
    not_there = next(key for key in KEYS if owner_of(simulation, key) == 1)
    simulation.result(upsert(there))
    error = simulation.failure(errors.UnambiguousTimeoutException, upsert(not_there))

    assert {RetryReason.SERVICE_NOT_AVAILABLE.name} == error.context.retry_reasons
    assert "is on node 1 of the map, which has no port for this service" in str(error)
    assert all(action.tls for _, action in simulation.opened_at)


def test_a_service_that_appears() -> None:
    """If a newer map adds the TLS port of a node, the client sends the operation that waits for this port."""
    simulation = Encrypted()
    not_there = next(key for key in KEYS if owner_of(simulation, key) == 1)
    simulation.write(key for key in KEYS if owner_of(simulation, key) == 0)
    token = simulation.submit(upsert(not_there))
    simulation.live(1.0)
    waited = token not in simulation.settled_at
    simulation.nodes[1].set_ports(simulation.nodes[1].options.port, 11209)
    simulation.nodes.set_config_revision(9, epoch=9)
    simulation.run()

    assert waited
    assert token in simulation.results


def test_circuit_breaker_open() -> None:
    """If two of three operations time out, the next one is refused with the reason CIRCUIT_BREAKER_OPEN."""
    options = client_options(circuit_breaker=CircuitBreakerOptions(volume_threshold=3))
    simulation = ready(options=options)
    simulation.node.faults.always(Opcode.GET, drop_response())
    for key in "ab":
        simulation.finish(get(key))
    error = simulation.failure(errors.RequestCanceledException, get("c"), retry_strategy=FailFastRetryStrategy())
    breaker = simulation.connection().circuit_breaker

    assert RetryReason.CIRCUIT_BREAKER_OPEN.name == error.context.refused_reason
    assert breaker is not None
    assert (BreakerState.OPEN, 3, 2) == (breaker.state, breaker.operations, breaker.failures)
