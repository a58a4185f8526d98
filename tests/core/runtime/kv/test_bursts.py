"""Bursts that exceed the capacity of a connection: operations wait in order, and each completes once (decision C37)."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from tests.core.runtime.kv import simulated
from tests.core.runtime.kv.counting import counted
from triclinium_core import errors
from triclinium_core.contract.neutral import StreamId, Token
from triclinium_core.kv.operation.document_operations import Keyspace
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.options import TimeoutOptions
from triclinium_core.retry.couchbase import CircuitBreakerOptions, FailFastRetryStrategy, RetryReason
from triclinium_core.runtime.kv.connection.waiting_line import WAITING_MAX
from triclinium_core.testing.fakes.faults import drop_response

TWO = StreamId(2)
ROOM = 20


@pytest.fixture(autouse=True)
def small_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the maximum number of requests in flight on a connection."""
    monkeypatch.setattr("triclinium_core.runtime.kv.connection.in_flight.REQUESTS_MAX", ROOM)


@pytest.mark.parametrize(
    "keyspace", [simulated.TRAVEL, simulated.HOTELS], ids=["default-collection", "one-to-be-asked-for"]
)
@pytest.mark.parametrize("make", [simulated.ready, simulated.Recorded], ids=["connected", "connecting"])
def test_all_are_sent_in_order(make: Callable[[], simulated.Recorded], keyspace: Keyspace) -> None:
    """If a burst exceeds the capacity of a connection many times, all operations are sent in order, without a retry."""
    simulation = make()
    tokens = [simulation.submit(simulated.upsert(f"k{position}", keyspace)) for position in range(10 * ROOM)]
    most = simulation.connection().in_flight
    simulation.run()
    sent = [command.key.rpartition(b"k")[2] for command in simulation.commands(Opcode.SET)]

    assert most <= ROOM
    assert set(tokens) <= set(simulation.results)
    assert [b"%d" % position for position in range(10 * ROOM)] == sent
    assert [] == simulation.retries


def test_a_later_operation_queues_behind_earlier_ones() -> None:
    """A new operation does not overtake queued ones, even if one of them has left the queue."""
    simulation = simulated.ready()
    first = [simulation.submit(simulated.get(f"k{position}")) for position in range(ROOM + 2)]
    simulation.abandon(first[ROOM])
    simulation.submit(simulated.get("late"))
    simulation.run()

    assert [*(f"k{position}" for position in range(ROOM)), f"k{ROOM + 1}", "late"] == [
        command.key.decode().lstrip("\0") for command in simulation.commands(Opcode.GET)
    ]


def test_a_response_releases_one_queued_operation() -> None:
    """A response makes the client send one queued operation within the same event."""
    simulation = simulated.ready()
    _, request = simulation.submit_in_flight(simulated.get("first"))
    for position in range(5 * ROOM):
        simulation.submit(simulated.get(f"k{position}"))
    before = simulation.connection().waiting
    simulation.inject(simulated.found(request))

    assert (4 * ROOM + 1, 4 * ROOM, ROOM) == (
        before,
        simulation.connection().waiting,
        simulation.connection().in_flight,
    )


def calls_in(function: Callable[[], object]) -> int:
    """Return the number of function calls that one call of ``function`` makes."""
    with counted() as calls:
        function()
    return calls.total()


def test_event_cost_is_independent_of_the_queue() -> None:
    """For any length of the queue, a response, a submission and an abandonment make about the same number of calls."""

    def work(burst: int) -> list[int]:
        simulation = simulated.ready(
            options=simulated.client_options(circuit_breaker=CircuitBreakerOptions(enabled=False))
        )
        _, request = simulation.submit_in_flight(simulated.get("first"))
        for position in range(burst):
            simulation.submit(simulated.get(f"k{position}"))
        newest = max(Token(0), *simulation.clients[0]._lifecycle.open)
        return [
            calls_in(lambda: simulation.inject(simulated.found(request))),
            calls_in(lambda: simulation.submit(simulated.get("late"))),
            calls_in(lambda: simulation.abandon(Token(newest))),
        ]

    # With a longer queue, the heap of timers is slightly deeper.
    assert work(2 * ROOM) == pytest.approx(work(40 * ROOM), abs=5)


