"""Plot of ``triclinium simulate``: its contents, and the errors if it cannot be drawn."""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result
from matplotlib.patches import StepPatch
from matplotlib.text import Text
from msgspec.structs import replace

from tests.rows import rows
from tests.trio_client._cli.refusals import assert_refused
from triclinium._cli import main
from triclinium._cli.simulate.plot import THEMES, draw, picture
from triclinium_core.tools.fleet import Fleet, Outage, OutageKind, Scenario, SimulatedService, simulate as play

SVG = "{http://www.w3.org/2000/svg}"
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
CALM = Scenario(fleet=Fleet(clients=1, period=3.0), service=SimulatedService(capacity=9.0), duration=9.0, bucket=1.0)


def simulate(*arguments: str) -> Result:
    """Run the command with a small fleet."""
    few = ("--clients", "20", "--period", "1", "--duration", "8", "--outage", "2-4", "--jobs", "1")
    return CliRunner().invoke(
        main, ["simulate", *few, "--strategy", "none", "--strategy", "standard", *arguments], env={"COLUMNS": None}
    )


def texts_of(path: Path) -> list[str]:
    """Return the texts in a plot."""
    root = ET.fromstring(path.read_bytes())  # noqa: S314  # trusted input
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


def test_a_column_for_each_strategy(tmp_path: Path) -> None:
    """The plot has a column with name and result for each strategy, and labels the rows and the legend once."""
    path = tmp_path / "outage.svg"
    result = simulate("--plot", str(path))
    texts = texts_of(path)
    words = " ".join(texts).replace("\N{NO-BREAK SPACE}", " ")

    assert (0, "") == (result.exit_code, result.stderr)
    once = ("none", "standard", "offered load", "goodput", "amplification")
    for name in (*once, "outage", "demand", "capacity of the service"):
        assert 1 == texts.count(name), name
    assert 2 == texts.count("seconds")
    assert 2 == sum(text.endswith(" succeeded") for text in texts)
    assert 2 == sum(text.startswith("recovered after ") for text in texts)
    # The plot repeats the lines on the scenario and on the advice.
    for line in result.output.splitlines():
        assert not line.startswith(("20 clients", "Use ")) or line in words


def test_light_and_dark(tmp_path: Path) -> None:
    """The light and the dark plot have the same texts, with enough contrast for every colour."""
    result = simulate("--plot", str(tmp_path / "outage.svg"), "--theme", "both")
    light, dark = tmp_path / "outage.svg", tmp_path / "outage-dark.svg"

    assert 0 == result.exit_code
    assert {light, dark} == set(tmp_path.iterdir())
    assert texts_of(light) == texts_of(dark)
    for path, theme in ((light, THEMES["light"]), (dark, THEMES["dark"])):
        drawn = path.read_text(encoding="utf-8").casefold()
        for colour in (theme.paper, theme.ink, theme.grey, theme.load, theme.goodput, theme.amplification):
            assert colour.casefold() in drawn
        for colour in (theme.ink, theme.grey, theme.goodput):
            # WCAG 2.2, 1.4.3: the minimum contrast of small text.
            assert 4.5 <= contrast(colour, theme.paper), colour
        for colour in (theme.load, theme.amplification):
            # WCAG 2.2, 1.4.11: the minimum contrast of graphics.
            assert 3.0 <= contrast(colour, theme.paper), colour


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, as defined by WCAG."""
    darker, lighter = sorted(luminance(colour) for colour in (one, other))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour, as defined by WCAG."""
    shares = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_panels_side_by_side_have_the_same_scales() -> None:
    """The panels of a row share one scale, and all panels share the time axis."""
    scenario = Scenario(
        fleet=Fleet(clients=20, period=1.0), service=SimulatedService(capacity=30.0), outage=Outage(20.0, 30.0)
    )
    figures = [play(scenario, name, rng=random.Random(1)) for name in ("none", "best_effort")]
    figure = picture(scenario, figures)
    heights = [panel.get_ylim() for panel in figure.axes]

    assert heights[0::2] == heights[1::2]
    assert 3 == len(set(heights))
    assert {(0.0, 60.0)} == {panel.get_xlim() for panel in figure.axes}
    assert heights[0][1] > figures[1].peak_sent


