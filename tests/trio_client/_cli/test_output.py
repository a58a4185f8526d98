"""Output that is lost, and input that is not there: one line and a status, whatever the command; in processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

COMMAND = (sys.executable, "-c", "from triclinium._cli import main; main()")
SIMULATION = (sys.executable, "-m", "triclinium_core.testing.simulation")
NOWHERE = ("ping", "couchbase://127.0.0.1:1", "--username", "ada", "--password", "secret")

COMMANDS: Mapping[str, tuple[Sequence[str], int]] = {
    "help": ([*COMMAND, "--help"], 0),
    "demo": ([*COMMAND, "demo"], 0),
    "explain": ([*COMMAND, "explain", "kv", "get", "--status", "0x86"], 0),
    "explain --json": ([*COMMAND, "explain", "kv", "get", "--status", "0x86", "--json"], 0),
    "explain --batch": ([*COMMAND, "explain", "--batch", "questions.jsonl"], 0),
    "explain cassandra": ([*COMMAND, "explain", "cassandra", "unavailable", "--required", "2", "--alive", "1"], 0),
    "explain smithy": ([*COMMAND, "explain", "smithy", "--responses", "E,ok"], 0),
    "ping": ([*COMMAND, *NOWHERE, "--json"], 1),
    "simulate": ([*COMMAND, "simulate", "--clients", "10", "--strategy", "none"], 0),
    "simulation": ([*SIMULATION, "--seed", "1"], 0),
}
"""Commands that print something and end, and their exit status."""

SERVERS = {"serve": [*COMMAND, "serve"], "serve --json": [*COMMAND, "serve", "--json"]}


@contextmanager
def full_device() -> Iterator[BinaryIO]:
    """Give the block what takes no byte."""
    with Path("/dev/full").open("wb") as device:
        yield device


@contextmanager
def left_pipe() -> Iterator[BinaryIO]:
    """Give the block a pipe that nobody reads any more."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        yield pipe


LOSSES: Mapping[str, tuple[Callable[[], AbstractContextManager[BinaryIO]], int, str]] = {
    "full": (full_device, 74, "standard output cannot be written: No space left on device"),
    "left": (left_pipe, 141, ""),
}
"""Where the output is lost, the exit status, and how the line on standard error ends."""


def run(command: Sequence[str], folder: Path, stdout: BinaryIO | int = subprocess.PIPE) -> tuple[int, str]:
    """Return exit status and standard error of a command beside a file of questions, its standard input being empty."""
    (folder / "questions.jsonl").write_text(
        '{"family": "couchbase", "ask": "idempotent", "service": "kv", "op": "get"}\n', encoding="utf-8"
    )
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("command", [*COMMANDS, *SERVERS])
def test_output_that_is_lost(command: str, loss: str, tmp_path: Path) -> None:
    """A full device is told in one line, a reader who has left in none; neither status means anything else."""
    lost, status, words = LOSSES[loss]
    arguments = SERVERS[command] if command in SERVERS else COMMANDS[command][0]
    with lost() as stdout:
        ended, said = run(arguments, tmp_path, stdout)

    assert status == ended
    assert bool(words) == len(said.splitlines())
    assert said.rstrip("\n").endswith(words)


@pytest.mark.parametrize("command", COMMANDS)
def test_input_and_output_that_are_closed(command: str, tmp_path: Path) -> None:
    """Nobody is to hear of it, so it ends as ever."""
    arguments, status = COMMANDS[command]
    ended, said = run(["sh", "-c", 'exec "$@" <&- >&-', "sh", *arguments], tmp_path)

    assert status == ended
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["explain", "--batch", "-"], "standard input is closed"),
        (["explain", "--batch", "/proc/self/mem"], "--batch /proc/self/mem cannot be read: Input/output error"),
        (["explain", "--batch", "/"], "Is a directory"),
        (["ping", "couchbase://127.0.0.1:1"], "--username is missing"),
    ],
)
def test_input_that_cannot_be_read(arguments: Sequence[str], words: str, tmp_path: Path) -> None:
    """One line says so, and the status that it could not be understood."""
    ended, said = run(["sh", "-c", 'exec "$@" <&-', "sh", *COMMAND, *arguments], tmp_path)

    assert 2 == ended
    assert 1 == len(said.splitlines())
    assert words in said


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_any_encoding_will_do(command: str, encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Characters that standard output does not have end nothing."""
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    arguments, status = COMMANDS[command]
    ended, said = run(arguments, tmp_path)

    assert status == ended
    assert "Traceback" not in said
