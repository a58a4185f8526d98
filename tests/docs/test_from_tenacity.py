"""The page for users of tenacity or stamina has every public name of both, and names nothing that triclinium lacks."""

from __future__ import annotations

import re

import pytest
import stamina
import tenacity

import triclinium
import triclinium.testing
from tests.docs.pages import DOCS, code_of, rows_of
from tests.public_names import PUBLIC
from tests.rows import rows
from triclinium_core.retry.smithy import backoff

pytestmark = pytest.mark.native

ROWS = [row for row in rows_of(DOCS / "howto" / "from_tenacity_or_stamina.md") if len(row) == 2]
OURS = {*PUBLIC, *vars(triclinium.testing), *vars(backoff)}


def names_in(column: int) -> set[str]:
    """Return the words in the code of a column."""
    return set(re.findall(r"\w+", " ".join(code_of(*(row[column] for row in ROWS)))))


@rows("library", [tenacity, stamina])
def test_every_name_has_a_row(library: object) -> None:
    """Every name in the library's ``__all__`` has a row."""
    assert set() == set(getattr(library, "__all__", ())) - names_in(0)


def test_classes_in_the_table_exist() -> None:
    """Capitalised names are classes of triclinium, except examples and names from trio or Python."""
    classes = {name for name in names_in(1) if re.fullmatch(r"[A-Z][a-z]\w+", name)}

    assert {"StandardRetryStrategy", "Jitter"} <= classes
    assert set() == classes - OURS - {"CancelScope", "Exception", "Fixed", "True"}
