"""A fleet of clients and the service that they ask, in virtual time: what a retry strategy does to an outage.

``simulate`` plays it with one of the core's strategies, and ``play`` with any other. They are driven as a client drives
them, and nothing here repeats their rules. ``testing.simulation`` is something else: it looks for bugs in the client,
joins real machines and fake nodes byte by byte, and has no load.
"""

from triclinium_core.testing.fleet.figures import Bucket as Bucket, FleetFigures as FleetFigures, Totals as Totals
from triclinium_core.testing.fleet.play import play as play, simulate as simulate
from triclinium_core.testing.fleet.scenario import (
    Fleet as Fleet,
    Outage as Outage,
    OutageKind as OutageKind,
    Overload as Overload,
    Scenario as Scenario,
    SimulatedService as SimulatedService,
)
from triclinium_core.testing.fleet.strategies import (
    STRATEGIES as STRATEGIES,
    couchbase_clients as couchbase_clients,
    smithy_clients as smithy_clients,
)
