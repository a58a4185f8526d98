"""Phases of an operation, each with a function that brings an operation into it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.core.runtime.kv.simulated import HOTELS, TRAVEL, Recorded, client_options, ready
from triclinium_core.contract.neutral import StreamId, Token
from triclinium_core.kv.operation.document_operations import Get, Keyspace, Operation, Upsert
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import RetryAction, RetryReason, RetryRequest
from triclinium_core.testing.fakes import faults
from triclinium_core.testing.fakes.faults import delay

Make = Callable[[Keyspace], Operation]
Phase = Callable[[Make], tuple[Recorded, Token]]


class Patient:
    """Strategy that retries after one second."""

    def retry_after(self, request: RetryRequest, reason: RetryReason) -> RetryAction:
        """Return a delay of one second."""
        return RetryAction.after(1.0)


class Endless:
    """Strategy whose delay is longer than the deadlines of the tests."""

    def retry_after(self, request: RetryRequest, reason: RetryReason) -> RetryAction:
        """Return a delay of one hour."""
        return RetryAction.after(3600.0)


class Asking:
    """Asynchronous strategy, in place of which the tests decide."""

    async def retry_after(self, request: RetryRequest, reason: RetryReason) -> RetryAction:
        """Refuse the retry."""
        return RetryAction.no_retry()


def read(keyspace: Keyspace) -> Get:
    """Return an operation that the client may send any number of times."""
    return Get(keyspace, "k")


def write(keyspace: Keyspace) -> Upsert:
    """Return an operation that the client must not send twice."""
    return Upsert(keyspace, "k", b"{}", 0)


def _connecting(make: Make) -> tuple[Recorded, Token]:
    simulation = Recorded()
    simulation.flow()
    token = simulation.submit(make(TRAVEL))
    # The simulation regards the stream as open, but the client never receives ``StreamOpened``.
    simulation.links[simulation.newest].is_open = True
    return simulation, token


def _bootstrapping(make: Make) -> tuple[Recorded, Token]:
    simulation = Recorded()
    simulation.flow()
    simulation.node.faults.next(Opcode.SELECT_BUCKET, delay(5.0))
    token = simulation.submit(make(TRAVEL))
    simulation.flow()
    return simulation, token


def _asking_for_the_collection(make: Make) -> tuple[Recorded, Token]:
    simulation = ready()
    simulation.node.faults.always(Opcode.GET_COLLECTION_ID, delay(5.0))
    token = simulation.submit(make(HOTELS))
    simulation.flow()
    return simulation, token


def _struck(make: Make, fault: faults.Fault, **options: Any) -> tuple[Recorded, Token]:
    """Submit an operation while the node has this fault, and let all bytes flow."""
    simulation = ready(options=client_options(**options))
    simulation.node.faults.next(None, fault)
    token = simulation.submit(make(TRAVEL))
    simulation.flow()
    return simulation, token


def _in_flight(make: Make) -> tuple[Recorded, Token]:
    return _struck(make, delay(5.0))


def _in_flight_again(make: Make) -> tuple[Recorded, Token]:
    simulation = ready()
    simulation.node.faults.next(None, faults.temporary_failure())
    simulation.node.faults.next(None, delay(5.0))
    token = simulation.submit(make(TRAVEL))
    simulation.live(0.01)
    return simulation, token


def _waiting(make: Make) -> tuple[Recorded, Token]:
    simulation = ready(options=client_options(retry_strategy=Patient()))
    simulation.node.faults.always(None, faults.temporary_failure())
    token = simulation.submit(make(TRAVEL))
    simulation.flow()
    return simulation, token


def _without_a_connection(make: Make) -> tuple[Recorded, Token]:
    simulation = ready(options=client_options(retry_strategy=Patient()))
    simulation.node.faults.always(None, faults.refuse_connection())
    simulation.lose(StreamId(2))
    return simulation, simulation.submit(make(TRAVEL))


def _expiring(make: Make) -> tuple[Recorded, Token]:
    return _struck(make, faults.temporary_failure(), retry_strategy=Endless())


def _consulting(make: Make) -> tuple[Recorded, Token]:
    simulation, token = _struck(make, faults.temporary_failure(), retry_strategy=Asking())
    assert 1 == len(simulation.consulted)
    return simulation, token


def _consulting_after_a_loss(make: Make) -> tuple[Recorded, Token]:
    simulation, token = _struck(make, faults.hang_up_after_applying(), retry_strategy=Asking())
    assert 1 == len(simulation.consulted)
    return simulation, token


def _answer_lost(make: Make) -> tuple[Recorded, Token]:
    return _struck(make, faults.drop_response())


PHASES: Mapping[str, Phase] = {
    "connecting": _connecting,
    "bootstrapping": _bootstrapping,
    "asking for the collection": _asking_for_the_collection,
    "in flight": _in_flight,
    "in flight again": _in_flight_again,
    "answer lost": _answer_lost,
    "waiting": _waiting,
    "without a connection": _without_a_connection,
    "expiring": _expiring,
    "consulting": _consulting,
    "consulting after a loss": _consulting_after_a_loss,
}
"""For each phase, a function that leaves an operation open in it; the deadline of the operation is at 2.5 seconds."""

AMBIGUOUS = frozenset({"in flight", "in flight again", "answer lost", "consulting after a loss"})
"""Phases in which a write may have been or may still be applied (decision C25)."""
