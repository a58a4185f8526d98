"""Events that the driver reports to the request machine. A noun with a past participle names each event.

An *attempt* is one frame that the machine ordered the driver to send: the request, or a PREPARE. The machine numbers
the attempts. Each event about an attempt has the number of the attempt.
"""

from __future__ import annotations

from dataclasses import dataclass

from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.cassandra.errors import CoordinatorError, FrameTooLong, RequestAborted, RequestThrottled
from triclinium_core.retry.checks import check_integer
from triclinium_core.shown import shown


@dataclass(frozen=True, slots=True)
class RequestStarted:
    """The caller has submitted the request. The machine orders no attempt before this event."""


@dataclass(frozen=True, slots=True)
class ConnectionMissed:
    """No connection to the node of this attempt had capacity, so the driver handed nothing to a socket."""

    attempt: int


@dataclass(frozen=True, slots=True)
class RequestWritten:
    """The driver has handed all bytes of this attempt to the socket."""

    attempt: int


@dataclass(frozen=True, slots=True)
class AttemptAborted:
    """The response to this attempt will not arrive, or is unreadable.

    Args:
        error: the reason, such as a closed connection, a heartbeat without a response, no free stream id, a request or
            response that is too long, or a refusal of the throttle. If the driver caught an exception, set it as the
            ``__cause__`` of ``error``.
        handed_over: number of bytes of this attempt that the driver had *begun* to hand to the socket. The machine
            decides by this number whether it may send the request again. If the number is uncertain, pass a higher one,
            never a lower one. Omit it if it is unknown.

    Raises:
        ArgumentError: ``error`` is of another kind, or ``handed_over`` is not an integer of at least 0.
    """

    attempt: int
    error: RequestAborted | FrameTooLong | RequestThrottled
    handed_over: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.error, RequestAborted | FrameTooLong | RequestThrottled):
            raise ArgumentError(
                f"error={shown(self.error)} must be a RequestAborted, such as ClosedConnection, a FrameTooLong or a "
                "RequestThrottled; set the original exception as its __cause__",
                parameter="error",
            )
        if self.handed_over is not None:
            check_integer(self.handed_over, "handed_over")

    @property
    def is_unsent(self) -> bool:
        """Whether the driver had certainly not begun to hand any byte to the socket."""
        return self.handed_over == 0


@dataclass(frozen=True, slots=True)
class ResultReceived:
    """The node responded to this attempt with a result. The machine returns ``result`` unchanged."""

    attempt: int
    result: object = None


@dataclass(frozen=True, slots=True)
class ErrorReceived:
    """The node responded to this attempt with an ERROR.

    Args:
        error: error object that was created for this response only, because the machine sets its ``execution_info``.

    Raises:
        ArgumentError: ``error`` is not a CoordinatorError.
    """

    attempt: int
    error: CoordinatorError

    def __post_init__(self) -> None:
        if not isinstance(self.error, CoordinatorError):
            raise ArgumentError(
                f"error={shown(self.error)} must be a CoordinatorError; CODES has the class of each code",
                parameter="error",
            )


@dataclass(frozen=True, slots=True)
class StatementPrepared:
    """The node has prepared the statement that a ``Reprepare`` named.

    Args:
        statement_id: id that the node returned.
    """

    attempt: int
    statement_id: bytes


@dataclass(frozen=True, slots=True)
class StatementForgotten:
    """The driver does not have the text of the statement that a ``Reprepare`` named, and sent nothing."""

    attempt: int


@dataclass(frozen=True, slots=True)
class TimerFired:
    """The time ``wakeup`` is reached. Before that time, this event has no effect."""


@dataclass(frozen=True, slots=True)
class RequestAbandoned:
    """The caller has stopped waiting for the request."""


AttemptEvent = (
    ConnectionMissed
    | RequestWritten
    | AttemptAborted
    | ResultReceived
    | ErrorReceived
    | StatementPrepared
    | StatementForgotten
)

CassandraEvent = RequestStarted | AttemptEvent | TimerFired | RequestAbandoned
