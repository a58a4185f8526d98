"""A fleet of clients and the service that they ask, in virtual time: what a retry strategy does to an outage.

``simulate`` plays it with one of the core's strategies, and ``play`` with any other. They are driven as a client drives
them, and nothing here repeats their rules. ``testing.simulation`` is something else: it looks for bugs in the client,
joins real machines and fake nodes byte by byte, and has no load.
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
