"""Interface between the life cycle and what carries attempts: connections of the key-value service, or HTTP."""

from __future__ import annotations

from enum import Enum, unique
from typing import Protocol, TypeVar

import msgspec

from triclinium_core import errors
from triclinium_core.contract.neutral import TimePassed
from triclinium_core.error_context import ErrorContext
from triclinium_core.retry.couchbase import RetryReason, Service, actions, events


class Submittable(Protocol):
    """Operation or request, as the life cycle sees it."""

    @property
    def name(self) -> str:
        """Name in errors, reports and tables."""

    @property
    def service(self) -> Service:
        """Service that answers."""

    @property
    def idempotent(self) -> bool:
        """Whether it may be sent again at any stage."""


class Refused(msgspec.Struct, frozen=True, gc=False):
    """Reason why an operation or request cannot succeed. The retry strategy is not asked."""

    error: type[errors.CouchbaseException]
    text: str


Undispatched = events.DispatchFailed | events.SocketClosed | Refused
"""Reason why an attempt was not sent, or not to its end. ``Refused`` fails; the retry strategy decides about the others."""


@unique
class Departure(Enum):
    """Reason why an operation or request leaves its carrier without a result."""

    FAILED = "failed"
    CALLER_LEFT = "caller left"
    NOT_NEEDED = "not needed"
    """The call goes on without the result."""


OrderOfKeyValue = actions.RefreshTopology | actions.RefreshCollection | actions.CloseConnection
"""Orders of the retry machine that only key-value answers cause."""

L_contra = TypeVar("L_contra", contravariant=True)
D = TypeVar("D")


class Carrier(Protocol[L_contra, D]):
    """Sends attempts of one kind. ``L_contra`` is the kind, ``D`` the peer that owes an answer."""

    def dispatch(self, live: L_contra, now: float) -> Undispatched | None:
        """Send an attempt now or as soon as possible. Return None, or the reason why that is impossible."""

    def give_up_waiting(self, live: L_contra) -> Undispatched | None:
        """End a wait for dispatch at the deadline, and return its reason. Return None without a wait."""

    def out_of_time(self, live: L_contra) -> events.WakeupReached:
        """Return the facts that the error of a passed deadline shows."""

    def debtor(self, live: L_contra, event: TimePassed) -> D | None:
        """Return the peer that owes the answer (decision C33).

        Return None if nothing was sent, if received bytes are unread, or for a request of the client's own.
        """

    def blame(self, debtor: D, now: float) -> None:
        """Count a passed deadline against the circuit breaker of the peer."""

    def attempt_failed(self, live: L_contra) -> None:
        """Forget where the newest attempt went: a retry, or a question to the strategy, follows."""

    def retry_decided(self, live: L_contra, reason: RetryReason) -> None:
        """Take note of a failure about which the strategy has decided."""

    def carry_out(self, live: L_contra, order: OrderOfKeyValue, origin: object, now: float) -> None:
        """Carry out an order that concerns connections or maps.

        Args:
            origin: source of the answer that caused the order, as the carrier passed it to ``Lifecycle.feed``.
        """

    def succeeded(self, live: L_contra, response: events.Response, now: float) -> None:
        """Decode a successful answer and deliver the result."""

    def leave(self, live: L_contra, departure: Departure, now: float) -> None:
        """Take an operation or request from its place: a waiting line, or a stream."""

    def fail(self, live: L_contra, error: errors.CouchbaseException, now: float) -> None:
        """Deliver a failure to the caller."""

    def context(self, live: L_contra, context: ErrorContext) -> ErrorContext:
        """Return an error context with the facts of the place where the operation or request is now."""
