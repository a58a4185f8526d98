"""Every command that a fake node knows, by opcode."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from triclinium_core.testing.fakes.commands.document import DOCUMENT_COMMANDS
from triclinium_core.testing.fakes.commands.requests import Command
from triclinium_core.testing.fakes.commands.scan import SCAN_COMMANDS
from triclinium_core.testing.fakes.commands.session import SESSION_COMMANDS
from triclinium_core.testing.fakes.commands.subdocument import SUBDOCUMENT_COMMANDS
from triclinium_core.testing.fakes.commands.topology import TOPOLOGY_COMMANDS


def index_commands(rows: Iterable[Command]) -> Mapping[int, Command]:
    """Return the rows by opcode.

    Raises:
        ValueError: two rows are about the same opcode.
    """
    index: dict[int, Command] = {}
    for row in rows:
        if row.opcode in index:
            raise ValueError(f"two rows for opcode {row.opcode.name}")
        index[row.opcode] = row
    return MappingProxyType(index)


COMMANDS = index_commands(
    (*SESSION_COMMANDS, *TOPOLOGY_COMMANDS, *DOCUMENT_COMMANDS, *SUBDOCUMENT_COMMANDS, *SCAN_COMMANDS)
)
