"""The error maps that nodes have sent: each is kept as long as its node has a connection, and no longer.

Source: decisions C18, C19.
"""

from __future__ import annotations

from collections import Counter

from triclinium_core.retry.couchbase import ErrorMapStore
from triclinium_core.runtime.kv.connection.connection import Connection


class NegotiatedErrorMaps:
    """What connections have negotiated of error maps. Nodes may have names that never come again, so each is forgotten.

    Args:
        maps: where those who read answers look.
    """

    def __init__(self, maps: ErrorMapStore) -> None:
        self._maps = maps
        self._node_of: dict[Connection, str] = {}
        """The node at which each connection was ready last: one that seeks may find another."""
        self._connections: Counter[str] = Counter()
        """How many those are, by node."""
        self._problems: dict[str, str] = {}
        """What is wrong with the map of a node, as it was reported last."""

    def ready(self, connection: Connection) -> str | None:
        """Keep what a connection that is ready has negotiated, and return what is wrong with it, if that is news."""
        node, negotiated = connection.node, connection.negotiated
        if self._node_of.get(connection) != node:
            self.forget(connection)
            self._node_of[connection] = node
            self._connections[node] += 1
        self.share(connection)
        if negotiated.error_map is not None:
            self._maps.load(node, negotiated.error_map)
        problem = negotiated.error_map_problem
        # Decision C18: once, and not for every stream that meets the same.
        if problem is None or self._problems.get(node) == problem:
            return None
        self._problems[node] = problem
        return problem

    def share(self, connection: Connection) -> None:
        """Have a connection hold the known map that equals its own: one takes 100 kB."""
        negotiated = connection.negotiated
        if negotiated.error_map is not None:
            negotiated.share(self._maps.shared(negotiated.error_map))

    def forget(self, connection: Connection) -> None:
        """Forget a connection that is gone for good, and with the last one of a node all that is known of its map."""
        node = self._node_of.pop(connection, None)
        if node is None:
            return
        self._connections[node] -= 1
        if not self._connections[node]:
            del self._connections[node]
            self._problems.pop(node, None)
            self._maps.forget(node)
