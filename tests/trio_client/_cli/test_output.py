"""Lost and unencodable output, closed standard streams, and the ends of the asynchronous part of a command."""

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
"""Command line of each command that prints while it runs and then ends."""

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
"""Command lines for the remaining functions that print."""

FULL_DEVICE = Path("/dev/full")


@contextmanager
def full_device() -> Iterator[BinaryIO]:
    """Yield a device that accepts no bytes. If the system lacks it, skip the test locally and fail it in CI."""
    if not FULL_DEVICE.exists():
        missing(str(FULL_DEVICE), "run the tests on Linux")
    with FULL_DEVICE.open("wb") as device:
        yield device


@contextmanager
def left_pipe() -> Iterator[BinaryIO]:
    """Yield a pipe whose reading end is closed."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        yield pipe


LOSSES: Mapping[str, tuple[Callable[[], AbstractContextManager[BinaryIO]], int, str]] = {
    "full": (full_device, 74, ": No space left on device"),
    "left": (left_pipe, 141, ""),
}
"""For each loss of output, the context manager, the exit status, and the end of the line on stderr."""


def run(command: Sequence[str], folder: Path, stdout: BinaryIO | int = subprocess.PIPE) -> tuple[int, str]:
    """Return exit status and stderr of a command in a folder with a file of questions, and with an empty stdin."""
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
    """A full device exits with status 74 and one line; a closed pipe exits with status 141 and no line."""
    lost, status, words = LOSSES[loss]
    with lost() as stdout:
        ended, said = run(COMMANDS[command], tmp_path, stdout)

    assert status == ended
    assert bool(words) == len(said.splitlines())
    assert said.rstrip("\n").endswith(words)


@pytest.mark.parametrize("loss", LOSSES)
@rows("line", LINES)
def test_output_that_is_lost_in_any_command(line: str, loss: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command line in ``LINES`` exits with the status of ``LOSSES`` if its output is lost, without a traceback."""
    lost, status, words = LOSSES[loss]
    with lost() as stdout:
        ended = run_here(line, stdout)
    said = capsys.readouterr().err

    assert status == ended
    assert said.rstrip("\n").endswith(words)
    assert "Traceback" not in said


@pytest.mark.parametrize("command", COMMANDS)
def test_closed_stdin_and_stdout_are_ignored(command: str, tmp_path: Path) -> None:
    """A command whose stdin and stdout are closed exits with status 0."""
    ended, said = run(["sh", "-c", 'exec "$@" <&- >&-', "sh", *COMMANDS[command]], tmp_path)

    assert (0, "") == (ended, said)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["explain", "--batch", "-"], "standard input is closed"),
        (["ping", "couchbase://127.0.0.1:1"], "--username is missing"),
    ],
)
def test_a_closed_stdin_is_an_error(arguments: Sequence[str], words: str, tmp_path: Path) -> None:
    """If stdin is closed, a command that needs it exits with status 2 and one line."""
    ended, said = run(["sh", "-c", 'exec "$@" <&-', "sh", *COMMAND, *arguments], tmp_path)

    assert 2 == ended
    assert 1 == len(said.splitlines())
    assert words in said


def test_unencodable_characters_are_escaped(tmp_path: Path) -> None:
    """Characters that the encoding of stdout lacks are escaped."""
    with (tmp_path / "output.txt").open("wb") as stdout:
        assert 0 == run_here("simulate --clients 10 --strategy best_effort", stdout, "ascii")
    assert b"\\u" in (tmp_path / "output.txt").read_bytes()


async def double(number: int) -> int:
    """Return twice ``number``."""
    await trio.lowlevel.checkpoint()
    return 2 * number


async def raise_alone(error: BaseException) -> None:
    """Raise the error unchanged."""
    await trio.lowlevel.checkpoint()
    raise error


async def raise_in_nurseries(error: BaseException) -> None:
    """Raise the error inside nested exception groups."""
    async with trio.open_nursery() as outer:
        outer.start_soon(trio.sleep_forever)
        async with trio.open_nursery() as inner:
            inner.start_soon(raise_alone, error)


Work = Callable[[BaseException], Awaitable[None]]

each_way = pytest.mark.parametrize("work", [raise_alone, raise_in_nurseries])


def test_run_trio_returns_the_result() -> None:
    """Arguments are passed to the function, and its result is returned."""
    assert 42 == run_trio(double, 21)


@each_way
def test_control_c_aborts(work: Work) -> None:
    """KeyboardInterrupt becomes click.Abort, whether or not it is in a group."""
    with pytest.raises(click.Abort):
        run_trio(work, KeyboardInterrupt())


@each_way
def test_lost_output_is_raised_unwrapped(work: Work) -> None:
    """OutputLost is raised as the same object, without the groups around it."""
    lost = OutputLost(BrokenPipeError())
    with pytest.raises(OutputLost) as caught:
        run_trio(work, lost)

    assert lost is caught.value


def test_any_other_exception_is_left_alone() -> None:
    """An exception of any other type leaves ``run_trio`` with its groups and traceback."""
    with pytest.raises(ExceptionGroup) as caught:
        run_trio(raise_in_nurseries, ZeroDivisionError())

    assert caught.group_contains(ZeroDivisionError, depth=2)
