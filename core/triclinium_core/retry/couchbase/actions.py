"""Actions of the retry machine of one request, to be carried out in the given order."""

from __future__ import annotations

from dataclasses import dataclass

from triclinium_core import errors
from triclinium_core.retry.couchbase.events import Response
from triclinium_core.retry.couchbase.strategy import AsyncRetryStrategy, RetryRequest
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.values import lean


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Send the request in a new frame: new opaque, vbucket and collection id resolved again (decision C29)."""


@lean
@dataclass(frozen=True, slots=True)
class RetryAfter:
    """Pass ``WakeupReached`` after ``delay`` seconds; the machine then returns ``Dispatch`` or ``Fail``."""

    delay: float
    dispatches: bool
    """False if the delay was cut to a limit, after which nothing is sent again."""


@dataclass(frozen=True, slots=True)
class AskStrategy:
    """Await ``strategy.retry_after(request, reason)`` and pass its answer in ``StrategyAnswered``."""

    strategy: AsyncRetryStrategy
    request: RetryRequest
    reason: RetryReason


@dataclass(frozen=True, slots=True)
class Complete:
    """Complete the request with this response."""

    response: Response


@dataclass(frozen=True, slots=True)
class Fail:
    """Fail the request: raise ``error`` in the caller."""

    error: errors.CouchbaseException


@dataclass(frozen=True, slots=True)
class Ignore:
    """Do nothing: the event came too late to matter, for example a late response."""


@dataclass(frozen=True, slots=True)
class RefreshTopology:
    """Refresh a possibly outdated cluster map: apply the one in the response, or request a newer one."""


@dataclass(frozen=True, slots=True)
class RefreshCollection:
    """Refresh a possibly outdated collection id: drop it and request it again."""


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """Close the connection of the response, after the actions before this one."""

    why: str


@lean
@dataclass(frozen=True, slots=True)
class ReportRetry:
    """Log at DEBUG that the request will be retried (SDK-RFC 0049 "logRetryAttempt")."""

    request: RetryRequest
    reason: RetryReason
    delay: float
    dispatches: bool
    node: str | None


@dataclass(frozen=True, slots=True)
class ReportRefusal:
    """Log at INFO that a retry was refused (SDK-RFC 0049 "logNotRetried")."""

    request: RetryRequest
    reason: RetryReason
    error: str
    node: str | None


RequestAction = (
    Dispatch
    | RetryAfter
    | AskStrategy
    | Complete
    | Fail
    | Ignore
    | RefreshTopology
    | RefreshCollection
    | CloseConnection
    | ReportRetry
    | ReportRefusal
)
