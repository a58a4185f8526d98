"""Reports to hooks on the retries of a call or an operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from triclinium_core.retry.calls.history import RetryEnding, describe


class RetryScheduled(NamedTuple):
    """Report that an attempt failed and another one will follow."""

    name: str
    """Name of the call, from the caller or else the function; or name of the operation, such as ``upsert``."""
    attempt: int
    """Number of the attempt that failed; 1 is the first."""
    delay: float
    """Seconds until the next attempt."""
    error: Exception | None
    """Error that the attempt raised; None if its result is to be retried, and for operations (see ``reason``)."""
    token_scope: str | None
    """Token scope, which selects the quota."""
    reason: str | None = None
    """Name of the ``RetryReason`` of the failure; operations only."""

    def __str__(self) -> str:
        why = self.reason or describe(self.error)
        return f"{self.name} is retried in {self.delay:.3f} s (attempt {self.attempt}: {why})"


class RetryGivenUp(NamedTuple):
    """Report that an attempt failed and was the last: the caller gets its error or its result."""

    name: str
    """Name of the call, from the caller or else the function; or name of the operation, such as ``upsert``."""
    attempt: int
    """Number of the attempt that failed; 1 is the first."""
    ending: RetryEnding
    """Why no further attempt is made."""
    error: Exception | None
    """Error that the attempt raised; None if its result was to be retried."""
    token_scope: str | None
    """Token scope, which selects the quota."""
    reason: str | None = None
    """Name of the newest ``RetryReason`` of the operation; operations only."""

    def __str__(self) -> str:
        return f"{self.name} is not retried: {self.ending} (attempt {self.attempt}: {describe(self.error)})"


class RetrySucceeded(NamedTuple):
    """Report that an attempt succeeded after others had failed. The success of a first attempt is not reported."""

    name: str
    """Name of the call, from the caller or else the function; or name of the operation, such as ``upsert``."""
    attempt: int
    """Number of the attempt that succeeded, at least 2."""
    token_scope: str | None
    """Token scope, which selects the quota."""

    def __str__(self) -> str:
        return f"{self.name} succeeded at attempt {self.attempt}"


RetryReport = RetryScheduled | RetryGivenUp | RetrySucceeded
"""Report that a hook receives."""

RetryHook = Callable[[RetryReport], object]
"""Hook that receives every report. It must be a plain function; its result is ignored."""
