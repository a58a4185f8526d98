"""Sums over the completed attempts of an operation."""

from __future__ import annotations

from triclinium_core.telemetry.past_attempts import PastAttempts


def test_durations_add_up() -> None:
    """The durations of the newest attempt and their sums are kept; a missing server duration adds nothing."""
    past = PastAttempts()
    past.add(0.5, 0.25)
    past.add(1.0, None)
    past.add(2.0, 0.5)

    assert PastAttempts(last=2.0, total=3.5, last_server=0.5, total_server=0.75) == past


def test_no_server_duration_without_a_report() -> None:
    """If no response reports a server duration, there is no sum, not even 0."""
    past = PastAttempts()
    past.add(1.0, None)

    assert PastAttempts(last=1.0, total=1.0) == past
