"""Machine that records events, run inside Pyodide with the driver for Node."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pyodide.ffi import to_js  # type: ignore[import-not-found]  # only Pyodide has this module

from hosts.js.host import Host
from triclinium_core.contract import couchbase, neutral


class Recorder:
    """Machine without decisions. ``note`` gets the kind and the fields of each event."""

    wakeup = math.inf
    work = 0

    def __init__(self, note: Callable[..., None]) -> None:
        self._note = note

    def handle(self, event: Any, now: float) -> Sequence[object]:
        """Record an event."""
        match event:
            case neutral.BytesReceived():
                self._note("Received", event.stream, to_js(event.data))
            case neutral.StreamLost():
                self._note("Lost", event.stream, event.cause.name, event.text, event.handed_over)
            case couchbase.ServiceLookedUp():
                self._note("LookedUp", event.service, to_js([list(each) for each in event.targets]), event.text)
            case neutral.TimePassed():
                self._note("TimePassed", to_js([*event.unsent]), to_js([*event.unread]))
            case _:
                self._note(type(event).__name__)
        return ()

    def last_reports(self, now: float) -> Sequence[object]:
        return ()


class RecordingHost(Host):
    """Host that a test orders to open streams."""

    def open(self, number: int, host: str, port: int, tls: bool) -> None:
        """Execute an order to open a stream."""
        self.execute([neutral.OpenStream(neutral.StreamId(number), host, port, tls)])


def open_recorder(driver: Any, note: Callable[..., None]) -> RecordingHost:
    """Return a host with a recorder."""
    return RecordingHost(Recorder(note), driver)
