"""``triclinium simulate --validate``: its output and its exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.trio_client._cli.refusals import assert_refused
from triclinium._cli import main
from triclinium._cli.simulate import validation
from triclinium_core.retry.smithy import ExponentialRetryBackoffStrategy
from triclinium_core.tools.fleet.references import REFERENCES

COLUMNS = 60
QUICK = tuple(
    experiment
    for experiment in REFERENCES
    if experiment.name.startswith(
        ("closed forms: expo,", "closed forms: decorrelated, 1 ", "retries under failures: N=10 breaker")
    )
)


def validate(*arguments: str) -> Result:
    """Run the command in one process."""
    return CliRunner().invoke(main, ["simulate", "--validate", "--jobs", "1", *arguments])


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("long") is None:
        monkeypatch.setattr(validation, "REFERENCES", QUICK)


def halve_backoffs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Halve every backoff delay, as a bug would."""
    compute = ExponentialRetryBackoffStrategy.compute_next_backoff_delay
    monkeypatch.setattr(
        ExponentialRetryBackoffStrategy,
        "compute_next_backoff_delay",
        lambda backoff, retry_attempt: 0.5 * compute(backoff, retry_attempt),
    )


def test_a_line_for_each_figure() -> None:
    """Below each reference, every figure has one line of limited width; the last line counts the figures that agree."""
    result = validate()
    lines = result.output.splitlines()

    assert 0 == result.exit_code, result.output
    assert {"closed forms", "retries under failures"} <= set(lines)
    assert 4 == sum(line.endswith(" ok") for line in lines)
    assert max(map(len, lines)) <= COLUMNS
    assert "4" in lines[-1]


def test_lines_of_json() -> None:
    """``--json`` prints an object per line, the same ones for the same seed; the figures of any seed agree."""
    first, second = validate("--json", "--seed", "7"), validate("--json", "--seed", "8")

    assert first.output == validate("--json", "--seed", "7").output
    assert first.output != second.output
    for result in (first, second):
        rows = [json.loads(line) for line in result.output.splitlines()]
        assert (0, 4) == (result.exit_code, len(rows))
        assert all({"reference", "quantity", "expected", "tolerance", "got", "ok"} == set(row) for row in rows)
        assert all(row["ok"] is (abs(row["got"] - row["expected"]) <= row["tolerance"]) is True for row in rows)


@pytest.mark.parametrize(("option", "value"), [("--clients", "5"), ("--strategy", "none"), ("--scenario", __file__)])
def test_options_of_a_scenario_are_refused(option: str, value: str) -> None:
    """A validation has fixed scenarios and refuses the options of a scenario, as the user spells them."""
    assert_refused(validate(option, value), f"omit {option},")


def test_the_plot_has_both_themes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plot states how many figures agree; with a bug, the last line names the reference, and the status is 1."""
    agree, differ = tmp_path / "agree.svg", tmp_path / "differ.svg"
    first = validate("--plot", str(agree), "--theme", "both")
    halve_backoffs(monkeypatch)
    second = validate("--plot", str(differ))
    lines = second.output.splitlines()

    assert (0, 1) == (first.exit_code, second.exit_code)
    assert (1, 3) == tuple(sum(line.endswith(end) for line in lines) for end in (" NO", " ok"))
    assert "closed forms" in lines[-1]
    assert "All 4 figures agree." in agree.read_text(encoding="utf-8")
    assert agree.read_text(encoding="utf-8") != agree.with_stem("agree-dark").read_text(encoding="utf-8")
    assert "1 of 4 figures differ" in differ.read_text(encoding="utf-8")


@pytest.mark.long
def test_all_references_agree() -> None:
    """With the default seed and all processors, every figure agrees with its reference."""
    result = CliRunner().invoke(main, ["simulate", "--validate", "--json"])

    assert 0 == result.exit_code, result.output
    assert len(result.output.splitlines()) > 100
