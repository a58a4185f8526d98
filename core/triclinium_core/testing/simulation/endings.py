"""Applications that close a client while operations are in progress, and immediately open a new one."""

from __future__ import annotations

from triclinium_core.testing.simulation.chance import Chance
from triclinium_core.testing.simulation.logged import LoggedSimulation

SHARE = 0.5
"""Share of the histories in which clients may be closed."""
SALT = 18
"""Salt of the seed for the draws of this module.

With this salt, the regressions of ``simulation_command`` close no client, as when they were found.
"""
CLOSING_SHARE = 0.015
"""Probability that a client is closed after a step of a storm."""


def endings_chance(seed: int) -> Chance:
    """Return the source of draws for closing clients, which leaves all other draws unchanged."""
    return Chance(seed ^ SALT)


def has_endings(seed: int) -> bool:
    """Return whether clients may be closed in a history."""
    return endings_chance(seed).happens(SHARE)


class Endings:
    """Application that closes clients in one history.

    Args:
        simulation: simulation of the clients.
        chance: source of the draws.
    """

    def __init__(self, simulation: LoggedSimulation, chance: Chance) -> None:
        self._simulation = simulation
        self._chance = chance

    def live_in_storm(self) -> None:
        """Close a client and open a new one in its place, or, in most cases, do nothing."""
        if self._chance.happens(CLOSING_SHARE):
            self._simulation.close_client(self._chance.between(0, len(self._simulation.clients) - 1))
