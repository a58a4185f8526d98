"""The picture of a trace shows what a client does, and stands on its page for both themes."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from docs._ext.trace_picture import ALT_TEXT, PICTURE, THEMES, draw, record, words
from tests.docs.pages import DOCS

pytestmark = pytest.mark.native

PAGE = DOCS / "howto" / "trace_and_measure.md"
SVG = "{http://www.w3.org/2000/svg}"


def texts_of(svg: str) -> list[str]:
    """Return what is written in a picture, without the times of its axis, which are others on each machine."""
    texts = ["".join(text.itertext()) for text in ET.fromstring(svg).iter(f"{SVG}text")]  # noqa: S314  # our own
    return sorted(text.split(":")[0] for text in texts if not text.endswith(" ms") or ":" in text)


def test_the_picture_is_of_what_the_client_does() -> None:
    """A fresh recording has the same spans and retries as those that are shown."""
    spans = record()

    assert ["checkout", "upsert", "request_encoding", *["dispatch_to_server"] * 3] == words(spans)[:6]
    for suffix, theme in THEMES.items():
        shown = PICTURE.with_stem(f"{PICTURE.stem}{suffix}").read_text(encoding="utf-8")
        assert sorted(words(spans)) == texts_of(shown) == texts_of(draw(spans, theme))


def test_the_page_shows_it_for_both_themes() -> None:
    """With a text for those who do not see it."""
    page = PAGE.read_text(encoding="utf-8")

    assert {f"{PICTURE.stem}{suffix}.svg" for suffix in THEMES} == {path.name for path in PICTURE.parent.iterdir()}
    assert len(THEMES) == page.count(f":alt: {ALT_TEXT}\n")
    assert all(f"{{image}} traces/{PICTURE.stem}{suffix}.svg\n" in page for suffix in THEMES)
