"""The life of one connection, as a table.

Theory of operation
-------------------

A connection is **CONNECTING** until the driver has opened its stream. Then it bootstraps: **NEGOTIATING** until HELLO is
answered, **AUTHENTICATING** until SASL has succeeded, **JOINING** until bucket and cluster config are there. A plain
memcached has none of that and is **READY** at once. Whatever goes wrong makes it **LOST**; after a backoff it is
CONNECTING again, with a stream of its own. A connection that is READY and is given other credentials is
AUTHENTICATING once more, on the same stream: what was sent before is still answered, what comes now waits.

Requests wait while the connection is on its way to READY, travel while it is READY, and cannot be dispatched while it is
LOST. The table names the state that each event leads to; any other pair is a mistake of the client machine. Only
``Connection`` keeps the state of a connection, and it takes every step by this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique

from triclinium_core.retry.tables import transition_table


@unique
class ConnectionState(Enum):
    """Where a connection stands."""

    CONNECTING = "connecting"
    NEGOTIATING = "negotiating"
    AUTHENTICATING = "authenticating"
    JOINING = "joining"
    READY = "ready"
    LOST = "lost"

    @property
    def is_underway(self) -> bool:
        """Whether the connection is on its way to READY."""
        return self not in (ConnectionState.READY, ConnectionState.LOST)


@unique
class ConnectionEvent(Enum):
    """What happens to a connection."""

    BACKOFF_OVER = "backoff_over"
    NOTHING_TO_ASK = "nothing_to_ask"
    HELLO_SENT = "hello_sent"
    SASL_SENT = "sasl_sent"
    HELLO_ANSWERED = "hello_answered"
    AUTHENTICATED = "authenticated"
    ALL_ANSWERED = "all_answered"
    CREDENTIALS_CHANGED = "credentials_changed"
    AUTHENTICATED_AGAIN = "authenticated_again"
    STREAM_LOST = "stream_lost"


CONNECTION_TRANSITIONS: Mapping[ConnectionState, Mapping[ConnectionEvent, ConnectionState]] = transition_table(
    [
        (ConnectionState.CONNECTING, ConnectionEvent.NOTHING_TO_ASK, ConnectionState.READY),
        (ConnectionState.CONNECTING, ConnectionEvent.HELLO_SENT, ConnectionState.NEGOTIATING),
        (ConnectionState.CONNECTING, ConnectionEvent.SASL_SENT, ConnectionState.AUTHENTICATING),
        (ConnectionState.CONNECTING, ConnectionEvent.STREAM_LOST, ConnectionState.LOST),
        (ConnectionState.NEGOTIATING, ConnectionEvent.HELLO_ANSWERED, ConnectionState.AUTHENTICATING),
        # Both were asked at once, and a peer may answer in any order.
        (ConnectionState.NEGOTIATING, ConnectionEvent.AUTHENTICATED, ConnectionState.JOINING),
        (ConnectionState.NEGOTIATING, ConnectionEvent.STREAM_LOST, ConnectionState.LOST),
        (ConnectionState.AUTHENTICATING, ConnectionEvent.AUTHENTICATED, ConnectionState.JOINING),
        (ConnectionState.AUTHENTICATING, ConnectionEvent.AUTHENTICATED_AGAIN, ConnectionState.READY),
        (ConnectionState.AUTHENTICATING, ConnectionEvent.STREAM_LOST, ConnectionState.LOST),
        (ConnectionState.JOINING, ConnectionEvent.ALL_ANSWERED, ConnectionState.READY),
        (ConnectionState.JOINING, ConnectionEvent.STREAM_LOST, ConnectionState.LOST),
        (ConnectionState.READY, ConnectionEvent.CREDENTIALS_CHANGED, ConnectionState.AUTHENTICATING),
        (ConnectionState.READY, ConnectionEvent.STREAM_LOST, ConnectionState.LOST),
        (ConnectionState.LOST, ConnectionEvent.BACKOFF_OVER, ConnectionState.CONNECTING),
    ]
)
