"""The alarm of a machine: ``TimePassed`` when ``wakeup`` has come, after everything that had arrived by then.

An answer that waits in a socket because the program was busy must not become a timeout. So each ring lets the readers
feed what came before. The work on these bytes is bounded, because a node that never stops sending must not delay the time
limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Generic, TypeVar

import trio

from triclinium._driver.pace import Pace
from triclinium._driver.streams import StreamEvent, Streams
from triclinium._driver.waiters import Waiters
from triclinium_core.contract.neutral import BytesReceived, Machine, StreamId, TimePassed
from triclinium_core.work import WORK_BEFORE_TIME_MAX

E = TypeVar("E")
A = TypeVar("A")
Q = TypeVar("Q")
R = TypeVar("R")


class Alarm(Generic[E, A, Q, R]):
    """Feeds ``TimePassed`` when it is due, and before it what the streams have received.

    Args:
        feed: passes an event to the machine, and carries out what it orders.
        waiters: the tasks that wait for answers.
        pace: limits the work of all readers in one pass of trio's loop.
    """

    streams: Streams
    """All streams of the machine; set before the first event."""

    def __init__(
        self,
        machine: Machine[E | StreamEvent | TimePassed, A],
        feed: Callable[[StreamEvent | TimePassed], None],
        waiters: Waiters[Q, R],
        pace: Pace,
    ) -> None:
        self._machine = machine
        self._feed = feed
        self._waiters = waiters
        self._pace = pace
        self._scope = trio.CancelScope()
        self.time: float = -math.inf
        """Instant when it rings, or an earlier one."""
        self._unread: set[StreamId] = set()
        """Streams that may have more of what came before the alarm."""

    def set_earlier(self, wakeup: float) -> None:
        """Ring at ``wakeup``, which is before ``time``."""
        self.time = self._scope.deadline = wakeup

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> None:
        """Ring whenever the machine's ``wakeup`` has come. One that has moved away makes a harmless extra event."""
        while True:
            self.time = self._machine.wakeup
            with trio.CancelScope(deadline=self.time) as self._scope:
                await trio.sleep_forever()
            unread = await self._read_what_came()
            self._feed(TimePassed(self.streams.unsent(), unread))

    async def _read_what_came(self) -> Collection[StreamId]:
        """Let the readers feed what arrived before the alarm, and return the streams that may have more of it."""
        self._waiters.begin_alarm()
        work_max = self._machine.work + WORK_BEFORE_TIME_MAX
        before = {*self.streams.numbers}
        while True:
            self._unread.clear()
            # Trio runs the tasks of one pass in any order: in two passes, each reader had a turn between ours.
            await trio.lowlevel.checkpoint()
            if self._machine.work < work_max:
                await trio.lowlevel.checkpoint()
                before = set()
            unread = self._unread | self._pace.held
            if not unread or self._machine.work >= work_max:
                break
            before = unread
        self._waiters.end_alarm()
        return frozenset(unread | before)

    def hear(self, event: StreamEvent) -> None:
        """Feed an event of a stream while the alarm rings; of bytes, note whether more may follow that came before it.

        More may follow an answer to a token that is older than the alarm, and a piece that answered none, such as a part of
        an answer: records of TLS may be small. A piece that answers only younger tokens came later: a client that is always
        busy would never see the end of that.
        """
        waiters = self._waiters
        waiting, old = len(waiters.open), waiters.old_settled
        self._feed(event)
        if isinstance(event, BytesReceived) and (old != waiters.old_settled or waiting == len(waiters.open)):
            self._unread.add(event.stream)
