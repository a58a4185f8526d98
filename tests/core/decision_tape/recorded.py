"""Recorded simulations, and the lines of their tapes."""

from __future__ import annotations

from collections.abc import Sequence

from tests.core.runtime.kv.simulated import node_options
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.decision_tape import lines
from triclinium_core.decision_tape.encoding import TapeEncoder, end_line
from triclinium_core.decision_tape.reading import TapeReader
from triclinium_core.decision_tape.recorder import DecisionRecorder
from triclinium_core.options import ClientOptions
from triclinium_core.retry.backoff import Random
from triclinium_core.testing import FakeNode, FakeNodes
from triclinium_core.testing.simulation import Simulation


class Recorded:
    """Clients of a simulation, each with its recorder of ``capacity`` facts."""

    def __init__(self, capacity: int = 100_000) -> None:
        self._capacity = capacity
        self.made: list[tuple[DecisionRecorder, ClientMachine]] = []

    def make_machine(self, options: ClientOptions, *, rng: Random) -> ClientMachine:
        """Return the machine of a new client."""
        recorder = DecisionRecorder(self._capacity)
        self.made.append((recorder, ClientMachine(options, rng=rng, recorder=recorder)))
        return self.made[-1][1]


class RecordedSimulation(Simulation):
    """Simulation of one client with a recorder; the client has opened its connections.

    Args:
        recorder: default: one with a capacity of 10,000 facts.
        node: default: a node with one bucket and only the key-value service.
    """

    def __init__(self, recorder: DecisionRecorder | None = None, node: FakeNode | FakeNodes | None = None) -> None:
        self.recorder: DecisionRecorder = DecisionRecorder(10_000) if recorder is None else recorder
        super().__init__(FakeNode(node_options()) if node is None else node, make_machine=self._make)
        self.run(0.1)

    def _make(self, options: ClientOptions, *, rng: Random) -> ClientMachine:
        return ClientMachine(options, rng=rng, recorder=self.recorder)

    def tape(self) -> bytes:
        """Return the tape of the client so far."""
        return tape_of(self.recorder, self.clients[0])

    def operations(self) -> list[lines.Operation]:
        """Return the operations on the tape so far."""
        return operations_of(self.tape())


def tape_of(recorder: DecisionRecorder, machine: ClientMachine) -> bytes:
    """Return the tape with all facts of a recorder and the open operations."""
    encoder = TapeEncoder(recorder)
    facts = encoder.facts([*recorder.facts(), *machine.open_calls()])
    return encoder.header() + facts + end_line("saved", at=recorder.now, lost=recorder.lost)


def facts_of(tape: bytes) -> Sequence[lines.Fact]:
    """Return the facts on a tape."""
    return [fact for _, fact in TapeReader([tape])]


def operations_of(tape: bytes) -> list[lines.Operation]:
    """Return the operations on a tape."""
    return [fact for fact in facts_of(tape) if isinstance(fact, lines.Operation)]
