"""Plain memcached servers, which have no buckets; the client sends no operation that they do not support."""

from __future__ import annotations

from itertools import product

import pytest

from tests.core.client.client_cases import ONE, Bare
from tests.core.runtime.kv import simulated
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.contract import couchbase, neutral
from triclinium_core.kv.operation import document_operations
from triclinium_core.kv.operation.durability import DurabilityLevel
from triclinium_core.kv.operation.results import Cas, ExistsResult
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase.tables.kv_status import Status


def test_memcached_has_no_buckets() -> None:
    """A submission with a bucket is rejected and sends nothing, because all buckets would share their documents."""
    bare = Bare()
    with pytest.raises(errors.InvalidArgumentException, match="default_collection") as caught:
        bare.feed(couchbase.OperationSubmitted(neutral.Token(1), simulated.get()))

    assert "bucket" == caught.value.parameter
    assert [] == bare.requests


@rows(
    ("operation", "open_stream"),
    [
        *product(
            (
                document_operations.GetAndLock(simulated.TRAVEL, "k"),
                document_operations.Unlock(simulated.TRAVEL, "k", Cas(5)),
                simulated.upsert(preserve_expiry=True),
                simulated.upsert(durability=DurabilityLevel.MAJORITY),
            ),
            (True, False),
        ),
        (simulated.get("k", simulated.HOTELS), True),
    ],
)
def test_unsupported_operations(operation: document_operations.Operation, open_stream: bool) -> None:
    """An operation that memcached does not support fails without a request, with or without a connection."""
    bare = Bare(open_stream=open_stream)
    bare.submit(1, operation)
    (failed,) = (action for action in bare.actions if isinstance(action, couchbase.FailOperation))

    assert errors.FeatureNotAvailableException is type(failed.error)
    assert ([], 0) == (bare.requests, bare.client.statistics().open_operations)


def test_memcached_exists() -> None:
    """For a plain memcached server, the client sends ``Exists`` as a GET."""
    bare = Bare()
    bare.submit(1, document_operations.Exists(simulated.TRAVEL, "ada"))
    request = bare.requests[-1]
    bare.answer(cas=5, extras=bytes(4), value=b"v")
    bare.submit(2, document_operations.Exists(simulated.TRAVEL, "bob"))
    bare.answer(status=Status.KEY_NOT_FOUND)

    assert (Opcode.GET, b"") == (request.opcode, request.extras)
    assert [ExistsResult(True, Cas(5)), ExistsResult(False, Cas(0))] == [
        action.result for action in bare.actions if isinstance(action, couchbase.CompleteOperation)
    ]


def test_a_text_protocol() -> None:
    """If the server sends invalid bytes, the client closes the stream with a reason that names the text protocol."""
    bare = Bare()
    bare.submit(1, simulated.upsert())
    bare.feed(neutral.BytesReceived(ONE, b"ERROR\r\n"))
    bare.feed(neutral.StreamLost(ONE, neutral.LossCause.CLOSED_BY_US, handed_over=10**6))
    (closed,) = (action for action in bare.actions if isinstance(action, neutral.CloseStream))
    (failed,) = (action for action in bare.actions if isinstance(action, couchbase.FailOperation))

    assert "text protocol" in closed.reason
    assert errors.RequestCanceledException is type(failed.error)
