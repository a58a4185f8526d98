"""Ends of an operation by deadline, abandonment or lost connection, in each phase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.core.runtime.kv import simulated
from tests.core.runtime.kv.carrier_cases import each_kind
from tests.core.runtime.kv.phases import AMBIGUOUS, PHASES, Make, read, write
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.contract import neutral
from triclinium_core.retry import couchbase

each_phase = rows("phase", PHASES)


def is_forgotten(simulation: simulated.Recorded, *, in_flight: int = 0) -> bool:
    """Check that the client keeps nothing of an operation that ended, and completes another one; return True.

    Args:
        in_flight: number of responses that will never arrive.
    """
    simulation.node.faults.clear()
    simulation.live(20.0)
    statistics = simulation.machine.statistics()
    assert (0, in_flight) == (statistics.open_operations, statistics.in_flight)
    simulation.result(simulated.upsert("other"), retry_strategy=couchbase.BestEffortRetryStrategy())
    return True


@each_phase
@each_kind
def test_deadline(phase: str, make: Make) -> None:
    """In each phase, the operation fails at its deadline, as ambiguous if it is a write that may be applied (C25)."""
    simulation, token = PHASES[phase](make)
    expected = phase in AMBIGUOUS and make is write
    reported = simulation.machine.is_ambiguous(token)
    simulation.live(simulated.TIMEOUT)

    assert expected == reported
    error = simulation.error(
        errors.AmbiguousTimeoutException if expected else errors.UnambiguousTimeoutException, token
    )
    assert simulated.TIMEOUT == simulation.settled_at[token]
    assert simulated.TIMEOUT == error.context.timeout == error.context.elapsed
    assert "2.5 s" in str(error)
    assert is_forgotten(simulation, in_flight=phase == "answer lost")


STATES: Mapping[str, couchbase.RetryState] = {
    "connecting": couchbase.RetryState.PENDING,
    "bootstrapping": couchbase.RetryState.PENDING,
    "asking for the collection": couchbase.RetryState.PENDING,
    "in flight": couchbase.RetryState.IN_FLIGHT,
    "in flight again": couchbase.RetryState.IN_FLIGHT,
    "answer lost": couchbase.RetryState.IN_FLIGHT,
    "waiting": couchbase.RetryState.WAITING,
    "without a connection": couchbase.RetryState.WAITING,
    "expiring": couchbase.RetryState.EXPIRING,
    "consulting": couchbase.RetryState.CONSULTING,
    "consulting after a loss": couchbase.RetryState.CONSULTING,
}
"""State of the request in each phase."""


@each_phase
@each_kind
def test_the_context_of_an_open_operation(phase: str, make: Make) -> None:
    """In each phase, ``error_context`` returns the context of a timeout at that time, with the state of the request."""
    simulation, token = PHASES[phase](make)
    early = simulation.machine.error_context(token, simulation.now)
    simulation.live(simulated.TIMEOUT - 0.001 - simulation.now)
    context = simulation.machine.error_context(token, simulated.TIMEOUT)
    simulation.live(0.001)

    assert early is not None
    assert STATES[phase].value == early.state
    assert context is not None
    assert simulation.errors[token].context == replace(context, state=None)
    assert simulation.machine.error_context(token, simulated.TIMEOUT) is None


@each_phase
@each_kind
def test_abandoned(phase: str, make: Make) -> None:
    """If an operation is abandoned in any phase, no event about it follows, and the client keeps nothing of it."""
    simulation, token = PHASES[phase](make)
    simulation.abandon(token)

    assert not simulation.machine.is_ambiguous(token)
    assert 0 == simulation.open_operations

    simulation.abandon(token)
    simulation.live(simulated.TIMEOUT)

    assert token not in simulation.settled_at
    assert is_forgotten(simulation, in_flight=phase == "answer lost")


@rows("phase", ["in flight", "waiting", "expiring", "consulting"])
@rows("ending", ["abandoned", "deadline"])
def test_no_timer_is_left_behind(phase: str, ending: str) -> None:
    """After an operation is abandoned or times out, the client's next timer is the keep-alive."""
    simulation, token = PHASES[phase](read)
    if ending == "abandoned":
        simulation.abandon(token)
    else:
        simulation.now = simulated.TIMEOUT
        simulation.feed(neutral.TimePassed())

    assert 0 == simulation.open_operations
    assert 20.0 == simulation.machine.wakeup


@each_phase
@each_kind
def test_connection_lost(phase: str, make: Make) -> None:
    """If the connection is lost in any phase, the operation is retried unless it expires or may have been applied."""
    simulation, token = PHASES[phase](make)
    simulation.node.documents.put("travel", "k", b"{}")
    simulation.node.documents.put("travel", "k", b"{}", collection_id=8)
    if simulation.links:
        simulation.lose(simulation.newest)
    for consulted in simulation.consulted:
        simulation.feed(neutral.StrategyDecided(consulted.token, couchbase.RetryAction.after(0.01)))
    simulation.node.faults.clear()
    simulation.run()

    assert token in simulation.settled_at
    if phase in AMBIGUOUS and make is write:
        simulation.error(errors.RequestCanceledException, token)
    elif phase == "expiring":
        simulation.error(errors.UnambiguousTimeoutException, token)
    else:
        assert token in simulation.results
    assert is_forgotten(simulation)
