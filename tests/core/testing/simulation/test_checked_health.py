"""The checked simulation: what it says of a client's health, and of what is under way."""

from __future__ import annotations

from tests.core.testing.asked import exists, get
from tests.core.testing.distorted import Distorted, ready
from triclinium_core.kv.events import LossCause
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase.circuit_breaker import CircuitBreakerOptions
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.testing.fakes.faults import drop_response, refuse_connection
from triclinium_core.testing.oracle.submissions import Violation

READY = "None: READY, None; travel: READY, None"


def test_under_way() -> None:
    """Bytes are under way until they were handed over, and answers until they were delivered."""
    simulation = ready()
    steps = [(simulation.is_quiet, simulation.is_healthy)]
    simulation.submit(get())
    steps.append((simulation.is_quiet, simulation.is_healthy))
    simulation.hand_over(simulation.newest)
    steps.append((simulation.is_quiet, simulation.is_healthy))
    simulation.deliver(simulation.newest)
    steps.append((simulation.is_quiet, simulation.is_healthy))

    assert [(True, True), (False, False), (False, False), (True, True)] == steps
    assert READY == simulation.describe()


def test_within_a_frame() -> None:
    """A client that has part of an answer waits for the rest."""
    simulation = ready()
    simulation.submit(get())
    stream = simulation.newest
    simulation.hand_over(stream)
    simulation.deliver(stream, 10)
    rest = bytes(simulation.links[stream].incoming)
    simulation.links[stream].incoming.clear()

    assert simulation.is_quiet
    assert not simulation.is_healthy
    assert f"{READY}; stream {stream} is within a frame; operation 2 (get 'ada')" == simulation.describe()

    simulation.links[stream].incoming += rest
    simulation.deliver(stream)

    assert simulation.is_healthy


def test_without_a_connection() -> None:
    """It is not healthy, and says why."""
    simulation = ready()
    simulation.node.faults.always(None, refuse_connection())
    simulation.lose(simulation.newest, LossCause.RESET)
    simulation.flow()

    assert simulation.is_quiet
    assert not simulation.is_healthy
    assert "None: READY, None; travel: LOST, 127.0.0.1:11210: connection reset" == simulation.describe()


def test_behind_an_open_breaker() -> None:
    """It serves nobody, until the canary has come back."""
    simulation = ready(circuit_breaker=CircuitBreakerOptions(volume_threshold=1))
    simulation.node.faults.next(Opcode.GET, drop_response())
    simulation.serve(get())
    simulation.flow_for(2.5)

    assert simulation.is_quiet
    assert not simulation.is_healthy
    assert f"{READY}; BreakerState.OPEN" == simulation.describe()

    simulation.flow_for(5.0)

    assert simulation.is_healthy


def test_frames_of_a_stream_that_is_lost() -> None:
    """What the driver had begun to hand over has left, wherever it is now."""
    simulation = ready()
    token = simulation.submit(exists())
    link = simulation.links[simulation.newest]
    link.handed_over += len(link.outgoing)
    simulation.lose(simulation.newest)
    simulation.flow_for(1.0)

    assert token in simulation.results
    assert RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT is simulation.retries[0].reason
    simulation.check_frames()


def is_excused(simulation: Distorted, stream: int) -> bool:
    """Tell whether a stream may end."""
    try:
        simulation.excuses.check_end(stream, "")
    except Violation:
        return False
    return True


def test_withholding() -> None:
    """A stream whose bytes were held back while time passed may end, and others may not."""
    simulation = ready()
    other, stream = sorted(simulation.links)
    simulation.submit(get())
    simulation.advance(1.0)

    assert 1.0 == simulation.model.now == simulation.excuses.newest[0]
    assert is_excused(simulation, stream)
    assert not is_excused(simulation, other)
