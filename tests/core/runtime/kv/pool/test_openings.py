"""Queue of connections that wait to open a stream."""

from __future__ import annotations

from tests.core.runtime.kv.pool.test_routes import connection
from triclinium_core.contract.couchbase import TimerKind
from triclinium_core.contract.neutral import StreamId, Timers
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.pool.openings import PLACE_SECONDS_MAX, PLACES_MAX, Openings


class Queue:
    """Queue of connections that wait for permission to open a stream, with the number of streams."""

    def __init__(self, count: int) -> None:
        self.timers: Timers[TimerKind] = Timers()
        self.openings = Openings(self.timers)
        self.nodes = [connection("travel") for _ in range(count)]
        self.streams = 0
        for each in self.nodes:
            self.openings.wait(each)

    def open(self, now: float) -> list[Connection]:
        """Open the streams that the queue permits, and return their connections."""
        opened = []
        while (each := self.openings.next(now)) is not None:
            self.streams += 1
            self.openings.began(StreamId(self.streams), now)
            opened.append(each)
        return opened


def test_an_open_stream_frees_its_place() -> None:
    """When a stream has opened, the queue immediately permits the next one."""
    queue = Queue(PLACES_MAX + 2)
    queue.open(1.0)
    queue.openings.opened(StreamId(3))

    assert [queue.nodes[PLACES_MAX]] == queue.open(1.0)


def test_streams_that_took_no_turn_count() -> None:
    """Streams that were opened without the queue count too; a timer marks when the next one is permitted."""
    queue = Queue(1)
    for stream in range(PLACES_MAX + 1):
        queue.openings.began(StreamId(stream), 1.0 + (stream > 0))
    waits = queue.open(2.0)
    woken_at = queue.timers.wakeup

    assert ([], 2.0 + PLACE_SECONDS_MAX, queue.nodes) == (waits, woken_at, queue.open(woken_at))


def test_an_empty_queue_has_no_timer() -> None:
    """A connection that stops waiting is skipped, and an empty queue has no timer."""
    queue = Queue(2)
    stopped = [queue.openings.stop_waiting(queue.nodes[0]) for _ in range(2)]
    opened = queue.open(1.0)

    assert [True, False] == stopped
    assert queue.nodes[1:] == opened
    assert float("inf") == queue.timers.wakeup
