"""Hooks that receive reports of retries, and changes to retries in tests, for a call or for a block.

``triclinium.retry`` logs retries at DEBUG and the end of a call that was not tried once more at INFO. The parts of the
sentences are attributes of the record too: ``call``, ``attempt``, ``delay`` in seconds or ``ending``, ``token_scope``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from triclinium._cluster_driver.log import retry_logger
from triclinium_core.retry.calls import RetryGivenUp, RetryHook, RetryReport, RetryScheduled, check_hooks
from triclinium_core.retry.checks import check_integer
from triclinium_core.shown import printable, shown


class TestMode(NamedTuple):
    """What a test changes about retries."""

    attempts_max: int | None
    sleeps: bool


hooks_of_blocks: ContextVar[Sequence[RetryHook]] = ContextVar("triclinium.watching_retries", default=())
"""Those of all blocks ``watching_retries`` around, the outermost first."""
test_mode: ContextVar[TestMode | None] = ContextVar("triclinium.testing.retries", default=None)
"""What the innermost ``triclinium.testing.retries`` says."""


@contextmanager
def watching_retries(*hooks: RetryHook) -> Iterator[None]:
    """Tell ``hooks`` what becomes of the retries of the block, and of the tasks that are started in it.

    They hear of the calls of ``retry``, ``retried`` and ``attempts``, beside the hooks of an outer block and those of the call,
    and of the operations of clusters that are called in the block: of each retry with its ``reason``, and of the end of
    those that were retried or refused a retry. Around the whole program they hear of everything.

    Raises:
        ArgumentError: one is no function, or an ``async def``.
    """
    check_hooks(hooks)
    token = hooks_of_blocks.set((*hooks_of_blocks.get(), *hooks))
    try:
        yield
    finally:
        hooks_of_blocks.reset(token)


@contextmanager
def retries(*, attempts: int | None = None, sleeps: bool = False) -> Iterator[None]:
    """Change what ``retry``, ``retried`` and ``attempts`` do in the block, and in the tasks that are started in it.

    Strategies are asked as ever, and their quotas count. Each retry is a checkpoint as ever, too. An inner block replaces
    what the one around it says.

    Args:
        attempts: of one call at most, whatever its strategy permits; 1 switches retries off.
        sleeps: whether delays are slept.

    Raises:
        ArgumentError: ``attempts`` is no whole number of at least 1.
    """
    if attempts is not None:
        check_integer(attempts, "attempts", 1)
    token = test_mode.set(TestMode(attempts, sleeps))
    try:
        yield
    finally:
        test_mode.reset(token)


def tell(report: RetryReport, hooks: Sequence[RetryHook]) -> None:
    """Log ``report``, and tell it to ``hooks`` and to those of the blocks around."""
    _log(report)
    tell_hooks(report, (*hooks_of_blocks.get(), *hooks))


def tell_hooks(report: RetryReport, hooks: Sequence[RetryHook]) -> None:
    """Tell ``report`` to ``hooks``.

    A hook that raises is logged and passed over: counting retries must not change how a call ends.
    """
    for hook in hooks:
        try:
            hook(report)
        except Exception:
            retry_logger.exception("the retry hook %s raised, and was skipped", shown(hook))


def _log(report: RetryReport) -> None:
    level = logging.INFO if isinstance(report, RetryGivenUp) else logging.DEBUG
    if not retry_logger.isEnabledFor(level):
        return
    extra: dict[str, object] = {"attempt": report.attempt}
    for name, text in (("call", report.name), ("token_scope", report.token_scope)):
        extra[name] = None if text is None else printable(text)
    if isinstance(report, RetryScheduled):
        extra["delay"] = report.delay
    elif isinstance(report, RetryGivenUp):
        extra["ending"] = report.ending.name
    retry_logger.log(level, "%s", printable(str(report)), extra=extra)
