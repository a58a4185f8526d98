"""What an event says about an attempt, and what it cannot say."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry import cassandra


@rows(("handed_over", "is_unsent"), [(0, True), (1, False), (10_000, False), (None, False)])
def test_unsent_is_no_byte(handed_over: int | None, is_unsent: bool) -> None:
    """Only a zero that was told is one: what is not known counts as sent."""
    assert is_unsent is cassandra.AttemptAborted(0, cassandra.ClosedConnection(), handed_over).is_unsent


@rows("handed_over", [-1, 1.5, True, "0"])
def test_handed_over_is_a_count(handed_over: Any) -> None:
    """Anything else is refused."""
    with pytest.raises(ArgumentError, match="handed_over=") as caught:
        cassandra.AttemptAborted(0, cassandra.ClosedConnection(), handed_over)

    assert "handed_over" == caught.value.parameter


@rows("error", [cassandra.RequestAborted(), cassandra.FrameTooLong(), cassandra.RequestThrottled()])
def test_what_aborts(error: Any) -> None:
    """Why there is no answer."""
    assert error is cassandra.AttemptAborted(0, error).error


@rows(
    "error", [cassandra.ServerError(), cassandra.NodeUnavailable(), OSError("reset"), None, cassandra.ClosedConnection]
)
def test_what_does_not_abort(error: Any) -> None:
    """An answer, or an exception that the driver caught as it came, is refused with what to do instead."""
    with pytest.raises(ArgumentError, match="put what you caught into its __cause__") as caught:
        cassandra.AttemptAborted(0, error)

    assert "error" == caught.value.parameter


@rows("error", [cassandra.ClosedConnection(), OSError("reset"), None, 0x1001])
def test_what_is_no_answer(error: Any) -> None:
    """Only a CoordinatorError is the answer of a node."""
    with pytest.raises(ArgumentError, match="must be a CoordinatorError") as caught:
        cassandra.ErrorReceived(0, error)

    assert "error" == caught.value.parameter
