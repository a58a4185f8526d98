"""Records instead of the tables of the RFC map, and links to decisions.

Five columns of sentences do not fit a screen, so the page shows each row of the map as a record: the first column is
its title, and each other column that is not empty has a line. In the source, the map is a table with one row on each
line. Each decision gets an anchor, to which its number links: in a record, in a decision, and after "decision".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from docutils import nodes  # type: ignore[import-untyped]
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

MAPPED = ("section", "carried out in", "held by", "pages", "deviation")
"""Columns of a table of the RFC map; the first one is the title of the record."""

DECISION_TITLE = re.compile(r"([ACDFRST][1-9]\d?) · ")
"""Pattern of the start of a decision's heading."""
NUMBER = re.compile(r"\b([ACDFRST][1-9]\d?)\b")
"""Pattern of a decision's number in a record or in another decision."""
NAMED_DECISION = re.compile(r"(?<=decision )([ACDFRST][1-9]\d?)\b")
"""Pattern of a decision's number after the word "decision", in any other text."""


class Records(SphinxTransform):
    """Transform of rows of the RFC map into records, and of mentions of decisions into links."""

    default_priority = 400

    def apply(self) -> None:
        """Replace the RFC map's tables and add anchors to decisions, then link the decisions that the page mentions."""
        for table in list(self.document.findall(nodes.table)):
            header, *rows = [_cells(row) for row in table.findall(nodes.row)]
            columns = [cell.astext() for cell in header]
            if tuple(columns) == MAPPED:
                records = nodes.container(classes=["records"])
                records.extend(self._record(columns, row) for row in rows)
                table.replace_self(records)
                _link_decisions(records, NUMBER)
        for section in self.document.findall(nodes.section):
            title, *paragraphs = section.children
            if match := DECISION_TITLE.match(title.astext()):
                # Add an id, because the heading's own id changes with its words. Docutils maps a name to its last id.
                section["ids"].append(anchor_of(match[1]))
                section["names"].append(anchor_of(match[1]))
                self.document.note_explicit_target(section)
                for paragraph in paragraphs:
                    _link_decisions(paragraph, NUMBER)
        _link_decisions(self.document, NAMED_DECISION)

    def _record(self, columns: Sequence[str], cells: Sequence[nodes.Element]) -> nodes.container:
        head = nodes.paragraph(classes=["record-head"])
        head += _inline(cells[0])
        fields = nodes.field_list(classes=["record-fields"])
        for column, cell in zip(columns[1:], cells[1:], strict=True):
            if cell.astext():
                body = nodes.field_body("", nodes.paragraph("", "", *_inline(cell)))
                fields += nodes.field("", nodes.field_name("", column), body)
        record = nodes.container(classes=["record"])
        record += [head, fields]
        return record


def anchor_of(number: str) -> str:
    """Return the anchor of a decision on its page."""
    return f"decision-{number.lower()}"


def _cells(row: nodes.row) -> list[nodes.Element]:
    return list(row.findall(nodes.entry))


def _inline(cell: nodes.Element) -> list[nodes.Node]:
    return [child for paragraph in cell.findall(nodes.paragraph) for child in paragraph.children]


def _link_decisions(parent: nodes.Element, pattern: re.Pattern[str]) -> None:
    for text in list(parent.findall(nodes.Text)):
        if pattern.search(text) and not isinstance(text.parent, nodes.literal | nodes.literal_block | nodes.reference):
            text.parent.replace(text, list(_linked(text, pattern)))


def _linked(text: str, pattern: re.Pattern[str]) -> Iterator[nodes.Node]:
    for place, part in enumerate(pattern.split(text)):
        if place % 2:
            reference = addnodes.pending_xref(
                "", reftype="ref", refdomain="std", refexplicit=True, reftarget=anchor_of(part), refwarn=True
            )
            reference += nodes.inline("", part, classes=["std", "std-ref"])
            yield reference
        elif part:
            yield nodes.Text(part)
