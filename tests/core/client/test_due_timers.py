"""Table with the handler of each kind of timer."""

from __future__ import annotations

from triclinium_core.client import due_timers
from triclinium_core.contract.couchbase import TimerKind


def test_each_timer_has_a_handler() -> None:
    """The table has a handler for each kind of timer."""
    assert set(TimerKind) == due_timers._ON_TIMER.keys()
