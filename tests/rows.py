"""Tables whose rows one test iterates over, because pytest takes longer to set up a case than the case takes."""

from __future__ import annotations

import functools
import inspect
import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import pytest

Test: TypeAlias = Callable[..., Any]
"""Test function, synchronous or not."""


@contextmanager
def collected(failures: list[BaseException], row: Sequence[Any]) -> Iterator[None]:
    """Add an exception that the block raises to ``failures``, with a note that has the row."""
    try:
        yield
    except (Exception, pytest.fail.Exception) as error:
        error.add_note(f"in the row {reprlib.repr(row)}")
        failures.append(error)


def tell(failures: list[BaseException], count: int) -> None:
    """Raise the failure, or a group of several failures, of ``count`` rows."""
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} of {count} rows failed", failures)


def rows(names: str | Sequence[str], table: Iterable[Any]) -> Callable[[Test], Test]:
    """Let a test, synchronous or not, iterate over a table, like ``pytest.mark.parametrize`` but as one test.

    All rows are run, and failed ones are named. Rows share the fixtures of the test, so a test that changes one needs
    separate cases.

    Args:
        names: names of the parameters that a row provides.
        table: a value for each row, or a sequence of values if there are several names.
    """
    parameters = [names] if isinstance(names, str) else names
    walked = [(row,) if isinstance(names, str) else tuple(row) for row in table]
    assert walked, "a table without rows proves nothing"

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def walk(*own: Any, **given: Any) -> None:
            failures: list[BaseException] = []
            for row in walked:
                with collected(failures, row):
                    test(*own, **given, **dict(zip(parameters, row, strict=True)))
            tell(failures, len(walked))

        @functools.wraps(test)
        async def walk_async(*own: Any, **given: Any) -> None:
            failures: list[BaseException] = []
            for row in walked:
                with collected(failures, row):
                    await test(*own, **given, **dict(zip(parameters, row, strict=True)))
            tell(failures, len(walked))

        walking: Test = walk_async if inspect.iscoroutinefunction(test) else walk
        signature = inspect.signature(test)
        left = [value for name, value in signature.parameters.items() if name not in parameters]
        walking.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return walking

    return decorate
