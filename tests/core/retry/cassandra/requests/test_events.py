"""Events of attempts: their properties, and errors for invalid fields."""

from __future__ import annotations

from typing import Any

from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.retry import cassandra


@rows(("handed_over", "is_unsent"), [(0, True), (1, False), (10_000, False), (None, False)])
def test_zero_bytes_mean_unsent(handed_over: int | None, is_unsent: bool) -> None:
    """An attempt is unsent only if no byte was handed over; if the number is unknown, the attempt counts as sent."""
    assert is_unsent is cassandra.AttemptAborted(0, cassandra.ClosedConnection(), handed_over).is_unsent


@rows("handed_over", [-1, 1.5, True, "0"])
def test_handed_over_is_a_count(handed_over: Any) -> None:
    """``handed_over`` must be a non-negative integer or None."""
    with refusal_of("handed_over", "handed_over="):
        cassandra.AttemptAborted(0, cassandra.ClosedConnection(), handed_over)


@rows("error", [cassandra.RequestAborted(), cassandra.FrameTooLong(), cassandra.RequestThrottled()])
def test_errors_that_abort(error: Any) -> None:
    """An attempt can be aborted with a RequestAborted, a FrameTooLong or a RequestThrottled."""
    assert error is cassandra.AttemptAborted(0, error).error


@rows(
    "error", [cassandra.ServerError(), cassandra.NodeUnavailable(), OSError("reset"), None, cassandra.ClosedConnection]
)
def test_other_errors_do_not_abort(error: Any) -> None:
    """An abort with any other error or object is refused, with a hint to use ``__cause__``."""
    with refusal_of("error", "__cause__"):
        cassandra.AttemptAborted(0, error)


@rows("error", [cassandra.ClosedConnection(), OSError("reset"), None, 0x1001])
def test_only_coordinator_errors_are_responses(error: Any) -> None:
    """ErrorReceived accepts only a CoordinatorError."""
    with refusal_of("error", "must be a CoordinatorError"):
        cassandra.ErrorReceived(0, error)
