"""Schedule of node commands: what happens to nodes during a run, and when.

A command changes one *property* of a node, such as whether it is alive, or the map. It starts immediately or when its
conditions are met, and may end later, which undoes it. If several commands change one property of one node, the newest
one that has started wins: its start cancels the end of the earlier ones.

``after_requests`` counts the commands on documents and the HTTP requests that all nodes of the cluster receive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from triclinium_core import errors
from triclinium_core.testing.fakes.fault_conditions import IMMEDIATELY, Conditions, FaultClock, Progress
from triclinium_core.testing.fakes.log_limit import LogLimit

PLANNED_MAX = 1_000
"""Maximum number of commands that wait for their start or their end."""
LOG_MAX = 10_000
"""Maximum number of entries in the log of one cluster."""


class Change(NamedTuple):
    """A command that changes a property of a node."""

    name: str
    """Name of the command, such as ``kill``."""
    property: str
    """Property of the node that it changes, such as ``life``."""
    node: int | None
    """Index of the node; None for the whole cluster."""
    begin: Callable[[], None]
    end: Callable[[], None] | None = None
    """Function that undoes the change; None if nothing does."""


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """A start or an end of a command, or its failure."""

    now: float
    """Time in seconds."""
    name: str
    node: int | None
    """Index of the node; None for the whole cluster."""
    is_end: bool = False
    """Whether this is the end of the command, after ``for_seconds``."""
    error: str | None = None
    """Reason why it had no effect; None if it took effect."""


class _Planned:
    """A command that waits for its start or its end."""

    def __init__(self, change: Change, conditions: Conditions, clock: FaultClock) -> None:
        self.change = change
        self.progress = Progress(conditions, clock)
        self.has_started = False

    @property
    def due(self) -> float:
        """Time of the next step."""
        return self.progress.ends_at if self.has_started else self.progress.starts_at


class Schedule:
    """Commands that wait for their start or their end, and the log of commands."""

    def __init__(self, clock: FaultClock) -> None:
        self._clock = clock
        self._planned: list[_Planned] = []
        self._due: float = math.inf
        self._log_limit = LogLimit[LoggedChange](LOG_MAX, lambda logged: len(logged.error or ""))
        self.log: list[LoggedChange] = []
        """Commands that have taken effect or failed, the oldest first."""
        self.listener: Callable[[LoggedChange], None] | None = None
        """Function that gets each entry of ``log``; None for no function."""

    @property
    def due(self) -> float:
        """Time of the next start or end; infinity without one."""
        return self._due

    @property
    def planned(self) -> Sequence[tuple[Change, Conditions, bool]]:
        """Commands that wait for their start or their end: each with its conditions, and whether it has started."""
        return [(each.change, each.progress.conditions, each.has_started) for each in self._planned]

    def perform(self, change: Change, conditions: Conditions) -> None:
        """Start a command, now or when its conditions are met.

        Raises:
            InvalidArgumentException: it starts now and is impossible; it has an end but cannot be undone; or too many
                commands wait.
        """
        if conditions.for_seconds < math.inf and change.end is None:
            raise errors.InvalidArgumentException(
                f"{change.name} has no end; omit for_seconds", parameter="for_seconds"
            )
        if len(self._planned) >= PLANNED_MAX:
            raise errors.InvalidArgumentException(
                f"{PLANNED_MAX} commands wait, which is the maximum; clear them, or let those that have started end",
                parameter="command",
            )
        planned = _Planned(change, conditions, self._clock)
        if planned.due > self._clock.now and conditions != IMMEDIATELY:
            self._planned.append(planned)
        else:
            self._start(planned)
        self._set_due()

    def request_arrived(self) -> None:
        """Count a request."""
        if self._planned:
            for each in self._planned:
                each.progress.request_arrived()
            self._set_due()

    def run_due(self) -> None:
        """Start and end everything that is due, in order of time."""
        while self._due <= self._clock.now:
            planned = min(self._planned, key=lambda each: each.due)
            self._planned.remove(planned)
            try:
                if planned.has_started:
                    assert planned.change.end is not None
                    planned.change.end()
                    self._log(planned.change, is_end=True)
                else:
                    self._start(planned)
            except errors.InvalidArgumentException as error:
                self._log(planned.change, is_end=planned.has_started, error=error.message)
            self._set_due()

    def clear(self, node: int | None = None) -> None:
        """Forget the commands for a node that have not started; None forgets those of all nodes and the cluster.

        A command that has started still ends.
        """
        self._planned = [
            each for each in self._planned if each.has_started or (node is not None and each.change.node != node)
        ]
        self._set_due()

    def reset_clock(self) -> None:
        """Recompute ``due`` after a change to the zero of the clock."""
        self._set_due()

    def _start(self, planned: _Planned) -> None:
        change = planned.change
        change.begin()
        subject = (change.property, change.node)
        self._planned = [
            each
            for each in self._planned
            if not each.has_started or (each.change.property, each.change.node) != subject
        ]
        planned.has_started = True
        if planned.due < math.inf:
            self._planned.append(planned)
        self._log(change)

    def _log(self, change: Change, *, is_end: bool = False, error: str | None = None) -> None:
        logged = LoggedChange(self._clock.now, change.name, change.node, is_end, error)
        self._log_limit.add(self.log, logged)
        if self.listener is not None:
            self.listener(logged)

    def _set_due(self) -> None:
        self._due = min((each.due for each in self._planned), default=math.inf)