def test_the_queue_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the queue is full, fail fast fails an operation with the queue's length; the limit is at least 100,000."""
    monkeypatch.setattr("triclinium_core.runtime.kv.dispatcher.WAITING_MAX", 50)
    simulation = simulated.ready()
    for position in range(ROOM + 50):
        simulation.submit(simulated.get(str(position)))
    one_too_many = simulation.submit(simulated.upsert(), retry_strategy=FailFastRetryStrategy())
    error = simulation.error(errors.RequestCanceledException, one_too_many)

    assert RetryReason.SOCKET_NOT_AVAILABLE.name == error.context.refused_reason
    assert (ROOM, 50) == (error.context.in_flight, error.context.waiting)
    assert WAITING_MAX >= 100_000


def test_queueing_time_does_not_feed_the_breaker() -> None:
    """A timeout in flight counts for the circuit breaker; a timeout in the queue does not, and is unambiguous."""
    simulation = simulated.ready(
        options=simulated.client_options(circuit_breaker=CircuitBreakerOptions(volume_threshold=10 * ROOM))
    )
    simulation.node.faults.always(Opcode.GET, drop_response())
    for position in range(ROOM):
        simulation.submit(simulated.get(str(position)))
    tokens = [simulation.submit(simulated.upsert(f"k{position}")) for position in range(3 * ROOM)]
    simulation.live(simulated.TIMEOUT)
    breaker = simulation.connection().circuit_breaker

    assert breaker is not None
    assert ROOM == breaker.failures
    assert {3 * ROOM} == {
        simulation.error(errors.UnambiguousTimeoutException, token).context.waiting for token in tokens
    }
    assert [] == simulation.commands(Opcode.SET)


def test_an_open_breaker_holds_the_queue() -> None:
    """While the circuit breaker is open, queued operations stay in the queue, and new ones are refused."""
    options = simulated.client_options(circuit_breaker=CircuitBreakerOptions(volume_threshold=ROOM, sleep_window=0.5))
    simulation = simulated.ready(options=options)
    for position in range(ROOM):
        simulation.submit(simulated.get(str(position)))
    simulation.swallow(TWO)
    simulation.advance(simulated.TIMEOUT - 1.0)
    tokens = [simulation.submit(simulated.upsert(f"k{position}")) for position in range(ROOM)]
    simulation.advance(1.0)
    refused = simulation.submit(simulated.get("late"), retry_strategy=FailFastRetryStrategy())
    for request in simulation.requests[TWO][-ROOM:]:
        simulation.inject(simulated.found(request), TWO)
    held_back = (simulation.connection().in_flight, simulation.connection().waiting)
    simulation.run()

    assert (0, ROOM) == held_back
    assert RetryReason.CIRCUIT_BREAKER_OPEN.name == simulation.errors[refused].context.refused_reason
    assert set(tokens) <= set(simulation.results)


def test_a_queue_survives_its_connection() -> None:
    """If the connection is lost, the client dispatches the queued operations again."""
    simulation = simulated.ready()
    tokens = [simulation.submit(simulated.get(f"k{position}")) for position in range(5 * ROOM)]
    simulation.hand_over(TWO)
    simulation.lose(TWO)
    simulation.run()

    assert set(tokens) <= set(simulation.results) | set(simulation.errors)
    assert {"DocumentNotFoundException"} == {type(error).__name__ for error in simulation.errors.values()}


def test_a_known_collection_keeps_the_queue_order() -> None:
    """When its collection id arrives, an operation queues after those that already wait for the connection."""
    simulation = simulated.ready()
    simulation.submit(simulated.get("hotel", simulated.HOTELS))
    question = simulation.requests[TWO][-1]
    simulation.swallow(TWO)
    for position in range(2 * ROOM):
        simulation.submit(simulated.get(f"k{position}"))
    simulation.swallow(TWO)
    answer = simulated.respond(question, extras=struct.pack(">QI", 1, simulated.HOTEL_ID))
    first = next(request for request in simulation.requests[TWO] if request.opcode == Opcode.GET)
    before = len(simulation.requests[TWO])
    simulation.inject(simulated.found(first) + answer, TWO)

    assert [b"\0k%d" % (ROOM - 1), b"\0k%d" % ROOM] == [request.key for request in simulation.requests[TWO][before:]]


def test_a_slow_burst_does_not_close_the_connection() -> None:
    """A busy client does not close the connection for late responses, because it has not read them yet."""
    simulation = simulated.ready(options=simulated.client_options(timeouts=TimeoutOptions(kv=60.0)))
    tokens = []
    for position in range(3 * ROOM):
        tokens.append(simulation.submit(simulated.upsert(f"k{position}")))
        simulation.now += 30.0 / (3 * ROOM)
    simulation.hand_over(TWO)
    # A driver reads from its streams before it feeds TimePassed.
    simulation.deliver(TWO)
    simulation.run()

    assert [] == simulation.closings()
    assert set(tokens) <= set(simulation.results)
