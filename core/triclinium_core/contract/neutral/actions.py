"""Actions that a driver of any protocol executes in order: for streams, strategies and the log.

Rule for ``gc=False``, here and in all other modules: the garbage collector does not traverse an object of such a type,
so it can never free a cycle through the object. The fields of such a type therefore contain only plain values: numbers,
text, bytes, enum members, other types with ``gc=False``, and collections of all these. They contain no task, no
exception (its traceback refers to frames, and frames refer to any object), and no object of a user (strategy, codec,
context). ``tests/test_untracked_types.py`` lists the fields that break this rule; frames that may end up in a traceback
release the objects in these fields (decision D69). With this rule and 64 tasks, a get takes as few instructions as with
``gc=False`` for all types.
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
    """Connect, then send ``StreamOpened`` or ``StreamLost``. A later ``CloseStream`` may cancel the attempt."""

    stream: StreamId
    host: str
    port: int
    tls: bool
    """Whether to speak TLS. A driver that verifies certificates verifies the node's certificate against ``host``."""


class SendBytes(msgspec.Struct, frozen=True, gc=False):
    """Write bytes after all earlier bytes of this stream. The machine expects no event in return.

    The bytes may contain a password and user data, so ``repr`` shows only their number.
    """

    stream: StreamId
    data: bytes
    unless_readable: bool = False
    """Whether to write only if no bytes of the stream are pending: neither unread, nor read but not fed to the machine.

    If bytes or the end of the stream are pending, write nothing, close the stream, and send ``StreamLost``, with
    ``LossCause.UNSOLICITED`` if bytes were pending. Do not feed the pending bytes: the machine would take them for the
    response to this request. The machine sets this only for streams that are not paused (decision D64).
    """

    @total_repr
    def __repr__(self) -> str:
        return f"SendBytes(stream={self.stream}, data=<{len(self.data)} bytes>)"


class CloseStream(msgspec.Struct, frozen=True, gc=False):
    """Close the stream or stop connecting, then send ``StreamLost`` with the number of bytes handed to the socket.

    Until that event, the requests on an open stream may stay pending. The driver sends no other event of the stream.
    """

    stream: StreamId
    reason: str


class PauseReading(msgspec.Struct, frozen=True, gc=False):
    """Stop reading from a stream until ``ResumeReading``.

    Until then, the driver may also ignore the end of the stream. Each machine defines its own behavior for a driver
    that continues to read.
    """

    stream: StreamId


class ResumeReading(msgspec.Struct, frozen=True, gc=False):
    """Resume reading from a stream after ``PauseReading``."""

    stream: StreamId


class AwaitedStrategy(Protocol):
    """Asynchronous retry strategy. The types of the request, the reason and the result depend on the machine."""

    @property
    def retry_after(self) -> Callable[..., Awaitable[object]]:
        """Function that takes a failed request and the reason, and returns an awaitable with the decision."""
        ...


class AwaitedPermit(Protocol):
    """Permit of an asynchronous strategy. The type of the result of ``acquire`` depends on the machine."""

    def acquire(self) -> Awaitable[object]:
        """Return an awaitable with the decision on whether the first attempt may begin."""
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

    The machine expects no event in return. Log an exception of ``record`` as for ``ReportStrategyError``.
    """

    token: Token
    permit: AwaitedPermit


class ReportStrategyError(msgspec.Struct, frozen=True):
    """Log at ERROR that a token strategy raised while recording a success. The caller already has its result."""

    token: Token
    error: BaseException


@unique
class ReportLevel(Enum):
    """Level of a report in the log."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"


class ReportConnection(msgspec.Struct, frozen=True, gc=False):
    """Log an event of a connection or of an attempt to connect.

    The level is WARNING if the client loses a node, or at the first refusal of something that several operations need.
    It is INFO if the client reaches the node again; that text has the number of failures in between. Those failures,
    and simultaneous events of other connections to the node, have DEBUG. If the text of a loss has a next step that
    concerns the whole cluster, the first loss with this step has WARNING, and later ones have DEBUG. Reports about
    security, about a response that belongs to another request, and about omitted rows have WARNING. A failure that each
    affected request also reports has DEBUG. All other events have INFO.
    """

    stream: StreamId
    """Id of the stream; 0 if the event belongs to no stream."""
    node: str
    text: str
    level: ReportLevel = ReportLevel.INFO


class ReportDecoderFault(msgspec.Struct, frozen=True):
    """Log at ERROR, with the traceback, that a decoder failed on the bytes of a node, which is a defect of the library.

    The machine orders this at most once for each pair of decoder and exception type. It closes the connection on which
    the bytes arrived, except an HTTP connection that carries another request.
    """

    stream: StreamId
    node: str
    fault: DecoderFault


# Actions that a driver executes in every protocol.
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
