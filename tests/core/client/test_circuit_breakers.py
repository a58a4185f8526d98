"""Circuit breakers of connections: timeouts open one, which then refuses operations."""

from __future__ import annotations

import pytest

from tests.core.client.client_cases import TWO
from tests.core.runtime.kv import simulated
from triclinium_core import errors
from triclinium_core.contract import neutral
from triclinium_core.kv.operation import document_operations
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase.circuit_breaker import CircuitBreakerOptions
from triclinium_core.retry.couchbase.strategy import FailFastRetryStrategy
from triclinium_core.testing.fakes import faults


def test_circuit_breaker() -> None:
    """Twenty timeouts open the circuit breaker, which refuses operations until a canary succeeds."""
    simulation = simulated.Recorded()
    simulation.flow()
    simulation.node.faults.always(Opcode.GET, faults.drop_response())
    first = [simulation.submit(simulated.get(str(position))) for position in range(20)]
    simulation.live(simulated.TIMEOUT)
    opened = simulation.connection().circuit_breaker
    before = len(simulation.requests[TWO])
    refused = simulation.finish(simulated.get(), retry_strategy=FailFastRetryStrategy())
    waiting = simulation.submit(simulated.upsert())
    simulation.live(1.0)
    sent = simulation.requests[TWO][before:]
    simulation.node.faults.clear()
    late = simulation.submit(simulated.upsert())
    simulation.run()
    simulation.live(5.0)
    closed = simulation.connection().circuit_breaker

    assert all(type(simulation.errors[token]) is errors.UnambiguousTimeoutException for token in first)
    assert [] == sent
    assert "CIRCUIT_BREAKER_OPEN" == simulation.errors[refused].context.refused_reason
    assert opened is not None
    assert ("OPEN", 20, simulated.TIMEOUT) == (opened.state.name, opened.failures, opened.opened_at)
    assert closed is not None
    assert "CLOSED" == closed.state.name
    simulation.error(errors.UnambiguousTimeoutException, waiting)
    simulation.error(errors.UnambiguousTimeoutException, late)
    simulation.result(simulated.upsert())


@pytest.mark.parametrize(
    ("failures", "time"),
    [
        (1, neutral.TimePassed()),
        (1, neutral.TimePassed(unsent={neutral.StreamId(1): 0}, unread={neutral.StreamId(1)})),
        (1, neutral.TimePassed(unsent={TWO: 10_000})),
        (0, neutral.TimePassed(unsent={TWO: 0})),
        (0, neutral.TimePassed(unread={TWO})),
    ],
)
def test_circuit_breaker_counts_overdue_responses(failures: int, time: neutral.TimePassed) -> None:
    """A timeout is a failure only if the request was sent and the client has read all pending bytes (decision C33)."""
    simulation = simulated.ready()
    simulation.node.faults.next(Opcode.GET, faults.drop_response())
    token = simulation.submit(simulated.get())
    simulation.flow()
    simulation.now += simulated.TIMEOUT
    simulation.feed(time)
    breaker = simulation.connection().circuit_breaker

    assert token in simulation.errors
    assert breaker is not None
    assert failures == breaker.failures


def test_circuit_breaker_can_be_switched_off() -> None:
    """A disabled circuit breaker counts no timeout and refuses no operation."""
    options = simulated.client_options(circuit_breaker=CircuitBreakerOptions(enabled=False, volume_threshold=1))
    simulation = simulated.ready(options=options)
    simulation.node.faults.always(Opcode.GET, faults.drop_response())
    for position in range(3):
        simulation.submit(simulated.get(str(position)))
    simulation.run()
    simulation.node.faults.clear()
    breaker = simulation.connection().circuit_breaker
    simulation.result(simulated.upsert(), retry_strategy=FailFastRetryStrategy())

    assert breaker is not None
    assert ("CLOSED", 0) == (breaker.state.name, breaker.failures)


def test_each_bucket_has_its_own_breaker() -> None:
    """If the circuit breaker of one bucket is open, operations on another bucket succeed."""
    options = simulated.client_options(circuit_breaker=CircuitBreakerOptions(volume_threshold=1))
    simulation = simulated.Recorded(options=options, buckets=("travel", "other"))
    simulation.node.faults.next(Opcode.GET, faults.drop_response())
    simulation.finish(simulated.get())
    simulation.result(simulated.upsert("k", document_operations.Keyspace("other")))

    assert ["OPEN", "CLOSED"] == [
        breaker.state.name
        for bucket in ("travel", "other")
        if (breaker := simulation.connection(bucket).circuit_breaker) is not None
    ]
