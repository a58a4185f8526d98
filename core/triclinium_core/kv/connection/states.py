"""The life of one connection, as a table.

Theory of operation
-------------------

A connection is **CONNECTING** until the driver has opened its stream. Then it bootstraps: **NEGOTIATING** until HELLO is
answered, **AUTHENTICATING** until SASL has succeeded, **JOINING** until bucket and cluster config are there. A plain
memcached has none of that and is **READY** at once. Whatever goes wrong makes it **LOST**; after a backoff it is
CONNECTING again, with a stream of its own. A connection that is READY and is given other credentials is
AUTHENTICATING once more, on the same stream: what was sent before is still answered, what comes now waits.

Requests wait while the connection is on its way to READY, travel while it is READY, and cannot be dispatched while it is
LOST. The table names, for each state and event, the states that the event may lead to; a missing pair is a mistake of
the client machine.
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
    """What a connection hears."""

    BACKOFF_OVER = "backoff_over"
    STREAM_OPENED = "stream_opened"
    BYTES_RECEIVED = "bytes_received"
    STREAM_LOST = "stream_lost"
    CREDENTIALS_CHANGED = "credentials_changed"


def _to(*states: NodeState) -> frozenset[NodeState]:
    return frozenset(states)


_C, _N, _A, _J, _R, _L = NodeState

NODE_TRANSITIONS: Mapping[NodeState, Mapping[NodeEvent, frozenset[NodeState]]] = {
    _C: {NodeEvent.STREAM_OPENED: _to(_N, _A, _R), NodeEvent.STREAM_LOST: _to(_L)},
    # One piece of bytes may carry the answers to several steps.
    _N: {NodeEvent.BYTES_RECEIVED: _to(_N, _A, _J, _R, _L), NodeEvent.STREAM_LOST: _to(_L)},
    _A: {NodeEvent.BYTES_RECEIVED: _to(_A, _J, _R, _L), NodeEvent.STREAM_LOST: _to(_L)},
    _J: {NodeEvent.BYTES_RECEIVED: _to(_J, _R, _L), NodeEvent.STREAM_LOST: _to(_L)},
    _R: {
        NodeEvent.BYTES_RECEIVED: _to(_R, _L),
        NodeEvent.STREAM_LOST: _to(_L),
        NodeEvent.CREDENTIALS_CHANGED: _to(_A),
    },
    _L: {NodeEvent.BACKOFF_OVER: _to(_C)},
}
