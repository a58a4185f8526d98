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
    """Our end of the connection."""


@dataclass(frozen=True, slots=True)
class Load:
    """How busy a connection was when a request on it, or for it, ran out of time or was refused."""

    in_flight: int
    """Requests without an answer."""
    waiting: int
    """Operations that waited for the connection at once, at most, while there were any."""


@dataclass(frozen=True, slots=True)
class DispatchFailed:
    """The request could not be handed over; nothing of it left the client."""

    reason: RetryReason
    detail: str | None = None
    """Why, in words, for the error context."""
    error: type[errors.CouchbaseException] | None = None
    """The error that the reason stands for, if it comes from the status of a request that had to precede this one."""
    node: str | None = None
    """Where it was to go, if that is known."""
    load: Load | None = None


@unique
class HandedOver(Enum):
    """How much of the request's frame the driver had begun to hand over when the socket closed (decision C24)."""

    NOTHING = "nothing"
    PART = "part"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class SocketClosed:
    """The connection that carried the request is gone, and no answer came."""

    handed_over: HandedOver
    detail: str | None = None
    reason: RetryReason = RetryReason.SOCKET_NOT_AVAILABLE
    """The reason if nothing was handed over; a terminal one may replace it."""
    is_partial: bool = False
    """Whether rows of the answer were handed out already, so that the request must not be sent again."""


@lean
@dataclass(frozen=True, slots=True)
class KvResponse:
    """What classification needs of a KV response."""

    status: int
    node: str | None = None
    """Whose error map to consult."""
    server_context: str | None = None
    server_ref: str | None = None
    server_duration: float | None = None
    """Seconds for which the server worked, by its own clock."""
    failed_path: FailedPath | None = None
    """Which spec of a sub-document operation failed, if that made the whole fail."""
    error: type[errors.CouchbaseException] | None = None
    """The exception of a failure, if it depends on more than operation and status."""


@dataclass(frozen=True, slots=True)
class ServiceResponse:
    """What classification needs of the answer of an HTTP service."""

    service: Service
    http_status: int
    body: bytes | str = b""
    operation: str = ""
    """The name of the request, where the meaning of an answer depends on it."""
    is_partial: bool = False
    """Whether rows of it were handed out already, so that the request must not be sent again."""
    verdict: ServiceVerdict | None = None
    """Classification of the answer; None if the machine has to classify it."""


Response = KvResponse | ServiceResponse


@lean
@dataclass(frozen=True, slots=True)
class ResponseReceived:
    """The answer to the newest attempt has come, whole."""

    response: Response


@dataclass(frozen=True, slots=True)
class ErrorMapLoaded:
    """A node has sent its error map."""

    node: str
    error_map: ErrorMap


@dataclass(frozen=True, slots=True)
class StrategyAnswered:
    """An asynchronous strategy has answered, or raised."""

    answer: RetryAction | None
    raised: BaseException | None = None


@lean
@dataclass(frozen=True, slots=True)
class WakeupReached:
    """``wakeup`` has come; harmless at any other time."""

    load: Load | None = None
    obstacle: str | None = None
    """Why the request has not been sent yet, in words, where it never was."""
    is_partial: bool = False
    """Whether rows of the answer were handed out, so that no earlier failure is a reason of the timeout."""


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The caller has left."""


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
