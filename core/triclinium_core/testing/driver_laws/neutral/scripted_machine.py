"""Machine that returns the actions that a law prescribes, and records every event."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from triclinium_core.contract import neutral
from triclinium_core.shown import total_repr
from triclinium_core.work import PIECE_WORK

E = TypeVar("E")
A = TypeVar("A")

Answer = Callable[[E | neutral.NeutralEvent], Sequence[A | neutral.NeutralAction]]
"""Function that takes an event and returns the actions of a scripted machine."""


class LawBroken(AssertionError):
    """Exception for a driver that breaks its contract; the message describes the breach."""


def nothing(event: object) -> Sequence[neutral.NeutralAction]:
    """Return no actions."""
    return ()


def on(kind: type, *actions: A) -> Callable[[object], Sequence[A]]:
    """Return an answer that returns ``actions`` for every event of one kind, and no actions for other events."""
    return lambda event: actions if isinstance(event, kind) else ()


class ScriptedMachine(Generic[E, A]):
    """Replacement for the machine that a driver runs. It returns only the actions that a law prescribes.

    ``E`` and ``A`` are the protocol's events and actions.

    Args:
        answer: returns the actions for an event. A law may replace ``answer`` and ``wakeup`` at any time.
    """

    def __init__(self, answer: Answer[E, A] = nothing) -> None:
        self.answer: Answer[E, A] = answer
        self.events: list[E | neutral.NeutralEvent] = []
        """All events, oldest first."""
        self.times: list[float] = []
        """Time of each event."""
        self.works: list[int] = []
        """Value of ``work`` at each event."""
        self.wakeup: float = math.inf
        self.work: int = 0
        """Units of work on received bytes: only reading, unless the test adds more."""
        self.is_busy: bool = False
        """Whether ``handle`` is running."""
        self.broken: list[LawBroken] = []
        """Breaches that ``handle`` has raised. They are kept because a driver may swallow exceptions."""

    @total_repr
    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.events)} events>"

    def handle(self, event: E | neutral.NeutralEvent, now: float) -> Sequence[A | neutral.NeutralAction]:
        """Record the event, and return the actions from ``answer``.

        Raises:
            LawBroken: another call is in progress, or the time went back.
        """
        self._begin(event, now)
        try:
            self._note(event, now)
            return self.answer(event)
        finally:
            self.is_busy = False

    def _begin(self, event: E | neutral.NeutralEvent, now: float) -> None:
        if self.is_busy:
            self._break(f"the machine is not re-entrant: the driver fed {event!r} while it handled {self.events[-1]!r}")
        if self.times and now < self.times[-1]:
            self._break(f"the time went back from {self.times[-1]!r} to {now!r}, at {event!r}")
        self.is_busy = True
        self.work += PIECE_WORK * isinstance(event, neutral.BytesReceived)

    def _note(self, event: E | neutral.NeutralEvent, now: float) -> None:
        self.events.append(event)
        self.times.append(now)
        self.works.append(self.work)

    def _break(self, breach: str) -> None:
        self.broken.append(LawBroken(breach))
        raise self.broken[-1]

    @property
    def now(self) -> float:
        """Time of the last event."""
        return self.times[-1]

    @property
    def later_events(self) -> list[E | neutral.NeutralEvent]:
        """All events except the one that starts the machine."""
        assert isinstance(self.events[0], neutral.TimePassed)
        return self.events[1:]

    def work_at(self, event: E | neutral.NeutralEvent) -> int:
        """Return the value of ``work`` at an event."""
        return next(work for handled, work in zip(self.events, self.works, strict=True) if handled is event)

    def losses_of(self, stream: neutral.StreamId) -> list[neutral.StreamLost]:
        """Return every ``StreamLost`` of a stream."""
        return [event for event in self.events if isinstance(event, neutral.StreamLost) and event.stream == stream]
