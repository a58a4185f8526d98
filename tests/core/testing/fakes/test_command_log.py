"""What a node remembers of its commands."""

from __future__ import annotations

import msgspec

from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.testing.fakes import command_log
from triclinium_core.testing.fakes.command_log import LoggedCommand, remember

COMMAND = LoggedCommand(
    connection=1,
    opcode=Opcode.GET,
    key=b"ada",
    opaque=0,
    cas=0,
    now=0.0,
    fault=None,
    status=0,
    applied=False,
    bucket="default",
    collection_id=0,
    vbucket=368,
)


def test_remembers_in_order() -> None:
    """The newest command stands last."""
    log: list[LoggedCommand] = []
    for opaque in range(3):
        remember(log, msgspec.structs.replace(COMMAND, opaque=opaque))

    assert [0, 1, 2] == [command.opaque for command in log]


def test_forgets_the_older_half_when_there_are_too_many() -> None:
    """A node that serves for long keeps the newest commands only."""
    log = [COMMAND] * (command_log.COMMAND_LOG_MAX - 1) + [msgspec.structs.replace(COMMAND, opaque=7)]

    remember(log, msgspec.structs.replace(COMMAND, opaque=8))

    assert command_log.COMMAND_LOG_MAX // 2 + 1 == len(log)
    assert [7, 8] == [command.opaque for command in log[-2:]]
