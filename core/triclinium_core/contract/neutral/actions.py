"""Actions that a driver of any machine carries out: on streams, strategies and the log, in the order given.

Rule for ``gc=False``, here and in all other modules. The garbage collector does not look into such a type, so it can
never free a cycle through one. The fields of such a type hold plain values: numbers, text, bytes, members of
enumerations, other types of this kind, and collections of these. They hold no task, no exception (its traceback refers
to frames, and these to anything), and no object of a user (strategy, codec, context). Otherwise the frames that may end
up in a traceback release the value; ``tests/test_untracked_types.py`` lists them (decision D69).
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
    """Connect; answer with ``StreamOpened`` or ``StreamLost``. A later ``CloseStream`` may call it off."""

    stream: StreamId
    host: str
    port: int
    tls: bool
    """Whether to speak TLS, verifying the certificate against ``host``."""


class SendBytes(msgspec.Struct, frozen=True, gc=False):
    """Write, after all that was ordered for this stream before; no answer is expected.

    The bytes may hold a password and a user's data, so ``repr`` shows only their number.
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
    """Close, or stop connecting; answer with ``StreamLost``, which says how much had been handed over.

    Until that comes, the requests of an open stream stay open. No other event of the stream may follow.
    """

    stream: StreamId
    reason: str


class PauseReading(msgspec.Struct, frozen=True, gc=False):
    """Read nothing from a stream until ``ResumeReading``: its bytes are not wanted yet.

    Its end need not be noticed either. The machine states what it does if a driver reads on.
    """

    stream: StreamId


class ResumeReading(msgspec.Struct, frozen=True, gc=False):
    """Read from a stream again."""

    stream: StreamId


class AwaitedStrategy(Protocol):
    """Asynchronous retry strategy. Only the machine knows the types of the request, the reason and the answer."""

    @property
    def retry_after(self) -> Callable[..., Awaitable[object]]:
        """Function from a request and a reason to an awaitable of the answer to a failed attempt."""
        ...


class AwaitedPermit(Protocol):
    """Permit of an asynchronous strategy. Only the machine knows the type of its answer."""

    def acquire(self) -> Awaitable[object]:
        """Return an awaitable of the answer to the question whether the first attempt may begin."""
        ...

    def record(self) -> Awaitable[None]:
        """Return an awaitable that ends when the strategy has recorded a success."""
        ...


class ConsultStrategy(msgspec.Struct, frozen=True):
    """Await ``strategy.retry_after(request, reason)``; answer with ``StrategyDecided``."""

    token: Token
    strategy: AwaitedStrategy
    request: object
    reason: object


class AcquirePermit(msgspec.Struct, frozen=True):
    """Await ``permit.acquire()`` before the first attempt; answer with ``StrategyDecided``."""

    token: Token
    permit: AwaitedPermit


class RecordSuccess(msgspec.Struct, frozen=True):
    """Await ``permit.record()``, in the background: the caller of ``token`` has its result already.

    There is no answer. An exception is logged, as ``ReportStrategyError`` is.
    """

    token: Token
    permit: AwaitedPermit


class ReportStrategyError(msgspec.Struct, frozen=True):
    """For the log, at ERROR: a token strategy raised when it was to record a success, whose caller has its result."""

    token: Token
    error: Exception


@unique
class ReportLevel(Enum):
    """Level of a report in the log."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"


class ReportConnection(msgspec.Struct, frozen=True, gc=False):
    """For the log: an event of a connection, or on the way to one, in words.

    The loss of a node is a WARNING, and its return INFO, with the number of failures in between. Those failures, and
    events of other connections to the node meanwhile, are DEBUG; all else is INFO. A loss with a next step that concerns
    the whole cluster is a WARNING once for each step, and DEBUG otherwise.
    """

    stream: StreamId
    """0 without a stream."""
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
