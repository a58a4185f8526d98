"""Events of any protocol: streams, time and strategies. A noun with a past participle names each event.

The constructors raise ArgumentError for an invalid nonce, cause, text, collection or number of bytes. ``handle`` checks
the data of ``BytesReceived``.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from enum import Enum, unique
from typing import NewType

import msgspec

from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.checks import check_integer, check_type
from triclinium_core.shown import total_repr

Token = NewType("Token", int)
"""Id of a user's operation, request or inquiry, from its submission to its end. No two of them have the same id."""

StreamId = NewType("StreamId", int)
"""Id of a byte stream. No two streams have the same id."""


def check_nonce(nonce: str) -> None:
    """Raise unless an authentication exchange can send the nonce unchanged.

    Raises:
        ArgumentError: the nonce is not a string of printable ASCII, or has a comma. The message omits the nonce.
    """
    check_type(nonce, "nonce", str)
    # RFC 5802 §7 permits these characters except the space. A driver of a protocol without nonces passes "".
    if not nonce.isascii() or not nonce.isprintable() or "," in nonce:
        raise ArgumentError("nonce must be printable ASCII without a comma", parameter="nonce")


class StreamOpened(msgspec.Struct, frozen=True, gc=False):
    """An ``OpenStream`` succeeded, including TLS. ``repr`` omits the nonce."""

    stream: StreamId
    nonce: str
    """Fresh entropy for authentication: at least 18 random bytes, written as printable ASCII without a comma; empty for
    a protocol without nonces."""
    local_address: str = ""
    remote_address: str = ""

    def __post_init__(self) -> None:
        check_nonce(self.nonce)

    @total_repr
    def __repr__(self) -> str:
        return f"StreamOpened(stream={self.stream}, {self.local_address!r} to {self.remote_address!r})"


class BytesReceived(msgspec.Struct, frozen=True, gc=False):
    """Bytes of a stream arrived. Frames may be split at any position.

    ``handle`` copies a bytearray or a memoryview, and raises ArgumentError if ``data`` is neither of these nor bytes.
    ``data`` may contain user data, so ``repr`` shows only its length.
    """

    stream: StreamId
    data: bytes

    @total_repr
    def __repr__(self) -> str:
        return f"BytesReceived(stream={self.stream}, data=<{len(self.data)} bytes>)"


@unique
class LossCause(Enum):
    """Reason why a stream was lost or not opened."""

    END_OF_STREAM = "closed by the server"
    """The stream ended. A TLS stream ended with close_notify, so no data is missing."""
    TRUNCATED = "closed by the server without close_notify"
    """A TLS stream ended without close_notify. Anyone on the network path can cause this, so data may be missing."""
    RESET = "connection reset"
    REFUSED = "connection refused"
    UNREACHABLE = "address unreachable"
    NAME_NOT_RESOLVED = "host name not resolved"
    TLS = "TLS failed"
    UNSOLICITED = "bytes received without a request"
    CLOSED_BY_US = "closed by the client"


class StreamLost(msgspec.Struct, frozen=True, gc=False):
    """A stream ended: it was lost, its ``OpenStream`` failed, or the driver executed its ``CloseStream``.

    The driver sends this exactly once for each stream, unless the driver ends before.
    """

    stream: StreamId
    cause: LossCause
    text: str = ""
    """Error message of the operating system or the TLS library, or the reason in ``CloseStream``; empty without one."""
    handed_over: int | None = None
    """Number of bytes of this stream whose write the driver had started, whether they arrived or not (decision C24).

    None if the driver does not know the number. The machine then assumes that all bytes may have been sent.
    """

    def __post_init__(self) -> None:
        check_type(self.cause, "cause", LossCause)
        check_type(self.text, "text", str)
        if self.handed_over is not None:
            check_integer(self.handed_over, "handed_over", 0, sys.maxsize)


class TimePassed(msgspec.Struct, frozen=True, gc=False):
    """The time ``wakeup`` is reached, and the driver has fed all readable bytes, except on the streams in ``unread``.

    The first event of this kind starts the machine. The driver may also send one before ``wakeup``. The machine checks
    deadlines on this event, so the driver must first feed a response that arrived while the program was busy. If a
    timeout concerns bytes that the driver has not sent or read yet, the machine does not count it against the node
    (decision C33).
    """

    unsent: Mapping[StreamId, int] = {}
    """Streams whose ``SendBytes`` the driver has not written completely, each with the number of bytes whose write has
    started, as in ``StreamLost``. On all other streams, the write of all bytes has started."""
    unread: Collection[StreamId] = frozenset()
    """Streams that may have more bytes to read, because the driver stopped reading at a limit."""

    def __post_init__(self) -> None:
        check_type(self.unsent, "unsent", Mapping)
        check_type(self.unread, "unread", Collection)
        for handed_over in self.unsent.values():
            check_integer(handed_over, "unsent", 0, sys.maxsize)


class StrategyDecided(msgspec.Struct, frozen=True):
    """An asynchronous strategy returned its decision or raised, after ``ConsultStrategy`` or ``AcquirePermit``.

    The machine ignores unknown tokens.
    """

    token: Token
    answer: object
    """Return value of the strategy, whose type depends on the machine; None if the strategy raised."""
    raised: BaseException | None = None


# Events that a driver feeds in every protocol.
NeutralEvent = StreamOpened | BytesReceived | StreamLost | TimePassed | StrategyDecided
