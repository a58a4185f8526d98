"""The replies of a fake node that are not sent yet: held back by a fault, or waiting behind such a one."""

from __future__ import annotations

import heapq
import math
from typing import NamedTuple

from triclinium_core.kv.wire.constants import HelloFeature
from triclinium_core.testing.fakes.actions import NodeAction, SendReply
from triclinium_core.testing.fakes.state import Connection


class _DelayedReply(NamedTuple):
    due: float
    order: int
    connection: Connection
    data: bytes


class Outbox:
    """Replies by the time at which they are due."""

    def __init__(self) -> None:
        self._delayed: list[_DelayedReply] = []
        self._replies = 0

    @property
    def due(self) -> float:
        """When the next reply is; infinity for never."""
        return self._delayed[0].due if self._delayed else math.inf

    def send(self, connection: Connection, data: bytes, now: float, delay: float) -> list[NodeAction]:
        """Return what sends a reply now, or keep it for ``delay`` seconds.

        Without unordered execution it waits for the replies before it as well.
        """
        due = now + delay
        if not connection.has(HelloFeature.UNORDERED_EXECUTION):
            due = max(due, connection.last_due)
        connection.last_due = max(due, connection.last_due)
        if due <= now:
            return [SendReply(connection.number, data)]
        self._replies += 1
        connection.delayed_replies += 1
        heapq.heappush(self._delayed, _DelayedReply(due, self._replies, connection, data))
        return []

    def take_due(self, now: float) -> list[NodeAction]:
        """Return what sends all that is due."""
        actions: list[NodeAction] = []
        while self._delayed and self._delayed[0].due <= now:
            reply = heapq.heappop(self._delayed)
            reply.connection.delayed_replies -= 1
            actions.append(SendReply(reply.connection.number, reply.data))
        return actions

    def forget(self, connection: Connection) -> None:
        """Drop what a connection was still due."""
        self._delayed = [reply for reply in self._delayed if reply.connection is not connection]
        heapq.heapify(self._delayed)
