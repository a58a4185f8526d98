"""Execution order of the commands of one connection of a fake node.

Theory of operation. Without unordered execution, a node starts each command after the previous one is complete. With
it, a command that may be reordered starts while others are in flight, unless its barrier bit is set. Any other command
waits until all earlier ones are complete, and all later ones wait for it.

The fake node carries a command out as soon as it arrives, and delays the reply until a server would send it.
Only a durable write stays in flight for an unknown time; commands that must wait for it are not carried out before.

Source: kv_engine docs/UnorderedExecution.md; "is_reorder_supported" in protocol/mcbp/opcode.cc of version 7.6;
"executeCommandPipeline" in daemon/connection.cc.
"""

from __future__ import annotations

import math

from triclinium_core.kv.wire.constants import Opcode

REORDERABLE_OPCODES = frozenset(
    (
        Opcode.GET,
        Opcode.SET,
        Opcode.ADD,
        Opcode.REPLACE,
        Opcode.DELETE,
        Opcode.INCREMENT,
        Opcode.DECREMENT,
        Opcode.APPEND,
        Opcode.PREPEND,
        Opcode.TOUCH,
        Opcode.GET_AND_TOUCH,
        Opcode.GET_REPLICA,
        Opcode.GET_AND_LOCK,
        Opcode.UNLOCK,
        Opcode.GET_CLUSTER_CONFIG,
        Opcode.SUBDOC_MULTI_LOOKUP,
        Opcode.SUBDOC_MULTI_MUTATION,
        Opcode.RANGE_SCAN_CREATE,
    )
)
"""Opcodes of the commands that may start while others are in flight."""


class Pipeline:
    """Commands in flight on one connection, and the times at which replies are due."""

    def __init__(self) -> None:
        self._held = 0
        """Number of pending durable writes."""
        self._held_in_order = False
        """Whether the last of these writes makes all later commands wait."""
        self._has_waited = False
        """Whether the next command in order has waited for commands that may be reordered."""
        self._last_due = -math.inf
        """Latest time at which a reply so far is due."""
        self._due_in_order = -math.inf
        """Time at which the reply to the last command in order is due: later replies must not precede it."""
        self._held_up_until = -math.inf
        """Time until which commands wait, or have waited, for an earlier command in order."""
        self._reorderable_until = -math.inf
        """Time until which a command is in flight that may be reordered, and precedes no command in order."""

    def admits(self, *, may_reorder: bool) -> bool:
        """Return whether the next command may start."""
        if not self._held or (may_reorder and not self._held_in_order):
            return True
        self._has_waited = not self._held_in_order
        return False

    def hold(self, *, may_reorder: bool) -> None:
        """Record that a durable write is pending."""
        self._held += 1
        self._held_in_order = not may_reorder
        self._has_waited = False

    def release(self) -> None:
        """Record that a durable write is settled."""
        self._held -= 1

    def complete(self, now: float, delay: float, slowness: float, *, may_reorder: bool) -> float:
        """Record a completed command, and return the time at which its reply is due.

        Args:
            now: current time.
            delay: seconds that the command stays in flight.
            slowness: seconds that the reply is in transit.
            may_reorder: whether the command may be reordered.
        """
        due = max(now + delay + slowness, self._due_in_order if may_reorder else self._last_due)
        self._last_due = max(self._last_due, due)
        if not may_reorder:
            if due > now or self._has_waited or self._held_in_order:
                self._held_up_until = due
            self._due_in_order, self._reorderable_until = due, -math.inf
            self._has_waited = self._held_in_order = False
        elif delay:
            self._reorderable_until = max(self._reorderable_until, now + delay)
        return due

    def is_held_up(self, now: float) -> bool:
        """Return whether commands wait for an earlier command, would if they arrived now, or have until now."""
        return self._held_up_until >= now or (self._held > 0 and (self._held_in_order or self._has_waited))

    def is_shared(self, now: float) -> bool:
        """Return whether a command that starts in order finds another command's place in the pipeline.

        A server keeps the place of a command that may be reordered until the next command starts, even if the former
        is complete by then.
        """
        return self._has_waited or now < self._reorderable_until
