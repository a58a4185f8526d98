"""Simulation in virtual time of clients and fake nodes in one process, with streams that a test controls byte by byte.

``Simulation`` lets a test move every byte. ``python -m triclinium_core.testing.simulation`` runs complete histories in
a simulation, one per seed; see ``simulation_command``.
"""

from triclinium_core.testing.simulation.simulation import LIVELOCK, MIDPOINT, SimulatedStream, Simulation

__all__ = [
    "LIVELOCK",
    "MIDPOINT",
    "SimulatedStream",
    "Simulation",
]
