"""Actions that the driver of any machine carries out, in order: on streams, strategies and the log.

Rule for ``gc=False``, here and in all other modules. The garbage collector does not traverse such a type, so it can
never free a cycle through one. The fields of such a type hold plain values: numbers, text, bytes, members of
enumerations, other types of this kind, and collections of these. They hold no task, no exception (its traceback refers
to frames, and these to any object), and no object of a user (strategy, codec, context). Exceptions to this rule are
released by the frames that may end up in a traceback; ``tests/test_untracked_types.py`` lists them (decision D69). With
64 tasks a get takes as many instructions as with all types skipped.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum, unique
from typing import Protocol

import msgspec

from triclinium_core.contract.neutral.events import StreamId, Token
from triclinium_core.decoder_faults import DecoderFault
from triclinium_core.shown import total_repr


class OpenStream(msgspec.Struct, frozen=True, gc=False):
    """Connect, then send ``StreamOpened`` or ``StreamLost``. A later ``CloseStream`` may cancel it."""

    stream: StreamId
    host: str
    port: int
    tls: bool
    """Whether to speak TLS, verifying the certificate against ``host``."""


class SendBytes(msgspec.Struct, frozen=True, gc=False):
    """Write bytes after all earlier ones of this stream. No event is expected in return.

    The bytes may contain a password and user data, so ``repr`` shows only their number.
    """

    stream: StreamId
    data: bytes
    unless_readable: bool = False
    """Whether to write only if the stream has no unread bytes, including bytes that were read and not fed yet.

    If bytes or the end of the stream are pending, write nothing, close the stream, and send ``StreamLost``
    (``LossCause.UNSOLICITED`` for bytes). Do not feed those bytes: the machine would take them for the response. The
    machine sets this only for streams that are not paused (decision D64).
    """

    @total_repr
    def __repr__(self) -> str:
        return f"SendBytes(stream={self.stream}, data=<{len(self.data)} bytes>)"


class CloseStream(msgspec.Struct, frozen=True, gc=False):
    """Close the stream or stop connecting, then send ``StreamLost`` with the number of bytes handed over.

    Until that event, the requests of an open stream stay pending. No other event of the stream may follow.
    """

    stream: StreamId
    reason: str


class PauseReading(msgspec.Struct, frozen=True, gc=False):
    """Stop reading from a stream until ``ResumeReading``.

    The driver need not notice its end either. The machine specifies its behavior if a driver continues to read.
    """

    stream: StreamId


class ResumeReading(msgspec.Struct, frozen=True, gc=False):
    """Resume reading from a stream."""

    stream: StreamId


class AwaitedStrategy(Protocol):
    """Asynchronous retry strategy. Only the machine knows the types of the request, the reason and the answer."""

    @property
    def retry_after(self) -> Callable[..., Awaitable[object]]:
        """Function that takes a request and a reason, and returns an awaitable of the answer to a failed attempt."""
        ...


class AwaitedPermit(Protocol):
    """Permit of an asynchronous strategy. Only the machine knows the type of its answer."""

    def acquire(self) -> Awaitable[object]:
        """Return an awaitable of the decision whether the first attempt may begin."""
        ...

    def record(self) -> Awaitable[None]:
        """Return an awaitable that ends when the strategy has recorded a success."""
        ...


class ConsultStrategy(msgspec.Struct, frozen=True):
    """Await ``strategy.retry_after(request, reason)``, then send ``StrategyDecided``."""

    token: Token
    strategy: AwaitedStrategy
    request: object
    reason: object


class AcquirePermit(msgspec.Struct, frozen=True):
    """Await ``permit.acquire()`` before the first attempt, then send ``StrategyDecided``."""

    token: Token
    permit: AwaitedPermit


class RecordSuccess(msgspec.Struct, frozen=True):
    """Await ``permit.record()`` in the background: the caller of ``token`` already has its result.

    No event is expected in return. Log an exception like ``ReportStrategyError``.
    """

    token: Token
    permit: AwaitedPermit


class ReportStrategyError(msgspec.Struct, frozen=True):
    """Log at ERROR that a token strategy raised while recording a success. The caller already has its result."""

    token: Token
    error: Exception


@unique
class ReportLevel(Enum):
    """Level of a report in the log."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"


class ReportConnection(msgspec.Struct, frozen=True, gc=False):
    """Log an event of a connection or of an attempt to connect.

    The loss of a node is a WARNING. Its return is INFO, with the number of failures in between. Those failures, and
    simultaneous events of other connections to the node, are DEBUG. All other events are INFO. A loss with a next step
    that concerns the whole cluster is a WARNING once for each step, and DEBUG otherwise.
    """

    stream: StreamId
    """Id of the stream; 0 without one."""
    node: str
    text: str
    level: ReportLevel = ReportLevel.INFO


class ReportDecoderFault(msgspec.Struct, frozen=True):
    """Log at ERROR, with the traceback, that a decoder failed on the bytes of a node, which is a defect.

    The machine orders this once for each pair of decoder and exception type. It closes the connection that sent the
    bytes.
    """

    stream: StreamId
    node: str
    fault: DecoderFault


# Every action that a driver of any machine carries out.
NeutralAction = (
    OpenStream
    | SendBytes
    | CloseStream
    | PauseReading
    | ResumeReading
    | ConsultStrategy
    | AcquirePermit
    | RecordSuccess
    | ReportStrategyError
    | ReportConnection
    | ReportDecoderFault
)
