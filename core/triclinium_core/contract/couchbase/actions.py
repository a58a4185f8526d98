"""Actions of the Couchbase client only: for operations, rows, look-ups, topology and telemetry."""

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
    """Look up the SRV records of a name in DNS, and send exactly one ``ServiceLookedUp``, even on failure.

    Streams wait half a second for it; the client still uses a late one.
    """

    service: str
    """Name to look up, such as ``_couchbase._tcp.cluster.example``."""


class RowsReceived(msgspec.Struct, frozen=True):
    """Wake the caller with rows, each as JSON text. Neither further rows nor the end follow before ``RowsWanted``.

    Rows may contain documents, so ``repr`` shows only their number.
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
    """Wake the caller of a service with ``result``: the part of the response after the rows, if it has rows."""

    token: neutral.Token
    result: ServiceResult


class FailOperation(msgspec.Struct, frozen=True):
    """Raise ``error`` in the caller."""

    token: neutral.Token
    error: errors.CouchbaseException


class ReportDispatch(msgspec.Struct, frozen=True, gc=False):
    """Report to the tracer that an attempt is about to be sent: begin its span ``dispatch_to_server``.

    Only traced operations, requests and inquiries have this report. An operation and a request have one attempt at a
    time, an inquiry has one on each stream. ``ReportAnswer`` with the same token and stream ends the attempt;
    ``CompleteOperation``, ``CompleteRequest``, ``FailOperation`` and ``OperationAbandoned`` end all attempts of their
    token.
    """

    token: neutral.Token
    attributes: Mapping[str, AttributeValue]
    """Attributes of SDK-RFC 0067 "Dispatch Span Attributes" that are known before the response."""
    stream: neutral.StreamId
    """Stream of the attempt."""


class ReportAnswer(msgspec.Struct, frozen=True, gc=False):
    """Report to the tracer that the attempt has ended: its response has arrived, or none will."""

    token: neutral.Token
    attributes: Mapping[str, AttributeValue]
    """Attributes of the response for the attempt's span; empty without a response."""
    stream: neutral.StreamId
    """Stream of the attempt."""


class ReportEnd(msgspec.Struct, frozen=True):
    """Report to tracer and meter that the response to a traced request is complete, or none will arrive.

    It ends the span of the request. Received rows may still wait for their reader, whose time does not count.
    """

    token: neutral.Token
    error: errors.CouchbaseException | None
    """Error that the caller gets after the rows; None if the request succeeded."""


class ReportRetry(msgspec.Struct, frozen=True):
    """Log at DEBUG that an operation will be retried."""

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
    """Kind of collected telemetry."""

    SLOW_OPERATIONS = "operations that took their threshold or longer"
    DURATIONS = "durations of the operations of each kind"
    ORPHANS = "responses that arrived after their operation had ended"


class ReportTelemetry(msgspec.Struct, frozen=True, gc=False):
    """Log the telemetry of an interval: durations at INFO, the other kinds at WARNING."""

    kind: TelemetryKind
    text: str
    """One line of JSON in the format of RFC 0067."""


class PublishTopology(msgspec.Struct, frozen=True):
    """Report a change to subscribers: other nodes, or a newer revision, of the cluster or of a bucket."""

    change: TopologyChange


# Every action that the client machine orders.
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
