"""Machine of the echo protocol.

A client sends a line with the token and a text, and the server sends the line back. Each text has a deadline. A line
that may have been sent is never sent again; a text that waits for a connection is sent on the next one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, unique

from triclinium_core.argument_error import ArgumentError
from triclinium_core.contract import neutral

LINE_SIZE_MAX = 1000
"""Maximum size of a line in bytes."""
RECONNECT_SECONDS = 0.1


@dataclass(frozen=True)
class EchoSubmitted:
    """Submission of a text by a user."""

    token: neutral.Token
    text: str
    seconds: float
    """Seconds until the deadline."""


@dataclass(frozen=True)
class EchoAbandoned:
    """Cancellation of a call by its user."""

    token: neutral.Token


@dataclass(frozen=True)
class Echoed:
    """Echo of a text, with which the user's task resumes."""

    token: neutral.Token
    text: str


@dataclass(frozen=True)
class EchoFailed:
    """Failure of a text, whose ``error`` the user's task raises."""

    token: neutral.Token
    error: EchoError


class EchoError(Exception):
    """Failure to echo a text."""


EchoEvent = EchoSubmitted | EchoAbandoned
EchoAction = Echoed | EchoFailed


@unique
class EchoTimer(Enum):
    """Kinds of timers."""

    DEADLINE = "the echo is late"
    RECONNECT = "it is time to connect again"


@dataclass
class _Open:
    """Text without a response."""

    line: bytes
    deadline: neutral.TimerId
    is_sent: bool = False


class EchoMachine:
    """Client of one echo server, over one connection.

    Args:
        host: address of the server.
        port: port of the server.
    """

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._node = f"{host}:{port}"
        self._timers: neutral.Timers[EchoTimer] = neutral.Timers()
        self._open: dict[neutral.Token, _Open] = {}
        self._streams = 0
        self._stream: neutral.StreamId | None = None
        """Stream that is open or being opened."""
        self._is_ready = False
        self._received = b""
        """Incomplete line."""
        self._has_started = False
        self.work: int = 0

    @property
    def wakeup(self) -> float:
        """Instant when ``TimePassed`` is due."""
        return self._timers.wakeup if self._has_started else -math.inf

    def handle(
        self, event: EchoEvent | neutral.NeutralEvent, now: float
    ) -> Sequence[EchoAction | neutral.NeutralAction]:
        """Return the actions that follow from ``event``."""
        match event:
            case EchoSubmitted(token, text, seconds):
                return self._submitted(token, text, now + seconds)
            case EchoAbandoned(token):
                if token in self._open:
                    self._forget(token)
                return ()
            case neutral.StreamOpened():
                self._is_ready = True
                return [neutral.ReportConnection(event.stream, self._node, "is open"), *self._unsent()]
            case neutral.BytesReceived(_, bytes() as data):
                return self._read(data)
            case neutral.StreamLost():
                return self._lost(event, now)
            case neutral.TimePassed():
                return self._pass_time(now)
        raise ArgumentError(f"event={event!r} is unknown to an echo client; feed one of its own", parameter="event")

    def _submitted(
        self, token: neutral.Token, text: str, deadline: float
    ) -> Sequence[EchoAction | neutral.NeutralAction]:
        line = b"%d %s\n" % (token, text.encode())
        if "\n" in text or len(line) > LINE_SIZE_MAX:
            raise ArgumentError(
                f"text={text[:20]!r} must be one line, of at most {LINE_SIZE_MAX} bytes with its token",
                parameter="text",
            )
        self._open[token] = _Open(line, self._timers.schedule(deadline, EchoTimer.DEADLINE, token))
        return self._unsent() if self._is_ready else ()

    def _unsent(self) -> Sequence[neutral.NeutralAction]:
        """Return the action that sends the lines that wait for the connection, if there are any."""
        unsent = [each for each in self._open.values() if not each.is_sent]
        for each in unsent:
            each.is_sent = True
        return [neutral.SendBytes(self._number, b"".join(each.line for each in unsent))] if unsent else ()

    @property
    def _number(self) -> neutral.StreamId:
        assert self._stream is not None, "there is a connection"
        return self._stream

    def _read(self, data: bytes) -> Sequence[EchoAction | neutral.NeutralAction]:
        self.work += len(data)
        *lines, self._received = (self._received + data).split(b"\n")
        actions: list[EchoAction | neutral.NeutralAction] = []
        for line in lines:
            number, _, text = line.partition(b" ")
            token = neutral.Token(int(number)) if number.isdigit() and len(number) < LINE_SIZE_MAX else None
            if token is None or token not in self._open or line + b"\n" != self._open[token].line:
                return [*actions, neutral.CloseStream(self._number, "a line came that was not sent")]
            self._forget(token)
            actions.append(Echoed(token, text.decode()))
        if len(self._received) > LINE_SIZE_MAX:
            actions.append(neutral.CloseStream(self._number, "a line has no end"))
        return actions

    def _lost(self, event: neutral.StreamLost, now: float) -> Sequence[EchoAction | neutral.NeutralAction]:
        self._stream, self._is_ready, self._received = None, False, b""
        self._timers.schedule(now + RECONNECT_SECONDS, EchoTimer.RECONNECT, None)
        sent = [token for token, each in self._open.items() if each.is_sent]
        for token in sent:
            self._forget(token)
        report = neutral.ReportConnection(event.stream, self._node, f"is lost: {event.cause.value}")
        return [report, *(EchoFailed(token, EchoError("the connection was lost")) for token in sent)]

    def _pass_time(self, now: float) -> Sequence[EchoAction | neutral.NeutralAction]:
        actions: list[EchoAction | neutral.NeutralAction] = []
        if not self._has_started:
            self._has_started = True
            actions.append(self._connect())
        newest = self._timers.newest
        while (due := self._timers.pop_due(now, newest)) is not None:
            kind, subject = due
            if kind is EchoTimer.RECONNECT:
                actions.append(self._connect())
            else:
                token = next(token for token in self._open if token == subject)
                state = "it was sent" if self._forget(token).is_sent else "it was not sent"
                actions.append(EchoFailed(token, EchoError(f"the echo is late; {state}")))
        return actions

    def _connect(self) -> neutral.OpenStream:
        self._streams += 1
        self._stream = neutral.StreamId(self._streams)
        return neutral.OpenStream(self._stream, self._host, self._port, tls=False)

    def _forget(self, token: neutral.Token) -> _Open:
        forgotten = self._open.pop(token)
        self._timers.cancel(forgotten.deadline)
        return forgotten
