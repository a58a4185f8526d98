"""Simulation of a fleet of clients and its service in virtual time, with an outage and retries.

``simulate`` runs the simulation with a strategy of the core, and ``play`` with any other strategy. The simulation calls
the strategies as a client does, and does not repeat their rules. ``testing.simulation`` has another purpose: it
searches for bugs in the client, connects real machines and fake nodes byte by byte, and simulates no load.
"""

from triclinium_core.tools.fleet.demand import (
    Arrivals,
    ClosedLoop,
    EvenArrivals,
    PoissonArrivals,
    Ramp,
    Spike,
    Steady,
    Trend,
)
from triclinium_core.tools.fleet.figures import FleetFigures, TimeStep, Totals
from triclinium_core.tools.fleet.play import OnProgress, play, simulate
from triclinium_core.tools.fleet.retries import (
    BreakerRetries,
    BudgetRetries,
    CouchbaseRetries,
    CountedRetries,
    DecorrelatedDelays,
    Delays,
    ExponentialDelays,
    NoDelay,
    QuotaRetries,
    Retries,
)
from triclinium_core.tools.fleet.scenario import (
    ContendedRow,
    Fleet,
    Outage,
    OutageKind,
    Overload,
    ParallelService,
    Scenario,
    Service,
    SimulatedService,
    Work,
)
from triclinium_core.tools.fleet.strategies import STRATEGIES, clients_of, couchbase_clients, smithy_clients
from triclinium_core.tools.fleet.times import ExponentialTime, FixedTime, NormalTime, RandomTime, UniformTime

__all__ = [
    "STRATEGIES",
    "Arrivals",
    "BreakerRetries",
    "BudgetRetries",
    "ClosedLoop",
    "ContendedRow",
    "CouchbaseRetries",
    "CountedRetries",
    "DecorrelatedDelays",
    "Delays",
    "EvenArrivals",
    "ExponentialDelays",
    "ExponentialTime",
    "FixedTime",
    "Fleet",
    "FleetFigures",
    "NoDelay",
    "NormalTime",
    "OnProgress",
    "Outage",
    "OutageKind",
    "Overload",
    "ParallelService",
    "PoissonArrivals",
    "QuotaRetries",
    "Ramp",
    "RandomTime",
    "Retries",
    "Scenario",
    "Service",
    "SimulatedService",
    "Spike",
    "Steady",
    "TimeStep",
    "Totals",
    "Trend",
    "UniformTime",
    "Work",
    "clients_of",
    "couchbase_clients",
    "play",
    "simulate",
    "smithy_clients",
]
