"""The table of exit statuses covers every command, and its examples of bad input exit with 2."""

from __future__ import annotations

import re
import shlex

import click
import pytest
from click.testing import CliRunner

from tests.docs.pages import exit_statuses
from tests.rows import rows
from triclinium._cli import main

pytestmark = pytest.mark.native

TABLE = exit_statuses()


def test_every_command_has_its_exit_statuses() -> None:
    """The table has a row for each command of the group, with a text for every status."""
    described = {command.split()[0] for command, _, _ in TABLE}

    assert set(main.list_commands(click.Context(main))) == described
    assert all(all(cells) for _, cells, _ in TABLE)


@rows(("command", "example"), [(command, example) for command, _, example in TABLE])
def test_bad_input_gets_status_2(command: str, example: str) -> None:
    """Each example exits with 2, prints nothing, and writes one line to standard error."""
    result = CliRunner().invoke(main, shlex.split(example)[1:])

    assert example.startswith(f"triclinium {command}")
    assert (2, "", 1) == (result.exit_code, result.stdout, len(result.stderr.splitlines()))


@rows("command", ["demo", "explain", "explain cassandra", "explain smithy", "ping", "query", "simulate", "timeline"])
def test_help_states_the_exit_status(command: str) -> None:
    """The help of a command that ends by itself states its exit statuses."""
    shown = CliRunner().invoke(main, [*command.split(), "--help"]).stdout

    assert re.search(r"Exit status: 0 if .*\b[12]\b", shown, re.DOTALL) or "else 1" in shown
