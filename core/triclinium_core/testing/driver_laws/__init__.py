"""The contract of a driver as laws that can be run: public, and for any event loop.

Each law puts a driver on trial, with a machine of its own and sockets on loopback::

    @pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
    async def test_the_driver_keeps(law: Law) -> None:
        await law(open_driver)
"""

from triclinium_core.testing.driver_laws.driver import (
    Caller as Caller,
    DriverUnderTest as DriverUnderTest,
    Listener as Listener,
    OpenDriver as OpenDriver,
    PeerSocket as PeerSocket,
)
from triclinium_core.testing.driver_laws.laws import LAWS as LAWS, Law as Law
from triclinium_core.testing.driver_laws.machine import (
    Answer as Answer,
    LawBroken as LawBroken,
    ScriptedMachine as ScriptedMachine,
    on as on,
)
