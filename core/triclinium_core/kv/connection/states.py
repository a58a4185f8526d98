"""The life of one connection, as a table.

Theory of operation
-------------------

A connection is **CONNECTING** until the driver has opened its stream. Then it bootstraps: **NEGOTIATING** until HELLO is
answered, **AUTHENTICATING** until SASL has succeeded, **JOINING** until bucket and cluster config are there. A plain
memcached has none of that and is **READY** at once. Whatever goes wrong makes it **LOST**; after a backoff it is
CONNECTING again, with a stream of its own. A connection that is READY and is given other credentials is
AUTHENTICATING once more, on the same stream: what was sent before is still answered, what comes now waits.

Requests wait while the connection is on its way to READY, travel while it is READY, and cannot be dispatched while it is
LOST. The table names the state that each event leads to; any other pair is a mistake of the client machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique


@unique
class NodeState(Enum):
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
        return self not in (NodeState.READY, NodeState.LOST)


@unique
class NodeEvent(Enum):
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


NODE_TRANSITIONS: Mapping[NodeState, Mapping[NodeEvent, NodeState]] = {
    NodeState.CONNECTING: {
        NodeEvent.NOTHING_TO_ASK: NodeState.READY,
        NodeEvent.HELLO_SENT: NodeState.NEGOTIATING,
        NodeEvent.SASL_SENT: NodeState.AUTHENTICATING,
        NodeEvent.STREAM_LOST: NodeState.LOST,
    },
    NodeState.NEGOTIATING: {
        NodeEvent.HELLO_ANSWERED: NodeState.AUTHENTICATING,
        # Both were asked at once, and a peer may answer in any order.
        NodeEvent.AUTHENTICATED: NodeState.JOINING,
        NodeEvent.STREAM_LOST: NodeState.LOST,
    },
    NodeState.AUTHENTICATING: {
        NodeEvent.AUTHENTICATED: NodeState.JOINING,
        NodeEvent.AUTHENTICATED_AGAIN: NodeState.READY,
        NodeEvent.STREAM_LOST: NodeState.LOST,
    },
    NodeState.JOINING: {NodeEvent.ALL_ANSWERED: NodeState.READY, NodeEvent.STREAM_LOST: NodeState.LOST},
    NodeState.READY: {
        NodeEvent.CREDENTIALS_CHANGED: NodeState.AUTHENTICATING,
        NodeEvent.STREAM_LOST: NodeState.LOST,
    },
    NodeState.LOST: {NodeEvent.BACKOFF_OVER: NodeState.CONNECTING},
}
