"""Executable laws that state the contract of a driver. They are public and run on any event loop.

Each law runs a driver with a scripted machine and with sockets on loopback.
``LAWS`` are for drivers of the client machine::

    @pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
    async def test_the_driver_keeps(law: Law) -> None:
        await law(open_driver)

``NEUTRAL_LAWS`` is the subset that applies to a driver of any machine; a ``Bench`` adapts it to the machine's
protocol.
"""

from triclinium_core.testing.driver_laws.couchbase.cluster_driver_under_test import (
    OPERATION,
    REQUEST,
    ClusterDriverUnderTest,
    OpenDriver,
    Reader,
)
from triclinium_core.testing.driver_laws.couchbase.laws import LAWS, Law
from triclinium_core.testing.driver_laws.couchbase.scripted_cluster_machine import ScriptedClusterMachine
from triclinium_core.testing.driver_laws.neutral.driver_under_test import (
    Bench,
    Caller,
    DriverUnderTest,
    Listener,
    PeerSocket,
)
from triclinium_core.testing.driver_laws.neutral.laws import NEUTRAL_LAWS, NeutralLaw
from triclinium_core.testing.driver_laws.neutral.scripted_machine import Answer, LawBroken, ScriptedMachine, on

__all__ = [
    "LAWS",
    "NEUTRAL_LAWS",
    "OPERATION",
    "REQUEST",
    "Answer",
    "Bench",
    "Caller",
    "ClusterDriverUnderTest",
    "DriverUnderTest",
    "Law",
    "LawBroken",
    "Listener",
    "NeutralLaw",
    "OpenDriver",
    "PeerSocket",
    "Reader",
    "ScriptedClusterMachine",
    "ScriptedMachine",
    "on",
]
