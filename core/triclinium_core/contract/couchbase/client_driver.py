"""The half of a client's driver that needs no event loop: events and actions of operations and requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set as AbstractSet
from dataclasses import replace
from typing import Protocol, TypeVar

from triclinium_core.contract.couchbase.actions import (
    Action,
    CompleteOperation,
    CompleteRequest,
    FailOperation,
    LookUpService,
    PublishTopology,
    ReportRefusal,
    ReportRetry,
    ReportTelemetry,
    RowsReceived,
    TelemetryKind,
)
from triclinium_core.contract.couchbase.events import (
    AbandonReason,
    AuthenticatorChanged,
    Event,
    InquirySubmitted,
    OperationAbandoned,
    OperationsSubmitted,
    OperationSubmitted,
    RequestSubmitted,
    ServiceLookedUp,
)
from triclinium_core.contract.neutral import ClosedError, DrivenStream, Driver, Machine, OpenStream, Token
from triclinium_core.contract.neutral.driver import DEBUG, INFO, WARNING, Log
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.document_operations import Operation
from triclinium_core.kv.operation.inquiries import Inquiry
from triclinium_core.options import Authenticator
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.retry.couchbase import failures
from triclinium_core.services.service_request import ServiceRequest

W = TypeVar("W")
S = TypeVar("S", bound=DrivenStream)

TELEMETRY_LEVELS: Mapping[TelemetryKind, int] = {
    TelemetryKind.SLOW_OPERATIONS: WARNING,
    TelemetryKind.DURATIONS: INFO,
    TelemetryKind.ORPHANS: WARNING,
}
"""Level of each kind of telemetry in the log."""


class DrivenClient(Machine[Event, Action], Protocol):
    """Methods of a client machine that ``ClientDriver`` calls, in addition to those of every machine."""

    def check_authenticator(self, authenticator: Authenticator) -> None:
        """Check that an authenticator may replace the current one."""
        ...

    def is_ambiguous(self, token: Token) -> bool:
        """Return whether the operation, if abandoned now, may have been or may still be applied."""
        ...

    def error_context(self, token: Token, now: float) -> ErrorContext | None:
        """Return the error context of a call that is abandoned now; None for an unknown token."""
        ...

    def last_reports(self, now: float | None = None) -> Sequence[ReportTelemetry]:
        """Return and clear the reports of all open intervals, which end ``now`` or at the time of the newest event."""
        ...


class ClientDriver(Driver[Event, Action, W, S]):
    """Driver of a client machine without I/O. ``wake`` gets a ``Result``, ``ServiceResult``, ``RowsReceived`` or error.

    It looks up no services, publishes no topologies and traces nothing. A subclass may add handlers for these actions
    to ``_handlers``.
    """

    def __init__(
        self,
        machine: DrivenClient,
        *,
        now: Callable[[], float],
        open_stream: Callable[[OpenStream], S],
        make_nonce: Callable[[], str],
        log: Log,
    ) -> None:
        super().__init__(machine, now=now, open_stream=open_stream, make_nonce=make_nonce, log=log)
        self.machine: DrivenClient = machine
        """The machine. Its snapshots may be read; only the driver feeds events."""
        self._handlers |= {
            # By default, look up nothing: without targets, the machine connects to the host of the connection string.
            LookUpService: lambda action: self.feed(ServiceLookedUp(action.service)),
            RowsReceived: lambda action: self.settle(action.token, action, is_last=False),
            CompleteOperation: lambda action: self.settle(action.token, action.result),
            CompleteRequest: lambda action: self.settle(action.token, action.result),
            FailOperation: lambda action: self.settle(action.token, action.error),
            ReportRetry: lambda action: log.log(DEBUG, "%s", action),
            ReportRefusal: lambda action: log.log(INFO, "%s", action),
            ReportTelemetry: lambda action: log.log(TELEMETRY_LEVELS[action.kind], "%s", action.text),
            PublishTopology: lambda action: log.log(DEBUG, "%s", action),
        }

    def submitted(self, event: Event) -> AbstractSet[Token]:
        """Return the tokens of the operations, requests and inquiries that an event submits."""
        if isinstance(event, OperationsSubmitted):
            return {submission.token for submission in event.submissions}
        return {event.token} if isinstance(event, OperationSubmitted | RequestSubmitted | InquirySubmitted) else set()

    def abandoned(self, token: Token) -> OperationAbandoned:
        """Return the event that reports that a caller stopped waiting."""
        return OperationAbandoned(token)

    def set_authenticator(self, authenticator: Authenticator) -> None:
        """Replace the authenticator of all connections. Load a new certificate into the TLS context first.

        Raises:
            InvalidArgumentException: ``authenticator`` cannot replace the current one; nothing has changed.
            ClosedError: the driver was closed or has failed.
        """
        if self.is_ended:
            raise ClosedError("the client was closed or has failed, so the authenticator was not set")
        self.machine.check_authenticator(authenticator)
        self.feed(AuthenticatorChanged(authenticator, self.make_nonce()))

    def close(self) -> None:
        """Close all streams immediately, and log the last reports. Waiting callers get ``ClosedError``."""
        is_first = not self.is_ended
        super().close()
        for report in self.machine.last_reports(self.now()) if is_first else ():
            self.execute([report])

    def expire(self, token: Token, seconds: float) -> None:
        """Abandon a submission whose time limit of ``seconds`` has passed. Ignore a submission that has ended.

        The caller gets the exception for a timeout, which depends on whether a write may have been applied.
        """
        waiter = self.waiters.get(token)
        if waiter is not None:
            context = replace(self.machine.error_context(token, self.now()) or ErrorContext(), timeout=seconds)
            error = failures.timeout(context, ambiguous=self.machine.is_ambiguous(token), last_reason=None)
            try:
                self.leave(token, event=OperationAbandoned(token, reason=AbandonReason.TIMEOUT))
            finally:
                # Wake the caller even if the machine raises because of a defect, which ends the driver.
                self.wake(waiter, error)

    def submission(
        self, token: Token, request: Operation | ServiceRequest | Inquiry, strategy: AnyRetryStrategy | None = None
    ) -> Event:
        """Return the event that submits ``request``. An inquiry ignores ``strategy``."""
        if isinstance(request, Inquiry):
            return InquirySubmitted(token, request)
        if isinstance(request, ServiceRequest):
            return RequestSubmitted(token, request, strategy)
        return OperationSubmitted(token, request, strategy)
