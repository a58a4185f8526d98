"""The command: arguments, progress, exit status, and how it is really run."""

from __future__ import annotations

import runpy
import subprocess
import sys
from collections.abc import Callable, Iterable
from itertools import count

import pytest

from triclinium_core.testing.fakes.nodes import FakeNodes
from triclinium_core.testing.fakes.options import FakeNodeOptions
from triclinium_core.testing.simulation.command import main
from triclinium_core.testing.simulation.figures import Figures
from triclinium_core.testing.simulation.hour import Outcome
from triclinium_core.testing.simulation.regressions import REGRESSIONS

MODULE = "triclinium_core.testing.simulation"


def run(*arguments: str, make_nodes: Callable[[FakeNodeOptions, int], FakeNodes] = FakeNodes) -> tuple[int, list[str]]:
    """Return exit status and lines of a run on a clock that a second passes on whenever it is read."""
    printed: list[str] = []
    seconds = count(100)
    status = main(arguments, clock=lambda: float(next(seconds)), write=printed.append, make_nodes=make_nodes)
    return status, printed


def broken(options: FakeNodeOptions, nodes: int) -> FakeNodes:
    """Return no cluster."""
    raise AssertionError("no history begins")


def test_a_good_run() -> None:
    """It tells how far it is, what it was, and that every law holds."""
    status, printed = run("--seeds", "2")

    assert 0 == status
    assert printed[0].startswith("1 of 2 seeds, ")
    assert printed[0].endswith(" operations, 1.0 s")
    assert "\n2 seeds, 0 to 1: every law holds, after 2.0 s\n" == printed[1]
    assert printed[2].startswith("operations ")
    assert printed[-1].endswith(" minutes in virtual time")
    assert max(len(line) for line in printed) <= 80


def test_seeds_from_another_one_on() -> None:
    """With both arguments, the seed is the first of so many."""
    _, printed = run("--seeds", "1", "--seed", "7")

    assert "\nseed 7: every law holds, after 1.0 s\n" == printed[0]


def drawn(number: int) -> tuple[list[int], str]:
    """Return the seeds of a run that draws five, and what it says of them."""
    played: list[int] = []
    printed: list[str] = []

    def record(seed: int) -> Outcome:
        played.append(seed)
        return Outcome(seed, Figures(), ())

    def spread(jobs: int) -> Callable[[Callable[[int], Outcome], Iterable[int]], Iterable[Outcome]]:
        return lambda work, seeds: map(record, seeds)

    main(["--seeds", "5", "--draw", str(number)], clock=lambda: 0.0, write=printed.append, spread=spread)
    return played, next(line for line in printed if "drawn" in line)


def test_seeds_are_drawn() -> None:
    """Behind those that ever broke a law; one number draws the same, another one others."""
    (one, title), (another, _) = drawn(7), drawn(8)

    assert (one, title) == drawn(7)
    assert [*REGRESSIONS] == one[:-5] == another[:-5]
    assert 10 == len({*one[-5:], *another[-5:]})
    assert f"\n{len(REGRESSIONS)} known seeds and 5 drawn from 7: every law holds, after 0.0 s\n" == title


def test_one_seed() -> None:
    """Alone it is played step by step, the same every time."""
    status, printed = run("--seed", "7")

    assert (status, printed) == run("--seed", "7")
    assert 0 == status
    assert printed[0].startswith("     0.000  ")
    assert "\nseed 7: every law holds\n" in printed
    assert len(printed) > 200


def test_progress_is_told_now_and_then() -> None:
    """Ten times, however many seeds there are; the work is given to whoever does it."""
    asked: list[int] = []
    printed: list[str] = []

    def spread(jobs: int) -> Callable[[Callable[[int], Outcome], Iterable[int]], Iterable[Outcome]]:
        asked.append(jobs)
        return lambda work, seeds: [done for done in [work(0)] for _ in seeds]

    status = main(["--seeds", "40", "--jobs", "3"], clock=lambda: 0.0, write=printed.append, spread=spread)

    assert ([3], 0) == (asked, status)
    assert [f"{4 * tenth} of 40 seeds" for tenth in range(1, 10)] == [
        line.partition(",")[0] for line in printed if "of 40" in line
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--seed", "x"], "argument --seed: 'x' is no whole number of at least 0"),
        (["--seed", "-1"], "argument --seed: "),
        (["--seeds", "0"], "argument --seeds: '0' is no whole number of at least 1"),
        (["--jobs", "0"], "argument --jobs: '0' is no whole number of at least 1"),
        (["--seed", "4", "--draw", "4"], "argument --draw: not allowed with argument --seed"),
        (["--draw", "-1"], "argument --draw: "),
        (["--see", "4"], "unrecognized arguments: --see 4"),
        (["4"], "unrecognized arguments: 4"),
    ],
)
def test_wrong_arguments(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """They are named, nothing is played, and the exit status is 2."""
    with pytest.raises(SystemExit) as left:
        run(*arguments, make_nodes=broken)

    assert 2 == left.value.code
    assert words in capsys.readouterr().err


def test_the_module_is_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """As ``python -m`` does it."""
    monkeypatch.setattr(sys, "argv", ["simulation", "--seeds", "1"])
    with pytest.raises(SystemExit) as left:
        runpy.run_module(MODULE, run_name="__main__")

    assert 0 == left.value.code
    assert "seed 0: every law holds" in capsys.readouterr().out


@pytest.mark.native
def test_several_processes() -> None:
    """They play the same histories as one does."""
    command = [sys.executable, "-m", MODULE, "--seeds", "2", "--jobs", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    _, printed = run("--seeds", "2")

    assert "" == done.stderr
    assert printed[2:] == done.stdout.splitlines()[4:]
