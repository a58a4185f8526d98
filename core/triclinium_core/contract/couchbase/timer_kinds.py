"""Kinds of timers of the client machine, grouped by the part that handles them."""

from __future__ import annotations

from enum import Enum, unique


@unique
class TimerKind(Enum):
    """Event that is due when a timer fires."""

    DEADLINE = "an operation or a request has run out of time: it fails with a timeout"
    RETRY = "the delay before an attempt is over: the operation or request is dispatched"
    CONNECT = "a stream was not opened and bootstrapped in time: it is given up"
    RECONNECT = "the backoff of one connection is over: it is opened again"
    UNUSED_BUCKET = "the backoff of a bucket that its nodes do not have is over: it is forgotten if nothing uses it"
    OPENING = "a stream was not opened in a moment: the next connection has its turn"
    KEEP_ALIVE = "a connection may have been silent for too long: it is sent a NOOP"
    KEEP_ALIVE_ANSWER = "a NOOP was not answered in time: the connection is given up"
    CIRCUIT_BREAKER = "an open breaker has slept long enough: it sends its canary"
    COLLECTION_QUESTION = "a collection's id was not told in time: it is asked for again, if anybody waits for it"
    DRAIN = "a connection to a node that left the map still has requests without an answer: it is closed"
    NO_ROOM = "a connection may have had no room for too long: it is given up"
    CONFIG_POLL = "a node that does not announce new cluster configs is asked for the newest"
    SERVICE_LOOKUP = "DNS did not say in time where the cluster is: the host is used as it stands"
    PING = "a ping has waited for long enough: what has not answered is reported as it is"
    READINESS = "an endpoint over HTTP did not answer a ping: whoever waits until it is ready asks it again"
    NODES_DEADLINE = "a wait for the nodes of a bucket has taken too long: it fails with a timeout"
    MANIFEST_QUESTION = "a node had an older manifest, or has not told in time: it is asked for it again"
    DECODING = "an answer over HTTP is read in part: the next part is read"
    HTTP_CONNECT = "a stream to an HTTP service was not opened in time: it is given up"
    HTTP_BREAKER = "the open breaker of an HTTP endpoint has slept long enough: it sends its canary"
    HTTP_IDLE = "a connection to an HTTP service had nothing to carry: it is closed before the node does"
    TELEMETRY = "the interval is over since there was something to tell of operations: it is told"
    CANARY = "the canary was not answered in time: the breaker opens again"


TIMERS_OF_HTTP_STREAMS = frozenset({TimerKind.HTTP_CONNECT, TimerKind.HTTP_IDLE})
"""Timers that close streams to HTTP services."""


TIMERS_OF_INQUIRIES = frozenset(
    {TimerKind.PING, TimerKind.READINESS, TimerKind.NODES_DEADLINE, TimerKind.MANIFEST_QUESTION}
)
"""Timers of inquiries."""


TIMERS_OF_CONNECTIONS = frozenset({TimerKind.CONNECT, TimerKind.RECONNECT, TimerKind.DRAIN})
"""Timers that open and close streams, independently of their requests."""


TIMERS_OF_KEEP_ALIVE = frozenset(
    {
        TimerKind.KEEP_ALIVE,
        TimerKind.KEEP_ALIVE_ANSWER,
        TimerKind.CONFIG_POLL,
        TimerKind.NO_ROOM,
        TimerKind.CIRCUIT_BREAKER,
        TimerKind.CANARY,
    }
)
"""Timers that check open connections: silence, capacity, configs and circuit breakers."""


TIMERS_OF_A_STREAM: tuple[TimerKind, ...] = (
    TimerKind.CONNECT,
    TimerKind.KEEP_ALIVE,
    TimerKind.KEEP_ALIVE_ANSWER,
    TimerKind.CIRCUIT_BREAKER,
    TimerKind.DRAIN,
    TimerKind.NO_ROOM,
    TimerKind.CONFIG_POLL,
    TimerKind.CANARY,
)
"""Timers to cancel when the stream closes."""
