"""Tables whose cells are prose, shown as records: one below the other, each line with the name of its column.

Four columns of sentences fit no screen. The source stays a table, with one row a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from docutils import nodes  # type: ignore[import-untyped]
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

NUMBERED = "#"
"""The first column of a table of decisions; the second one heads the record."""
MAPPED = ("section", "carried out in", "held by", "pages", "deviation")
"""The columns of a table of the RFC map; the first one heads the record."""

ROW_NUMBER = re.compile(r"\b([ACDFRS][1-9]\d?)\b")
"""A decision, within a record."""
NAMED_DECISION = re.compile(r"(?<=decision )([ACDFRS][1-9]\d?)\b")
"""A decision, anywhere."""


class Records(SphinxTransform):
    """Rows of decisions and of the RFC map become records, and each mention of a decision leads to it."""

    default_priority = 400

    def apply(self) -> None:
        """Replace the tables of a page, then link what it mentions."""
        for table in list(self.document.findall(nodes.table)):
            header, *rows = [_cells(row) for row in table.findall(nodes.row)]
            columns = [cell.astext() for cell in header]
            if columns[0] == NUMBERED or tuple(columns) == MAPPED:
                records = nodes.container(classes=["records"])
                records.extend(self._record(columns, row) for row in rows)
                table.replace_self(records)
                _link_decisions(records, ROW_NUMBER)
        _link_decisions(self.document, NAMED_DECISION)

    def _record(self, columns: Sequence[str], cells: Sequence[nodes.Element]) -> nodes.container:
        record = nodes.container(classes=["record"])
        head = nodes.paragraph(classes=["record-head"])
        if columns[0] == NUMBERED:
            number = cells[0].astext()
            record["names"].append(anchor_of(number))
            self.document.note_explicit_target(record)
            head += [nodes.reference("", number, refid=record["ids"][0], classes=["record-number"]), nodes.Text(" ")]
            columns, cells = columns[1:], cells[1:]
        head += _inline(cells[0])
        fields = nodes.field_list(classes=["record-fields"])
        for column, cell in zip(columns[1:], cells[1:], strict=True):
            if cell.astext():
                body = nodes.field_body("", nodes.paragraph("", "", *_inline(cell)))
                fields += nodes.field("", nodes.field_name("", column), body)
        record += [head, fields]
        return record


def anchor_of(number: str) -> str:
    """Return where on its page a decision stands."""
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
