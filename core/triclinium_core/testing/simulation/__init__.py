"""A simulation in virtual time: clients and fake nodes in one process, joined by streams that can be stopped at any byte.

``Simulation`` lets a test move every byte itself. ``python -m triclinium_core.testing.simulation`` plays whole histories
in it, one for each seed: ``command``.
"""

from triclinium_core.testing.simulation.simulation import LIVELOCK, MIDPOINT, SimulatedStream, Simulation

__all__ = [
    "LIVELOCK",
    "MIDPOINT",
    "SimulatedStream",
    "Simulation",
]
