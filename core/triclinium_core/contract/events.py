"""What ``ClientMachine`` hears: facts, each a noun with a past participle.

What happened to a stream raises InvalidArgumentException where it is made, if it cannot be.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from enum import Enum, StrEnum, unique
from typing import NewType

import msgspec

from triclinium_core.checks import check_integer, check_seconds, check_type
from triclinium_core.decoder_faults import DecoderFault
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.kv.operation.inquiries import Inquiry
from triclinium_core.kv.operation.requests import Operation
from triclinium_core.options import Authenticator
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.retry.couchbase.strategy import RetryAction
from triclinium_core.services.request import Encoding, ServiceRequest
from triclinium_core.shown import total_repr
from triclinium_core.telemetry.span_names import WrappingCall

Token = NewType("Token", int)
"""Names a user's operation, or inquiry, for its whole life; an opaque names one attempt on one connection."""
StreamId = NewType("StreamId", int)
"""Names one byte stream; never used again after it is lost."""


class OperationSubmitted(msgspec.Struct, frozen=True):
    """The user asked for something. ``token`` must not have been used before."""

    token: Token
    operation: Operation
    retry_strategy: AnyRetryStrategy | None = None
    """None for the client's own."""
    client_context: Mapping[str, object] | None = None
    """What a retry strategy may look at."""
    is_traced: bool = False
    """Whether ``ReportDispatch`` and ``ReportAnswer`` are to tell of each attempt."""
    is_part: bool = False
    """Whether it is one of several operations of a call, which the meter counts as one at ``CallEnded``."""


class CallEnded(msgspec.Struct, frozen=True, gc=False):
    """A call of several operations that are parts has ended, in whatever way."""

    name: WrappingCall
    seconds: float
    """Duration of the call."""

    def __post_init__(self) -> None:
        check_type(self.name, "name", WrappingCall)
        check_seconds(self.seconds, "seconds")


class OperationsSubmitted(msgspec.Struct, frozen=True):
    """Users asked for several things at once: all of them are submitted, in order, or the mistake of one raises."""

    submissions: Sequence[OperationSubmitted]

    def __post_init__(self) -> None:
        check_type(self.submissions, "submissions", Sequence)


class RequestSubmitted(msgspec.Struct, frozen=True):
    """The user asked a service over HTTP. ``token`` must not have been used before, for an operation neither.

    Rows are wanted from the beginning: the first that come leave as ``RowsReceived``.
    """

    token: Token
    request: ServiceRequest
    retry_strategy: AnyRetryStrategy | None = None
    """None for the client's own."""
    client_context: Mapping[str, object] | None = None
    """What a retry strategy may look at."""
    is_traced: bool = False
    """As in ``OperationSubmitted``; ``ReportEnd`` tells then when the answer is whole."""
    encoding: Encoding | None = None
    """Has the payload of each attempt encoded, and measures that, for which the core has no clock; None if nothing
    needs it."""


class RowsWanted(msgspec.Struct, frozen=True, gc=False):
    """The user has taken the rows of a request, and waits for more, or for the end; unknown tokens are ignored."""

    token: Token


class InquirySubmitted(msgspec.Struct, frozen=True):
    """The user asked about the cluster. ``token`` must not have been used before, not even for an operation."""

    token: Token
    inquiry: Inquiry
    is_traced: bool = False
    """As in ``OperationSubmitted``: each probe is an attempt."""


@unique
class AbandonReason(StrEnum):
    """Reason of an ``OperationAbandoned``. The machine records it in telemetry and decides nothing by it."""

    TIMEOUT = "timeout"
    """A time limit of the caller passed."""
    CANCELLED = "cancelled"
    """The caller was cancelled, or left for another reason."""
    NOT_NEEDED = "not_needed"
    """The caller has all that it needs: another copy answered first, or it reads no further rows. This is no failure."""


class OperationAbandoned(msgspec.Struct, frozen=True):
    """The user left. A reply that still comes is dropped as an orphan; unknown tokens are ignored."""

    token: Token
    fault: DecoderFault | None = None
    """The defect, if the decoder of the request's rows failed; the machine then closes the connection that sent
    them."""
    reason: AbandonReason = AbandonReason.CANCELLED


class SubscribersChanged(msgspec.Struct, frozen=True, gc=False):
    """Another number of subscribers reads ``PublishTopology``.

    As long as there is one, no bucket with a topology is forgotten, so that its sequence of versions has no gap.
    """

    count: int


def _check_nonce(nonce: str) -> None:
    check_type(nonce, "nonce", str)
    # RFC 5802, 7, and the blank, which ``scram`` takes as well; plain memcached and HTTP need none, so it may be empty. It
    # is not shown, as what is proved with it is not.
    if not nonce.isascii() or not nonce.isprintable() or "," in nonce:
        raise InvalidArgumentException("nonce must be printable ASCII without a comma", parameter="nonce")


class StreamOpened(msgspec.Struct, frozen=True, gc=False):
    """An ``OpenStream`` succeeded, TLS included. ``repr`` keeps the nonce to itself."""

    stream: StreamId
    nonce: str
    """Fresh entropy for SCRAM: at least 18 random bytes as printable ASCII without a comma."""
    local_address: str = ""
    remote_address: str = ""

    def __post_init__(self) -> None:
        _check_nonce(self.nonce)

    @total_repr
    def __repr__(self) -> str:
        return f"StreamOpened(stream={self.stream}, {self.local_address!r} to {self.remote_address!r})"


