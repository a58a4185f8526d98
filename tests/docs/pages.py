"""Contents of the documentation: programs, and the blocks of its pages."""

from __future__ import annotations

import inspect
import re
from collections import ChainMap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLES = DOCS / "howto" / "examples"

PAGES = sorted(path for path in DOCS.rglob("*.md") if not {"newsfragments", "_build"} & set(path.parts))
"""All pages."""


class Block(NamedTuple):
    """One fenced block of a page."""

    language: str
    text: str


def blocks_of(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page, in order."""
    for match in re.finditer(
        r"^```(\S*)[^\n]*\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    ):
        yield Block(match[1], match[2])


class Decision(NamedTuple):
    """One decision on the page of decisions."""

    number: str
    title: str
    paragraphs: list[str]
    """Paragraphs after the heading, each in one line."""

    @property
    def words(self) -> int:
        """Number of words without the heading."""
        return sum(len(paragraph.split()) for paragraph in self.paragraphs)


def decisions_of(page: Path) -> Iterator[Decision]:
    """Yield the decisions of a page, in order. A decision ends at the next heading."""
    for part in re.split(r"^#+ ", page.read_text(encoding="utf-8"), flags=re.MULTILINE):
        heading, _, text = part.partition("\n")
        if match := re.fullmatch(r"([ACDFRST]\d+) · (\S.*)", heading):
            yield Decision(match[1], match[2], [" ".join(lines.split()) for lines in text.strip().split("\n\n")])


def rows_of(page: Path) -> Iterator[list[str]]:
    """Yield the cells of each row of the page's tables, including headers, but not rulers, which begin with ``|-``."""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("| "):
            yield [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def code_of(*cells: str) -> list[str]:
    """Return the code in cells."""
    return [code for cell in cells for code in re.findall(r"`([^`]+)`", cell)]


def words_of_svg(picture: str | bytes) -> list[str]:
    """Return the texts in a picture."""
    texts = ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")  # noqa: S314  # trusted input
    return ["".join(text.itertext()) for text in texts]


def object_at(path: str) -> object:
    """Return the object of a dotted path, or the annotation of an attribute without a value.

    Raises:
        ImportError: the module does not exist.
        LookupError: an object has no such attribute.
    """
    head, *parts = path.split(".")
    value: object = import_module(head)
    for number, part in enumerate(parts, 1):
        if isinstance(value, ModuleType) and not hasattr(value, part):
            value = import_module(".".join([head, *parts[:number]]))
        elif hasattr(value, part):
            value = getattr(value, part)
        else:
            value = ChainMap(*(inspect.get_annotations(base) for base in getattr(value, "__mro__", ())))[part]
    return value


def exit_statuses() -> list[tuple[str, list[str], str]]:
    """Return each command in the table of exit statuses, its cells, and its example of bad input."""
    table = [row for row in rows_of(DOCS / "reference" / "cli.md") if len(row) == 4][1:]
    return [
        (row[0].strip("`"), row, example) for row in table for example in re.findall(r"`(triclinium [^`]+)`", row[3])
    ]
