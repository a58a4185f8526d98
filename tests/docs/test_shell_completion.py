"""The commands of the page on shell completion, and the completions of the scripts that they create."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.docs.pages import DOCS, blocks_of
from tests.rows import rows
from triclinium._cli import main
from triclinium._cli.group import COMMANDS
from triclinium_core.retry.couchbase import Service

pytestmark = pytest.mark.native

PAGE = DOCS / "howto" / "shell_completion.md"
SCRIPTS = {
    "bash": ".local/share/bash-completion/completions/triclinium",
    "zsh": ".zfunc/_triclinium",
    "fish": ".config/fish/completions/triclinium.fish",
}
"""File that the page creates for each shell, in the home folder."""

SECONDS_MAX = 300
"""Seconds after which a program counts as hanging."""

COMPLETE = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
# The function of the script sets an option of the shell's line editor, which a program does not have.
compopt() { echo "$*"; }
"$(complete -p triclinium | sed 's/.*-F \\([^ ]*\\).*/\\1/')" triclinium "${@: -1}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
"""Bash program that completes the last argument as the Tab key does."""


def bash(program: str, *arguments: str, home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a bash program with ``triclinium`` in its PATH."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(home), **variables}
    command = ["bash", "--norc", "--noprofile", "-c", program, "bash", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS_MAX)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home folder in which all commands on the page were run."""
    home = tmp_path_factory.mktemp("home")
    for block in blocks_of(PAGE):
        assert block.language == "bash"
        done = bash(f"set -e\n{block.text}", home=home)
        assert (0, "") == (done.returncode, done.stderr)
    return home


def completed(home: Path, *words: str) -> set[str]:
    """Return the completions of the last word."""
    done = bash(COMPLETE, str(home / SCRIPTS["bash"]), *words, home=home)
    assert (0, "") == (done.returncode, done.stderr)
    return set(done.stdout.split())


def options_of(name: str) -> set[str]:
    """Return the long options of a command that ``--help`` shows."""
    command = main.get_command(click.Context(main), name)
    assert command is not None
    context = click.Context(command, parent=click.Context(main, **main.context_settings))
    return {
        flag
        for each in command.get_params(context)
        for flag in (*each.opts, *each.secondary_opts)
        if flag.startswith("--")
    }


def test_the_script_completes_commands(home: Path) -> None:
    """In bash, an empty word completes to all commands, and the beginning of a command to this command."""
    assert set(COMMANDS) == completed(home, "triclinium", "")
    assert {"serve"} == completed(home, "triclinium", "se")


@rows("name", ["ping", "serve"])
def test_the_script_completes_options(home: Path, name: str) -> None:
    """In bash, two dashes after a command complete to all its options."""
    assert options_of(name) == completed(home, "triclinium", name, "--")


def test_the_script_completes_values(home: Path) -> None:
    """In bash, an option and an argument with fixed values complete to these, and a file option to file names."""
    assert {service.value for service in Service} == completed(home, "triclinium", "ping", "--service", "")
    assert {"get_and_lock", "get_and_touch"} == completed(home, "triclinium", "explain", "kv", "get_and_")
    assert {"-o", "default"} == completed(home, "triclinium", "serve", "--script", "")


@rows("shell", ["zsh", "fish"])
def test_other_shells_get_commands_with_help(home: Path, shell: str) -> None:
    """The scripts for zsh and fish request completions that include the help of a command."""
    script = (home / SCRIPTS[shell]).read_text(encoding="utf-8")
    words = {"COMP_WORDS": "triclinium se", "COMP_CWORD": "1" if shell == "zsh" else "se"}
    done = bash("triclinium", home=home, _TRICLINIUM_COMPLETE=f"{shell}_complete", **words)

    assert f"_TRICLINIUM_COMPLETE={shell}_complete" in script
    assert "serve" in done.stdout
    assert "Serve a fake Couchbase node" in done.stdout


def test_an_unknown_shell_fails(home: Path) -> None:
    """A shell without completion fails with the status that the page states."""
    done = bash("triclinium", home=home, _TRICLINIUM_COMPLETE="sh_source")

    assert (1, "") == (done.returncode, done.stdout)
