"""What a fake node remembers of each command, to be held against what the client reports."""

from __future__ import annotations

import msgspec

from triclinium_core.testing.fakes.faults import CommandFault

COMMAND_LOG_MAX = 100_000
"""Commands that a node remembers; then it forgets the older half, so that a node that serves for days stays small."""


class LoggedCommand(msgspec.Struct, frozen=True, kw_only=True):
    """One command, in the order in which the node took them up; a durable write that has to wait, when it is settled.

    ``opcode`` is an ``Opcode`` where the protocol names it; ``key`` is without the collection's prefix; ``now`` is
    when the command came. ``status`` is the one in a whole and readable reply, sent or still delayed, and None where
    there is none. ``applied`` tells whether the store changed, by a lock or an expiry too.
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


def remember(log: list[LoggedCommand], command: LoggedCommand) -> None:
    """Add ``command`` to the log, and keep the log within ``COMMAND_LOG_MAX``."""
    if len(log) >= COMMAND_LOG_MAX:
        del log[: COMMAND_LOG_MAX // 2]
    log.append(command)
