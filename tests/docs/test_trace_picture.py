"""The picture of a trace shows the client's actual behaviour, and is on its page for both themes."""

from __future__ import annotations

import pytest

from docs._ext.trace_picture import ALT_TEXT, PICTURE, THEMES, draw, record, words
from tests.docs.pages import DOCS, words_of_svg

pytestmark = pytest.mark.native

PAGE = DOCS / "howto" / "trace_and_measure.md"


def texts_of(svg: str) -> list[str]:
    """Return the text in a picture, without the times on its axis, which depend on the machine."""
    return sorted(text.split(":")[0] for text in words_of_svg(svg) if not text.endswith(" ms") or ":" in text)


def test_the_picture_shows_real_spans() -> None:
    """A new recording has the same spans and retries as the pictures."""
    spans = record()

    assert ["checkout", "upsert", "request_encoding", *["dispatch_to_server"] * 3] == words(spans)[:6]
    for suffix, theme in THEMES.items():
        shown = PICTURE.with_stem(f"{PICTURE.stem}{suffix}").read_text(encoding="utf-8")
        assert sorted(words(spans)) == texts_of(shown) == texts_of(draw(spans, theme))


def test_the_page_shows_the_picture_for_both_themes() -> None:
    """The page shows the picture of each theme with an alternative text."""
    page = PAGE.read_text(encoding="utf-8")

    assert {f"{PICTURE.stem}{suffix}.svg" for suffix in THEMES} == {path.name for path in PICTURE.parent.iterdir()}
    assert len(THEMES) == page.count(f":alt: {ALT_TEXT}\n")
    assert all(f"{{image}} traces/{PICTURE.stem}{suffix}.svg\n" in page for suffix in THEMES)
