"""Actions that only a driver of the Couchbase client executes: operations, rows, DNS, topology and telemetry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, unique

import msgspec

from triclinium_core import errors
from triclinium_core.contract import neutral
from triclinium_core.kv.operation.results import Result
from triclinium_core.kv.topology.topology import TopologyChange
from triclinium_core.retry.couchbase import RetryReason, RetryRequest
from triclinium_core.services.service_request import ServiceResult
from triclinium_core.shown import total_repr
from triclinium_core.telemetry.tracing import AttributeValue


class LookUpService(msgspec.Struct, frozen=True, gc=False):
    """Look up the SRV records of a name in DNS, then send exactly one ``ServiceLookedUp``, even if the lookup fails.

    Connections that seek any node of the cluster wait up to half a second for that event. If it comes later, only later
    connections use it.
    """

    service: str
    """Name to look up, such as ``_couchbase._tcp.cluster.example``."""


class RowsReceived(msgspec.Struct, frozen=True):
    """Wake the caller with rows, each as JSON text.

    The machine orders neither further rows nor the end of the request before ``RowsWanted``. Rows may contain
    documents, so ``repr`` shows only their number.
    """

    token: neutral.Token
    rows: Sequence[bytes]

    @total_repr
    def __repr__(self) -> str:
        return f"RowsReceived(token={self.token}, rows=<{len(self.rows)} rows>)"


class CompleteOperation(msgspec.Struct, frozen=True, gc=False):
    """Wake the caller with ``result``."""

    token: neutral.Token
    result: Result


class CompleteRequest(msgspec.Struct, frozen=True):
    """Wake the caller of a service with ``result``. If the response has rows, ``result`` is the rest of it."""

    token: neutral.Token
    result: ServiceResult


class FailOperation(msgspec.Struct, frozen=True):
    """Raise ``error`` in the caller."""

    token: neutral.Token
    error: errors.CouchbaseException


class ReportDispatch(msgspec.Struct, frozen=True, gc=False):
    """Report to the tracer that the client is about to send an attempt: begin the span ``dispatch_to_server``.

    The machine orders this only for traced operations, requests and inquiries. An operation or a request has one
    attempt at a time; an inquiry has one attempt on each stream. ``ReportAnswer`` with the same token and stream ends
    the attempt. ``CompleteOperation``, ``CompleteRequest``, ``FailOperation`` and ``OperationAbandoned`` end all
    attempts of their token.
    """

    token: neutral.Token
    attributes: Mapping[str, AttributeValue]
    """Attributes of SDK-RFC 0067 "Dispatch Span Attributes" that the client knows before the response arrives."""
    stream: neutral.StreamId
    """Stream of the attempt."""


class ReportAnswer(msgspec.Struct, frozen=True, gc=False):
    """Report to the tracer that an attempt has ended: its response has arrived or is no longer awaited."""

    token: neutral.Token
    attributes: Mapping[str, AttributeValue]
    """Attributes that the response adds to the attempt's span; empty without a response."""
    stream: neutral.StreamId
    """Stream of the attempt."""


class ReportEnd(msgspec.Struct, frozen=True):
    """Report to the tracer and the meter that the response to a traced request is complete or can no longer arrive.

    This ends the span of the request, although the caller may not have read all received rows yet. The time that the
    caller takes to read them does not count.
    """

    token: neutral.Token
    error: errors.CouchbaseException | None
    """Error that the caller receives after the rows; None if the request succeeded."""


class ReportRetry(msgspec.Struct, frozen=True):
    """Log at DEBUG that the client grants a retry, even if ``dispatches`` is False because a limit cut the delay."""

    token: neutral.Token
    request: RetryRequest
    reason: RetryReason
    delay: float
    dispatches: bool
    node: str | None


class ReportRefusal(msgspec.Struct, frozen=True):
    """Log at INFO that a retry was refused."""

    token: neutral.Token
    request: RetryRequest
    reason: RetryReason
    error: str
    node: str | None


@unique
class TelemetryKind(Enum):
    """Kind of telemetry that ``Gathering`` collects. The value describes its entries."""

    SLOW_OPERATIONS = "operations that took their threshold or longer"
    DURATIONS = "durations of the operations of each kind"
    ORPHANS = "responses that arrived after their operation had ended"


class ReportTelemetry(msgspec.Struct, frozen=True, gc=False):
    """Log the telemetry of one interval: durations at INFO; slow operations and orphans at WARNING."""

    kind: TelemetryKind
    text: str
    """One line of JSON in the format of RFC 0067."""


class PublishTopology(msgspec.Struct, frozen=True):
    """Report to subscribers a new version of the topology of the cluster or of a bucket."""

    change: TopologyChange


# All actions that the client machine orders.
Action = (
    neutral.OpenStream
    | LookUpService
    | neutral.SendBytes
    | neutral.CloseStream
    | neutral.PauseReading
    | neutral.ResumeReading
    | RowsReceived
    | CompleteOperation
    | CompleteRequest
    | FailOperation
    | neutral.ConsultStrategy
    | neutral.AcquirePermit
    | neutral.RecordSuccess
    | neutral.ReportStrategyError
    | ReportRetry
    | ReportRefusal
    | ReportDispatch
    | ReportAnswer
    | ReportEnd
    | neutral.ReportConnection
    | neutral.ReportDecoderFault
    | ReportTelemetry
    | PublishTopology
)
