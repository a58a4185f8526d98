"""Output that is lost, and exceptions that leave the asynchronous part of a command."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO

import click
import pytest
import trio

from tests.environment import missing
from tests.rows import rows
from triclinium._cli import main
from triclinium._cli._output import OutputLost, run_trio

COMMAND = (sys.executable, "-c", "from triclinium._cli import main; main()")

COMMANDS: Mapping[str, Sequence[str]] = {
    "explain --batch": [*COMMAND, "explain", "--batch", "questions.jsonl"],
    "simulation": [sys.executable, "-m", "triclinium_core.testing.simulation", "--seed", "1"],
}
"""Of each program the command that prints as it goes, and ends."""

LINES = (
    "--help",
    "explain kv get --status 0x86",
    "explain kv get --status 0x86 --json",
    "explain cassandra unavailable --required 2 --alive 1",
    "explain smithy --responses E,ok",
    "ping couchbase://127.0.0.1:1 --username ada --password secret --json",
    "simulate --clients 10 --strategy none",
    "serve",
    "serve --json",
)
"""The other ways in which commands print."""

FULL_DEVICE = Path("/dev/full")


@contextmanager
def full_device() -> Iterator[BinaryIO]:
    """Give the block what takes no byte. Only Linux has it: at a desk with another system its rows are skipped."""
    if not FULL_DEVICE.exists():
        missing(str(FULL_DEVICE), "run the tests on Linux")
    with FULL_DEVICE.open("wb") as device:
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


def run_here(line: str, stdout: BinaryIO, encoding: str = "utf-8") -> object:
    """Return the exit status of a command in this process."""
    descriptor = io.BufferedWriter(io.FileIO(stdout.fileno(), "wb", closefd=False))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(descriptor, encoding=encoding))
        with pytest.raises(SystemExit) as ended:
            main(line.split())
    return ended.value.code


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("command", COMMANDS)
def test_output_that_is_lost(command: str, loss: str, tmp_path: Path) -> None:
    """A full device is told in one line, a reader who has left in none; neither status means anything else."""
    lost, status, words = LOSSES[loss]
    with lost() as stdout:
        ended, said = run(COMMANDS[command], tmp_path, stdout)

    assert status == ended
    assert bool(words) == len(said.splitlines())
    assert said.rstrip("\n").endswith(words)


@pytest.mark.parametrize("loss", LOSSES)
@rows("line", LINES)
def test_output_that_is_lost_in_any_command(line: str, loss: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Wherever it prints, and in whatever nursery."""
    lost, status, words = LOSSES[loss]
    with lost() as stdout:
        ended = run_here(line, stdout)
    said = capsys.readouterr().err

    assert status == ended
    assert said.rstrip("\n").endswith(words)
    assert "Traceback" not in said


@pytest.mark.parametrize("command", COMMANDS)
def test_input_and_output_that_are_closed(command: str, tmp_path: Path) -> None:
    """Nobody is to hear of it, so it ends as ever."""
    ended, said = run(["sh", "-c", 'exec "$@" <&- >&-', "sh", *COMMANDS[command]], tmp_path)

    assert (0, "") == (ended, said)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["explain", "--batch", "-"], "standard input is closed"),
        (["ping", "couchbase://127.0.0.1:1"], "--username is missing"),
    ],
)
def test_input_that_cannot_be_read(arguments: Sequence[str], words: str, tmp_path: Path) -> None:
    """One line says so, and the status that it could not be understood."""
    ended, said = run(["sh", "-c", 'exec "$@" <&-', "sh", *COMMAND, *arguments], tmp_path)

    assert 2 == ended
    assert 1 == len(said.splitlines())
    assert words in said


def test_any_encoding_will_do(tmp_path: Path) -> None:
    """Characters that standard output does not have end nothing."""
    with (tmp_path / "output.txt").open("wb") as stdout:
        for line in ("simulate --clients 10 --strategy best_effort", "demo"):
            assert 0 == run_here(line, stdout, "ascii")
    assert b"\\u" in (tmp_path / "output.txt").read_bytes()


async def double(number: int) -> int:
    """Return twice ``number``."""
    await trio.lowlevel.checkpoint()
    return 2 * number


async def raise_alone(error: BaseException) -> None:
    """Raise as it is."""
    await trio.lowlevel.checkpoint()
    raise error


async def raise_in_nurseries(error: BaseException) -> None:
    """Raise as a part of a group of groups."""
    async with trio.open_nursery() as outer:
        outer.start_soon(trio.sleep_forever)
        async with trio.open_nursery() as inner:
            inner.start_soon(raise_alone, error)


Work = Callable[[BaseException], Awaitable[None]]

each_way = pytest.mark.parametrize("work", [raise_alone, raise_in_nurseries])


def test_a_result_is_passed_on() -> None:
    """Arguments go in, the result comes out."""
    assert 42 == run_trio(double, 21)


@each_way
def test_control_c_aborts(work: Work) -> None:
    """Whether or not it struck in a nursery."""
    with pytest.raises(click.Abort):
        run_trio(work, KeyboardInterrupt())


@each_way
def test_lost_output_is_recognised(work: Work) -> None:
    """As the error that it is, out of whatever groups."""
    lost = OutputLost(BrokenPipeError())
    with pytest.raises(OutputLost) as caught:
        run_trio(work, lost)

    assert lost is caught.value


def test_any_other_exception_is_left_alone() -> None:
    """A defect shows with its traceback."""
    with pytest.raises(ExceptionGroup) as caught:
        run_trio(raise_in_nurseries, ZeroDivisionError())

    assert caught.group_contains(ZeroDivisionError, depth=2)
