"""Error maps that nodes have sent, each kept as long as its node has a connection.

Source: decisions C18, C19.
"""

from __future__ import annotations

from collections import Counter

from triclinium_core.retry.couchbase import ErrorMapStore
from triclinium_core.runtime.kv.connection.connection import Connection


class NegotiatedErrorMaps:
    """Error maps of the nodes to which the client has connections.

    The map of a node is dropped with its last connection, because a cluster may have ever new node names.

    Args:
        maps: store that the parsers of responses read.
    """

    def __init__(self, maps: ErrorMapStore) -> None:
        self._maps = maps
        self._node_of: dict[Connection, str] = {}
        """Node to which each connection was last ready: a seeking connection may reach another one later."""
        self._connections: Counter[str] = Counter()
        """Number of these connections by node."""
        self._problems: dict[str, str] = {}
        """Last reported problem of the map of each node."""

    def ready(self, connection: Connection) -> str | None:
        """Store the error map that a ready connection has negotiated. Return its problem if it was not yet reported."""
        node, negotiated = connection.node, connection.negotiated
        if self._node_of.get(connection) != node:
            self.forget(connection)
            self._node_of[connection] = node
            self._connections[node] += 1
        self.share(connection)
        if negotiated.error_map is not None:
            self._maps.load(node, negotiated.error_map)
        problem = negotiated.error_map_problem
        # Decision C18: report a problem once, not for every stream.
        if problem is None or self._problems.get(node) == problem:
            return None
        self._problems[node] = problem
        return problem

    def share(self, connection: Connection) -> None:
        """Replace the error map of a connection by a known equal one, because a map takes 100 kB."""
        negotiated = connection.negotiated
        if negotiated.error_map is not None:
            negotiated.share(self._maps.shared(negotiated.error_map))

    def forget(self, connection: Connection) -> None:
        """Forget a removed connection, and with the last connection of a node also its error map."""
        node = self._node_of.pop(connection, None)
        if node is None:
            return
        self._connections[node] -= 1
        if not self._connections[node]:
            del self._connections[node]
            self._problems.pop(node, None)
            self._maps.forget(node)
