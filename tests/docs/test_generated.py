"""Generated tables and diagrams, which have every row of the code and nothing else."""

from __future__ import annotations

import inspect
import re
from xml.etree import ElementTree as ET

import pytest

from docs._ext.machines import MACHINES
from docs._ext.state_diagram import Layout, arrows_of, draw_svg, expand, transitions_of
from docs._ext.tables import TABLES, state_table
from tests.docs.pages import PAGES
from tests.rows import rows
from triclinium import BinaryCollection, Collection
from triclinium.testing import Opcode
from triclinium_core import errors
from triclinium_core.retry import couchbase
from triclinium_core.retry.couchbase.tables.service_errors import SERVICE_ERRORS

pytestmark = pytest.mark.native

SVG = "{http://www.w3.org/2000/svg}"
METHODS = {
    name for kind in (Collection, BinaryCollection) for name, _ in inspect.getmembers(kind, inspect.iscoroutinefunction)
} - {"get_or_none", "get_any_replica", "lookup_in_any_replica"}
"""Operations by the names that users know, except operations that consist of other operations."""
REPLICA_READS = {"get_replica", "lookup_in_replica"}
"""Operations that users do not call individually."""


@pytest.mark.parametrize("name", MACHINES)
def test_the_arrows_correspond_to_the_table(name: str) -> None:
    """Expanded again, the arrows of a diagram are exactly the transitions in the table of its machine."""
    machine = MACHINES[name]
    layout = machine.layout
    arrows = arrows_of(machine.table, layout.frames, layout.choices)

    assert transitions_of(machine.table) == expand(arrows, layout.frames, layout.choices)


@pytest.mark.parametrize("name", MACHINES)
def test_the_drawing_shows_every_state_and_event(name: str) -> None:
    """The names of all states, and of all events that change a state, are inside the drawing."""
    machine = MACHINES[name]
    root = ET.fromstring(draw_svg(machine.table, machine.layout))  # noqa: S314  # trusted input
    width, height = machine.layout.size
    texts = [(text.text, float(text.attrib["x"]), float(text.attrib["y"])) for text in root.iter(f"{SVG}text")]
    changing = {event for _, event, _ in transitions_of(machine.table)}

    assert set(machine.table) | changing <= {word for text, _, _ in texts for word in (text or "").split()}
    assert all(0 < x < width and 0 < y < height for _, x, y in texts)


def test_a_state_without_a_place_is_an_error() -> None:
    """A state without a position raises ValueError, so that the build fails."""
    table = {"A": {"go": frozenset({"B"})}, "B": {}}

    with pytest.raises(ValueError, match=r"differ in \['B'\]"):
        draw_svg(table, Layout(title="two", size=(9, 9), states={"A": (1, 1)}))


@pytest.mark.parametrize("name", MACHINES)
def test_state_tables_have_every_pair(name: str) -> None:
    """Each pair of a state and an input has a line; a final state, which accepts every event, has a single line."""
    rows = MACHINES[name].transitions
    expected = sum(1 if set(row.values()) == {state} else len(row) for state, row in rows.items())

    assert expected + 2 == len(state_table(name).splitlines())


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("retry_reasons", len(couchbase.RetryReason)),
        ("retryable_statuses", len(couchbase.RETRYABLE_STATUSES)),
        ("kv_statuses", len(couchbase.KV_STATUSES)),
        ("service_codes", len(couchbase.RETRYABLE_ERROR_CODES) + len(couchbase.RETRYABLE_HTTP_STATUSES)),
        ("service_errors", sum(map(len, SERVICE_ERRORS.values()))),
        ("idempotent_operations", len(couchbase.IDEMPOTENT_OPERATIONS)),
        ("operation_commands", len(METHODS | REPLICA_READS)),
    ],
)
def test_tables_have_every_row(name: str, rows: int) -> None:
    """A table of the documentation has as many rows as the table of the code."""
    assert rows + 2 == len(TABLES[name]().splitlines())


def test_every_method_has_its_command() -> None:
    """Every operation on documents has a row with an existing opcode."""
    rows = re.findall(r"^\| `(\w+)` \| `Opcode\.(\w+)` \|$", TABLES["operation_commands"](), re.MULTILINE)

    assert METHODS | REPLICA_READS == {operation for operation, _ in rows}
    assert {command for _, command in rows} <= {opcode.name for opcode in Opcode}


@rows("name", sorted(set(TABLES) - {"error_tree"}))
def test_tables_are_rectangular(name: str) -> None:
    """Every row has a cell for every column."""
    lines = TABLES[name]().splitlines()

    assert {lines[0].count("|")} == {line.replace("\\|", "").count("|") for line in lines}


def test_the_tree_has_every_exception() -> None:
    """Each exception of the core is in the tree once."""
    classes = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.CouchbaseException)
    ]
    tree = TABLES["error_tree"]()

    assert [1] * len(classes) == [tree.count(f"errors.{found.__name__}`") for found in classes]


def test_every_generated_table_is_used() -> None:
    """Every generated table and diagram is on a page."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)

    assert [] == [name for name in TABLES if f"{{generated}} {name}\n" not in text]
    assert [] == [name for name in MACHINES if f"{{state-diagram}} {name}\n" not in text]
    assert [] == [name for name in MACHINES if f"{{state-table}} {name}\n" not in text]
