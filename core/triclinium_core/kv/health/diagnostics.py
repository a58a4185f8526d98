"""The health of connections, as far as the client can tell without asking anybody.

Source: SDK-RFC 0061 "ClusterState", "EndpointState".
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from triclinium_core.kv.connection.node_machine import NodeMachine
from triclinium_core.kv.connection.states import NodeState
from triclinium_core.kv.operation.reports import ClusterState, EndpointDiagnostics, EndpointState
from triclinium_core.retry.couchbase.tables.service import Service

ENDPOINT_STATES: Mapping[NodeState, EndpointState] = {
    NodeState.CONNECTING: EndpointState.CONNECTING,
    NodeState.NEGOTIATING: EndpointState.CONNECTING,
    NodeState.AUTHENTICATING: EndpointState.CONNECTING,
    NodeState.JOINING: EndpointState.CONNECTING,
    NodeState.READY: EndpointState.CONNECTED,
    NodeState.LOST: EndpointState.DISCONNECTED,
}
"""What users are told of a connection's state; one whose node has left is DISCONNECTING as long as it is READY."""


def cluster_state(ready: int, count: int) -> ClusterState:
    """Return how much can be reached over ``count`` connections of which ``ready`` are ready."""
    if ready == 0:
        return ClusterState.OFFLINE
    return ClusterState.ONLINE if ready == count else ClusterState.DEGRADED


def endpoint_id(node: NodeMachine) -> str:
    """Return what tells a connection's present stream, or its last one, from all others of the client."""
    return f"0x{node.stream_number:x}"


def diagnose(node: NodeMachine, now: float) -> EndpointDiagnostics:
    """Return what is known of one connection."""
    state = ENDPOINT_STATES[node.state]
    if node.is_leaving and state is EndpointState.CONNECTED:
        state = EndpointState.DISCONNECTING
    return EndpointDiagnostics(
        type=Service.KV,
        id=endpoint_id(node),
        remote=node.node,
        local=node.link.local_address,
        namespace=node.bucket,
        state=state,
        last_activity=now - node.last_heard if node.last_heard > -math.inf else None,
        details=node.last_error,
    )
