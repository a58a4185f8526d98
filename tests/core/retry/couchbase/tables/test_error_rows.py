"""Rows of the error tables: their conditions and their order."""

from __future__ import annotations

import pytest

from tests.rows import rows
from triclinium_core.errors import CouchbaseException, TimeoutException
from triclinium_core.retry.couchbase import Service
from triclinium_core.retry.couchbase.tables.error_rows import NO_CODE, ErrorRow, code, error_table, first_fitting
from triclinium_core.retry.couchbase.tables.service_answers import ServiceAnswer, read_answer

QUERY = read_answer(Service.QUERY, 400, '{"errors": [{"code": 17, "msg": "red green blue", "reason": {"code": 3}}]}')
MANAGEMENT = read_answer(Service.MANAGEMENT, 404, ' "Not Found." \n', "get_user")
PAGE = read_answer(Service.MANAGEMENT, 404, "<html>", "get_user")


def row(**named: object) -> ErrorRow:
    """Return a row with these fields."""
    return ErrorRow(error=CouchbaseException, clause="a clause", **named)  # type: ignore[arg-type]


@rows(
    ("answer", "named", "fits"),
    [
        (QUERY, {}, True),
        (QUERY, {"http_status": 400}, True),
        (QUERY, {"http_status": 500}, False),
        (QUERY, {"codes": code(17)}, True),
        (QUERY, {"codes": range(10, 20)}, True),
        (QUERY, {"codes": range(10, 17)}, False),
        (QUERY, {"codes": NO_CODE}, False),
        (QUERY, {"cause": 3}, True),
        (QUERY, {"cause": 4}, False),
        (QUERY, {"words": ("red", "blue")}, True),
        (QUERY, {"words": ("blue", "red")}, False),
        (QUERY, {"words": ("green", "green")}, False),
        (QUERY, {"words": ("msg",)}, False),
        (QUERY, {"body": "red green blue"}, True),
        (QUERY, {"body": "red"}, False),
        (QUERY, {"operations": ("get_user",)}, False),
        (QUERY, {"http_status": 400, "codes": code(17), "words": ("purple",)}, False),
        (MANAGEMENT, {"operations": ("drop_user", "get_user")}, True),
        (MANAGEMENT, {"operations": ("drop_user",)}, False),
        (MANAGEMENT, {"codes": NO_CODE}, True),
        (MANAGEMENT, {"codes": code(17)}, False),
        (MANAGEMENT, {"body": "Not Found"}, True),
        (MANAGEMENT, {"body": "Not"}, False),
        (MANAGEMENT, {"words": ("Found",)}, True),
        (PAGE, {"operations": ("get_user",)}, False),
    ],
)
def test_a_row_matches_if_its_conditions_hold(answer: ServiceAnswer, named: dict[str, object], fits: bool) -> None:
    """A row matches if all its conditions hold; a row with an operation does not match the page of a proxy."""
    assert fits is row(**named).fits(answer)


def test_the_first_matching_row_decides() -> None:
    """If several rows match, the first one decides; if no row matches, ``first_fitting`` returns None."""
    narrow, wide = row(http_status=400, words=("red",)), row(http_status=400)
    table = error_table([row(http_status=500), narrow, wide])

    assert narrow is first_fitting(table, QUERY)
    assert wide is first_fitting(table[2:], QUERY)
    assert first_fitting(table[:1], QUERY) is None


@rows(
    "pair",
    [
        ({"codes": code(1)}, {"codes": code(1)}),
        ({"http_status": 400, "words": ("x",)}, {"http_status": 400, "words": ("x",)}),
        ({"operations": ("get_user", "drop_user")}, {"operations": ("drop_user",)}),
    ],
)
def test_duplicate_rows_are_refused(pair: tuple[dict[str, object], dict[str, object]]) -> None:
    """If two rows are for the same response, the table raises ValueError, even if their errors differ."""
    first, second = (row(**named) for named in pair)
    other = ErrorRow(
        error=TimeoutException,
        clause="another",
        codes=second.codes,
        http_status=second.http_status,
        words=second.words,
        operations=second.operations,
    )

    with pytest.raises(ValueError, match="two rows"):
        error_table([first, other])
