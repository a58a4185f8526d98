"""Actions of the retry machine of one request. The driver executes them in order."""

from __future__ import annotations

from dataclasses import dataclass

from triclinium_core import errors
from triclinium_core.retry.couchbase.events import Response
from triclinium_core.retry.couchbase.strategy import AsyncRetryStrategy, RetryRequest
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.values import lean


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Send the request again.

    For a key-value request, use a new frame and opaque, and look up vbucket and collection id again (decision C29).
    """


@lean
@dataclass(frozen=True, slots=True)
class RetryAfter:
    """Pass ``WakeupReached`` to the machine after ``delay`` seconds. It then returns ``Dispatch`` or ``Fail``."""

    delay: float
    dispatches: bool
    """Whether the machine sends the request again after the delay. False if the delay was cut to a limit."""


@dataclass(frozen=True, slots=True)
class AskStrategy:
    """Await ``strategy.retry_after(request, reason)``, and pass its result to the machine in ``StrategyAnswered``."""

    strategy: AsyncRetryStrategy
    request: RetryRequest
    reason: RetryReason


@dataclass(frozen=True, slots=True)
class Complete:
    """Complete the request: return the result in ``response`` to the caller."""

    response: Response


@dataclass(frozen=True, slots=True)
class Fail:
    """Fail the request: raise ``error`` in the caller."""

    error: errors.CouchbaseException


@dataclass(frozen=True, slots=True)
class Ignore:
    """Do nothing, because the event is too late, for example a response after the deadline."""


@dataclass(frozen=True, slots=True)
class RefreshTopology:
    """Refresh the cluster map, which may be outdated: apply the map in the response, or request a newer one."""


@dataclass(frozen=True, slots=True)
class RefreshCollection:
    """Refresh the collection id, which may be outdated: drop it, so that the next dispatch requests it again."""


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """Close the connection on which the response arrived, after all earlier actions."""

    why: str


@lean
@dataclass(frozen=True, slots=True)
class ReportRetry:
    """Log at DEBUG that a retry is granted, even if a limit cut its delay (SDK-RFC 0049 "Retry Orchestration")."""

    request: RetryRequest
    reason: RetryReason
    delay: float
    dispatches: bool
    node: str | None


@dataclass(frozen=True, slots=True)
class ReportRefusal:
    """Log at INFO that a retry was refused (SDK-RFC 0049 "Retry Orchestration")."""

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
