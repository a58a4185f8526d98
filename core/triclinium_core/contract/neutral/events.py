"""Events of every machine: streams, time and strategies, each named by a noun with a past participle.

The constructor raises ArgumentError for an invalid value. ``handle`` checks the data of ``BytesReceived``.
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
"""Id of a user's operation or request for its whole life; never reused."""

StreamId = NewType("StreamId", int)
"""Id of one byte stream; never reused."""


def check_nonce(nonce: str) -> None:
    """Check that a nonce can be sent unchanged.

    Raises:
        ArgumentError: it is not printable ASCII, or has a comma. The message does not show it.
    """
    check_type(nonce, "nonce", str)
    # RFC 5802, 7, and the blank. Protocols without nonces pass an empty one.
    if not nonce.isascii() or not nonce.isprintable() or "," in nonce:
        raise ArgumentError("nonce must be printable ASCII without a comma", parameter="nonce")


class StreamOpened(msgspec.Struct, frozen=True, gc=False):
    """An ``OpenStream`` succeeded, including TLS. ``repr`` omits the nonce."""

    stream: StreamId
    nonce: str
    """Fresh entropy for authentication: at least 18 random bytes as printable ASCII without a comma."""
    local_address: str = ""
    remote_address: str = ""

    def __post_init__(self) -> None:
        check_nonce(self.nonce)

    @total_repr
    def __repr__(self) -> str:
        return f"StreamOpened(stream={self.stream}, {self.local_address!r} to {self.remote_address!r})"


class BytesReceived(msgspec.Struct, frozen=True, gc=False):
    """Bytes arrived, split at any position. ``handle`` copies them, and raises ArgumentError for other types.

    They may contain user data, so ``repr`` shows only their number.
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
    """End of the stream; over TLS with close_notify, so no data is missing."""
    TRUNCATED = "closed by the server without close_notify"
    """End of a TLS stream after which data may be missing: anyone on the network path can cause it."""
    RESET = "connection reset"
    REFUSED = "connection refused"
    UNREACHABLE = "address unreachable"
    NAME_NOT_RESOLVED = "host name not resolved"
    TLS = "TLS failed"
    UNSOLICITED = "bytes received without a request"
    CLOSED_BY_US = "closed by the client"


class StreamLost(msgspec.Struct, frozen=True, gc=False):
    """A stream ended: it was lost, an ``OpenStream`` failed or a ``CloseStream`` was carried out. Once per stream."""

    stream: StreamId
    cause: LossCause
    text: str = ""
    """Error message of the operating system or the TLS library."""
    handed_over: int | None = None
    """Number of bytes of this stream whose write the driver had started, whether they arrived or not (decision C24).

    None if the driver does not know it: all of them may have been sent.
    """

    def __post_init__(self) -> None:
        check_type(self.cause, "cause", LossCause)
        check_type(self.text, "text", str)
        if self.handed_over is not None:
            check_integer(self.handed_over, "handed_over", 0, sys.maxsize)


class TimePassed(msgspec.Struct, frozen=True, gc=False):
    """``wakeup`` is reached, and all readable bytes were fed. Harmless at any other time. The first starts the machine.

    The machine checks deadlines on this event, so a response that arrived while the program was busy must be fed first.
    A timeout on bytes that the driver has not sent or read yet does not count against the node (decision C33).
    """

    unsent: Mapping[StreamId, int] = {}
    """Number of bytes whose write has started, as in ``StreamLost``, for each stream with ordered bytes that wait in
    the driver. On all other streams the write of all bytes has started."""
    unread: Collection[StreamId] = frozenset()
    """Streams that may have more to read, because the driver stopped at a limit."""

    def __post_init__(self) -> None:
        check_type(self.unsent, "unsent", Mapping)
        check_type(self.unread, "unread", Collection)
        for handed_over in self.unsent.values():
            check_integer(handed_over, "unsent", 0, sys.maxsize)


class StrategyDecided(msgspec.Struct, frozen=True):
    """An asynchronous strategy returned its answer or raised, after ``ConsultStrategy`` or ``AcquirePermit``.

    Unknown tokens are ignored.
    """

    token: Token
    answer: object
    """Return value of the strategy, whose type only the machine knows; None if the strategy raised."""
    raised: BaseException | None = None


# Every event that the driver of any machine originates.
NeutralEvent = StreamOpened | BytesReceived | StreamLost | TimePassed | StrategyDecided
