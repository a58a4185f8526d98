"""The ``triclinium`` command itself: its help, its version, and what it says to nonsense."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest
from click.testing import CliRunner

from triclinium._cli import main
from triclinium._cli.group import COMMANDS


def test_the_help_names_every_command() -> None:
    """Each with what it is for."""
    result = CliRunner().invoke(main, ["--help"])

    assert 0 == result.exit_code
    listed = [
        line.split(maxsplit=1) for line in result.output.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    ]
    assert list(COMMANDS) == [name for name, _ in listed]
    assert all(words.endswith(".") for _, words in listed)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    """The short option works too."""
    result = CliRunner().invoke(main, [command, "-h"])

    assert 0 == result.exit_code
    assert result.output.startswith(f"Usage: main {command} ")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_fits_a_screen(command: str) -> None:
    """Only what is to be copied as one line may be longer: a command, and a question in JSON."""
    result = CliRunner().invoke(main, [command, "--help"])

    longer = [line.strip() for line in result.output.splitlines() if len(line) > 80]
    assert [] == [line for line in longer if not line.startswith(("triclinium ", "{"))]


def test_a_command_that_there_is_not() -> None:
    """One line says which was probably meant."""
    result = CliRunner().invoke(main, ["explian"])

    assert (2, "Error: there is no command 'explian'; did you mean explain?\n") == (result.exit_code, result.stderr)


def test_a_command_that_resembles_none() -> None:
    """One line lists what there is."""
    result = CliRunner().invoke(main, ["xyz"])

    assert (2, "Error: there is no command 'xyz'; there is demo, explain, ping, query, serve, simulate\n") == (
        result.exit_code,
        result.stderr,
    )


def test_wrong_arguments_of_a_command_are_told_in_one_line() -> None:
    """Without the lines on usage."""
    result = CliRunner().invoke(main, ["explain", "kv", "get", "--attempt", "many"])

    assert (2, 1) == (result.exit_code, len(result.stderr.splitlines()))
    assert "'--attempt': 'many'" in result.stderr


def test_without_a_command_there_is_help() -> None:
    """It is not a mistake worth more than that."""
    result = CliRunner().invoke(main, [])

    assert "Usage: main [OPTIONS] COMMAND" in result.output


def test_a_command_imports_what_it_needs() -> None:
    """Not the fake node for an explanation, not one tradition for the other, and nothing that only tests need."""
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
    """It is this one, and tells the version of the distribution."""
    (script,) = entry_points(group="console_scripts", name="triclinium")
    run = subprocess.run(
        [Path(sys.executable).parent / "triclinium", "--version"], capture_output=True, text=True, check=True
    )

    assert main is script.load()
    assert f"triclinium, version {version('triclinium')}\n" == run.stdout
