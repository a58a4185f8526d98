"""The contract of a driver as laws that can be run: public, and for any event loop.

Each law puts a driver on trial, with a machine of its own and sockets on loopback::

    @pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
    async def test_the_driver_keeps(law: Law) -> None:
        await law(open_driver)
"""

from triclinium_core.testing.driver_laws.driver import (
    Caller,
    DriverUnderTest,
    Listener,
    OpenDriver,
    PeerSocket,
    Reader,
)
from triclinium_core.testing.driver_laws.laws import LAWS, Law
from triclinium_core.testing.driver_laws.machine import (
    Answer,
    LawBroken,
    ScriptedMachine,
    on,
)

__all__ = [
    "LAWS",
    "Answer",
    "Caller",
    "DriverUnderTest",
    "Law",
    "LawBroken",
    "Listener",
    "OpenDriver",
    "PeerSocket",
    "Reader",
    "ScriptedMachine",
    "on",
]
