"""Interface of all machines, independent of the protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

E_contra = TypeVar("E_contra", contravariant=True)
A_co = TypeVar("A_co", covariant=True)


class Machine(Protocol[E_contra, A_co]):
    """A pure state machine: ``E_contra`` are its events, ``A_co`` its actions.

    It reads no clock, draws no random number and does no I/O. It is neither re-entrant nor thread-safe.
    """

    @property
    def wakeup(self) -> float:
        """Instant at which ``TimePassed`` is due; ``inf`` for never."""
        ...

    @property
    def work(self) -> int:
        """Units of work on received bytes so far, of about a microsecond each."""
        ...

    def handle(self, event: E_contra, now: float) -> Sequence[A_co]:
        """Return the actions that follow from ``event``, in order.

        Args:
            now: monotonic seconds, never less than before.

        Raises:
            ArgumentError: the event is invalid. The state of the machine is unchanged.
        """
        ...