@rows("strategies", [1, 5])
def test_the_caption_fits(strategies: int) -> None:
    """Every line of text ends within the figure, even in a narrow one with few columns."""
    scenario = Scenario(
        fleet=Fleet(clients=100_000, period=10.0),
        service=SimulatedService(capacity=15_000.0),
        outage=Outage(20.0, 30.0, OutageKind.CLOSES),
    )
    calm = replace(scenario, fleet=Fleet(clients=10, period=10.0), duration=31.0)
    figures = [play(calm, "none", rng=random.Random(1))] * strategies
    figure = picture(scenario, figures)
    figure.draw_without_rendering()
    texts = figure.findobj(Text)

    assert any(text.get_text().startswith("100,000 clients ") for text in texts)
    assert not [text for text in texts if text.get_window_extent().x1 > figure.bbox.x1]


def test_the_same_figures_give_identical_files(tmp_path: Path) -> None:
    """Two plots of equal figures are byte-identical SVG files; a PNG is drawn without a display."""
    paths = [tmp_path / name for name in ("first.svg", "second.svg", "outage.PNG")]
    figures = [play(CALM, "none", rng=random.Random(1))]
    for path in paths:
        draw(CALM, figures, path)

    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert paths[2].read_bytes().startswith(PNG_SIGNATURE)


def test_a_short_last_step_is_scaled() -> None:
    """If the last interval is shorter than the others, the same rate is drawn at the same height."""
    scenario = Scenario(
        fleet=Fleet(clients=8, period=1.0), service=SimulatedService(capacity=99.0), duration=9.0, bucket=2.0
    )
    figure = picture(scenario, [play(scenario, "none", rng=random.Random(1))])
    (load,) = {tuple(patch.get_data()[0]) for patch in figure.axes[0].patches if isinstance(patch, StepPatch)}

    assert (8.0,) == load


STORM = replace(CALM, fleet=Fleet(clients=20, period=1.0), outage=Outage(1.0, 2.0), duration=5.0)


@rows(
    ("scenario", "strategy", "present", "absent"),
    [
        (CALM, "none", {"none", "100.0% succeeded"}, "^outage$|recover"),
        (STORM, "fast_fail_on_terminal_error", {"fast_fail_on_terminal_error", "does not recover"}, "recovered"),
    ],
)
def test_one_strategy(tmp_path: Path, scenario: Scenario, strategy: str, present: set[str], absent: str) -> None:
    """Without an outage, the plot has neither shading nor recovery; a storm that does not end has a label."""
    draw(scenario, [play(scenario, strategy, rng=random.Random(1))], tmp_path / "plot.svg")
    texts = texts_of(tmp_path / "plot.svg")

    assert present <= set(texts)
    assert [] == [text for text in texts if re.search(absent, text)]


def test_a_missing_matplotlib_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without matplotlib, the error names the extra, and no results are printed."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "triclinium._cli.simulate.plot", raising=False)
    assert_refused(simulate("--plot", str(tmp_path / "outage.svg")), "triclinium[plot]")


@rows(
    ("name", "words"),
    [
        ("outage.pdf", "must end in .svg or .png"),
        ("outage", "must end in .svg or .png"),
        ("missing/outage.svg", "missing"),
    ],
)
def test_an_invalid_plot_path(tmp_path: Path, name: str, words: str) -> None:
    """An invalid path is refused in one line, and no results are printed."""
    assert_refused(simulate("--plot", str(tmp_path / name)), words)


def test_a_plot_that_cannot_be_written(tmp_path: Path) -> None:
    """If the plot cannot be written, the figures are printed and the error gives the path and the reason."""
    path = tmp_path / "gone" / "outage.svg"
    path.parent.mkdir()
    path.symlink_to(tmp_path / "nowhere" / "outage.svg")
    result = simulate("--plot", str(path))

    assert 1 == result.exit_code
    assert "none sends once:" in result.stdout
    assert f"--plot {str(path)!r} cannot be written: No such file or directory" in result.stderr
