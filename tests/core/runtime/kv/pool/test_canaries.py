"""Canaries of an open circuit breaker, which the client sends after the sleep window; a response closes the breaker."""

from __future__ import annotations

from tests.core.runtime.kv import simulated
from tests.core.runtime.kv.pool.pool_cases import TWO, noops
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import CircuitBreakerOptions
from triclinium_core.testing.fakes.faults import drop_response, refuse_connection

SMALL_BREAKER = CircuitBreakerOptions(volume_threshold=2, sleep_window=5.0, canary_timeout=3.0)


def opened_breaker() -> simulated.Recorded:
    """Return a simulation in which two timeouts in flight have just opened the circuit breaker."""
    simulation = simulated.ready(options=simulated.client_options(circuit_breaker=SMALL_BREAKER))
    simulation.node.faults.next(Opcode.GET, drop_response(), times=2)
    for key in "ab":
        simulation.submit(simulated.get(key))
    simulation.run()
    assert (2.5, "OPEN") == (simulation.now, breaker_state(simulation))
    return simulation


def breaker_state(simulation: simulated.Recorded) -> str:
    """Return the state of the bucket's circuit breaker."""
    breaker = simulation.connection().circuit_breaker
    assert breaker is not None
    return breaker.state.name


def test_canary() -> None:
    """After the sleep window the client sends a NOOP; its response closes the circuit breaker (decision C33)."""
    simulation = opened_breaker()
    before = noops(simulation, TWO)
    simulation.live(4.999)
    sleeping = (noops(simulation, TWO) - before, breaker_state(simulation))
    simulation.live(0.001)

    assert (0, "OPEN") == sleeping
    assert (1, "CLOSED") == (noops(simulation, TWO) - before, breaker_state(simulation))


def test_canary_that_is_not_answered() -> None:
    """If a canary gets no response, the circuit breaker opens again; another canary follows a sleep window later."""
    simulation = opened_breaker()
    simulation.node.faults.next(Opcode.NOOP, drop_response())
    simulation.live(5.0)
    states = [breaker_state(simulation)]
    simulation.live(3.0)
    states.append(breaker_state(simulation))
    simulation.live(5.0)
    states.append(breaker_state(simulation))

    assert ["HALF_OPEN", "OPEN", "CLOSED"] == states


def test_reconnect_closes_the_breaker() -> None:
    """When the client reconnects, the circuit breaker of the connection closes."""
    simulation = opened_breaker()
    simulation.lose(TWO)
    simulation.live(0.5)

    assert "CLOSED" == breaker_state(simulation)
    assert "READY" == simulation.connection().state


def test_lost_while_half_open() -> None:
    """If the stream is lost while the circuit breaker is half open, the timer of its canary ends too."""
    simulation = opened_breaker()
    simulation.node.faults.next(Opcode.NOOP, drop_response())
    simulation.live(5.0)
    simulation.node.faults.always(None, refuse_connection())
    simulation.lose(TWO)
    simulation.live(30.0)
    simulation.node.faults.clear()
    simulation.live(2.0)

    assert ("READY", "CLOSED") == (simulation.connection().state, breaker_state(simulation))
