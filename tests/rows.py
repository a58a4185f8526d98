"""Tables that a test walks by itself, where pytest's bookkeeping of a case would cost more than the case."""

from __future__ import annotations

import functools
import inspect
import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import pytest

Test: TypeAlias = Callable[..., Any]
"""Returns nothing, or what is awaited for nothing."""


@contextmanager
def collected(failures: list[BaseException], row: Sequence[Any]) -> Iterator[None]:
    """Add what the block fails with to ``failures``, with its row."""
    try:
        yield
    except (Exception, pytest.fail.Exception) as error:
        error.add_note(f"in the row {reprlib.repr(row)}")
        failures.append(error)


def tell(failures: list[BaseException], count: int) -> None:
    """Raise what failed of ``count`` rows."""
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} of {count} rows failed", failures)


def rows(names: str | Sequence[str], table: Iterable[Any]) -> Callable[[Test], Test]:
    """Have a test, async or not, walk a table: like ``pytest.mark.parametrize``, as one test.

    All rows are walked; those that failed are named. Rows share the fixtures of the test, so a test that changes one
    wants cases of its own.

    Args:
        names: of the parameters that a row gives.
        table: a value for each row, or a sequence of them where there is more than one name.
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
