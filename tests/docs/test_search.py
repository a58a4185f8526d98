"""Ranking of search results in the documentation."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from tests.docs.pages import DOCS
from tests.environment import IN_CI

SCORER = DOCS / "_static" / "search_scorer.js"
NODE = shutil.which("node")

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(NODE is None and not IN_CI, reason="the scorer is JavaScript, and node is not installed"),
]


def ranking(query: str, *found: tuple[str, str, int, str]) -> list[str]:
    """Return the found pages, best first; each argument is page, title, Sphinx's own score and kind."""
    items = [[page, title, "", "", score, f"{page}.md", kind] for page, title, score, kind in found]
    program = (
        f"globalThis.location = {{search: {json.dumps('?q=' + query)}}};\n{SCORER.read_text(encoding='utf-8')}\n"
        f"console.log(JSON.stringify({json.dumps(items)}.map(Scorer.score)));"
    )
    assert NODE is not None
    scores = json.loads(subprocess.run([NODE, "-e", program], capture_output=True, text=True, check=True).stdout)
    pages = [page for page, *_ in found]
    return [page for _, page in sorted(zip(scores, pages, strict=True), reverse=True)]


def test_guides_come_first() -> None:
    """Search results have this order, even against Sphinx's scores: guides, reference, internals, and the map."""
    pages = [
        ("rfc_map", "RFC map", 100, "title"),
        ("internals/architecture", "Architecture", 90, "title"),
        ("reference/retrying_anything", "triclinium.retry", 26, "object"),
        ("howto/from_tenacity_or_stamina", "Coming from tenacity or stamina", 15, "title"),
        ("explanation/ambiguity", "Ambiguity", 5, "text"),
        ("howto/retry_anything", "Retry anything in trio", 5, "text"),
    ]

    assert [page for page, *_ in pages][::-1] == ranking("retry", *pages)


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("durability", "howto/durability"),
        ("timeout", "explanation/why_no_timeouts"),
        ("many at once", "howto/many_at_once"),
    ],
)
def test_a_page_title_beats_mentions(query: str, best: str) -> None:
    """A page whose name contains the query ranks before pages that mention the query, even if it is an explanation."""
    found = [(page, page, 5, "text") for page in ("howto/connect", "tutorial", best, "howto/scan")]

    assert best == ranking(query, *found)[0]


@pytest.mark.parametrize("query", ["get_or_none", "triclinium.Collection.get_or_none"])
def test_a_name_finds_its_entry(query: str) -> None:
    """A query with the name of an object finds its entry in the reference first."""
    found = [
        ("howto/update_safely", "Update safely", 5, "text"),
        ("reference/client", "triclinium.Collection.get_or_none", 26, "object"),
    ]

    assert "reference/client" == ranking(query, *found)[0]
