"""History of a connection's attempts to reach its node."""

from __future__ import annotations

from triclinium_core.runtime.kv.connection.attempt_history import NO_END, AttemptHistory
from triclinium_core.runtime.kv.connection.bootstrap import BootstrapFailure


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


def test_ready_ends_it() -> None:
    """When a connection becomes ready, its last error is cleared and its earlier failures are no longer counted."""
    history = AttemptHistory(earlier_failures=4)
    lose(history, lacks_bucket=True)
    before = history.last_end.error, history.all_failures
    history.became_ready()

    assert (("gone", 5), NO_END, 1) == (before, history.last_end, history.all_failures)
    assert history.was_ready


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
