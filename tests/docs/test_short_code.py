"""Short code in tables, which a rule of pages.css keeps in one piece."""

from __future__ import annotations

import re

import pytest
from docutils import nodes  # type: ignore[import-untyped]
from docutils.utils import new_document  # type: ignore[import-untyped]

from docs._ext.short_code import CHARACTERS_MAX, ShortCode
from tests.docs.pages import DOCS

pytestmark = pytest.mark.native


def test_only_short_code_in_cells_is_marked() -> None:
    """Code of at most the maximum in a cell gets the class; longer code, and code outside tables, does not."""
    texts = ("couchbases://", "n" * CHARACTERS_MAX, "n" * (CHARACTERS_MAX + 1))
    cells = [nodes.entry("", nodes.paragraph("", "", nodes.literal("", text))) for text in texts]
    document = new_document("page")
    document += nodes.table("", nodes.tgroup("", nodes.row("", *cells), cols=len(cells)))
    document += nodes.paragraph("", "", nodes.literal("", "couchbase://"))
    ShortCode(document).apply()

    assert [["short"], ["short"], [], []] == [code["classes"] for code in document.findall(nodes.literal)]


def test_an_address_in_long_code_is_marked() -> None:
    """In longer code only the address of the connection string gets the class, and the text stays the same."""
    text = 'open_cluster("couchbase://h", authenticator)'
    document = new_document("page")
    document += nodes.table("", nodes.tgroup("", nodes.row("", nodes.entry("", nodes.literal("", text))), cols=1))
    ShortCode(document).apply()
    (code,) = document.findall(nodes.literal)

    assert text == code.astext()
    assert [("couchbase://h", ["short"])] == [(each.astext(), each["classes"]) for each in code.findall(nodes.inline)]


def test_the_stylesheet_keeps_short_code_together() -> None:
    """The rule for short code forbids line breaks, outside of any rule for wide screens only."""
    css = (DOCS / "_static" / "pages.css").read_text(encoding="utf-8")
    rules = re.sub(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", css)
    (rule,) = re.findall(r"table\.docutils td code\.short, table\.docutils td code \.short \{([^}]*)\}", rules)

    assert {"overflow-wrap: normal", "white-space: nowrap"} == {
        each.strip() for each in rule.split(";") if each.strip()
    }
