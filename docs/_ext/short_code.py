"""Short code in the cells of tables, which stays in one piece on a narrow screen."""

from __future__ import annotations

import re
from collections.abc import Iterator

from docutils import nodes  # type: ignore[import-untyped]
from sphinx.transforms import SphinxTransform

CHARACTERS_MAX = 14
"""Maximum length of short code: three columns of it fit a screen of 400 pixels, at 7 pixels for each character."""
ADDRESS = re.compile(r"([a-z]+://\w*)")
"""Scheme of a connection string and its first word, such as ``couchbase://h`` inside a call."""


class ShortCode(SphinxTransform):
    """Transform that gives short code inside tables the class ``short``, for which pages.css forbids line breaks.

    In longer code, the address of a connection string gets the class.
    """

    default_priority = 800

    def apply(self) -> None:
        """Mark each short piece of code in a cell, and each address in a longer piece."""
        for cell in self.document.findall(nodes.entry):
            for code in list(cell.findall(nodes.literal)):
                text = code.astext()
                if len(text) <= CHARACTERS_MAX:
                    code["classes"].append("short")
                elif ADDRESS.search(text):
                    code[:] = list(pieces_of(text))


def pieces_of(text: str) -> Iterator[nodes.Node]:
    """Yield the nodes of long code: its text, with each address in a node of the class ``short``."""
    for number, piece in enumerate(ADDRESS.split(text)):
        if piece:
            yield nodes.inline(piece, piece, classes=["short"]) if number % 2 else nodes.Text(piece)
