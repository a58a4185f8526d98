"""Simulation in virtual time: clients and fake nodes in one process, joined by streams with byte-wise control.

``Simulation`` lets a test move every byte itself. ``python -m triclinium_core.testing.simulation`` runs whole histories
in it, one per seed, see ``simulation_command``.
"""

from triclinium_core.testing.simulation.simulation import LIVELOCK, MIDPOINT, SimulatedStream, Simulation

__all__ = [
    "LIVELOCK",
    "MIDPOINT",
    "SimulatedStream",
    "Simulation",
]
