"""Events of the request machine: facts, each a noun with a past participle.

An *attempt* is one thing that the machine ordered the driver to send: the request, or a PREPARE. The machine numbers
attempts, and each event of an attempt carries its number.
"""

from __future__ import annotations

from dataclasses import dataclass

from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.cassandra.errors import CoordinatorError, FrameTooLong, RequestAborted, RequestThrottled
from triclinium_core.retry.checks import check_integer
from triclinium_core.shown import shown


@dataclass(frozen=True, slots=True)
class RequestStarted:
    """The caller has started to wait: the first event of every request."""


@dataclass(frozen=True, slots=True)
class ConnectionMissed:
    """No connection to the node of this attempt had capacity; nothing was handed over."""

    attempt: int


@dataclass(frozen=True, slots=True)
class RequestWritten:
    """All bytes of this attempt were handed over."""

    attempt: int


@dataclass(frozen=True, slots=True)
class AttemptAborted:
    """This attempt will get no response, or an unreadable one.

    Args:
        error: the reason: the connection was closed, a heartbeat was not answered, no stream id was free, the request
            or its response is too long, or the throttle refused the request. Set an exception that the driver caught as
            its ``__cause__``.
        handed_over: number of bytes of this attempt that the driver had *begun* to hand over to the socket. It decides
            whether the request may be sent again: if uncertain, give a higher number, never a lower one. Omit it if it
            is unknown.

    Raises:
        ArgumentError: ``error`` is of another kind, or ``handed_over`` is not a count.
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
        """Whether no byte was handed over."""
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
        error: object created for this response only, because it gets an ``execution_info`` if it is raised.

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
    """The node has prepared the statement of a ``Reprepare``.

    Args:
        statement_id: id that the node returned.
    """

    attempt: int
    statement_id: bytes


@dataclass(frozen=True, slots=True)
class StatementForgotten:
    """The driver does not know the text of the statement in a ``Reprepare``; nothing was sent."""

    attempt: int


@dataclass(frozen=True, slots=True)
class TimerFired:
    """The time ``wakeup`` has come; the event is harmless at any other time."""


@dataclass(frozen=True, slots=True)
class RequestAbandoned:
    """The caller no longer waits."""


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
