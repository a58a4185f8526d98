"""Retries in tests: without sleeping, and no more than a test can wait for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from triclinium._retry.watching import TestMode, test_mode
from triclinium_core.checks import check_integer


@contextmanager
def retries(*, attempts: int | None = None, sleeps: bool = False) -> Iterator[None]:
    """Change what ``retry``, ``retried`` and ``attempts`` do in the block, and in the tasks that are started in it.

    Strategies are asked as ever, and their quotas count. Each retry is a checkpoint as ever, too. An inner block replaces
    what the one around it says.

    Args:
        attempts: of one call at most, whatever its strategy permits; 1 switches retries off.
        sleeps: whether delays are slept.

    Raises:
        InvalidArgumentException: ``attempts`` is no whole number of at least 1.
    """
    if attempts is not None:
        check_integer(attempts, "attempts", 1)
    token = test_mode.set(TestMode(attempts, sleeps))
    try:
        yield
    finally:
        test_mode.reset(token)
