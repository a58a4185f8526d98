"""What the README shows at first sight: its picture is what the client does."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from tests.docs.pages import ROOT
from tests.docs.retried_write import COLOURS, PICTURES, pictures

pytestmark = pytest.mark.native

README = ROOT / "README.md"


@pytest.fixture(scope="module")
def drawn() -> dict[str, str]:
    """Return the pictures as they are now."""
    return pictures()


def words_of(picture: str) -> list[str]:
    """Return the words in a picture."""
    root = ET.fromstring(picture)  # noqa: S314  # our own
    return ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]


def test_the_picture_is_what_the_client_does(drawn: dict[str, str]) -> None:
    """To the byte, for both kinds of paper; ``uv run python -m tests.docs.retried_write`` draws it anew."""
    assert drawn == {theme: path.read_text(encoding="utf-8") for theme, path in PICTURES.items()}


def test_the_picture_tells_the_two_stories(drawn: dict[str, str]) -> None:
    """Three retries with the RFC's delays and one success; one write that is applied, lost and not sent again."""
    words = words_of(drawn["light"])

    assert ["again in 1 ms", "again in 2 ms", "again in 4 ms"] == [each for each in words if each.startswith("again")]
    assert 4 == words.count("SET")
    assert 1 == words.count("INCREMENT")
    assert 2 == words.count("applied")
    assert "no retry" in words
    assert "RequestCanceledException" in words


def test_the_picture_is_there_in_light_and_dark(drawn: dict[str, str]) -> None:
    """The README names both, each for its mode, and both say the same in other colours."""
    readme = README.read_text(encoding="utf-8")
    sources = re.findall(r'prefers-color-scheme: (\w+)\)" srcset="([^"]+)"', readme)

    assert {(theme, path.relative_to(ROOT).as_posix()) for theme, path in PICTURES.items()} == set(sources)
    assert words_of(drawn["light"]) == words_of(drawn["dark"])
    assert all(colours.paper in drawn[theme] for theme, colours in COLOURS.items())


def test_what_the_first_page_links_to_is_there() -> None:
    """Files and folders of the repository."""
    readme = README.read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!http)([^)#]+)\)", readme)

    assert len(targets) > 5
    assert [] == [target for target in targets if not (ROOT / target).exists()]
