"""Rows of the RFC map become records, and decisions get anchors."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from docutils import nodes  # type: ignore[import-untyped]
from docutils.utils import new_document  # type: ignore[import-untyped]
from sphinx.addnodes import pending_xref

from docs._ext.records import MAPPED, Records

pytestmark = pytest.mark.native


def document_of(*lines: Sequence[str]) -> nodes.document:
    """Return a page with one table."""
    group = nodes.tgroup("", cols=len(lines[0]))
    for line in lines:
        group += nodes.row("", *(nodes.entry("", nodes.paragraph("", cell)) for cell in line))
    document = new_document("page")
    document += nodes.table("", group)
    return document


def test_a_decision_has_an_anchor() -> None:
    """The anchor of a decision is its number, and its paragraphs link to other decisions, but its heading does not."""
    title = nodes.title("", "C7 · Buckets of C6")
    section = nodes.section("", title, nodes.paragraph("", "As C1; see D12 and T8"), ids=["c7-buckets-of-c6"])
    document = new_document("page")
    document += section
    Records(document).apply()

    assert ["c7-buckets-of-c6", "decision-c7"] == section["ids"]
    assert "decision-c7" == document.nameids["decision-c7"]
    assert ["decision-c1", "decision-d12", "decision-t8"] == [
        found["reftarget"] for found in document.findall(pending_xref)
    ]


def test_a_section_of_an_rfc_becomes_a_record() -> None:
    """An empty cell has no line, and the decisions in a cell are links."""
    document = document_of(MAPPED, ("Best Effort", "a.py", "", "", "C1; D12: S2 too, but not HTTP2 or S200"))
    Records(document).apply()

    assert ["carried out in", "deviation"] == [name.astext() for name in document.findall(nodes.field_name)]
    assert ["decision-c1", "decision-d12", "decision-s2"] == [
        found["reftarget"] for found in document.findall(pending_xref)
    ]


def test_other_tables_are_unchanged() -> None:
    """Other tables stay tables, and a number becomes a link only after the word "decision"."""
    document = document_of(("answer", "meaning"), ("A4", "as decision C24 says"))
    Records(document).apply()

    assert list(document.findall(nodes.table))
    assert ["decision-c24"] == [found["reftarget"] for found in document.findall(pending_xref)]
