"""Short code in the cells of tables, which stays in one piece on a narrow screen."""

from __future__ import annotations

from docutils import nodes  # type: ignore[import-untyped]
from sphinx.transforms import SphinxTransform

CHARACTERS_MAX = 14
"""Maximum length of short code: three columns of it fit a screen of 400 pixels, at 7 pixels for each character."""


class ShortCode(SphinxTransform):
    """Transform that gives short code inside tables the class ``short``, for which pages.css forbids line breaks."""

    default_priority = 800

    def apply(self) -> None:
        """Mark each short piece of code in a cell."""
        for cell in self.document.findall(nodes.entry):
            for code in cell.findall(nodes.literal):
                if len(code.astext()) <= CHARACTERS_MAX:
                    code["classes"].append("short")
