"""Scenario files: their keys, options that override them, and the errors for invalid files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.rows import rows
from tests.trio_client._cli.refusals import assert_refused
from triclinium._cli import main
from triclinium._cli._input import WrongInput
from triclinium._cli.simulate.scenario import STRATEGIES_DEFAULT
from triclinium._cli.simulate.scenario_file import read_scenario
from triclinium_core.tools import fleet

EVERYTHING = """
duration = 12
bucket = 0.5

[fleet]
clients = 40
period = 1
timeout = 2.0
attempt_timeout = 0.4
clients_per_process = 10
idempotent = false

[service]
type = "queue"
capacity = 60
latency = 0.02
queue = 0.5
overload = "silent"
rejection_cost = 0.2

[outage]
start = 3
end = 5
kind = "closes"
"""
AS_VALUES = fleet.Scenario(
    fleet=fleet.Fleet(
        clients=40, period=1.0, timeout=2.0, attempt_timeout=0.4, clients_per_process=10, idempotent=False
    ),
    service=fleet.SimulatedService(
        capacity=60.0, latency=0.02, queue=0.5, overload=fleet.Overload.SILENT, rejection_cost=0.2
    ),
    outage=fleet.Outage(3.0, 5.0, fleet.OutageKind.CLOSES),
    duration=12.0,
    bucket=0.5,
)


def written(folder: Path, text: str) -> Path:
    """Write ``text`` to a file in ``folder`` and return its path."""
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def simulate(path: Path, *arguments: str) -> Result:
    """Run the command on a file."""
    return CliRunner().invoke(
        main, ["simulate", "--scenario", str(path), "--strategy", "none", "--jobs", "1", *arguments]
    )


def test_every_key_reaches_the_scenario(tmp_path: Path) -> None:
    """Each table of the file becomes the value with the same name."""
    assert AS_VALUES == read_scenario(written(tmp_path, EVERYTHING))


def test_missing_keys_have_defaults(tmp_path: Path) -> None:
    """Missing keys have the defaults of their classes; only the type and capacity of the service are required."""
    expected = fleet.Scenario(fleet=fleet.Fleet(), service=fleet.SimulatedService(capacity=150.0))

    assert expected == read_scenario(written(tmp_path, 'service = { type = "queue", capacity = 150 }'))


OTHER_KINDS = """
duration = 20

[fleet]
clients = 30
period = 1

[fleet.arrivals]
type = "poisson"

[fleet.trend]
type = "spike"
start = 5
end = 8
factor = 3

[service]
type = "parallel"
base = 0.1
leg = { type = "exponential", mean = 0.01 }

[[strategies]]
type = "counted"
name = "thrice"
max_attempts = 3

[[strategies]]
type = "budget"
name = "thrifty"
delays = { type = "decorrelated", base = 0.01, most = 1 }
"""


def test_other_kinds_are_named_by_their_type(tmp_path: Path) -> None:
    """``type`` selects other arrivals, trends, services and delays; the file's strategies join the built-in ones."""
    path = written(tmp_path, OTHER_KINDS)
    scenario = read_scenario(path)
    result = CliRunner().invoke(
        main, ["simulate", "--scenario", str(path), "--jobs", "1", "--json", "--plot", str(tmp_path / "mine.svg")]
    )

    assert isinstance(scenario.service, fleet.ParallelService)
    assert isinstance(scenario.fleet.trend, fleet.Spike)
    assert isinstance(scenario.fleet.arrivals, fleet.PoissonArrivals)
    assert ["thrice", "thrifty"] == [retries.name for retries in scenario.strategies]
    assert 0 == result.exit_code, result.output
    played = [found["strategy"] for found in json.loads(result.output)["strategies"]]
    assert [*STRATEGIES_DEFAULT, "thrice", "thrifty"] == played


def test_an_option_the_service_lacks(tmp_path: Path) -> None:
    """``--capacity`` is refused for a parallel service, which has no capacity."""
    assert_refused(simulate(written(tmp_path, OTHER_KINDS), "--capacity", "99"), "capacity")


def test_options_override_the_file(tmp_path: Path) -> None:
    """Options on the command line override the file; defaults of options do not."""
    path = written(tmp_path, EVERYTHING)
    plain = json.loads(simulate(path, "--json").output)["scenario"]
    changed = json.loads(
        simulate(path, "--json", "--clients", "50", "--capacity", "99", "--outage", "4-6", "--duration", "10").output
    )["scenario"]

    assert 40 == plain["fleet"]["clients"]
    plain["fleet"]["clients"], plain["service"]["capacity"], plain["duration"] = 50, 99.0, 10.0
    plain["outage"].update(start=4.0, end=6.0)
    assert plain == changed


@rows(
    ("old", "new", "words"),
    [
        ("capacity = 60", 'capacity = "fast"', "service.capacity = 'fast': expected `float`, got `str`"),
        ("capacity = 60", "capacity = true", "service.capacity = True: expected `float`, got `bool`"),
        ("capacity = 60", f"capacity = 1{'0' * 400}", "service.capacity = 1000"),
        ("capacity = 60", "capcity = 60", "did you mean capacity?"),
        ("capacity = 60", "", "capacity is missing in [service]"),
        ("clients = 40", "clients = -3", "in [fleet], clients=-3 must be an integer from 1 to 1000000"),
        ("clients = 40", "clients = 4.5", "fleet.clients = 4.5: expected `int`, got `float`"),
        ("period = 1", "period = nan", "in [fleet], period=nan must be a number"),
        ("period = 1", "period = 2026-01-01", "fleet.period = datetime.date(2026, 1, 1): expected `float`"),
        ("end = 5", "end = 2", "in [outage], end=2.0"),
        ("end = 5", "end = 50", "in the file, the outage ends at 50 s, after the duration of 12 s"),
        ('"closes"', '"away"', "kind = 'away' in [outage]: write one of refuses, closes, silent, denies"),
        ("[service]", "[servce]", "did you mean service?"),
        ("[outage]", "[[outage]]", "outage = [{"),
        ("duration = 12", "duration = ", "is not TOML: Invalid value (at line 2, column 12)"),
        ("duration = 12", f"duration = {'[' * 5000}", "is not TOML"),
        ('"parallel"', '"serial"', "type = 'serial' is unknown in [service]; write one of queue, parallel"),
        ('type = "poisson"', "", "type is missing in [fleet.arrivals]; write one of even, poisson, closed_loop"),
        ("factor = 3", "factr = 3", "did you mean factor?"),
        ("max_attempts = 3", "max_attempts = 0", "in [strategies[0]], max_attempts=0 must be"),
        ("base = 0.01", "base = 'x'", "strategies[1].delays.base = 'x': expected `float`, got `str`"),
        ('"thrifty"', '"thrice"', "strategies"),
    ],
)
def test_an_error_names_file_key_and_value(
    old: str, new: str, words: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """An invalid file ends the command with status 2, no results, and one line that names the file and its fault."""
    text = EVERYTHING if old in EVERYTHING else OTHER_KINDS
    assert old in text
    path = written(tmp_path_factory.mktemp("wrong"), text.replace(old, new))

    assert_refused(simulate(path), str(path), words)


@rows("data", [b"\xff\xfe", b"\x00"])
def test_a_binary_file_is_refused(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A file that is not text is refused, and the error gives its name."""
    path = tmp_path_factory.mktemp("binary") / "mine.toml"
    path.write_bytes(data)

    with pytest.raises(WrongInput, match="mine.toml is not TOML"):
        read_scenario(path)
