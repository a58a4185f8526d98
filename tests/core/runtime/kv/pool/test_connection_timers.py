"""Timers of connections: each connection has at most one of each kind."""

from __future__ import annotations

import math

from tests.core.runtime.kv.pool.test_routes import connection
from triclinium_core.contract.couchbase import TimerKind
from triclinium_core.contract.neutral import Timers
from triclinium_core.runtime.kv.pool.connection_timers import ConnectionTimers


def test_the_newest_of_a_kind_counts() -> None:
    """A new timer replaces the timer of the same kind and connection."""
    timers: Timers[TimerKind] = Timers()
    of_nodes, first, second = ConnectionTimers(timers), connection(None), connection(None)
    of_nodes.schedule(first, TimerKind.CONNECT, 1.0)
    of_nodes.schedule(second, TimerKind.CONNECT, 2.0)
    of_nodes.schedule(first, TimerKind.CONNECT, 3.0)

    assert 2.0 == timers.wakeup
    assert (2, 2) == (len(of_nodes), len(timers))


def test_timers_that_end_with_a_stream() -> None:
    """When a stream ends, all timers of its connection end except that of the reconnect."""
    timers: Timers[TimerKind] = Timers()
    of_nodes, one = ConnectionTimers(timers), connection(None)
    for when, kind in enumerate((TimerKind.KEEP_ALIVE, TimerKind.DRAIN, TimerKind.RECONNECT, TimerKind.CANARY), 1):
        of_nodes.schedule(one, kind, float(when))
    of_nodes.end_stream(one)

    assert 3.0 == timers.wakeup

    of_nodes.cancel(one, TimerKind.RECONNECT)
    of_nodes.cancel(one, TimerKind.RECONNECT)

    assert math.inf == timers.wakeup
    assert (0, 0) == (len(of_nodes), len(timers))
