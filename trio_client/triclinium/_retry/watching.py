"""Hooks that receive reports of retries in a call or a block, and changes that a test makes to retries.

The logger ``triclinium.retry`` gets retries and their success at DEBUG, and at INFO the end of a call that is not
retried again. The record has these attributes: ``call``, ``attempt`` and ``token_scope``; for a retry also ``delay`` in
seconds, for a call that is not retried again ``ending``. The exception of a hook is logged at ERROR.
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
    """Changes that a test makes to retries."""

    attempts_max: int | None
    sleeps: bool


hooks_of_blocks: ContextVar[Sequence[RetryHook]] = ContextVar("triclinium.watching_retries", default=())
"""Hooks of all surrounding ``watching_retries`` blocks, the outermost first."""
test_mode: ContextVar[TestMode | None] = ContextVar("triclinium.testing.retries", default=None)
"""Changes of the innermost ``triclinium.testing.retries`` block; None outside of any."""


@contextmanager
def watching_retries(*hooks: RetryHook) -> Iterator[None]:
    """Report the retries of the block, and of the tasks that are started in it, to ``hooks``.

    The hooks receive reports on calls to ``retry``, ``retried`` and ``attempts``, and on requests of HTTP transports,
    in addition to the hooks of an outer block and those of the call. They also receive reports on cluster operations of
    the block: each retry with its ``reason``, and the end of operations that were retried or refused a retry, unless
    they are cancelled. In a block around the whole program, the hooks receive all reports.

    Raises:
        ArgumentError: a hook is not a function, or is an ``async def``.
    """
    check_hooks(hooks)
    token = hooks_of_blocks.set((*hooks_of_blocks.get(), *hooks))
    try:
        yield
    finally:
        hooks_of_blocks.reset(token)


@contextmanager
def retries(*, attempts: int | None = None, sleeps: bool = False) -> Iterator[None]:
    """Change the retries of the block, and of the tasks that are started in it.

    The changes apply to calls to ``retry``, ``retried`` and ``attempts``, and to requests of HTTP transports.
    Strategies are still called, and their quotas apply. Each retry is still a checkpoint. An inner block replaces the
    changes of the outer one.

    Args:
        attempts: maximum number of attempts of one call, even if its strategy permits more; 1 disables retries. None,
            the default, lets the strategy decide.
        sleeps: whether to sleep before attempts. Default: False.

    Raises:
        ArgumentError: ``attempts`` is not a whole number of at least 1.
    """
    if attempts is not None:
        check_integer(attempts, "attempts", 1)
    token = test_mode.set(TestMode(attempts, sleeps))
    try:
        yield
    finally:
        test_mode.reset(token)


def report_to_hooks(report: RetryReport, hooks: Sequence[RetryHook]) -> None:
    """Log ``report``, and pass it to ``hooks`` and to those of the surrounding blocks."""
    _log(report)
    call_hooks(report, (*hooks_of_blocks.get(), *hooks))


def call_hooks(report: RetryReport, hooks: Sequence[RetryHook]) -> None:
    """Pass ``report`` to ``hooks``.

    An exception of a hook is logged and ignored: counting retries must not change the result of a call.
    """
    for hook in hooks:
        try:
            hook(report)
        except Exception:
            retry_logger.exception("the retry hook %s raised an exception, which does not affect the call", shown(hook))


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
