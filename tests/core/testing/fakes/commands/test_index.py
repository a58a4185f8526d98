"""Table of all commands of a fake node."""

from __future__ import annotations

import pytest

from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.testing.fakes.commands.index import COMMANDS, index_commands


def test_knows_every_command_that_a_client_sends() -> None:
    """Each opcode has a row, and the row has this opcode."""
    assert set(Opcode) == COMMANDS.keys()
    assert all(opcode == command.opcode for opcode, command in COMMANDS.items())


def test_refuses_two_rows_for_one_opcode() -> None:
    """A table with two rows for the same opcode raises ValueError."""
    with pytest.raises(ValueError, match="two rows for opcode GET"):
        index_commands([COMMANDS[Opcode.GET], COMMANDS[Opcode.GET]])
