"""The table of exit statuses covers every command, and its examples of bad input are true."""

from __future__ import annotations

import re
import shlex

import click
import pytest
from click.testing import CliRunner

from tests.docs.pages import DOCS, rows_of
from tests.rows import rows
from triclinium._cli import main

pytestmark = pytest.mark.native

TABLE = [row for row in rows_of(DOCS / "reference" / "cli.md") if len(row) == 4][1:]
EXAMPLES = [(row[0].strip("`"), example) for row in TABLE for example in re.findall(r"`(triclinium [^`]+)`", row[3])]


def test_every_command_has_its_exit_statuses() -> None:
    """The table has a row for each command of the group, with a text for every status."""
    described = {row[0].strip("`").split()[0] for row in TABLE}

    assert set(main.list_commands(click.Context(main))) == described
    assert len(TABLE) == len({command for command, _ in EXAMPLES})
    assert all(all(row) for row in TABLE)


@rows(("command", "example"), EXAMPLES)
def test_bad_input_gets_status_2(command: str, example: str) -> None:
    """Each example exits with 2, prints nothing, and writes one line to standard error."""
    result = CliRunner().invoke(main, shlex.split(example)[1:])

    assert example.startswith(f"triclinium {command}")
    assert (2, "", 1) == (result.exit_code, result.stdout, len(result.stderr.splitlines()))


@rows("command", ["demo", "explain", "explain cassandra", "explain smithy", "ping", "query", "simulate"])
def test_help_states_the_exit_status(command: str) -> None:
    """The help of each command that ends by itself states its exit statuses."""
    shown = CliRunner().invoke(main, [*command.split(), "--help"]).stdout

    assert re.search(r"Exit status: 0 if .*\b[12]\b", shown, re.DOTALL) or "else 1" in shown
