"""Recorded simulations, and the lines of their tapes."""

from __future__ import annotations

from collections.abc import Sequence

from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.decision_tape import lines
from triclinium_core.decision_tape.encoding import TapeEncoder, end_line
from triclinium_core.decision_tape.reading import TapeReader
from triclinium_core.decision_tape.recorder import DecisionRecorder
from triclinium_core.options import ClientOptions
from triclinium_core.retry.backoff import Random


class Recorded:
    """Clients of a simulation, each with its recorder.

    Args:
        recorder: recorder of the only client; None, the default, for a large one for each client.
    """

    def __init__(self, recorder: DecisionRecorder | None = None) -> None:
        self._recorder = recorder
        self.made: list[tuple[DecisionRecorder, ClientMachine]] = []

    def make_machine(self, options: ClientOptions, *, rng: Random) -> ClientMachine:
        """Return the machine of a new client."""
        recorder = self._recorder if self._recorder is not None else DecisionRecorder(100_000)
        self.made.append((recorder, ClientMachine(options, rng=rng, recorder=recorder)))
        return self.made[-1][1]


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
