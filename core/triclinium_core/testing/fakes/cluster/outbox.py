"""Output of a fake node: actions for its driver, replies with their faults, and delayed replies."""

from __future__ import annotations

import heapq
import math
import struct
from typing import NamedTuple, assert_never

import msgspec

from triclinium_core.testing.fakes import faults
from triclinium_core.testing.fakes.store.state import ClientConnection


class SendReply(msgspec.Struct, frozen=True, gc=False):
    """Action that writes ``data`` to a connection, after all earlier actions for it."""

    connection: int
    data: bytes


class HangUp(msgspec.Struct, frozen=True, gc=False):
    """Action that sends all earlier data, then closes the connection, which the node has already forgotten."""

    connection: int


NodeAction = SendReply | HangUp


_BODY_LENGTH_OFFSET = 8
"""Offset of the body length in a header."""


class Delivery(NamedTuple):
    """Bytes to send now or later, and whether the connection ends."""

    data: bytes = b""
    status: int | None = None
    """Status that a client can read in ``data``; None without a readable one."""
    delay: float = 0.0
    hangs_up: bool = False


def strike_after(reply: bytes, status: int, fault: faults.FaultAfterApplying | None) -> Delivery:
    """Return the delivery of the reply to a command that was carried out. ``status`` is the reply's status."""
    match fault:
        case None:
            return Delivery(reply, status)
        case faults.Delay(seconds):
            return Delivery(reply, status, seconds)
        case faults.DropResponse():
            return Delivery()
        case faults.HangUpAfterApplying():
            return Delivery(hangs_up=True)
        case faults.HangUpMidReply(bytes_sent):
            return Delivery(reply[: min(bytes_sent, len(reply) - 1)], hangs_up=True)
        case faults.Garble():
            return Delivery(bytes(byte ^ 0xFF for byte in reply))
        case faults.WrongLength(announced):
            header = bytearray(reply)
            struct.pack_into(">I", header, _BODY_LENGTH_OFFSET, announced)
            return Delivery(bytes(header))
        case _:
            assert_never(fault)


class _DelayedReply(NamedTuple):
    due: float
    order: int
    connection: ClientConnection
    data: bytes


class Outbox:
    """Delayed replies, ordered by the time at which they are due."""

    def __init__(self) -> None:
        self._delayed: list[_DelayedReply] = []
        self._replies = 0

    @property
    def due(self) -> float:
        """Time of the next due reply; infinity without one."""
        return self._delayed[0].due if self._delayed else math.inf

    def send(self, connection: ClientConnection, data: bytes, now: float, due: float) -> list[NodeAction]:
        """Send a reply at the time ``due``, and return the actions that are due now."""
        if due <= now:
            return [SendReply(connection.number, data)]
        self._replies += 1
        heapq.heappush(self._delayed, _DelayedReply(due, self._replies, connection, data))
        return []

    def take_due(self, now: float) -> list[NodeAction]:
        """Return the actions that send every due reply."""
        actions: list[NodeAction] = []
        while self._delayed and self._delayed[0].due <= now:
            reply = heapq.heappop(self._delayed)
            actions.append(SendReply(reply.connection.number, reply.data))
        return actions

    def forget(self, connection: ClientConnection) -> None:
        """Drop the delayed replies of a connection."""
        self._delayed = [reply for reply in self._delayed if reply.connection is not connection]
        heapq.heapify(self._delayed)
