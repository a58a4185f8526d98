"""Events that a driver reports to the retry machine of one request, each named by a noun with a past participle."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, unique

from triclinium_core import errors
from triclinium_core.retry.couchbase.strategy import RetryAction
from triclinium_core.retry.couchbase.tables.error_map import ErrorMap
from triclinium_core.retry.couchbase.tables.kv_status import FailedPath
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.couchbase.tables.service_responses import ServiceVerdict
from triclinium_core.retry.values import lean


@lean
@dataclass(frozen=True, slots=True)
class Dispatched:
    """The driver has handed the request to a connection."""

    node: str | None = None
    opaque: int | None = None
    sender: str | None = None
    """Local address of the connection; None if it is unknown."""
    stream: int | None = None
    """Id of the connection's stream; None if it is unknown."""


@dataclass(frozen=True, slots=True)
class Load:
    """Load of a connection when a request that was sent on it, or waited for it, timed out or was refused."""

    in_flight: int
    """Number of requests on the connection without a response."""
    waiting: int
    """Largest number of operations in the connection's queue since the queue was last empty."""


@dataclass(frozen=True, slots=True)
class DispatchFailed:
    """The driver could not hand the request to a connection. No part of the request left the client."""

    reason: RetryReason
    detail: str | None = None
    """Explanation for the error context; None without one."""
    error: type[errors.CouchbaseException] | None = None
    """Error that the request raises if it is not retried. Only set if an earlier request, on which this one depends,
    failed with a status."""
    node: str | None = None
    """Node for which the request was intended, if it is known."""
    load: Load | None = None


@unique
class HandedOver(Enum):
    """Part of the request's frame that the driver had begun to hand over when the socket closed (decision C24)."""

    NOTHING = "nothing"
    PART = "part"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class SocketClosed:
    """The connection of the request was lost before its response arrived."""

    handed_over: HandedOver
    detail: str | None = None
    reason: RetryReason = RetryReason.SOCKET_NOT_AVAILABLE
    """Retry reason if nothing was handed over. A terminal reason may replace the default."""
    is_partial: bool = False
    """Whether the caller already received rows of the response, so that the request must not be sent again."""


@lean
@dataclass(frozen=True, slots=True)
class KvResponse:
    """Facts about a key-value response, by which the machine classifies it."""

    status: int
    node: str | None = None
    """Node that sent the response, whose error map applies; None if it is unknown, so that no map applies."""
    server_context: str | None = None
    server_ref: str | None = None
    server_duration: float | None = None
    """Seconds for which the server worked on the request, as the server reported; None without a report."""
    failed_path: FailedPath | None = None
    """Spec of a sub-document operation whose failure made the complete operation fail; None without one."""
    error: type[errors.CouchbaseException] | None = None
    """Exception class for a failure. Only set if operation and status do not determine it."""


@dataclass(frozen=True, slots=True)
class ServiceResponse:
    """Facts about a response of an HTTP service, by which the machine classifies it."""

    service: Service
    http_status: int
    body: bytes | str = b""
    operation: str = ""
    """Name of the request, if the meaning of the response depends on it."""
    is_partial: bool = False
    """Whether the caller already received rows of the response, so that the request must not be sent again."""
    verdict: ServiceVerdict | None = None
    """Classification of the response; None if the machine has to classify the response itself."""


Response = KvResponse | ServiceResponse


@lean
@dataclass(frozen=True, slots=True)
class ResponseReceived:
    """The complete response to the newest attempt has arrived."""

    response: Response


@dataclass(frozen=True, slots=True)
class ErrorMapLoaded:
    """A node has sent its error map."""

    node: str
    error_map: ErrorMap


@dataclass(frozen=True, slots=True)
class StrategyAnswered:
    """An asynchronous strategy has returned its decision, or raised an exception."""

    answer: RetryAction | None
    raised: BaseException | None = None


@lean
@dataclass(frozen=True, slots=True)
class WakeupReached:
    """The time ``wakeup`` is reached. Before that time, this event has no effect."""

    load: Load | None = None
    obstacle: str | None = None
    """Text that explains why a permit has not let the request start; None if a permit does not delay it."""
    is_partial: bool = False
    """Whether the caller already received rows of the response, so that no earlier failure explains a timeout."""


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The caller has stopped waiting for the request."""


RequestEvent = (
    Dispatched
    | DispatchFailed
    | SocketClosed
    | ResponseReceived
    | ErrorMapLoaded
    | StrategyAnswered
    | WakeupReached
    | Abandoned
)
