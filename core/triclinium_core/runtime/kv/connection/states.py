"""States and transitions of one connection, as a table.

Theory of operation
-------------------

A connection is **CONNECTING** until the driver has opened its stream. Then it bootstraps. It is **NEGOTIATING** until
the node has responded to HELLO, **AUTHENTICATING** until SASL has succeeded, and **JOINING** until the bucket is
selected and the cluster config has arrived. Then it is **READY**. With ``hello_after_auth``, a connection with SASL
skips NEGOTIATING, and sends HELLO in JOINING. A connection to a plain memcached is READY without a bootstrap. Before
its first stream and after the end of each stream, a connection is **LOST**. After a backoff it is CONNECTING again. A
READY connection that gets other credentials is AUTHENTICATING again on the same stream. The node then still responds to
requests that were sent before, and new requests wait.

The client sends operations only while the connection is READY, fails to dispatch them while it is LOST, and queues them
in all other states. The table has the next state for each state and event; any other pair is a defect of the client
machine. Only ``Connection`` keeps the state of a connection, and it changes the state as this table prescribes.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique

from triclinium_core.retry.tables import transition_table


@unique
class ConnectionState(Enum):
    """State of a connection."""

    CONNECTING = "connecting"
    NEGOTIATING = "negotiating"
    AUTHENTICATING = "authenticating"
    JOINING = "joining"
    READY = "ready"
    LOST = "lost"

    @property
    def is_underway(self) -> bool:
        """Whether the connection is being opened, bootstraps or reauthenticates."""
        return self not in (ConnectionState.READY, ConnectionState.LOST)


@unique
class ConnectionEvent(Enum):
    """Event that changes the state of a connection."""

    BACKOFF_OVER = "backoff_over"
    NO_BOOTSTRAP = "no_bootstrap"
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
        (ConnectionState.CONNECTING, ConnectionEvent.NO_BOOTSTRAP, ConnectionState.READY),
        (ConnectionState.CONNECTING, ConnectionEvent.HELLO_SENT, ConnectionState.NEGOTIATING),
        (ConnectionState.CONNECTING, ConnectionEvent.SASL_SENT, ConnectionState.AUTHENTICATING),
        (ConnectionState.CONNECTING, ConnectionEvent.STREAM_LOST, ConnectionState.LOST),
        (ConnectionState.NEGOTIATING, ConnectionEvent.HELLO_ANSWERED, ConnectionState.AUTHENTICATING),
        # The client sends HELLO and SASL together, and a server may respond to SASL first.
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
