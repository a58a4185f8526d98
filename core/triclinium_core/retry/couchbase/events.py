"""Events of the retry machine of one request: facts, each a noun with a past participle."""

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
    """The request was handed over to a connection."""

    node: str | None = None
    opaque: int | None = None
    sender: str | None = None
    """Local address of the connection."""


@dataclass(frozen=True, slots=True)
class Load:
    """Load of a connection when a request on it, or for it, timed out or was refused."""

    in_flight: int
    """Number of requests without a response."""
    waiting: int
    """Peak number of operations queued for the connection while its queue was not empty."""


@dataclass(frozen=True, slots=True)
class DispatchFailed:
    """The request could not be handed over; no part of it left the client."""

    reason: RetryReason
    detail: str | None = None
    """Explanation for the error context."""
    error: type[errors.CouchbaseException] | None = None
    """Error for the reason, if it comes from the status of a request that had to precede this one."""
    node: str | None = None
    """Intended node, if known."""
    load: Load | None = None


@unique
class HandedOver(Enum):
    """Part of the request's frame that the driver had begun to hand over when the socket closed (decision C24)."""

    NOTHING = "nothing"
    PART = "part"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class SocketClosed:
    """The connection of the request is lost, and no response arrived."""

    handed_over: HandedOver
    detail: str | None = None
    reason: RetryReason = RetryReason.SOCKET_NOT_AVAILABLE
    """Reason if nothing was handed over; a terminal one may replace the default."""
    is_partial: bool = False
    """Whether rows of the response were already delivered, so that the request must not be sent again."""


@lean
@dataclass(frozen=True, slots=True)
class KvResponse:
    """Facts about a KV response, for its classification."""

    status: int
    node: str | None = None
    """Node that sent the response, whose error map applies."""
    server_context: str | None = None
    server_ref: str | None = None
    server_duration: float | None = None
    """Processing time of the server in seconds, by its own clock."""
    failed_path: FailedPath | None = None
    """Failed spec of a sub-document operation, if it made the whole operation fail."""
    error: type[errors.CouchbaseException] | None = None
    """Exception of a failure, if operation and status do not determine it."""


@dataclass(frozen=True, slots=True)
class ServiceResponse:
    """Facts about a response of an HTTP service, for its classification."""

    service: Service
    http_status: int
    body: bytes | str = b""
    operation: str = ""
    """Name of the request, if the meaning of a response depends on it."""
    is_partial: bool = False
    """Whether rows of the response were already delivered, so that the request must not be sent again."""
    verdict: ServiceVerdict | None = None
    """Classification of the response; None if the machine has to classify it."""


Response = KvResponse | ServiceResponse


@lean
@dataclass(frozen=True, slots=True)
class ResponseReceived:
    """The whole response to the newest attempt has arrived."""

    response: Response


@dataclass(frozen=True, slots=True)
class ErrorMapLoaded:
    """A node has sent its error map."""

    node: str
    error_map: ErrorMap


@dataclass(frozen=True, slots=True)
class StrategyAnswered:
    """An asynchronous strategy has returned its answer, or raised."""

    answer: RetryAction | None
    raised: BaseException | None = None


@lean
@dataclass(frozen=True, slots=True)
class WakeupReached:
    """The time ``wakeup`` has come; the event is harmless at any other time."""

    load: Load | None = None
    obstacle: str | None = None
    """Why the request has not been sent yet, in words, if it never was."""
    is_partial: bool = False
    """Whether rows of the response were delivered, so that no earlier failure explains the timeout."""


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The caller no longer waits."""


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
