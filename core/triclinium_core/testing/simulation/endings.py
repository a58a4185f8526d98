"""Applications that close their cluster while operations are in progress, and reopen it immediately."""

from __future__ import annotations

from triclinium_core.testing.simulation.chance import Chance
from triclinium_core.testing.simulation.logged import LoggedSimulation

SHARE = 0.5
"""Share of the histories in which clients are closed."""
SALT = 18
"""Salt of the seed for these draws.

With this one, the regressions of ``simulation_command`` close no client, as when they were found.
"""
CLOSING_SHARE = 0.015
"""Probability that a client is closed after a step of a storm."""


def endings_chance(seed: int) -> Chance:
    """Return the source of draws for closing clients, which leaves all other draws unchanged."""
    return Chance(seed ^ SALT)


def has_endings(seed: int) -> bool:
    """Return whether clients are closed in a history."""
    return endings_chance(seed).happens(SHARE)


class Endings:
    """Closing of clients in one history.

    Args:
        simulation: simulation of the clients.
        chance: source of the draws.
    """

    def __init__(self, simulation: LoggedSimulation, chance: Chance) -> None:
        self._simulation = simulation
        self._chance = chance

    def live_in_storm(self) -> None:
        """Replace a client by a new one, or in most cases do nothing."""
        if self._chance.happens(CLOSING_SHARE):
            self._simulation.close_client(self._chance.between(0, len(self._simulation.clients) - 1))
