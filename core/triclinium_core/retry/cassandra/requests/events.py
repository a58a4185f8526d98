"""Events of the request machine: facts, each a noun with a past participle.

An *attempt* is one thing that the driver was ordered to send: the request, or a PREPARE. The machine numbers attempts,
and whatever happens to one is told by its number.
"""

from __future__ import annotations

from dataclasses import dataclass

from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.cassandra.errors import CoordinatorError, FrameTooLong, RequestAborted, RequestThrottled
from triclinium_core.retry.checks import check_integer
from triclinium_core.shown import shown


@dataclass(frozen=True, slots=True)
class RequestStarted:
    """The caller waits from now on: the first event of every request."""


@dataclass(frozen=True, slots=True)
class ConnectionMissed:
    """The node of this attempt has no connection that could take it; nothing was handed over."""

    attempt: int


@dataclass(frozen=True, slots=True)
class RequestWritten:
    """All bytes of this attempt were handed over."""

    attempt: int


@dataclass(frozen=True, slots=True)
class AttemptAborted:
    """This attempt will have no answer, or none that can be read.

    Args:
        error: why: the connection was closed, a heartbeat was left unanswered, no stream id was free, the request or
            its answer is too long, the throttle refused it. What the driver itself caught goes into its ``__cause__``.
        handed_over: bytes of this attempt that the driver had *begun* to hand over to the socket. It decides what may
            be sent again, so when in doubt say more, never less; leave it out if you cannot tell.

    Raises:
        ArgumentError: ``error`` is of another kind, or ``handed_over`` is no count.
    """

    attempt: int
    error: RequestAborted | FrameTooLong | RequestThrottled
    handed_over: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.error, RequestAborted | FrameTooLong | RequestThrottled):
            raise ArgumentError(
                f"error={shown(self.error)} must be a RequestAborted, such as ClosedConnection, a FrameTooLong or a "
                "RequestThrottled; put what you caught into its __cause__",
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
    """The node answered this attempt with a result; ``result`` is the driver's own, and comes back as it is."""

    attempt: int
    result: object = None


@dataclass(frozen=True, slots=True)
class ErrorReceived:
    """The node answered this attempt with an ERROR.

    Args:
        error: made for this answer alone, since it carries how the request went where it is raised.

    Raises:
        ArgumentError: ``error`` is no CoordinatorError.
    """

    attempt: int
    error: CoordinatorError

    def __post_init__(self) -> None:
        if not isinstance(self.error, CoordinatorError):
            raise ArgumentError(
                f"error={shown(self.error)} must be a CoordinatorError; CODES has one for each code", parameter="error"
            )


@dataclass(frozen=True, slots=True)
class StatementPrepared:
    """The node has prepared the statement of a ``Reprepare``.

    Args:
        statement_id: the id that the node gave it.
    """

    attempt: int
    statement_id: bytes


@dataclass(frozen=True, slots=True)
class StatementForgotten:
    """The driver does not know the text of the statement that a ``Reprepare`` names; nothing was sent."""

    attempt: int


@dataclass(frozen=True, slots=True)
class TimerFired:
    """``wakeup`` has come; harmless at any other time."""


@dataclass(frozen=True, slots=True)
class RequestAbandoned:
    """The caller has left."""


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
