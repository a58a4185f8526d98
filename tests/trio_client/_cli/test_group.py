"""The ``triclinium`` command: its help, its version, its imports, and errors for wrong input."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.rows import rows
from tests.trio_client._cli.refusals import assert_refused
from triclinium._cli import main
from triclinium._cli.group import COMMANDS


def test_the_help_names_every_command() -> None:
    """The help lists every command with a sentence."""
    result = CliRunner().invoke(main, ["--help"])

    assert 0 == result.exit_code
    listed = [
        line.split(maxsplit=1) for line in result.output.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    ]
    assert list(COMMANDS) == [name for name, _ in listed]
    assert all(words.endswith(".") for _, words in listed)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_fits_a_screen(command: str) -> None:
    """``-h`` and ``--help`` print lines of at most 80 columns, except a command or a question that is to be copied."""
    result = CliRunner().invoke(main, [command, "-h"])

    assert (0, result.output) == (result.exit_code, CliRunner().invoke(main, [command, "--help"]).output)
    assert result.output.startswith(f"Usage: main {command} ")
    longer = [line.strip() for line in result.output.splitlines() if len(line) > 80]
    assert [] == [line for line in longer if not line.startswith(("triclinium ", "{"))]


@rows(
    ("arguments", "words"),
    [
        ("explian", "'explian'; did you mean explain"),
        ("xyz", "demo, docs, explain, ping, query, replay, serve, simulate"),
        ("explain kv get --attempt many", "'--attempt': 'many'"),
    ],
)
def test_wrong_arguments_are_one_line(arguments: str, words: str) -> None:
    """For an unknown command, the one-line error has the probable command or all; for a wrong argument, its value."""
    assert_refused(CliRunner().invoke(main, arguments.split()), words)


def test_without_a_command_there_is_help() -> None:
    """Without a command, the group prints its help."""
    result = CliRunner().invoke(main, [])

    assert "Usage: main [OPTIONS] COMMAND" in result.output


def test_a_command_imports_only_its_modules() -> None:
    """``explain`` loads neither the demo nor the fake node, and no command loads the packages of the tests."""
    program = f"""
import sys
from triclinium._cli import main

def show(*beginnings):
    print([name for name in sys.modules if name.startswith(beginnings)])

main(["explain", "kv", "get", "--status", "0x0"], standalone_mode=False)
show("triclinium._cli.demo", "triclinium_core.testing")
main(["explain", "smithy", "--responses", "ok"], standalone_mode=False)
show("triclinium._cli.explain.cassandra")
import {", ".join(COMMANDS.values())}
show("hypothesis", "pytest", "trustme")
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ["[]"] * 3 == [line for line in run.stdout.splitlines() if line.startswith("[")]


def test_the_installed_command() -> None:
    """The installed script runs this command and prints the version of the distribution."""
    (script,) = entry_points(group="console_scripts", name="triclinium")
    run = subprocess.run(
        [Path(sys.executable).parent / "triclinium", "--version"], capture_output=True, text=True, check=True
    )

    assert main is script.load()
    assert f"triclinium, version {version('triclinium')}\n" == run.stdout
