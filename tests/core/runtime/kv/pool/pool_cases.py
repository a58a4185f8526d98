"""Helpers that several tests of the connection pool share."""

from __future__ import annotations

from typing import Any

from tests.core.runtime.kv import simulated
from triclinium_core.contract import neutral
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.testing.fakes.faults import refuse_connection

ONE, TWO = neutral.StreamId(1), neutral.StreamId(2)


def refused(**options: Any) -> simulated.Recorded:
    """Return a started simulation whose node refuses every connection."""
    simulation = simulated.Recorded(**options)
    simulation.node.faults.always(None, refuse_connection())
    simulation.flow()
    return simulation


def noops(simulation: simulated.Recorded, stream: neutral.StreamId) -> int:
    """Return the number of NOOPs that the client has sent on a stream."""
    return sum(request.opcode == Opcode.NOOP for request in simulation.requests[stream])


def configs_asked(simulation: simulated.Recorded) -> int:
    """Return the number of config requests on the newest stream, including that of the bootstrap."""
    return sum(request.opcode == Opcode.GET_CLUSTER_CONFIG for request in simulation.requests[simulation.newest])
