"""History of a connection's attempts to reach its node."""

from __future__ import annotations

import pytest

from triclinium_core.retry.couchbase import RetryReason
from triclinium_core.runtime.kv.connection.attempt_history import NO_END, AttemptHistory, StreamEnd
from triclinium_core.runtime.kv.connection.bootstrap import BootstrapFailure, FailureKind


def lose(
    history: AttemptHistory,
    failure: BootstrapFailure | None = None,
    *,
    was_proven: bool = False,
    address_count: int = 1,
    lacks_bucket: bool = False,
    is_of_no_use: bool = False,
) -> None:
    """Begin a stream and lose it, with this failure."""
    history.begun()
    history.lost(
        "gone",
        failure,
        was_proven=was_proven,
        address_count=address_count,
        lacks_bucket=lacks_bucket,
        is_of_no_use=is_of_no_use,
    )


def test_counts() -> None:
    """Losses count until the connection is ready, failures until a response arrives, and attempts are never reset."""
    history = AttemptHistory()
    lose(history)
    lose(history)
    losses = history.became_ready()
    lose(history)
    counts = history.attempts, history.losses, history.failures
    history.proven()
    lose(history, was_proven=True)

    assert (2, (3, 1, 3)) == (losses, counts)
    assert (4, 2, 0) == (history.attempts, history.losses, history.failures)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (FailureKind.UNPROVEN_NODE, StreamEnd("gone", is_refused=True)),
        (FailureKind.NOT_COUCHBASE, StreamEnd("gone", is_unsupported=True)),
        (FailureKind.BUCKET, StreamEnd("gone")),
    ],
)
def test_the_last_address_decides(kind: FailureKind, expected: StreamEnd) -> None:
    """After a failed bootstrap, a node counts as refused or unsupported only once all addresses were tried."""
    history, failure = AttemptHistory(), BootstrapFailure(kind, "wrong")
    lose(history, failure, address_count=2)
    first = history.last_end
    lose(history, failure, address_count=2)

    assert (StreamEnd("gone"), expected) == (first, history.last_end)


def test_the_pool_knows_more() -> None:
    """If the pool reports a missing or unsupported bucket, the history records it without a failed bootstrap."""
    history = AttemptHistory()
    lose(history, lacks_bucket=True, is_of_no_use=True)

    assert StreamEnd("gone", is_unsupported=True, lacks_bucket=True) == history.last_end


def test_ready_ends_it() -> None:
    """When a connection becomes ready, its last error is cleared and its earlier failures are no longer counted."""
    history = AttemptHistory(earlier_failures=4)
    lose(history, lacks_bucket=True)
    before = history.last_end.error, history.all_failures
    history.became_ready()

    assert (("gone", 5), NO_END, 1) == (before, history.last_end, history.all_failures)
    assert history.was_ready


def test_reasons() -> None:
    """The unavailability reason differs between a node that was refused, one that was reached, and one that was not."""
    history = AttemptHistory()
    never = history.unavailable_reason
    history.opened()
    once = history.unavailable_reason
    lose(history, BootstrapFailure(FailureKind.UNPROVEN_NODE, "wrong"))

    assert RetryReason.NODE_NOT_AVAILABLE == never
    assert RetryReason.SOCKET_NOT_AVAILABLE == once
    assert RetryReason.AUTHENTICATION_ERROR == history.unavailable_reason


def test_backoff() -> None:
    """Decoder faults increase the backoff even if the stream had received responses; any other close resets it."""
    history = AttemptHistory()
    counts = []
    for after_fault in (True, True, False):
        history.closed(after_fault=after_fault)
        lose(history, was_proven=True)
        counts.append(history.backoff_failures)

    assert [1, 2, 0] == counts


def test_a_corrupt_map_is_remembered() -> None:
    """After a stream had a corrupt error map, the history records this for all later streams."""
    history = AttemptHistory()
    history.map_is_corrupt()
    history.became_ready()

    assert history.had_corrupt_error_map
