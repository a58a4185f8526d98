"""Actions of the retry machine of one request, to be carried out in the order given."""

from __future__ import annotations

from dataclasses import dataclass

from triclinium_core import errors
from triclinium_core.retry.couchbase.events import Response
from triclinium_core.retry.couchbase.strategy import AsyncRetryStrategy, RetryRequest
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.values import lean


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Send the request as a new frame: new opaque, vbucket and collection id resolved again (decision C29)."""


@lean
@dataclass(frozen=True, slots=True)
class RetryAfter:
    """Feed ``WakeupReached`` in ``delay`` seconds; the machine then orders ``Dispatch`` or ``Fail``."""

    delay: float
    dispatches: bool
    """False: the delay was cut to a limit, and nothing will be sent again."""


@dataclass(frozen=True, slots=True)
class AskStrategy:
    """Await ``strategy.retry_after(request, reason)`` and answer with ``StrategyAnswered``."""

    strategy: AsyncRetryStrategy
    request: RetryRequest
    reason: RetryReason


@dataclass(frozen=True, slots=True)
class Complete:
    """The request succeeded with this response."""

    response: Response


@dataclass(frozen=True, slots=True)
class Fail:
    """The request failed; raise ``error`` in the caller."""

    error: errors.CouchbaseException


@dataclass(frozen=True, slots=True)
class Ignore:
    """The event came too late to matter, as a late response does."""


@dataclass(frozen=True, slots=True)
class RefreshTopology:
    """The cluster map seems outdated: apply the one in the response, or ask for a newer one."""


@dataclass(frozen=True, slots=True)
class RefreshCollection:
    """The collection id seems outdated: forget it and ask again."""


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """Close the connection that the response came from, after the actions before this one."""

    why: str


@lean
@dataclass(frozen=True, slots=True)
class ReportRetry:
    """For the log, at DEBUG: a retry was decided (SDK-RFC 0049 "logRetryAttempt")."""

    request: RetryRequest
    reason: RetryReason
    delay: float
    dispatches: bool
    node: str | None


@dataclass(frozen=True, slots=True)
class ReportRefusal:
    """For the log, at INFO: a retry was refused (SDK-RFC 0049 "logNotRetried")."""

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
