"""Replay of recorded events through a client machine. The machine is pure, so each replay repeats the same work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.bench.turns import Stopwatch
from triclinium_core import ClientMachine, ClientOptions, PasswordAuthenticator
from triclinium_core.contract.couchbase import Action, Event
from triclinium_core.kv.operation.document_operations import Operation
from triclinium_core.testing import FakeNodes
from triclinium_core.testing.simulation import MIDPOINT, Simulation


class ScriptRecorder(ClientMachine):
    """Client machine that records its events."""

    def __init__(self, options: ClientOptions) -> None:
        super().__init__(options, rng=MIDPOINT)
        self.received: list[tuple[Event, float]] = []

    def handle(self, event: Event, now: float) -> Sequence[Action]:
        """Handle the event, and record it."""
        self.received.append((event, now))
        return super().handle(event, now)


class ReplayScript(NamedTuple):
    """Events of a client machine."""

    options: ClientOptions
    received: Sequence[tuple[Event, float]]
    begin: int
    """Index of the first timed event; those before it make the machine ready."""
    operations: int
    """Number of operations in the timed part."""

    def play(self) -> Mapping[str, float]:
        """Return the cost of an operation for a new machine; this is a turn."""
        handle = (machine := ClientMachine(self.options, rng=MIDPOINT)).handle
        for event, now in self.received[: self.begin]:
            handle(event, now)
        timed = self.received[self.begin :]
        with Stopwatch() as watch:
            for event, now in timed:
                handle(event, now)
        assert machine.statistics().open_operations == 0
        return watch.processor(self.operations)


class Rehearsal:
    """Client of fake nodes that records all of its events."""

    def __init__(self, nodes: FakeNodes) -> None:
        connection_string = nodes.connection_string()
        assert connection_string is not None
        credentials = PasswordAuthenticator(nodes[0].options.username, nodes[0].options.password)
        self._options = ClientOptions(connection_string=connection_string, authenticator=credentials)
        self._simulation = Simulation(nodes, self._options)
        self._simulation.machine = self._recorder = ScriptRecorder(self._options)
        self._begin = self._operations = 0

    def do(self, operations: Sequence[Operation], at_once: int) -> None:
        """Perform all operations in groups of ``at_once``. Each group is submitted together, as in the driver."""
        for first in range(0, len(operations), at_once):
            together = operations[first : first + at_once]
            if len(together) == 1:
                self._simulation.submit(together[0])
            else:
                self._simulation.submit_together((operation, None) for operation in together)
            self._simulation.run()
        assert not self._simulation.errors
        self._operations += len(operations)

    def begin(self) -> None:
        """Start the timed part."""
        self._begin, self._operations = len(self._recorder.received), 0

    def script(self) -> ReplayScript:
        """Return the recorded script."""
        return ReplayScript(self._options, self._recorder.received, self._begin, self._operations)
