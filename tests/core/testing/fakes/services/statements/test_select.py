"""SELECT over rows of a keyspace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from tests.rows import rows
from triclinium_core.testing.fakes.services.statements.select import read_select
from triclinium_core.testing.fakes.services.statements.sqlpp import NotUnderstood, ParameterValues, SqlReader, tokens_of

PEOPLE: Sequence[Mapping[str, object]] = [
    {"name": "bob", "age": 7, "at": {"home": True}},
    {"name": "ada", "age": None},
    {"name": "cy"},
    {"name": "dee", "age": "old"},
    {"name": "eve", "age": [1]},
    {"name": "fay", "age": {"a": 1}},
    {"name": "gus", "age": True},
]


def selected(statement: str) -> list[object]:
    """Return the selected rows."""
    return read_select(SqlReader(tokens_of(statement), ParameterValues({}, []))).rows(PEOPLE)


@rows(
    ("statement", "expected"),
    [
        ("SELECT RAW name FROM s:p ORDER BY age, name", ["cy", "ada", "gus", "bob", "dee", "eve", "fay"]),
        ("SELECT RAW p.name FROM s:p ORDER BY p.age DESC", ["fay", "eve", "dee", "bob", "gus", "ada", "cy"]),
        ("SELECT RAW each.name FROM s:p AS each WHERE each.at.home = TRUE", ["bob"]),
        ("SELECT RAW name FROM s:p each WHERE age IS MISSING OR age IS NULL ORDER BY name ASC", ["ada", "cy"]),
        ("SELECT name, age + FROM s:p", None),
        ("SELECT name, p.age FROM s:p WHERE name = 'bob'", [{"name": "bob", "age": 7}]),
        ("SELECT p.*, 1 AS one FROM s:p WHERE name = 'cy'", [{"name": "cy", "one": 1}]),
        ("SELECT RAW age FROM s:p WHERE name = 'cy'", []),
        ("SELECT RAW p.* FROM s:p", None),
        (r"SELECT `\u0070`.* /* all */ FROM s:p WHERE name = 'c\u0079' -- only one", [{"name": "cy"}]),
        (r"SELECT RAW 'it''s' FROM s:p WHERE name = 'cy'", ["it's"]),
        (r"""SELECT RAW 'a``b\'\"' FROM s:p WHERE name = 'cy'""", ["a``b'\""]),
        (r"SELECT RAW '\x' FROM s:p", None),
        ("SELECT RAW 'open FROM s:p", None),
        ("SELECT name FROM s:p LIMIT 1", None),
        ("SELECT name FROM", None),
    ],
)
def test_rows(statement: str, expected: list[object] | None) -> None:
    """Rows are filtered, ordered by type and value, and projected; unknown or invalid clauses raise NotUnderstood."""
    if expected is None:
        with pytest.raises(NotUnderstood):
            selected(statement)
    else:
        assert expected == selected(statement)
