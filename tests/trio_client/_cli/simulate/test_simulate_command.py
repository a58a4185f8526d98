"""``triclinium simulate``: the figures of a fleet in words and as data, and errors for wrong input."""

from __future__ import annotations

import json
import random
import sys
from io import StringIO

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from tests.rows import rows
from tests.trio_client._cli.refusals import assert_refused
from triclinium._cli import main
from triclinium._cli.simulate import simulate_command
from triclinium._cli.simulate.report import BARS, BARS_OF_ASCII, sparkline, summary
from triclinium_core.tools.fleet import STRATEGIES, Fleet, Outage, Scenario, SimulatedService, simulate as play

SMALL = ("--clients", "50", "--period", "1", "--duration", "12", "--outage", "3-5", "--jobs", "1")


def simulate(*arguments: str) -> Result:
    """Run the command in this process, with a small fleet and the line length of a pipe."""
    return CliRunner().invoke(main, ["simulate", *SMALL, *arguments], env={"COLUMNS": None})


def simulate_as_json(*arguments: str) -> dict[str, object]:
    """Return the object that ``--json`` prints."""
    result = simulate(*arguments, "--json")
    assert (0, "") == (result.exit_code, result.stderr)
    (line,) = result.output.splitlines()
    answer: dict[str, object] = json.loads(line)
    return answer


def test_strategies_are_compared() -> None:
    """Each strategy has one line with its result, followed by its figures over time."""
    lines = simulate("--strategy", "none", "--strategy", "best_effort").output.splitlines()
    summary = [line.split()[:4] for line in lines if line.startswith(("none  ", "best_effort  "))]

    assert all(
        fact in lines[0] for fact in ("50 clients", "every 1 s, for 12 s", "50 operations a second", "can serve 75")
    )
    assert lines[0].endswith("refuses connections.")
    assert [["none", "83.2%", "1.00", "x"]] == summary[:1]
    assert "best_effort" == summary[1][0]
    assert "none sends once:" in lines
    assert "best_effort retries after 1, 2, 4 … 500 ms until the deadline:" in lines
    assert [[f"{second} s"] * 2 for second in range(12)] == [
        [f"{second} s" for line in lines if line.split()[:2] == [str(second), "s"]] for second in range(12)
    ]


def test_at_most_twelve_lines_over_time() -> None:
    """The figures over time have at most twelve lines, and the last, shorter interval has a correct rate."""
    lines = simulate("--duration", "13", "--step", "0.5", "--strategy", "none").output.splitlines()
    rows = [line.split() for line in lines if line.startswith("  ") and " s " in line]

    assert ["0", "1.5", "3", "4.5", "6", "7.5", "9", "10.5", "12"] == [row[0] for row in rows]
    assert all(abs(int(row[2]) - 50) <= 1 for row in rows)


def test_figures_as_json() -> None:
    """JSON has the parsed scenario and the figures of each strategy."""
    answer = simulate_as_json("--strategy", "fail-fast", "--strategy", "NONE", "--outage-kind", "closes", "--seed", "5")

    assert {"scenario", "seed", "strategies", "advice"} == set(answer)
    assert 5 == answer["seed"]
    assert '"outage": {"start": 3.0, "end": 5.0, "kind": "closes"}' in json.dumps(answer["scenario"])
    found = answer["strategies"]
    assert isinstance(found, list)
    assert ["fail_fast", "none"] == [figures["strategy"] for figures in found]
    assert 12 == len(found[0]["buckets"])
    assert 600 == found[0]["totals"]["begun"]


def test_options_reach_the_scenario() -> None:
    """Each option sets its field of the scenario."""
    answer = simulate_as_json(
        *("--capacity", "80", "--latency", "0.02", "--queue", "0.5", "--overload", "silent", "--timeout", "2"),
        *("--rejection-cost", "0", "--attempt-timeout", "0.3", "--per-process", "7", "--writes", "--step", "2"),
        *("--strategy", "none", "--outage", "NONE"),
    )

    assert {
        "fleet": {
            "clients": 50,
            "period": 1.0,
            "timeout": 2.0,
            "attempt_timeout": 0.3,
            "clients_per_process": 7,
            "idempotent": False,
            "arrivals": {"type": "even"},
            "trend": {"type": "steady"},
        },
        "service": {
            "type": "queue",
            "capacity": 80.0,
            "latency": 0.02,
            "queue": 0.5,
            "overload": "silent",
            "rejection_cost": 0.0,
            "work": "constant",
        },
        "outage": None,
        "failure_rate": 0.0,
        "duration": 12.0,
        "bucket": 2.0,
        "strategies": [],
    } == answer["scenario"]


