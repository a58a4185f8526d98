"""Alarm of a machine: it feeds ``TimePassed`` at ``wakeup``, after the bytes that had arrived by then, up to a limit.

A response that waits in a socket because the program was busy must not become a timeout. So each alarm first lets the
readers feed the bytes that arrived before it. The work on these bytes is bounded, because a node that never stops
sending must not delay the deadlines.
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
    """Source of ``TimePassed``, which it feeds when the time is due, after the bytes that the streams have received.

    Args:
        feed: passes an event to the machine, and executes its actions.
        waiters: waiting tasks.
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
        """Time of the alarm, which may be earlier than the machine's ``wakeup``; -inf before ``run``."""
        self._unread: set[StreamId] = set()
        """Streams that may have more bytes from before the alarm."""

    def set_earlier(self, wakeup: float) -> None:
        """Move the alarm to ``wakeup``, which is before ``time``."""
        self.time = self._scope.deadline = wakeup

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> None:
        """Feed ``TimePassed`` at each ``wakeup``. If the machine has postponed it, the extra event is harmless."""
        while True:
            self.time = self._machine.wakeup
            with trio.CancelScope(deadline=self.time) as self._scope:
                await trio.sleep_forever()
            unread = await self._read_what_came()
            self._feed(TimePassed(self.streams.unsent(), unread))

    async def _read_what_came(self) -> Collection[StreamId]:
        """Let the readers feed the bytes from before the alarm. Return the streams that may have more such bytes."""
        self._waiters.begin_alarm()
        work_max = self._machine.work + WORK_BEFORE_TIME_MAX
        before = {*self.streams.numbers}
        while True:
            self._unread.clear()
            # Trio runs the tasks of one pass in any order: two checkpoints ensure that each reader with bytes has run.
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

    def on_event(self, event: StreamEvent) -> None:
        """Feed an event of a stream during an alarm, and record whether more bytes from before the alarm may follow.

        More bytes may follow after a response to a token that is older than the alarm, and after bytes that complete no
        response, such as a part of one: TLS records may be small. Bytes of responses to younger tokens arrived
        only after the alarm. If such bytes counted, the alarm of a client that is always busy would never end.
        """
        waiters = self._waiters
        waiting, old = len(waiters.open), waiters.old_settled
        self._feed(event)
        if isinstance(event, BytesReceived) and (old != waiters.old_settled or waiting == len(waiters.open)):
            self._unread.add(event.stream)
