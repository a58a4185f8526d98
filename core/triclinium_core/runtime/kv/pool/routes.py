"""Connections of a client by bucket and node, and the states of the connections of each bucket.

The client reads this state whenever a connection is opened or lost, and updates it incrementally. So the cost per node
does not grow with the size of the cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from triclinium_core.kv.address import Address
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.runtime.kv.destinations import Destinations

RouteKey = tuple[str | None, Address | None]
"""Bucket, and address of a node in the map of the bucket, or None for a connection that seeks any node."""


@dataclass(slots=True)
class _Bucket:
    """Connections of one bucket."""

    connections: dict[Address | None, Connection] = field(default_factory=dict)
    ready: dict[Connection, None] = field(default_factory=dict)
    """Ready connections. ``ready_after`` moves the connection that it returns to the end."""
    hopeful: set[Connection] = field(default_factory=set)
    """Connections that are in use, or have had no failed attempt since they last were."""


_NO_BUCKET = _Bucket()
"""Constant for a bucket without connections. Do not change it."""


class Routes:
    """Connections by bucket and node.

    Call ``moved`` when a connection becomes ready, reauthenticates, answers a ping, is lost or leaves.
    """

    def __init__(self, destinations: Destinations) -> None:
        self._destinations = destinations
        self._buckets: dict[str | None, _Bucket] = {}
        self.fresh: dict[Connection, None] = {}
        """Connections that were passed to ``add`` or ``moved`` since the last ``take_fresh``."""

    @property
    def all(self) -> Iterable[Connection]:
        """All connections except draining ones, by bucket, in the order in which the client first needed them."""
        return (connection for bucket in self._buckets.values() for connection in bucket.connections.values())

    def get(self, route: RouteKey) -> Connection | None:
        """Return the connection of a route; None if no connection has this route."""
        bucket, address = route
        return self._buckets.get(bucket, _NO_BUCKET).connections.get(address)

    def add(self, route: RouteKey, connection: Connection) -> None:
        """Record a new connection."""
        bucket, address = route
        self._buckets.setdefault(bucket, _Bucket()).connections[address] = connection
        self.moved(connection)

    def moved(self, connection: Connection) -> None:
        """Record the current state of a connection, and drop the cached routes of its bucket."""
        self._destinations.forget(connection.bucket)
        self.fresh[connection] = None
        bucket = self._buckets.get(connection.bucket)
        if connection.is_leaving or bucket is None:
            return
        if connection.state is ConnectionState.READY:
            bucket.ready.setdefault(connection)
        else:
            bucket.ready.pop(connection, None)
        if connection.is_in_use or not connection.history.failures:
            bucket.hopeful.add(connection)
        else:
            bucket.hopeful.discard(connection)

    def take_fresh(self) -> Collection[Connection]:
        """Return and clear ``fresh``."""
        fresh, self.fresh = self.fresh, {}
        return fresh

    def all_of(self, bucket: str | None) -> Collection[Connection]:
        """Return the connections of a bucket."""
        return self._buckets.get(bucket, _NO_BUCKET).connections.values()

    def any_of(self, bucket: str | None) -> Connection | None:
        """Return a connection of a bucket, preferably a ready one. Return None if the bucket has no connection."""
        found = self._buckets.get(bucket, _NO_BUCKET)
        return next(iter(found.ready), None) or next(iter(found.connections.values()), None)

    def ready_count(self, bucket: str | None) -> int:
        """Return the number of ready connections of a bucket."""
        return len(self._buckets.get(bucket, _NO_BUCKET).ready)

    def is_cut_off(self, bucket: str | None) -> bool:
        """Return whether a bucket has connections, and the last attempt of each of them has failed."""
        found = self._buckets.get(bucket, _NO_BUCKET)
        return bool(found.connections) and not found.hopeful

    def ready_after(self, connection: Connection) -> Connection | None:
        """Return the next ready connection of ``connection``'s bucket, in turn. Return None if no connection is ready.

        Return ``connection`` itself only if no other connection is ready.
        """
        ready = self._buckets.get(connection.bucket, _NO_BUCKET).ready
        found = next((other for other in ready if other is not connection), connection if connection in ready else None)
        if found is not None:
            del ready[found]
            ready[found] = None
        return found

    def identify(self, connection: Connection, address: Address) -> None:
        """Record the address that a connection's node has in the map, unless another connection has that address."""
        bucket = self._buckets[connection.bucket]
        if address not in bucket.connections:
            bucket.connections = {
                address if other is connection else known: other for known, other in bucket.connections.items()
            }

    @property
    def buckets(self) -> Sequence[str]:
        """Buckets that have connections."""
        return [name for name, bucket in self._buckets.items() if name is not None and bucket.connections]

    def drop(self, bucket: str) -> Collection[Connection]:
        """Remove a bucket, and return its connections."""
        self._destinations.forget(bucket)
        return self._buckets.pop(bucket).connections.values()

    def drop_others(self, bucket: str | None, addresses: Iterable[Address]) -> Sequence[Connection]:
        """Remove and return a bucket's connections to all addresses that are not in ``addresses``."""
        kept, found = frozenset(addresses), self._buckets.get(bucket, _NO_BUCKET)
        removed = {address: connection for address, connection in found.connections.items() if address not in kept}
        for address, connection in removed.items():
            del found.connections[address]
            found.ready.pop(connection, None)
            found.hopeful.discard(connection)
        return tuple(removed.values())