class ServiceLookedUp(msgspec.Struct, frozen=True, gc=False):
    """A ``LookUpService`` was answered, or nobody answered it."""

    service: str
    targets: tuple[tuple[str, int], ...] = ()
    """Host and port of each record, in any order; empty where there is none."""
    text: str = ""
    """What went wrong, in the resolver's words."""

    def __post_init__(self) -> None:
        check_type(self.service, "service", str)
        check_type(self.targets, "targets", tuple)
        check_type(self.text, "text", str)
        for target in self.targets:
            if not isinstance(target, tuple) or list(map(type, target)) != [str, int]:
                raise InvalidArgumentException(f"targets has {target!r}, no pair of host and port", parameter="targets")


class BytesReceived(msgspec.Struct, frozen=True, gc=False):
    """Bytes came, cut anywhere; they are copied before ``handle`` returns.

    They may hold documents, so ``repr`` tells only how many they are.
    """

    stream: StreamId
    data: bytes

    def __post_init__(self) -> None:
        if type(self.data) is not bytes and not isinstance(self.data, bytes | bytearray | memoryview):
            raise InvalidArgumentException(f"data must be bytes, not {type(self.data).__name__}", parameter="data")

    @total_repr
    def __repr__(self) -> str:
        return f"BytesReceived(stream={self.stream}, data=<{len(self.data)} bytes>)"


@unique
class LossCause(Enum):
    """Why a stream is gone, or never came to be."""

    END_OF_STREAM = "closed by the server"
    RESET = "connection reset"
    REFUSED = "connection refused"
    UNREACHABLE = "address unreachable"
    NAME_NOT_RESOLVED = "host name not resolved"
    TLS = "TLS failed"
    UNSOLICITED = "bytes received that answer no request"
    CLOSED_BY_US = "closed by the client"


class StreamLost(msgspec.Struct, frozen=True, gc=False):
    """A stream is gone, an ``OpenStream`` failed, or a ``CloseStream`` was carried out: once for each stream."""

    stream: StreamId
    cause: LossCause
    text: str = ""
    """What the operating system or the TLS library said."""
    handed_over: int | None = None
    """How many bytes of this stream the driver had begun to hand over, whether they arrived or not (decision C24).

    None where it cannot tell, so that all of them may have left.
    """

    def __post_init__(self) -> None:
        check_type(self.cause, "cause", LossCause)
        check_type(self.text, "text", str)
        if self.handed_over is not None:
            check_integer(self.handed_over, "handed_over", 0, sys.maxsize)


class TimePassed(msgspec.Struct, frozen=True, gc=False):
    """``wakeup`` has come, and what was readable was fed before; harmless at any other time. The first starts the client.

    Deadlines are judged by it, so an answer that arrived while the program was busy has to be fed first. A timeout of
    what the client itself has not sent yet, or not read, is no failure of the node (decision C33).
    """

    unsent: Mapping[StreamId, int] = {}
    """Streams on which ordered bytes still wait in the driver: how many had begun to be handed over, as in
    ``StreamLost``. On all others everything was."""
    unread: Collection[StreamId] = frozenset()
    """Streams that may have more to read: the driver stopped at a bound of its own."""

    def __post_init__(self) -> None:
        check_type(self.unsent, "unsent", Mapping)
        check_type(self.unread, "unread", Collection)
        for handed_over in self.unsent.values():
            check_integer(handed_over, "unsent", 0, sys.maxsize)


class StrategyDecided(msgspec.Struct, frozen=True):
    """An asynchronous strategy has answered, or raised; unknown tokens are ignored.

    It was asked with ``ConsultStrategy``, or with ``AcquirePermit``.
    """

    token: Token
    answer: RetryAction | None
    raised: BaseException | None = None


class AuthenticatorChanged(msgspec.Struct, frozen=True):
    """The client has new credentials. ``repr`` keeps the nonce to itself.

    New connections use the authenticator. Live ones authenticate again, with a password or a token: what was sent
    before is still answered, what is submitted now waits until that is over. What already waits for a connection that
    is being opened uses the authenticator that the opening began with. One whose authentication is refused is closed,
    as it would be when it was new; one that is waiting to connect again does so at once. A certificate is shown by the
    driver, in the handshakes to come.

    It must go with the scheme, and be shown as the one before it was: by SASL, or by TLS.
    """

    authenticator: Authenticator
    nonce: str
    """Fresh entropy for SCRAM, as in ``StreamOpened``."""

    def __post_init__(self) -> None:
        _check_nonce(self.nonce)

    @total_repr
    def __repr__(self) -> str:
        return f"AuthenticatorChanged({self.authenticator!r})"


Event = (
    OperationSubmitted
    | OperationsSubmitted
    | CallEnded
    | RequestSubmitted
    | RowsWanted
    | InquirySubmitted
    | OperationAbandoned
    | SubscribersChanged
    | ServiceLookedUp
    | StreamOpened
    | BytesReceived
    | StreamLost
    | TimePassed
    | StrategyDecided
    | AuthenticatorChanged
)
