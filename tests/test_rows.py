"""Tables of tests, which run all rows and name the failed ones."""

from __future__ import annotations

import inspect

import pytest
import trio

from tests.rows import rows


def test_every_row_is_run() -> None:
    """A test with two tables runs for every pair of rows, and its remaining parameters are fixtures."""
    walked = []

    @rows("left", [1, 2])
    @rows(("right", "third"), [(3, "a"), (4, "b")])
    def walk(left: int, right: int, third: str, fixture: str) -> None:
        walked.append((left, right, third, fixture))

    assert ["fixture"] == list(inspect.signature(walk).parameters)
    walk(fixture="given")
    assert [(1, 3, "a", "given"), (1, 4, "b", "given"), (2, 3, "a", "given"), (2, 4, "b", "given")] == walked


def test_one_failed_row_is_raised() -> None:
    """If one row fails, its exception is raised with the row as a note, and the rows after it still run."""
    walked = []

    @rows("number", [1, 2, 3])
    def walk(number: int) -> None:
        walked.append(number)
        assert number != 2

    with pytest.raises(AssertionError) as caught:
        walk()
    assert ["in the row (2,)"] == caught.value.__notes__
    assert [1, 2, 3] == walked


async def test_an_async_test_runs_all_rows() -> None:
    """An async test is awaited for each row, and the exception of a failed row names the row."""
    walked = []

    @rows("number", [1, 2, 3])
    async def walk(number: int, fixture: str) -> None:
        await trio.lowlevel.checkpoint()
        walked.append((number, fixture))
        assert number != 2

    assert ["fixture"] == list(inspect.signature(walk).parameters)
    with pytest.raises(AssertionError) as caught:
        await walk(fixture="given")
    assert ["in the row (2,)"] == caught.value.__notes__
    assert [(1, "given"), (2, "given"), (3, "given")] == walked


def test_all_failed_rows_are_named() -> None:
    """If several rows fail, a group has the failure of each with its row."""

    @rows("text", ["1", "x", "2"])
    def walk(text: str) -> None:
        with pytest.raises(ValueError, match="invalid literal"):
            int(text)

    with pytest.raises(BaseExceptionGroup, match="2 of 3 rows failed") as caught:
        walk()
    assert [["in the row ('1',)"], ["in the row ('2',)"]] == [error.__notes__ for error in caught.value.exceptions]


def test_an_empty_table_is_refused() -> None:
    """An empty table raises, because it would prove nothing."""
    with pytest.raises(AssertionError, match="proves nothing"):
        rows("number", [])
