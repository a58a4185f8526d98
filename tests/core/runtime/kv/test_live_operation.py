"""State of an open operation: its ambiguity, its retry machine and its context."""

from __future__ import annotations

import pytest

from tests.core.kv.operation.examples import HOTELS
from triclinium_core.contract.neutral import Token
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.codec_parts import MalformedResponse
from triclinium_core.kv.operation.document_operations import Get, Keyspace, Noop, Operation, Upsert
from triclinium_core.kv.operation.results import ScanPage, ScanResult
from triclinium_core.kv.operation.scan.scan_requests import RangeScanContinue
from triclinium_core.retry import couchbase
from triclinium_core.runtime.kv.live_operation import PAGE_SIZE_BYTES_FREE, PAGE_SIZE_FACTOR_MAX, LiveOperation
from triclinium_core.runtime.lifecycle.link import Link
from triclinium_core.runtime.lifecycle.stages import Stage
from triclinium_core.testing.simulation import MIDPOINT
from triclinium_core.transcoding.transcoder import RawBinaryTranscoder

READ, WRITE = Get(HOTELS, "k"), Upsert(HOTELS, "k", b"{}", 0)
RNG = MIDPOINT


def live(request: Operation) -> LiveOperation:
    """Return an operation that was submitted at 1 s, with a timeout of 2.5 s."""
    return LiveOperation(
        Token(7),
        request,
        strategy=couchbase.BestEffortRetryStrategy(),
        client_context=None,
        submitted_at=1.0,
        deadline=3.5,
    )


def send(operation: LiveOperation) -> None:
    """Mark the first attempt as in flight, as the client does."""
    operation.link, operation.opaque, operation.stage = Link(2, "h:1", None), 5, Stage.IN_FLIGHT


@pytest.mark.parametrize(("request_", "expected"), [(READ, False), (WRITE, True)])
def test_ambiguous_without_a_machine(request_: Operation, expected: bool) -> None:
    """Before it has a retry machine, an operation is ambiguous only if it is a write in flight (decision C25)."""
    operation = live(request_)

    assert not operation.is_ambiguous

    send(operation)

    assert expected == operation.is_ambiguous


def test_ambiguous_with_a_machine() -> None:
    """With a retry machine, a write is ambiguous from an attempt until a response or until it proves to be unsent."""
    operation = live(WRITE)
    send(operation)
    machine = operation.make_retry_machine(rng=RNG, error_maps=couchbase.ErrorMapStore())
    machine.handle(couchbase.ResponseReceived(couchbase.KvResponse(0x86)), 1.5)

    assert not operation.is_ambiguous

    machine.handle(couchbase.WakeupReached(), 1.501)
    machine.handle(couchbase.Dispatched("h:1", 6), 1.501)

    assert operation.is_ambiguous

    machine.handle(couchbase.SocketClosed(couchbase.HandedOver.NOTHING), 1.6)

    assert not operation.is_ambiguous


@pytest.mark.parametrize(
    ("sent", "state"), [(False, couchbase.RetryState.PENDING), (True, couchbase.RetryState.IN_FLIGHT)]
)
def test_machine_takes_over_where_the_operation_is(sent: bool, state: couchbase.RetryState) -> None:
    """A new retry machine gets the annotations and the state of its operation."""
    operation = live(WRITE)
    operation.client_context = {"robot": True}
    if sent:
        send(operation)
    machine = operation.make_retry_machine(rng=RNG, error_maps=couchbase.ErrorMapStore())

    assert state is machine.state
    assert machine is operation.retry
    assert (1.0, 3.5, False, operation.strategy) == (
        machine.annotation.submitted_at,
        machine.annotation.deadline,
        machine.annotation.idempotent,
        machine.annotation.strategy,
    )
    assert {"robot": True} == machine.snapshot(2.0).client_context
    assert "k" == machine.snapshot(2.0).key


def test_error_context() -> None:
    """Before it has a retry machine, the context of an operation describes its first attempt."""
    operation = live(WRITE)
    send(operation)

    assert operation.first_context() == ErrorContext(
        service="kv",
        operation="upsert",
        idempotent=False,
        bucket="travel",
        scope="inventory",
        collection="hotel",
        key="k",
        opaque=5,
        last_dispatched_to="h:1",
    )
    assert live(Noop(Keyspace(None))).first_context().key is None


@pytest.mark.parametrize(
    ("limit", "sizes", "is_refused"),
    [
        (1000, [PAGE_SIZE_BYTES_FREE + PAGE_SIZE_FACTOR_MAX * 1000, 20_000_000], False),
        (1000, [PAGE_SIZE_BYTES_FREE + PAGE_SIZE_FACTOR_MAX * 1000 + 1, 1], True),
        (0, [10_000_000] * 3, False),
        (1000, [], False),
    ],
)
def test_pages_of_more_bytes_than_were_requested(limit: int, sizes: list[int], is_refused: bool) -> None:
    """If a page exceeds the byte limit by far before its last document, it is malformed, in one frame or several."""
    page = RangeScanContinue(HOTELS, 0, bytes(16), item_limit=50, byte_limit=limit, time_limit_ms=0)
    items = [ScanResult("k", RawBinaryTranscoder(), stored=bytes(size)) for size in sizes]
    for frames in ([items], [[item] for item in items], [items, []]):
        operation = live(page)
        try:
            for each in frames:
                operation.gather(ScanPage(tuple(each), is_complete=False))
        except MalformedResponse:
            assert is_refused
        else:
            assert not is_refused
