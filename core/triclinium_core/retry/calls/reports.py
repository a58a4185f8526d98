"""Reports to the hooks that watch retries of a call or of an operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from triclinium_core.retry.calls.history import RetryEnding, describe


class RetryScheduled(NamedTuple):
    """An attempt failed, and there will be another one."""

    name: str
    """Of the call, as its caller gave it or as its function is called; of an operation, such as ``upsert``."""
    attempt: int
    """Number of the attempt that failed; 1 is the first."""
    delay: float
    """Seconds until the next one."""
    error: Exception | None
    """What the attempt raised; None where its result is to be retried, and of operations of a cluster, which have a ``reason``."""
    token_scope: str | None
    """Whose quota it is."""
    reason: str | None = None
    """Of an operation of a cluster: the name of the ``RetryReason`` that the attempt met."""

    def __str__(self) -> str:
        why = self.reason or describe(self.error)
        return f"{self.name} is tried again in {self.delay:.3f} s (attempt {self.attempt}: {why})"


class RetryGivenUp(NamedTuple):
    """An attempt failed, and was the last one: the caller gets its error, or its result."""

    name: str
    """Of the call, as its caller gave it or as its function is called; of an operation, such as ``upsert``."""
    attempt: int
    """Number of the attempt that failed; 1 is the first."""
    ending: RetryEnding
    """Why there is no other one."""
    error: Exception | None
    """What the attempt raised; None where its result was to be retried."""
    token_scope: str | None
    """Whose quota it is."""
    reason: str | None = None
    """Of an operation of a cluster: the name of the newest ``RetryReason`` that it met."""

    def __str__(self) -> str:
        return f"{self.name} is not tried again: {self.ending} (attempt {self.attempt}: {describe(self.error)})"


class RetrySucceeded(NamedTuple):
    """An attempt succeeded after others had failed. A first attempt that succeeds is not reported."""

    name: str
    """Of the call, as its caller gave it or as its function is called; of an operation, such as ``upsert``."""
    attempt: int
    """Number of the attempt that succeeded, at least 2."""
    token_scope: str | None
    """Whose quota it is."""

    def __str__(self) -> str:
        return f"{self.name} succeeded at attempt {self.attempt}"


RetryReport = RetryScheduled | RetryGivenUp | RetrySucceeded
"""What a hook is told."""

RetryHook = Callable[[RetryReport], object]
"""Is told every report; it answers at once, and what it returns does not matter."""
