"""Command log of a fake node: each command and its result, to compare with the client's reports."""

from __future__ import annotations

import msgspec

from triclinium_core.kv.wire.frame import Frame
from triclinium_core.testing.fakes.answers import CommandRefused
from triclinium_core.testing.fakes.commands.index import COMMANDS
from triclinium_core.testing.fakes.commands.read_request import Needs, split_key
from triclinium_core.testing.fakes.faults import CommandFault
from triclinium_core.testing.fakes.log_limit import LogLimit
from triclinium_core.testing.fakes.store.state import ClientConnection

COMMAND_LOG_MAX = 100_000
"""Maximum number of commands in the log; a full log drops the older half."""


class LoggedCommand(msgspec.Struct, frozen=True, kw_only=True):
    """One command. The log is in the order in which commands begin, but a waiting durable write is logged when settled.

    ``opcode`` is an ``Opcode`` if the node supports it; ``key`` excludes the collection's prefix; ``now`` is the
    time at which the node takes the command up. ``status`` is the status of a complete, readable reply, even a delayed
    one; None without such a reply.
    ``applied`` is whether the store changed; a lock or an expiry counts.
    """

    connection: int
    opcode: int
    key: bytes
    opaque: int
    cas: int
    now: float
    fault: CommandFault | None
    status: int | None
    applied: bool
    bucket: str | None
    collection_id: int
    vbucket: int


def command_log_limit() -> LogLimit[LoggedCommand]:
    """Return the limits of a command log, in commands and in the bytes of keys."""
    return LogLimit(COMMAND_LOG_MAX, lambda command: len(command.key))


def log_command(
    log: list[LoggedCommand],
    limit: LogLimit[LoggedCommand],
    connection: ClientConnection,
    frame: Frame,
    *,
    came_at: float,
    fault: CommandFault | None,
    status: int | None,
    applied: bool,
) -> LoggedCommand:
    """Add a command to the log, within ``limit``, and return the entry."""
    command = COMMANDS.get(frame.opcode)
    collection_id, key = 0, frame.key
    if command is not None and command.needs is Needs.DOCUMENT:
        try:
            collection_id, key = split_key(connection, frame.key)
        except CommandRefused:
            # The key is invalid: log it as received.
            pass
    logged = LoggedCommand(
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
    limit.add(log, logged)
    return logged
