"""Interface between the life cycle and the two carriers of attempts: one for key-value, one for HTTP."""

from __future__ import annotations

from enum import Enum, unique
from typing import Protocol, TypeVar

import msgspec

from triclinium_core import errors
from triclinium_core.contract.neutral import TimePassed
from triclinium_core.error_context import ErrorContext
from triclinium_core.retry.couchbase import RetryReason, Service, actions, events


class Submittable(Protocol):
    """Properties of operations and requests that the life cycle uses."""

    @property
    def name(self) -> str:
        """Name of the operation or request in errors, reports and tables."""

    @property
    def service(self) -> Service:
        """Service that processes the operation or request."""

    @property
    def idempotent(self) -> bool:
        """Whether the client may send the operation or request again at any stage."""


class Refused(msgspec.Struct, frozen=True, gc=False):
    """Reason why an operation or request cannot succeed. The client then does not consult the retry strategy."""

    error: type[errors.CouchbaseException]
    text: str


Undispatched = events.DispatchFailed | events.SocketClosed | Refused
"""Reason why the carrier did not send an attempt, or sent only a part. ``Refused`` fails the operation or request. For
the two other reasons, the retry strategy decides."""


@unique
class Departure(Enum):
    """Reason why an operation or request leaves its carrier without a result."""

    FAILED = "failed"
    CALLER_LEFT = "caller left"
    NOT_NEEDED = "not needed"
    """The call continues, and does not need the result."""


OrderOfKeyValue = actions.RefreshTopology | actions.RefreshCollection | actions.CloseConnection
"""Orders of a retry machine that only responses of the key-value service cause."""

L_contra = TypeVar("L_contra", contravariant=True)
D = TypeVar("D")


class Carrier(Protocol[L_contra, D]):
    """Sender of the attempts of one kind.

    ``L_contra`` is the type of the open operations or requests, ``D`` the type of the server that owes a response.
    """

    def dispatch(self, live: L_contra, now: float) -> Undispatched | None:
        """Send or queue an attempt. Return None, or the reason why the carrier can do neither."""

    def give_up_waiting(self, live: L_contra) -> Undispatched | None:
        """End the wait for dispatch at the deadline, and return the reason for the wait. Return None without a wait."""

    def out_of_time(self, live: L_contra) -> events.WakeupReached:
        """Return the facts that the error of a timeout contains."""

    def debtor(self, live: L_contra, event: TimePassed) -> D | None:
        """Return the server that has not responded to the attempt (decision C33).

        Return None without an attempt in flight, if no byte of it was sent, if received bytes are unread, or for a
        request over HTTP of the client itself.
        """

    def blame(self, debtor: D, now: float) -> None:
        """Count a passed deadline as a failure in the circuit breaker of the server."""

    def attempt_failed(self, live: L_contra) -> None:
        """Forget the route of the newest attempt, before a retry or a decision of the strategy."""

    def retry_decided(self, live: L_contra, reason: RetryReason) -> None:
        """Process the reason for a failure after the decision about a retry."""

    def carry_out(self, live: L_contra, order: OrderOfKeyValue, origin: object, now: float) -> None:
        """Execute an order of the retry machine that concerns a connection, the map or a collection id.

        Args:
            origin: source of the response that caused the order: the argument of ``Lifecycle.feed``.
        """

    def succeeded(self, live: L_contra, response: events.Response, now: float) -> None:
        """Decode a successful response and deliver the result."""

    def leave(self, live: L_contra, departure: Departure, now: float) -> None:
        """Remove an operation or request from its queue or stream."""

    def fail(self, live: L_contra, error: errors.CouchbaseException, now: float) -> None:
        """Deliver the error to the caller."""

    def context(self, live: L_contra, context: ErrorContext) -> ErrorContext:
        """Return an error context that includes facts about the current connection or queue."""
