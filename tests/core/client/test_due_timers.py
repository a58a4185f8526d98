"""Table of the handlers of timers."""

from __future__ import annotations

from triclinium_core.client import due_timers
from triclinium_core.contract.couchbase import TimerKind


def test_each_timer_has_a_handler() -> None:
    """The table of handlers lists all kinds of timers."""
    assert set(TimerKind) == due_timers._ON_TIMER.keys()