def test_the_same_seed_gives_the_same_figures() -> None:
    """Runs with the same seed have the same figures, in one process and in two; another seed gives different ones."""
    arguments = ("--strategy", "best_effort_jittered", "--strategy", "none")
    answer = simulate_as_json(*arguments)

    assert answer == simulate_as_json(*arguments, "--jobs", "2")
    assert answer["strategies"] != simulate_as_json(*arguments, "--seed", "2")["strategies"]


def test_recovery_is_reported() -> None:
    """Without an outage, the command reports no recovery; if a strategy never recovers, the command reports that."""
    calm = simulate("--strategy", "none", "--outage", "none").output
    stormy = simulate("--strategy", "best_effort_jittered", "--timeout", "3", "--rejection-cost", "0.2").output

    assert "There is no outage." in calm
    assert "no outage" in calm.splitlines()[3]
    assert "never" in stormy.splitlines()[3]


@rows(
    ("arguments", "words"),
    [
        ("--strategy best_efort", "'best_efort'; did you mean best_effort"),
        ("--strategy hope", ", ".join(STRATEGIES)),
        ("--outage 20", "such as 20-30, or none"),
        ("--outage 5-3", "end=3.0"),
        ("--outage 5-30", "ends at 30 s, after the duration of 12 s"),
        ("--outage-kind away", "refuses, closes, silent, denies"),
        ("--overload away", "throttles, silent"),
        ("--clients 0", "'--clients': 0"),
        ("--clients 2000000", "clients=2000000"),
        ("--period nan", "'--period': nan"),
        ("--capacity 0", "'--capacity': 0.0"),
        ("--rejection-cost 2", "'--rejection-cost': 2.0"),
        ("--step 0.00001", "1,200,000 buckets"),
        ("--duration 9000000", "20,000,000"),
        ("--seed x", "Invalid value for '--seed'"),
    ],
)
def test_wrong_input_is_one_line(arguments: str, words: str) -> None:
    """Wrong input exits with status 2 and one line that names the value or the valid values."""
    assert_refused(simulate(*arguments.split()), words)


def test_bars_are_proportional_to_the_values() -> None:
    """Bars are proportional to the values, and a zero has an empty bar."""
    assert " ▄█" == sparkline([0, 5, 10])
    assert " =@" == sparkline([0, 5, 10], BARS_OF_ASCII)
    assert "   " == sparkline([0, 0, 0])
    assert "" == sparkline([])
    assert BARS[-1] == sparkline([0.1])


@rows(("columns", "heading"), [(120, "goodput over time"), (90, "goodput"), (81, "p99")])
def test_the_summary_fits_a_terminal(columns: int, heading: str) -> None:
    """The summary fits the width of the terminal: with fewer columns it has narrower bars, or no bars."""
    scenario = Scenario(fleet=Fleet(clients=9), service=SimulatedService(capacity=9.0), outage=Outage(2.0, 4.0))
    table = summary(scenario, [play(scenario, "best_effort_jittered", rng=random.Random(1))], columns)
    console = Console(width=columns, file=StringIO(), record=True)
    console.print(table)
    lines = console.export_text().splitlines()

    assert lines[0].rstrip().endswith(heading)
    assert not any("…" in line for line in lines)


def test_figures_fit_sixty_columns() -> None:
    """At 60 columns, even the longest strategy name leaves every figure complete."""
    names = ("none", "fast_fail_on_terminal_error", "best_effort_jittered")
    arguments = [argument for name in names for argument in ("--strategy", name)]
    result = CliRunner().invoke(main, ["simulate", *SMALL, "--clients", "120", *arguments], env={"COLUMNS": "60"})
    lines = result.output.splitlines()
    wide = simulate("--clients", "120", *arguments).output.splitlines()

    assert 0 == result.exit_code
    assert 60 >= max(len(line.rstrip()) for line in lines)
    for name in names:
        (figures,) = [line.split()[1:8] for line in wide if line.startswith(f"{name} ") and "%" in line]
        place = next(index for index, line in enumerate(lines) if line.startswith(f"{name} "))
        assert figures == lines[place + 1].split()[: len(figures)]


class Screen(StringIO):
    """Output stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def test_progress_has_a_total(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal, progress counts up to the total and is erased at the end; otherwise there is no progress."""
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with simulate_command.showing_progress(24.0, "s") as on_progress:
        assert on_progress is not None
        on_progress(9.0)
    shown = screen.getvalue()

    assert "9 of 24 s" in shown
    assert shown.rstrip("\x1b[?25h").endswith("\x1b[2K")

    monkeypatch.setattr(sys, "stderr", StringIO())
    with simulate_command.showing_progress(12.0, "s") as on_progress:
        assert on_progress is None
