"""Applications that close their cluster while operations are under way, and open it again at once."""

from __future__ import annotations

from triclinium_core.testing.simulation.chance import Chance
from triclinium_core.testing.simulation.logged import LoggedSimulation

SHARE = 0.5
"""Of the histories in which clients are closed."""
SALT = 18
"""Makes other draws of a seed; by this one no regression of ``command`` has a client that is closed, as when it was found."""
CLOSING_SHARE = 0.015
"""Of the steps of a storm after which one is."""


def endings_chance(seed: int) -> Chance:
    """Return the chance of a history's endings, which leaves all its other draws as they are."""
    return Chance(seed ^ SALT)


def has_endings(seed: int) -> bool:
    """Tell whether clients are closed in a history."""
    return endings_chance(seed).happens(SHARE)


class Endings:
    """All endings of one history.

    Args:
        simulation: whose clients are closed.
        chance: draws which, and when.
    """

    def __init__(self, simulation: LoggedSimulation, chance: Chance) -> None:
        self._simulation = simulation
        self._chance = chance

    def live_in_storm(self) -> None:
        """Close a client and open another one in its place, or do nothing, as most of the time."""
        if self._chance.happens(CLOSING_SHARE):
            self._simulation.close_client(self._chance.between(0, len(self._simulation.clients) - 1))
