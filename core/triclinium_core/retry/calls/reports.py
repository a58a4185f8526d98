"""Reports that hooks receive about the retries of a function call or an operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from triclinium_core.retry.calls.history import RetryEnding, describe


class RetryScheduled(NamedTuple):
    """Report that an attempt failed and another one will follow."""

    name: str
    """Name of the operation, such as ``upsert``, or of the call."""
    attempt: int
    """Number of the attempt that failed; 1 is the first."""
    delay: float
    """Seconds until the next attempt."""
    error: Exception | None
    """Error that the attempt raised; None if its result was not accepted, and for operations, which have ``reason``."""
    token_scope: str | None
    """Token scope of the call, which selects the quota; None is also a scope. Always None for an operation."""
    reason: str | None = None
    """Name of the ``RetryReason`` for which an operation failed; None for calls."""

    def __str__(self) -> str:
        why = self.reason or describe(self.error)
        return f"{self.name} is retried in {self.delay:.3f} s (attempt {self.attempt}: {why})"


class RetryGivenUp(NamedTuple):
    """Report that an attempt failed and was the last. The caller receives its error or its result."""

    name: str
    """Name of the operation, such as ``upsert``, or of the call."""
    attempt: int
    """Number of the attempt that failed; 1 is the first."""
    ending: RetryEnding
    """Reason why no further attempt is made."""
    error: Exception | None
    """Error that the attempt raised; None if its result was not accepted."""
    token_scope: str | None
    """Token scope of the call, which selects the quota; None is also a scope. Always None for an operation."""
    reason: str | None = None
    """Name of the ``RetryReason`` for which an operation failed last; None for calls."""

    def __str__(self) -> str:
        return f"{self.name} is not retried: {self.ending} (attempt {self.attempt}: {describe(self.error)})"


class RetrySucceeded(NamedTuple):
    """Report that an attempt succeeded after earlier attempts had failed. There is no report if the first succeeds."""

    name: str
    """Name of the operation, such as ``upsert``, or of the call."""
    attempt: int
    """Number of the attempt that succeeded, at least 2."""
    token_scope: str | None
    """Token scope of the call, which selects the quota; None is also a scope. Always None for an operation."""

    def __str__(self) -> str:
        return f"{self.name} succeeded at attempt {self.attempt}"


RetryReport = RetryScheduled | RetryGivenUp | RetrySucceeded
"""Any report that a hook receives."""

RetryHook = Callable[[RetryReport], object]
"""Function that receives every report. It must not be an ``async def``. Its result is ignored."""
