"""Orders of ``ClientMachine``, to be carried out in the order given.

Rule for ``gc=False``, here and in all other modules. The garbage collector does not look into such a type, so it can
never free a cycle through one. The fields of such a type hold plain values: numbers, text, bytes, members of
enumerations, other types of this kind, and collections of these. They hold no task, no exception (its traceback refers
to frames, and these to anything), and no object of a user (strategy, transcoder, client context). Otherwise the frames
that may end up in a traceback release the value; ``tests/test_untracked_types.py`` lists them (decision D69).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, unique

import msgspec

from triclinium_core.contract.events import StreamId, Token
from triclinium_core.decoder_faults import DecoderFault
from triclinium_core.errors import CouchbaseException
from triclinium_core.kv.operation.results import Result
from triclinium_core.kv.topology.topology import TopologyChange
from triclinium_core.retry.combined.permits import AsyncPermit
from triclinium_core.retry.couchbase.strategy import AsyncRetryStrategy, RetryRequest
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.services.request import ServiceResult
from triclinium_core.shown import total_repr
from triclinium_core.telemetry.tracing import AttributeValue


class OpenStream(msgspec.Struct, frozen=True, gc=False):
    """Connect; answer with ``StreamOpened`` or ``StreamLost``. A later ``CloseStream`` may call it off."""

    stream: StreamId
    host: str
    port: int
    tls: bool
    """Whether to speak TLS, verifying the certificate against ``host``."""


class LookUpService(msgspec.Struct, frozen=True, gc=False):
    """Ask DNS for the SRV records of a name, and answer once with ``ServiceLookedUp``, whatever comes of it.

    Streams wait for the answer for half a second; a late one is still used.
    """

    service: str
    """Such as ``_couchbase._tcp.cluster.example``."""


class SendBytes(msgspec.Struct, frozen=True, gc=False):
    """Write, after all that was ordered for this stream before; no answer is expected.

    The bytes may hold a password and documents, so ``repr`` tells only how many they are.
    """

    stream: StreamId
    data: bytes
    unless_readable: bool = False
    """Write only if nothing of the stream waits to be read, including what was read and not fed yet.

    If bytes or the end of the stream wait, write nothing, close the stream, and report ``StreamLost``
    (``LossCause.UNSOLICITED`` for bytes). Do not feed those bytes: the machine would take them for the answer. The
    machine sets this only for streams that are not paused (decision D64).
    """

    @total_repr
    def __repr__(self) -> str:
        return f"SendBytes(stream={self.stream}, data=<{len(self.data)} bytes>)"


class CloseStream(msgspec.Struct, frozen=True, gc=False):
    """Close, or stop connecting; answer with ``StreamLost``, which tells how much had been handed over.

    Until that comes, the requests of an open stream stay open. Nothing else that it causes is heard any more.
    """

    stream: StreamId
    reason: str


class PauseReading(msgspec.Struct, frozen=True, gc=False):
    """Read nothing from a stream until ``ResumeReading``: its rows are not wanted yet.

    Its end need not be noticed either. If a driver reads on, the request fails once 16 MiB of
    rows have come that nobody asked for.
    """

    stream: StreamId


class ResumeReading(msgspec.Struct, frozen=True, gc=False):
    """Read from a stream again."""

    stream: StreamId


class RowsReceived(msgspec.Struct, frozen=True):
    """Wake the caller with rows, each the JSON text of one. No more follow before ``RowsWanted``, nor does the end.

    Documents may stand in them, so ``repr`` tells only how many they are.
    """

    token: Token
    rows: Sequence[bytes]

    @total_repr
    def __repr__(self) -> str:
        return f"RowsReceived(token={self.token}, rows=<{len(self.rows)} rows>)"


class CompleteOperation(msgspec.Struct, frozen=True, gc=False):
    """Wake the caller with ``result``."""

    token: Token
    result: Result


class CompleteRequest(msgspec.Struct, frozen=True):
    """Wake the caller of a service with ``result``: with what came after the rows, where there were some."""

    token: Token
    result: ServiceResult


class FailOperation(msgspec.Struct, frozen=True):
    """Raise ``error`` in the caller."""

    token: Token
    error: CouchbaseException


class ReportDispatch(msgspec.Struct, frozen=True, gc=False):
    """For the tracer: an attempt is about to be sent. Its span is ``dispatch_to_server``; only what is traced has it.

    An operation and a request have one attempt at a time, an inquiry has one on each stream. ``ReportAnswer`` with the
    same token and stream ends it; ``CompleteOperation``, ``CompleteRequest``, ``FailOperation`` and
    ``OperationAbandoned`` end all attempts of their token.
    """

    token: Token
    attributes: Mapping[str, AttributeValue]
    """Those of SDK-RFC 0067 "Dispatch Span Attributes" that are known before there is an answer."""
    stream: StreamId
    """On which the attempt travels."""


class ReportAnswer(msgspec.Struct, frozen=True, gc=False):
    """For the tracer: the attempt is over, because the answer came, or because none will."""

    token: Token
    attributes: Mapping[str, AttributeValue]
    """What the answer has told for the attempt's span; nothing where there was no answer."""
    stream: StreamId
    """On which the attempt travelled."""


