"""Error maps that nodes have sent. The client keeps a map as long as it has a connection to the node.

Source: decisions C18, C19.
"""

from __future__ import annotations

from collections import Counter

from triclinium_core.retry.couchbase import ErrorMapStore
from triclinium_core.runtime.kv.connection.connection import Connection


class NegotiatedErrorMaps:
    """Error maps of the nodes to which the client has connections.

    The client drops the map of a node with the last connection to the node. Otherwise the maps would accumulate in a
    cluster whose node names keep changing.

    Args:
        maps: store of error maps, from which the parsers of responses read.
    """

    def __init__(self, maps: ErrorMapStore) -> None:
        self._maps = maps
        self._node_of: dict[Connection, str] = {}
        """Node of each connection when it was last ready. A seeking connection may reach another node later."""
        self._connections: Counter[str] = Counter()
        """Number of connections in ``_node_of`` by node."""
        self._problems: dict[str, str] = {}
        """Problem that the client last reported about each node's error map."""

    def ready(self, connection: Connection) -> str | None:
        """Store the error map of a ready connection.

        Return the problem of the map if it was not reported yet, otherwise None.
        """
        node, negotiated = connection.node, connection.negotiated
        if self._node_of.get(connection) != node:
            self.forget(connection)
            self._node_of[connection] = node
            self._connections[node] += 1
        self.share(connection)
        if negotiated.error_map is not None:
            self._maps.load(node, negotiated.error_map)
        problem = negotiated.error_map_problem
        # Decision C18: report a problem of a node once, not for every stream.
        if problem is None or self._problems.get(node) == problem:
            return None
        self._problems[node] = problem
        return problem

    def share(self, connection: Connection) -> None:
        """Replace the error map of a connection with an equal map of another node, because each map takes 100 kB."""
        negotiated = connection.negotiated
        if negotiated.error_map is not None:
            negotiated.share(self._maps.shared(negotiated.error_map))

    def forget(self, connection: Connection) -> None:
        """Forget a removed connection. With the last connection to a node, forget the error map of the node too."""
        node = self._node_of.pop(connection, None)
        if node is None:
            return
        self._connections[node] -= 1
        if not self._connections[node]:
            del self._connections[node]
            self._problems.pop(node, None)
            self._maps.forget(node)
