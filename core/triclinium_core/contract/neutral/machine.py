"""Interface that all machines have, whatever their protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

E_contra = TypeVar("E_contra", contravariant=True)
A_co = TypeVar("A_co", covariant=True)


class Machine(Protocol[E_contra, A_co]):
    """Pure state machine. ``E_contra`` is the type of its events, ``A_co`` that of its actions.

    A machine reads no clock, does no I/O, and draws random numbers only from a source that its creator passes to it. It
    is neither re-entrant nor thread-safe.
    """

    @property
    def wakeup(self) -> float:
        """Time at which the machine needs ``TimePassed``, in monotonic seconds; ``inf`` for never."""
        ...

    @property
    def work(self) -> int:
        """Units of work that the machine has spent on received bytes. A unit takes about a microsecond."""
        ...

    def handle(self, event: E_contra, now: float) -> Sequence[A_co]:
        """Handle ``event``, and return the actions that the driver must execute, in order.

        Args:
            now: current time in monotonic seconds, never less than in an earlier call.

        Raises:
            ArgumentError: the event is invalid. The state of the machine is unchanged.
            InvalidEvent: the event is impossible in the current state, which is unchanged.
        """
        ...
