"""One operation of a client, as the simulation drives it: when to send, what an outcome leads to, when it is over."""

from __future__ import annotations

import math
from collections.abc import Callable

from triclinium_core.retry.backoff import Random
from triclinium_core.testing.fleet.scenario import Fleet
from triclinium_core.testing.fleet.service import AttemptOutcome


class Call:
    """One operation, sent once: it knows no retries. Those that do extend it.

    It ends once: with ``succeed``, with ``expire``, or when ``fail`` or ``resume`` says that it is over.
    """

    __slots__ = ("began", "deadline")

    hears_success: bool = False
    """Whether ``succeed`` has to be called, in the order of time, because others profit from it."""
    attempt_timeout: float = math.inf
    """Seconds that one attempt may take; ``inf`` where the strategy knows no such thing."""

    def __init__(self, began: float, deadline: float) -> None:
        self.began: float = began
        self.deadline: float = deadline

    def begin(self, now: float) -> float | None:
        """Return the instant at which to ``resume`` for the first attempt; None for sending it now."""
        return None

    def dispatch(self, outcome: AttemptOutcome, now: float) -> None:
        """Record that an attempt is made; ``outcome`` is what will be heard of it, for it may be that nothing is sent."""

    def fail(self, outcome: AttemptOutcome, now: float) -> float | None:
        """Record how an attempt ended, and return when to ``resume``; None where the operation is over."""
        return None

    def resume(self, now: float) -> bool:
        """Tell whether to send now; otherwise the operation is over."""
        return False

    def succeed(self, now: float) -> None:
        """Record the answer."""

    def expire(self, now: float) -> None:
        """Record that the deadline has passed, and that no answer came."""


Process = Callable[[float, float], Call]
"""Clients that share a strategy: returns a new operation, given when it began and its deadline."""

MakeProcess = Callable[[Fleet, Random], Process]
