"""What a fake node writes down of a command, once it is known how it ends."""

from __future__ import annotations

from triclinium_core.kv.wire.frame import Frame
from triclinium_core.testing.fakes.answers import Refused
from triclinium_core.testing.fakes.command_log import LoggedCommand
from triclinium_core.testing.fakes.commands import COMMANDS
from triclinium_core.testing.fakes.faults import CommandFault
from triclinium_core.testing.fakes.requests import Needs, split_key
from triclinium_core.testing.fakes.state import Connection


def log_entry(
    connection: Connection,
    frame: Frame,
    *,
    came_at: float,
    fault: CommandFault | None,
    status: int | None,
    applied: bool,
) -> LoggedCommand:
    """Return the entry for a command; what the others say stands in ``LoggedCommand``."""
    command = COMMANDS.get(frame.opcode)
    collection_id, key = 0, frame.key
    if command is not None and command.needs is Needs.DOCUMENT:
        try:
            collection_id, key = split_key(connection, frame.key)
        except Refused:
            # The key as it came tells more than none.
            pass
    return LoggedCommand(
        connection=connection.number,
        opcode=frame.opcode if command is None else command.opcode,
        key=key,
        opaque=frame.opaque,
        cas=frame.cas,
        now=came_at,
        fault=fault,
        status=status,
        applied=applied,
        bucket=connection.bucket,
        collection_id=collection_id,
        vbucket=frame.status,
    )
