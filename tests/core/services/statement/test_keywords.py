"""Keywords that are parameters of a statement, and those that can only be a slip of the pen."""

from __future__ import annotations

import pytest

from tests.rows import rows
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.services.statement.keywords import check_keywords

OPTIONS = ("readonly", "metrics")


@rows(
    ("statement", "keyword"),
    [
        ("SELECT $age", "age"),
        ("SELECT @age", "age"),
        ("SELECT $age+1", "age"),
        ("SELECT $größe", "größe"),
        (5, "age"),
    ],
)
def test_parameters(statement: object, keyword: str) -> None:
    """They stand in the statement; whether that is a text is another check's business."""
    check_keywords(statement, [keyword], OPTIONS)


@rows(
    ("statement", "keyword", "hint"),
    [
        ("SELECT 1", "read_only", "readonly"),
        ("SELECT 1", "metric", "metrics"),
        ("SELECT $ages", "age", "named_parameters"),
        ("SELECT age", "age", "named_parameters"),
        ("SELECT $a.b", "axb", "named_parameters"),
    ],
)
def test_slips(statement: str, keyword: str, hint: str) -> None:
    """They are refused, with what may have been meant."""
    with pytest.raises(InvalidArgumentException, match=hint) as caught:
        check_keywords(statement, [keyword], OPTIONS)

    assert keyword == caught.value.parameter
