"""Sums over the completed attempts of an operation."""

from __future__ import annotations

from triclinium_core.telemetry.past_attempts import PastAttempts


def test_durations_add_up() -> None:
    """The newest attempt's durations and all sums are kept; without any server duration, their sum stays unset."""
    past = PastAttempts()
    past.add(1.0, None)

    assert PastAttempts(last=1.0, total=1.0) == past

    past.add(0.5, 0.25)
    past.add(1.0, None)
    past.add(2.0, 0.5)

    assert PastAttempts(last=2.0, total=4.5, last_server=0.5, total_server=0.75) == past
