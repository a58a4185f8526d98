"""Actions that only the Couchbase client orders: on operations, rows, look-ups and the topology, and for telemetry."""

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
    """Ask DNS for the SRV records of a name, and answer once with ``ServiceLookedUp``, whatever comes of it.

    Streams wait for the answer for half a second; a late one is still used.
    """

    service: str
    """Such as ``_couchbase._tcp.cluster.example``."""


class RowsReceived(msgspec.Struct, frozen=True):
    """Wake the caller with rows, each the JSON text of one. No more follow before ``RowsWanted``, nor does the end.

    Documents may stand in them, so ``repr`` tells only how many they are.
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
    """Wake the caller of a service with ``result``: with what came after the rows, where there were some."""

    token: neutral.Token
    result: ServiceResult


class FailOperation(msgspec.Struct, frozen=True):
    """Raise ``error`` in the caller."""

    token: neutral.Token
    error: errors.CouchbaseException


class ReportDispatch(msgspec.Struct, frozen=True, gc=False):
    """For the tracer: an attempt is about to be sent. Its span is ``dispatch_to_server``; only what is traced has it.

    An operation and a request have one attempt at a time, an inquiry has one on each stream. ``ReportAnswer`` with the
    same token and stream ends it; ``CompleteOperation``, ``CompleteRequest``, ``FailOperation`` and
    ``OperationAbandoned`` end all attempts of their token.
    """

    token: neutral.Token
    attributes: Mapping[str, AttributeValue]
    """Those of SDK-RFC 0067 "Dispatch Span Attributes" that are known before there is an answer."""
    stream: neutral.StreamId
    """On which the attempt travels."""


class ReportAnswer(msgspec.Struct, frozen=True, gc=False):
    """For the tracer: the attempt is over, because the answer came, or because none will."""

    token: neutral.Token
    attributes: Mapping[str, AttributeValue]
    """Attributes of the answer for the attempt's span; empty without an answer."""
    stream: neutral.StreamId
    """On which the attempt travelled."""


class ReportEnd(msgspec.Struct, frozen=True):
    """For the tracer and the meter: the answer to a request is whole, or none will come. Only what is traced has it.

    It ends the span of the whole. Rows that have come may still wait for their reader, whose time is not the request's.
    """

    token: neutral.Token
    error: errors.CouchbaseException | None
    """Error that the caller gets behind the rows; None if the request succeeded."""


class ReportRetry(msgspec.Struct, frozen=True):
    """For the log, at DEBUG: an operation will be retried."""

    token: neutral.Token
    request: RetryRequest
    reason: RetryReason
    delay: float
    dispatches: bool
    node: str | None


class ReportRefusal(msgspec.Struct, frozen=True):
    """For the log, at INFO: a retry was refused."""

    token: neutral.Token
    request: RetryRequest
    reason: RetryReason
    error: str
    node: str | None


@unique
class TelemetryKind(Enum):
    """Kind of gathered telemetry."""

    SLOW_OPERATIONS = "operations that took their threshold or longer"
    DURATIONS = "how long the operations of each kind took"
    ORPHANS = "answers for which no caller waited any more"


class ReportTelemetry(msgspec.Struct, frozen=True, gc=False):
    """For the log: what was gathered in an interval. Durations are INFO, all else is WARNING."""

    kind: TelemetryKind
    text: str
    """One line of JSON, as RFC 0067 has it."""


class PublishTopology(msgspec.Struct, frozen=True):
    """For subscribers: the nodes of the cluster, or of a bucket, have changed, or told a newer revision."""

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
