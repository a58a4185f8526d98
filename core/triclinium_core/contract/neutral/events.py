"""Events that every machine understands: of streams, time and strategies, each a noun with a past participle.

An event with an impossible value raises ArgumentError where it is made. ``handle`` checks the data of ``BytesReceived``.
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
"""Name of what a user asked for, for its whole life; never used twice."""

StreamId = NewType("StreamId", int)
"""Name of one byte stream; never used again after it is lost."""


def check_nonce(nonce: str) -> None:
    """Check that entropy can be sent as it is.

    Raises:
        ArgumentError: it is no printable ASCII, or has a comma. The message does not show it.
    """
    check_type(nonce, "nonce", str)
    # RFC 5802, 7, and the blank. Protocols without an exchange of nonces need none, so it may be empty.
    if not nonce.isascii() or not nonce.isprintable() or "," in nonce:
        raise ArgumentError("nonce must be printable ASCII without a comma", parameter="nonce")


class StreamOpened(msgspec.Struct, frozen=True, gc=False):
    """An ``OpenStream`` succeeded, TLS included. ``repr`` keeps the nonce to itself."""

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
    """Bytes that came, cut anywhere; they are copied before ``handle`` returns. It raises ArgumentError for other types.

    They may hold a user's data, so ``repr`` shows only their number.
    """

    stream: StreamId
    data: bytes

    @total_repr
    def __repr__(self) -> str:
        return f"BytesReceived(stream={self.stream}, data=<{len(self.data)} bytes>)"


@unique
class LossCause(Enum):
    """Reason why a stream is gone, or never came to be."""

    END_OF_STREAM = "closed by the server"
    """Over TLS, with close_notify: nothing is missing."""
    TRUNCATED = "closed by the server without close_notify"
    """Over TLS, so that anything may be missing: anyone on the way can cause it."""
    RESET = "connection reset"
    REFUSED = "connection refused"
    UNREACHABLE = "address unreachable"
    NAME_NOT_RESOLVED = "host name not resolved"
    TLS = "TLS failed"
    UNSOLICITED = "bytes received that answer no request"
    CLOSED_BY_US = "closed by the client"


class StreamLost(msgspec.Struct, frozen=True, gc=False):
    """End of a stream: it is gone, an ``OpenStream`` failed, or a ``CloseStream`` was carried out. Once for each stream."""

    stream: StreamId
    cause: LossCause
    text: str = ""
    """Words of the operating system or the TLS library."""
    handed_over: int | None = None
    """Number of bytes of this stream that the driver had begun to hand over, whether they arrived or not (decision C24).

    None if the driver does not know it, so that all of them may have left.
    """

    def __post_init__(self) -> None:
        check_type(self.cause, "cause", LossCause)
        check_type(self.text, "text", str)
        if self.handed_over is not None:
            check_integer(self.handed_over, "handed_over", 0, sys.maxsize)


class TimePassed(msgspec.Struct, frozen=True, gc=False):
    """``wakeup`` has come, and what was readable was fed before; harmless at any other time. The first starts the machine.

    Deadlines are judged by it, so an answer that arrived while the program was busy has to be fed first. A timeout of
    bytes that the driver has not sent or read yet does not count against the peer (decision C33).
    """

    unsent: Mapping[StreamId, int] = {}
    """Streams on which ordered bytes still wait in the driver: how many had begun to be handed over, as in
    ``StreamLost``. On all other streams all bytes had."""
    unread: Collection[StreamId] = frozenset()
    """Streams that may have more to read: the driver stopped at a bound of its own."""

    def __post_init__(self) -> None:
        check_type(self.unsent, "unsent", Mapping)
        check_type(self.unread, "unread", Collection)
        for handed_over in self.unsent.values():
            check_integer(handed_over, "unsent", 0, sys.maxsize)


class StrategyDecided(msgspec.Struct, frozen=True):
    """Answer of an asynchronous strategy, or its exception; unknown tokens are ignored.

    It was asked with ``ConsultStrategy``, or with ``AcquirePermit``.
    """

    token: Token
    answer: object
    """Return value of the strategy, whose type only the machine knows; None if it raised."""
    raised: BaseException | None = None


# Every event that a driver feeds by itself, to any machine.
NeutralEvent = StreamOpened | BytesReceived | StreamLost | TimePassed | StrategyDecided
