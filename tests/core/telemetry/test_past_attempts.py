"""The sums of attempts that are over."""

from __future__ import annotations

from triclinium_core.telemetry.past_attempts import PastAttempts


def test_durations_add_up() -> None:
    """The newest attempt is told by itself, and all together; a server that told nothing adds nothing."""
    past = PastAttempts()
    past.add(0.5, 0.25)
    past.add(1.0, None)
    past.add(2.0, 0.5)

    assert PastAttempts(last=2.0, total=3.5, last_server=0.5, total_server=0.75) == past


def test_a_server_that_never_tells() -> None:
    """Where no answer told for how long its server worked, there is no sum, not even 0."""
    past = PastAttempts()
    past.add(1.0, None)

    assert PastAttempts(last=1.0, total=1.0) == past
