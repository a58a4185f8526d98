"""State of an open operation: its context, and the pages that it gathers."""

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
from triclinium_core.transcoding.transcoder import RawBinaryTranscoder

READ, WRITE = Get(HOTELS, "k"), Upsert(HOTELS, "k", b"{}", 0)


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


def test_error_context() -> None:
    """Before it has a retry machine, the context of an operation describes its first attempt."""
    operation = live(WRITE)
    operation.link, operation.opaque, operation.stage = Link(2, "h:1", None), 5, Stage.IN_FLIGHT

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
    """A page is malformed only if it far exceeds the byte limit before its last document, in any number of frames."""
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
