"""What came of one scenario, as those tell it who were there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triclinium._cli.demo.recorder import ClientDecided, Entry
from triclinium._cli.demo.scenarios import Scenario
from triclinium_core.error_context import ErrorContext
from triclinium_core.testing import LoggedCommand


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """One scenario, played. ``began`` and ``ended`` are Trio's time, as in the entries."""

    scenario: Scenario
    began: float
    ended: float
    entries: tuple[Entry, ...]
    outcome: str
    message: str
    """What the exception says; empty for a success."""
    answer: object
    context: ErrorContext | None
    retries_by_reason: Mapping[str, int]
    """What the client's statistics counted meanwhile."""
    commands: tuple[LoggedCommand, ...]
    """All that the node's log got meanwhile."""

    @property
    def decisions(self) -> list[ClientDecided]:
        """What the client logged about this operation."""
        return [entry for entry in self.entries if isinstance(entry, ClientDecided) and entry.key == self.scenario.key]

    @property
    def delays(self) -> list[float]:
        """Seconds before each retry, as the client logged them."""
        return [decision.delay for decision in self.decisions if decision.delay is not None]

    @property
    def frames(self) -> list[LoggedCommand]:
        """The operation's requests that reached the node."""
        return [command for command in self.commands if self.is_about(command)]

    @property
    def applied(self) -> int:
        """How often the node applied the operation."""
        return sum(frame.applied for frame in self.frames)

    def is_about(self, command: LoggedCommand) -> bool:
        """Tell whether ``command`` is the operation of the scenario."""
        return command.opcode == self.scenario.opcode and command.key == self.scenario.key.encode()
