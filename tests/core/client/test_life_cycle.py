"""Garbage collection of dropped clients with open operations or HTTP requests."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator

import pytest

from tests.core.runtime.kv.simulated import HOTELS, TRAVEL, get, ready
from tests.core.runtime.services.asking import STATEMENT, Asking, asking
from tests.rows import rows
from triclinium_core.contract.couchbase import OperationAbandoned, RequestSubmitted
from triclinium_core.contract.neutral import BytesReceived, StreamId, Token
from triclinium_core.kv.operation.document_operations import Keyspace
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import RetryAction, RetryReason, RetryRequest
from triclinium_core.testing.fakes.faults import Fault, delay, temporary_failure
from triclinium_core.testing.fakes.services.answers import FakeAnswer

pytestmark = pytest.mark.native

STALE = FakeAnswer(errors=[{"code": 5000, "msg": "queryport.indexNotFound"}])
SLOW = FakeAnswer(rows=[1], seconds=60.0)


class Holder:
    """Strategy that keeps every request that it receives."""

    def __init__(self) -> None:
        self.kept: list[object] = []

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Keep the request, and return a delay of one second."""
        self.kept.append(request)
        return RetryAction.after(1.0)


@pytest.fixture(autouse=True)
def _collector_is_off() -> Iterator[None]:
    """Disable the garbage collector except for explicit calls."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def open_operation(
    holder: Holder, keyspace: Keyspace = TRAVEL, *, opcode: Opcode | None, fault: Fault | None
) -> object:
    """Return a client with an open operation, whose strategy is the holder and whose ``client_context`` contains it.

    Args:
        opcode: opcode that the fault affects; None for the operation itself.
        fault: fault that keeps the operation open; None loses its connection.
    """
    simulation = ready()
    if fault is not None:
        simulation.node.faults.always(opcode, fault)
    else:
        simulation.lose(StreamId(2))
    simulation.submit(get("k", keyspace), retry_strategy=holder, client_context={"holder": holder})
    if fault is not None:
        simulation.flow()
    assert 1 == simulation.open_operations
    return simulation.machine


def open_request(holder: Holder, answer: FakeAnswer) -> object:
    """Return a client with an open query, whose strategy is the holder and whose ``client_context`` contains it."""
    simulation = Asking()
    simulation.nodes.script.answer(STATEMENT, answer)
    simulation.run()
    simulation.feed(RequestSubmitted(Token(1), asking(), holder, {"holder": holder}))
    simulation.flow()
    assert 1 == simulation.open_operations
    return simulation.machine


OPEN: dict[str, Callable[[Holder], object]] = {
    "operation, retry": lambda holder: open_operation(holder, opcode=None, fault=temporary_failure()),
    "operation, connection": lambda holder: open_operation(holder, opcode=None, fault=None),
    "operation, collection": lambda holder: open_operation(
        holder, HOTELS, opcode=Opcode.GET_COLLECTION_ID, fault=delay(5.0)
    ),
    "request, retry": lambda holder: open_request(holder, STALE),
    "request, answer": lambda holder: open_request(holder, SLOW),
}
"""Functions that return a client with an open operation or request, by what keeps it open."""


def drop(make: Callable[[Holder], object]) -> Callable[[], object]:
    """Make a client with a holder that refers to the client, drop both, and return a weak reference to the holder."""
    holder = Holder()
    holder.kept.append(make(holder))
    return weakref.ref(holder)


@rows("waits_for", sorted(OPEN))
def test_dropped_client_is_freed_with_its_strategy(waits_for: str) -> None:
    """If a strategy refers to its client, the garbage collector frees both once they are dropped."""
    found = drop(OPEN[waits_for])
    is_cycle = found() is not None
    gc.collect()

    assert (True, None) == (is_cycle, found())


def client_in_flight(*, is_abandoned: bool) -> object:
    """Return the connections of a client, with an operation in flight or abandoned on a closed stream.

    Args:
        is_abandoned: whether the client has closed the stream, without a report, and the operation was abandoned.
    """
    simulation = ready()
    simulation.node.faults.always(None, delay(60.0))
    token = simulation.submit(get("k", TRAVEL))
    simulation.flow()
    (client,) = simulation.clients
    assert client.statistics().in_flight
    if is_abandoned:
        stream = next(each.stream_number for each in client._connections.all if each.bucket is not None)
        client.handle(BytesReceived(StreamId(stream), b"\xff" * 64), simulation.now)
        client.handle(OperationAbandoned(token), simulation.now)
    return client._connections


@pytest.mark.parametrize("is_abandoned", [False, True])
def test_dropped_client_is_freed_with_operations_in_flight(is_abandoned: bool) -> None:
    """If a client is dropped with an operation in flight, the garbage collector frees its connections."""
    found = weakref.ref(client_in_flight(is_abandoned=is_abandoned))
    gc.collect()

    assert found() is None
