"""Table of all commands that a fake node implements, by opcode."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.answers import CommandRefused, error_body
from triclinium_core.testing.fakes.commands.document import DOCUMENT_COMMANDS
from triclinium_core.testing.fakes.commands.observe import OBSERVE_COMMANDS
from triclinium_core.testing.fakes.commands.read_request import Command, Needs
from triclinium_core.testing.fakes.commands.scan import SCAN_COMMANDS
from triclinium_core.testing.fakes.commands.session import SESSION_COMMANDS
from triclinium_core.testing.fakes.commands.subdocument import SUBDOCUMENT_COMMANDS
from triclinium_core.testing.fakes.commands.topology import TOPOLOGY_COMMANDS
from triclinium_core.testing.fakes.unsupported import unsupported_command


def index_commands(rows: Iterable[Command]) -> Mapping[int, Command]:
    """Return the rows by opcode.

    Raises:
        ValueError: two rows have the same opcode.
    """
    index: dict[int, Command] = {}
    for row in rows:
        if row.opcode in index:
            raise ValueError(f"two rows for opcode {row.opcode.name}")
        index[row.opcode] = row
    return MappingProxyType(index)


COMMANDS = index_commands(
    (
        *SESSION_COMMANDS,
        *TOPOLOGY_COMMANDS,
        *DOCUMENT_COMMANDS,
        *SUBDOCUMENT_COMMANDS,
        *SCAN_COMMANDS,
        *OBSERVE_COMMANDS,
    )
)


def unknown_command(opcode: int) -> CommandRefused:
    """Return the refusal of a command without a row; its body names the command if a real server has it."""
    found = unsupported_command(opcode)
    if found is None:
        return CommandRefused(Status.UNKNOWN_COMMAND, f"unknown opcode 0x{opcode:02x}")
    name, reason = found
    return CommandRefused(Status.NOT_SUPPORTED, body=error_body(f"{name}: {reason}"))


DATA_OPCODES = frozenset(command.opcode for command in COMMANDS.values() if command.needs is Needs.DOCUMENT)
"""Opcodes of the commands on one document, unlike NOOP, range scans and the bootstrap commands."""

CHANGING_OPCODES = DATA_OPCODES - {Opcode.GET, Opcode.GET_META, Opcode.GET_REPLICA, Opcode.SUBDOC_MULTI_LOOKUP}
"""Opcodes of the commands that change a document, its expiry or its lock: they must not be applied twice."""
