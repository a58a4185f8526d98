"""A client machine hears the same events again: it is pure, so it does the same, and nothing but it is timed."""

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
    """A client machine that keeps what it hears."""

    def __init__(self, options: ClientOptions) -> None:
        super().__init__(options, rng=MIDPOINT)
        self.heard: list[tuple[Event, float]] = []

    def handle(self, event: Event, now: float) -> Sequence[Action]:
        """Handle the event, and keep it."""
        self.heard.append((event, now))
        return super().handle(event, now)


class ReplayScript(NamedTuple):
    """What a client machine hears."""

    options: ClientOptions
    heard: Sequence[tuple[Event, float]]
    begin: int
    """The first event that is timed; those before it make the machine ready."""
    operations: int
    """How many there are in the part that is timed."""

    def play(self) -> Mapping[str, float]:
        """Return what an operation costs a new machine; this is a turn."""
        handle = (machine := ClientMachine(self.options, rng=MIDPOINT)).handle
        for event, now in self.heard[: self.begin]:
            handle(event, now)
        timed = self.heard[self.begin :]
        with Stopwatch() as watch:
            for event, now in timed:
                handle(event, now)
        assert machine.statistics().open_operations == 0
        return watch.processor(self.operations)


class Rehearsal:
    """A client of fake nodes, of which everything is kept that it hears."""

    def __init__(self, nodes: FakeNodes) -> None:
        connection_string = nodes.connection_string()
        assert connection_string is not None
        credentials = PasswordAuthenticator(nodes[0].options.username, nodes[0].options.password)
        self._options = ClientOptions(connection_string=connection_string, authenticator=credentials)
        self._simulation = Simulation(nodes, self._options)
        self._simulation.machine = self._recorder = ScriptRecorder(self._options)
        self._begin = self._operations = 0

    def do(self, operations: Sequence[Operation], at_once: int) -> None:
        """Have the client do all of them, so many at a time, which are submitted together as the driver does it."""
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
        """Have what comes now be timed."""
        self._begin, self._operations = len(self._recorder.heard), 0

    def script(self) -> ReplayScript:
        """Return what the client has heard."""
        return ReplayScript(self._options, self._recorder.heard, self._begin, self._operations)
