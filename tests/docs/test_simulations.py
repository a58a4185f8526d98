"""The figures and plots on the page about strategies are the output of its commands."""

from __future__ import annotations

import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.docs.pages import DOCS, ROOT, blocks_of, words_of_svg
from triclinium._cli import main
from triclinium._cli.simulate.scenario import capacity_of
from triclinium._cli.simulate.scenario_file import read_scenario

pytestmark = pytest.mark.native

PAGE = DOCS / "howto" / "choose_a_strategy.md"
QUICKEST = 1
"""Index of the fastest command on the page."""
AS_WIDE_AS_A_PIPE = {"COLUMNS": None}


@cache
def commands() -> list[tuple[list[str], str]]:
    """Return the arguments of each command on the page, and the figures below it."""
    blocks = [block for block in blocks_of(PAGE) if block.language in {"sh", "text"}]
    lines = [block.text.replace("\\\n", "") for block in blocks[::2]]
    return [(shlex.split(line), figures.text) for line, figures in zip(lines, blocks[1::2], strict=True)]


CASES: list[Any] = [
    pytest.param(number, marks=[] if number == QUICKEST else pytest.mark.long) for number in range(len(commands()))
]
"""Commands to check. All but the fastest are only for long runs."""


@pytest.mark.parametrize("number", CASES)
def test_commands_print_the_figures_of_the_page(number: int, tmp_path: Path) -> None:
    """Each command prints the figures of the page to the last digit, and draws a plot with the same text."""
    arguments, figures = commands()[number]
    picture = ROOT / arguments[arguments.index("--plot") + 1]
    drawn = tmp_path / picture.name
    arguments = [str(drawn) if argument == str(picture.relative_to(ROOT)) else argument for argument in arguments]
    result = CliRunner().invoke(main, [*arguments[arguments.index("simulate") :], "--jobs", "1"], env=AS_WIDE_AS_A_PIPE)

    assert 0 == result.exit_code, result.output
    assert figures in "".join(f"{line.rstrip()}\n" for line in result.output.splitlines())
    for theme in ("", "-dark"):
        shown = picture.with_stem(f"{picture.stem}{theme}")
        assert words_of_svg(drawn.with_name(shown.name).read_bytes()) == words_of_svg(shown.read_bytes())
        assert f"{{image}} pictures/{shown.name}\n" in PAGE.read_text(encoding="utf-8")


def test_every_plot_is_shown() -> None:
    """Every plot in the folder belongs to a command of the page."""
    light = {Path(arguments[arguments.index("--plot") + 1]) for arguments, _ in commands()}
    made = light | {path.with_stem(f"{path.stem}-dark") for path in light}

    assert {path.relative_to(ROOT) for path in (PAGE.parent / "pictures").iterdir()} == made
    assert len(light) > 2


def test_the_scenario_on_the_page_is_valid() -> None:
    """The command reads the scenario file that readers copy."""
    scenario = read_scenario(PAGE.parent / "examples" / "scenario.toml")

    assert (100.0, 130.0, 60.0) == (
        scenario.fleet.demand,
        capacity_of(scenario),
        scenario.outage and scenario.outage.end - scenario.outage.start,
    )