class ReportEnd(msgspec.Struct, frozen=True):
    """For the tracer and the meter: the answer to a request is whole, or none will come. Only what is traced has it.

    It ends the span of the whole. Rows that have come may still wait for their reader, whose time is not the request's.
    """

    token: Token
    error: CouchbaseException | None
    """What the caller gets behind the rows; None where the request succeeded."""


class ConsultStrategy(msgspec.Struct, frozen=True):
    """Await ``strategy.retry_after(request, reason)``; answer with ``StrategyDecided``."""

    token: Token
    strategy: AsyncRetryStrategy
    request: RetryRequest
    reason: RetryReason


class AcquirePermit(msgspec.Struct, frozen=True):
    """Await ``permit.acquire()`` before the first attempt; answer with ``StrategyDecided``."""

    token: Token
    permit: AsyncPermit


class RecordSuccess(msgspec.Struct, frozen=True):
    """Await ``permit.record()``, in the background: the caller of ``token`` has its result already.

    Nothing is answered. What it raises is for the log, as ``ReportStrategyError`` is.
    """

    token: Token
    permit: AsyncPermit


class ReportStrategyError(msgspec.Struct, frozen=True):
    """For the log, at ERROR: a token strategy raised when it was told of a success, whose caller has its result."""

    token: Token
    error: Exception


class ReportRetry(msgspec.Struct, frozen=True):
    """For the log, at DEBUG: an operation will be retried."""

    token: Token
    request: RetryRequest
    reason: RetryReason
    delay: float
    dispatches: bool
    node: str | None


class ReportRefusal(msgspec.Struct, frozen=True):
    """For the log, at INFO: a retry was refused."""

    token: Token
    request: RetryRequest
    reason: RetryReason
    error: str
    node: str | None


@unique
class ReportLevel(Enum):
    """How loudly the log tells a report."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"


class ReportConnection(msgspec.Struct, frozen=True, gc=False):
    """For the log: what happened to a connection, or on the way to one, in words.

    That a node is lost is a WARNING, and that the first connection to it is ready again is INFO, with the failures in
    between. Those failures, and what becomes of other connections to the node meanwhile, are DEBUG; all else is INFO.
    A loss with a next step that concerns the whole cluster is a WARNING once for each step, and DEBUG otherwise.
    """

    stream: StreamId
    """0 where there is none."""
    node: str
    text: str
    level: ReportLevel = ReportLevel.INFO


class ReportDecoderFault(msgspec.Struct, frozen=True):
    """A decoder failed on the bytes of a node, which is a defect. To be logged at ERROR with the traceback.

    The machine orders it once for each kind: decoder and exception type. It closes the connection that sent the bytes.
    """

    stream: StreamId
    node: str
    fault: DecoderFault


@unique
class TelemetryKind(Enum):
    """What was gathered."""

    SLOW_OPERATIONS = "operations that took their threshold or longer"
    DURATIONS = "how long the operations of each kind took"
    ORPHANS = "answers that nobody waited for any more"


class ReportTelemetry(msgspec.Struct, frozen=True, gc=False):
    """For the log: what was gathered in an interval. Durations are INFO, all else is WARNING."""

    kind: TelemetryKind
    text: str
    """One line of JSON, as RFC 0067 has it."""


class PublishTopology(msgspec.Struct, frozen=True):
    """For subscribers: the nodes of the cluster, or of a bucket, have changed, or told a newer revision."""

    change: TopologyChange


Action = (
    OpenStream
    | LookUpService
    | SendBytes
    | CloseStream
    | PauseReading
    | ResumeReading
    | RowsReceived
    | CompleteOperation
    | CompleteRequest
    | FailOperation
    | ConsultStrategy
    | AcquirePermit
    | RecordSuccess
    | ReportStrategyError
    | ReportRetry
    | ReportRefusal
    | ReportDispatch
    | ReportAnswer
    | ReportEnd
    | ReportConnection
    | ReportDecoderFault
    | ReportTelemetry
    | PublishTopology
)
