"""Interface between the life cycle and the carriers of attempts: key-value connections and HTTP."""

from __future__ import annotations

from enum import Enum, unique
from typing import Protocol, TypeVar

import msgspec

from triclinium_core import errors
from triclinium_core.contract.neutral import TimePassed
from triclinium_core.error_context import ErrorContext
from triclinium_core.retry.couchbase import RetryReason, Service, actions, events


class Submittable(Protocol):
    """Interface of operations and requests for the life cycle."""

    @property
    def name(self) -> str:
        """Name in errors, reports and tables."""

    @property
    def service(self) -> Service:
        """Service that processes it."""

    @property
    def idempotent(self) -> bool:
        """Whether it may be sent again at any stage."""


class Refused(msgspec.Struct, frozen=True, gc=False):
    """Reason why an operation or request cannot succeed. The retry strategy is not asked."""

    error: type[errors.CouchbaseException]
    text: str


Undispatched = events.DispatchFailed | events.SocketClosed | Refused
"""Reason why an attempt was not sent, or not completely. ``Refused`` fails; the retry strategy decides about the
others."""


@unique
class Departure(Enum):
    """Reason why an operation or request leaves its carrier without a result."""

    FAILED = "failed"
    CALLER_LEFT = "caller left"
    NOT_NEEDED = "not needed"
    """The call continues without the result."""


OrderOfKeyValue = actions.RefreshTopology | actions.RefreshCollection | actions.CloseConnection
"""Orders of the retry machine that only key-value responses cause."""

L_contra = TypeVar("L_contra", contravariant=True)
D = TypeVar("D")


class Carrier(Protocol[L_contra, D]):
    """Sender of attempts of one kind. ``L_contra`` is the kind, ``D`` the server that owes a response."""

    def dispatch(self, live: L_contra, now: float) -> Undispatched | None:
        """Send an attempt now or as soon as possible. Return None, or the reason why that is impossible."""

    def give_up_waiting(self, live: L_contra) -> Undispatched | None:
        """End a wait for dispatch at the deadline, and return its reason. Return None without a wait."""

    def out_of_time(self, live: L_contra) -> events.WakeupReached:
        """Return the facts for the error of a passed deadline."""

    def debtor(self, live: L_contra, event: TimePassed) -> D | None:
        """Return the server that owes the response (decision C33).

        Return None if nothing was sent, if received bytes are unread, or for a request of the client itself.
        """

    def blame(self, debtor: D, now: float) -> None:
        """Count a passed deadline against the circuit breaker of the server."""

    def attempt_failed(self, live: L_contra) -> None:
        """Forget the route of the newest attempt, because a retry or a decision of the strategy follows."""

    def retry_decided(self, live: L_contra, reason: RetryReason) -> None:
        """Record a failure about which the strategy has decided."""

    def carry_out(self, live: L_contra, order: OrderOfKeyValue, origin: object, now: float) -> None:
        """Execute an order that concerns connections or maps.

        Args:
            origin: source of the response that caused the order, as the carrier passed it to ``Lifecycle.feed``.
        """

    def succeeded(self, live: L_contra, response: events.Response, now: float) -> None:
        """Decode a successful response and deliver the result."""

    def leave(self, live: L_contra, departure: Departure, now: float) -> None:
        """Remove an operation or request from its queue or stream."""

    def fail(self, live: L_contra, error: errors.CouchbaseException, now: float) -> None:
        """Deliver a failure to the caller."""

    def context(self, live: L_contra, context: ErrorContext) -> ErrorContext:
        """Return an error context with facts about the current connection or queue."""
