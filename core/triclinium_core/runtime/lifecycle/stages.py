"""Stages of an open operation or request, as a table.

``Lifecycle``, the two carriers and their dispatchers assign the stages. The client does not read the table: a lookup
for each step would cost 13 % of a get. Each run of the tests checks each assignment against it.

Source: SDK-RFC 0049 "Retry Orchestration".
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique


@unique
class Stage(Enum):
    """Stage of one operation or request."""

    WAITING = "waiting"
    """It is sent as soon as a connection, a collection id or the first cluster config permits it."""
    ACQUIRING = "acquiring"
    """The token strategy decides about the permit of the first attempt."""
    HELD = "held"
    """The token strategy delays the first attempt."""
    IN_FLIGHT = "in flight"
    """An attempt is sent and unanswered."""
    CONSULTING = "consulting"
    """An asynchronous strategy decides about a failure."""
    BACKING_OFF = "backing off"
    """The delay before the next attempt, or before the failure if the delay was cut, is not over."""
    DELIVERING = "delivering"
    """The outcome is known. The caller first reads the rows."""
    SETTLED = "settled"
    """The outcome was delivered, or the caller has left."""


_ENDS = frozenset({Stage.DELIVERING, Stage.SETTLED})

NEXT_STAGES: Mapping[Stage, frozenset[Stage]] = {
    Stage.WAITING: _ENDS | {Stage.ACQUIRING, Stage.IN_FLIGHT, Stage.CONSULTING, Stage.BACKING_OFF},
    Stage.ACQUIRING: _ENDS | {Stage.HELD, Stage.WAITING},
    Stage.HELD: _ENDS | {Stage.WAITING},
    # A response with the plan of a statement makes the statement itself wait for a connection.
    Stage.IN_FLIGHT: _ENDS | {Stage.WAITING, Stage.CONSULTING, Stage.BACKING_OFF},
    Stage.CONSULTING: _ENDS | {Stage.BACKING_OFF},
    Stage.BACKING_OFF: _ENDS | {Stage.WAITING},
    Stage.DELIVERING: frozenset({Stage.SETTLED}),
    Stage.SETTLED: frozenset(),
}
"""Stages that may follow each stage. An operation or request begins in WAITING."""
