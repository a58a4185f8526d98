"""Tests that the threat model names for each promise."""

from __future__ import annotations

from tests.docs.named_tests import TEST_FOLDERS, exists, named
from tests.docs.pages import DOCS, rows_of
from tests.rows import rows

PAGE = DOCS / "explanation" / "threat_model.md"
ACTORS = ("node", "network", "DNS", "proxy", "caller", "local user", "web page")

ROWS = [row for row in rows_of(PAGE) if row[0] in ACTORS]


def test_every_actor_has_a_promise() -> None:
    """The table has rows for each actor, in the order of the introduction."""
    assert ACTORS == tuple(dict.fromkeys(row[0] for row in ROWS))


@rows("row", ROWS)
def test_a_promise_names_tests_that_exist(row: list[str]) -> None:
    """A row names at least one test function, and each test that it names exists."""
    _, _, _, tests = row

    assert named(tests)
    assert all("::" in name for name in named(tests))
    assert [] == [name for name in named(tests) if not exists(name, TEST_FOLDERS)]
