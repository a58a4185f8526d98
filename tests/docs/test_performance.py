"""Summary and picture of the page on performance repeat the figures of its tables."""

from __future__ import annotations

import re

import pytest

from tests.bench.report import PLACE
from tests.docs.cost_bars import ALT_TEXT, PAGE, PICTURES, Source, costs, pictures
from tests.docs.retried_write import COLOURS

pytestmark = pytest.mark.native

FIGURES = 10
NUMBER = re.compile(r"\d[\d,]*\.?\d*(?<!,)")


def test_the_picture_is_current() -> None:
    """The picture is, to the byte, the one that ``python -m tests.docs.cost_bars`` draws from the tables."""
    assert pictures() == {theme: path.read_text(encoding="utf-8") for theme, path in PICTURES.items()}


def test_the_page_shows_the_picture_for_both_themes() -> None:
    """The page has an image with an alternative text for each theme, and each picture has the colours of its theme."""
    page = PAGE.read_text(encoding="utf-8")

    assert len(PICTURES) == page.count(f":alt: {ALT_TEXT}\n")
    assert all(f"{{image}} ../pictures/{path.name}\n" in page for path in PICTURES.values())
    assert all(colours.paper in pictures()[theme] for theme, colours in COLOURS.items())


def test_figures_of_the_summary_are_in_their_sections() -> None:
    """Each number of the first table is in a generated table of the section that its row links to."""
    page = PAGE.read_text(encoding="utf-8")
    sections = {
        title.lower().replace(" ", "-"): "".join(place[0] for place in PLACE.finditer(text))
        for title, text in re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", page, re.MULTILINE)
    }
    rows = re.findall(r"^\| [^|]+ \| ([^|]+ \| [^|]+) \| \[[^]]+\]\(#([\w-]+)\), `[\w-]+` \|$", page, re.MULTILINE)
    numbers = [(anchor, number) for cells, anchor in rows for number in NUMBER.findall(cells)]

    assert FIGURES == len(rows)
    assert [] == [(anchor, number) for anchor, number in numbers if number not in NUMBER.findall(sections[anchor])]


def test_missing_contenders_have_no_bar() -> None:
    """Bars are the medians of one row, lowest first, without contenders that were absent or have no figure."""
    source = Source("a title", "gets", "16 tasks")
    page = (
        "<!-- figures: gets -->\n\n| µs of processor time | ours | slow |\n| --- | --- | --- |\n"
        "| 16 tasks | **1** | 2 |\n\n| µs of wall clock | ours | slow | absent | other |\n"
        "| --- | --- | --- | --- | --- |\n| 16 tasks | **1,469** | 7.5 | missing |  |\n\n<!-- end -->\n"
    )

    assert [("slow", 7.5), ("ours", 1469)] == list(costs(page, source).items())
