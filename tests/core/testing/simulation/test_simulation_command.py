"""The command of the simulation: arguments, progress, exit status, and running as a module."""

from __future__ import annotations

import runpy
import stat
import subprocess
import sys
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path

import pytest

from tests.rows import rows
from triclinium_core.testing.simulation.figures import Figures
from triclinium_core.testing.simulation.history import SeedResult, play
from triclinium_core.testing.simulation.simulation_command import REGRESSIONS, main

MODULE = "triclinium_core.testing.simulation"


def run(*arguments: str) -> tuple[int, list[str]]:
    """Return exit status and output of a run whose clock advances by a second per reading."""
    printed: list[str] = []
    seconds = count(100)
    status = main(arguments, clock=lambda: float(next(seconds)), write=printed.append)
    return status, printed


@pytest.fixture(scope="module")
def good_run() -> tuple[int, list[str]]:
    """Return exit status and output of a run of two histories."""
    return run("--seeds", "2")


def test_successful_run(good_run: tuple[int, list[str]]) -> None:
    """A run without a broken law exits with 0 and prints its progress, its seeds and its statistics."""
    status, printed = good_run

    assert 0 == status
    assert printed[0].startswith("1 of 2 seeds, ")
    assert printed[0].endswith(" operations, 1.0 s")
    assert "\n2 seeds, 0 to 1: every law holds, after 2.0 s\n" == printed[1]
    assert printed[2].startswith("operations ")
    assert printed[-1].endswith(" minutes in virtual time")
    assert max(len(line) for line in printed) <= 80


@pytest.mark.native
def test_several_processes(good_run: tuple[int, list[str]]) -> None:
    """Several processes print the same statistics as one, run by ``python -m``."""
    command = [sys.executable, "-m", MODULE, "--seeds", "2", "--jobs", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert "" == done.stderr
    assert good_run[1][2:] == done.stdout.splitlines()[4:]


def test_range_of_seeds() -> None:
    """With ``--seeds`` and ``--seed``, the seed is the first of that many."""
    _, played, printed = recorded("--seeds", "2", "--seed", "7")

    assert [7, 8] == played
    assert "\n2 seeds, 7 to 8: every law holds, after 0.0 s\n" in printed


def recorded(*arguments: str) -> tuple[list[int], list[int], list[str]]:
    """Return the requested numbers of jobs, the seeds and the output of a command that runs no simulation."""
    asked: list[int] = []
    played: list[int] = []
    printed: list[str] = []

    def record(seed: int) -> SeedResult:
        played.append(seed)
        return SeedResult(seed, Figures(), ())

    def spread(jobs: int) -> Callable[[Callable[[int], SeedResult], Iterable[int]], Iterable[SeedResult]]:
        asked.append(jobs)
        return lambda work, seeds: map(record, seeds)

    assert 0 == main(arguments, clock=lambda: 0.0, write=printed.append, spread=spread)
    return asked, played, printed


def test_drawn_seeds() -> None:
    """With ``--draw``, drawn seeds follow the known regressions; the same number draws the same seeds."""
    one, again, another = (recorded("--seeds", "5", "--draw", number) for number in ("7", "7", "8"))

    assert one == again
    assert [*REGRESSIONS] == one[1][:-5] == another[1][:-5]
    assert 10 == len({*one[1][-5:], *another[1][-5:]})
    assert f"\n{len(REGRESSIONS)} known seeds and 5 drawn from 7: every law holds, after 0.0 s\n" in one[2]


def test_one_seed() -> None:
    """A single seed prints all steps of its history."""
    status, printed = run("--seed", "7")

    assert 0 == status
    assert printed[0].startswith("     0.000  ")
    assert "\nseed 7: every law holds\n" in printed
    assert len(printed) > 200


def test_progress_is_printed_ten_times() -> None:
    """The command prints its progress after each tenth of the seeds but the last, and spreads the work over jobs."""
    asked, _, printed = recorded("--seeds", "40", "--jobs", "3")

    assert [3] == asked
    assert [f"{4 * tenth} of 40 seeds" for tenth in range(1, 10)] == [
        line.partition(",")[0] for line in printed if "of 40" in line
    ]


@rows(
    ("arguments", "named"),
    [
        (["--seed", "x"], "--seed: 'x'"),
        (["--seed", "-1"], "--seed: "),
        (["--seeds", "0"], "--seeds: '0'"),
        (["--jobs", "0"], "--jobs: '0'"),
        (["--seed", "4", "--draw", "4"], "--draw"),
        (["--draw", "-1"], "--draw: "),
        (["--see", "4"], "--see 4"),
        (["4"], "4"),
    ],
)
def test_invalid_arguments(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For an invalid argument, the error names it, no simulation runs, and the exit status is 2."""
    monkeypatch.setattr(sys, "argv", ["simulation", *arguments])
    with pytest.raises(SystemExit) as left:
        runpy.run_module(MODULE, run_name="__main__")
    captured = capsys.readouterr()

    assert (2, "") == (left.value.code, captured.out)
    assert named in captured.err


@pytest.mark.native
def test_tapes_are_written_to_new_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each call writes to a new folder that only its owner can read; a failed one prints an error and gives no path."""
    keep_tapes = runpy.run_module(f"{MODULE}.__main__")["keep_tapes"]
    folder = tmp_path / "new" / "tapes"
    paths = [Path(path) for _ in range(2) for path in keep_tapes(str(folder))([b"one", b"two"])]

    assert [b"one", b"two"] * 2 == [path.read_bytes() for path in paths]
    assert 2 == len({path.parent for path in paths})
    assert {0o700} == {stat.S_IMODE(path.parent.stat().st_mode) for path in paths}
    assert () == keep_tapes(str(paths[0]))([b"one"])
    assert "--tapes" in capsys.readouterr().err


@pytest.mark.history
@pytest.mark.parametrize("seed", REGRESSIONS)
def test_regression(seed: int) -> None:
    """The history of each known regression obeys all laws."""
    assert play(seed).law is None
