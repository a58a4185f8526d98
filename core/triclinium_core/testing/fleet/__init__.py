"""A fleet of clients and the service that they ask, in virtual time: what a retry strategy does to an outage.

``simulate`` plays it with one of the core's strategies, and ``play`` with any other. They are driven as a client drives
them, and nothing here repeats their rules. ``testing.simulation`` is something else: it looks for bugs in the client,
joins real machines and fake nodes byte by byte, and has no load.
"""

from triclinium_core.testing.fleet.figures import FleetFigures, TimeStep, Totals
from triclinium_core.testing.fleet.play import play, simulate
from triclinium_core.testing.fleet.scenario import (
    Fleet,
    Outage,
    OutageKind,
    Overload,
    Scenario,
    SimulatedService,
)
from triclinium_core.testing.fleet.strategies import (
    STRATEGIES,
    couchbase_clients,
    smithy_clients,
)

__all__ = [
    "STRATEGIES",
    "Fleet",
    "FleetFigures",
    "Outage",
    "OutageKind",
    "Overload",
    "Scenario",
    "SimulatedService",
    "TimeStep",
    "Totals",
    "couchbase_clients",
    "play",
    "simulate",
    "smithy_clients",
]
