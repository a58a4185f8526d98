"""Stages of an open operation or request, as a table.

``Lifecycle``, the two carriers and their dispatchers assign the stages. The client does not use the table, because a
lookup at each step would make a get 13 % slower. The tests check every assignment against the table.

Source: SDK-RFC 0049 "Retry Orchestration".
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique


@unique
class Stage(Enum):
    """Stage of one operation or request."""

    WAITING = "waiting"
    """The attempt waits for a connection, a collection id or the first cluster config."""
    ACQUIRING = "acquiring"
    """The token strategy decides whether to permit the first attempt."""
    HELD = "held"
    """The token strategy has delayed the first attempt."""
    IN_FLIGHT = "in flight"
    """An attempt is sent and unanswered."""
    CONSULTING = "consulting"
    """An asynchronous strategy decides about a retry after a failure."""
    BACKING_OFF = "backing off"
    """The delay before the next attempt is not over. If a limit has cut the delay, the operation fails after it."""
    DELIVERING = "delivering"
    """The outcome is known. The caller gets it after the remaining rows."""
    SETTLED = "settled"
    """The outcome was delivered, or the caller has abandoned the operation."""


_ENDS = frozenset({Stage.DELIVERING, Stage.SETTLED})

NEXT_STAGES: Mapping[Stage, frozenset[Stage]] = {
    Stage.WAITING: _ENDS | {Stage.ACQUIRING, Stage.IN_FLIGHT, Stage.CONSULTING, Stage.BACKING_OFF},
    Stage.ACQUIRING: _ENDS | {Stage.HELD, Stage.WAITING},
    Stage.HELD: _ENDS | {Stage.WAITING},
    # WAITING: after the response with the plan of a statement, the execution waits for a connection.
    Stage.IN_FLIGHT: _ENDS | {Stage.WAITING, Stage.CONSULTING, Stage.BACKING_OFF},
    Stage.CONSULTING: _ENDS | {Stage.BACKING_OFF},
    Stage.BACKING_OFF: _ENDS | {Stage.WAITING},
    Stage.DELIVERING: frozenset({Stage.SETTLED}),
    Stage.SETTLED: frozenset(),
}
"""Stages that may follow each stage. An operation or request begins in WAITING."""
