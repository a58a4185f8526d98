"""Kinds of timers of the client machine, and groups of kinds."""

from __future__ import annotations

from enum import Enum, unique


@unique
class TimerKind(Enum):
    """Event that is due when a timer fires."""

    DEADLINE = "deadline of an operation or a request: it fails with a timeout"
    RETRY = "end of the delay before an attempt: the operation or request is dispatched"
    CONNECT = "a stream was not opened and bootstrapped in time: it is closed"
    RECONNECT = "end of the backoff of a connection: it is opened again"
    UNUSED_BUCKET = "end of the backoff of a bucket that its nodes do not have: it is removed if unused"
    OPENING = "a stream was not opened quickly: the next connection is opened too"
    KEEP_ALIVE = "a connection may have been idle for too long: the client sends a NOOP"
    KEEP_ALIVE_ANSWER = "no response to a NOOP in time: the connection is closed"
    CIRCUIT_BREAKER = "end of the sleep window of an open breaker: it sends its canary"
    COLLECTION_QUESTION = "no response with a collection's id in time: it is requested again if operations wait for it"
    DRAIN = "a connection to a node that left the map still has requests in flight: it is closed"
    NO_ROOM = "a connection may have had no capacity for too long: it is closed"
    CONFIG_POLL = "a node does not push new cluster configs: the client polls it"
    SERVICE_LOOKUP = "no DNS response in time: the host of the connection string is used"
    PING = "deadline of a ping: endpoints without a response are reported in their current state"
    READINESS = "an HTTP endpoint did not respond to a ping: a wait for readiness pings it again"
    NODES_DEADLINE = "deadline of a wait for the nodes of a bucket: it fails with a timeout"
    MANIFEST_QUESTION = "a node sent an older manifest, or none in time: it is requested again"
    DECODING = "an HTTP response is decoded in part: the next part is decoded"
    HTTP_CONNECT = "a stream to an HTTP service was not opened in time: it is closed"
    HTTP_BREAKER = "end of the sleep window of an HTTP endpoint's open breaker: it sends its canary"
    HTTP_IDLE = "a connection to an HTTP service was idle: it is closed before the node closes it"
    TELEMETRY = "end of the report interval of operations: the report is emitted"
    CANARY = "no response to the canary in time: the breaker opens again"


TIMERS_OF_HTTP_STREAMS = frozenset({TimerKind.HTTP_CONNECT, TimerKind.HTTP_IDLE})
"""Timers that close streams to HTTP services."""


TIMERS_OF_INQUIRIES = frozenset(
    {TimerKind.PING, TimerKind.READINESS, TimerKind.NODES_DEADLINE, TimerKind.MANIFEST_QUESTION}
)
"""Timers of pings and waits."""


TIMERS_OF_CONNECTIONS = frozenset({TimerKind.CONNECT, TimerKind.RECONNECT, TimerKind.DRAIN})
"""Timers that open and close streams, whatever requests the streams carry."""


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
"""Timers of a key-value connection that the machine cancels when the stream closes."""
