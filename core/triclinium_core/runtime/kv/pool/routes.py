"""Connections of a client by bucket and node, and their states by bucket.

What is asked whenever a connection is opened or lost is kept up to date rather than counted, so that a cluster of a
thousand nodes costs no more for each of them than one of three.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from triclinium_core.kv.address import Address
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.runtime.kv.destinations import Destinations

RouteKey = tuple[str | None, Address | None]
"""A bucket, and a node's address in its map; the address is None until a map has told it."""


@dataclass(slots=True)
class _Bucket:
    """The connections of one bucket."""

    connections: dict[Address | None, Connection] = field(default_factory=dict)
    ready: dict[Connection, None] = field(default_factory=dict)
    """Those that are ready; the one that was asked last stands at the end."""
    hopeful: set[Connection] = field(default_factory=set)
    """Those that are in use, or were not opened in vain since they were."""


_NO_BUCKET = _Bucket()
"""Stands for a bucket without connections; never changed."""


class Routes:
    """Which connection leads where. ``moved`` has to hear of each step that a connection takes."""

    def __init__(self, destinations: Destinations) -> None:
        self._destinations = destinations
        self._buckets: dict[str | None, _Bucket] = {}
        self.fresh: dict[Connection, None] = {}
        """Connections that were opened, lost or became ready, or whose node left the map, since somebody looked."""

    @property
    def all(self) -> Iterable[Connection]:
        """All connections, bucket by bucket, in the order in which they were first needed."""
        return (connection for bucket in self._buckets.values() for connection in bucket.connections.values())

    def get(self, route: RouteKey) -> Connection | None:
        """Return the connection of a route, or None where there is none."""
        bucket, address = route
        return self._buckets.get(bucket, _NO_BUCKET).connections.get(address)

    def add(self, route: RouteKey, connection: Connection) -> None:
        """Record a new connection."""
        bucket, address = route
        self._buckets.setdefault(bucket, _Bucket()).connections[address] = connection
        self.moved(connection)

    def moved(self, connection: Connection) -> None:
        """Record where a connection stands now."""
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
        """Return what is fresh; from now on nothing is."""
        fresh, self.fresh = self.fresh, {}
        return fresh

    def all_of(self, bucket: str | None) -> Collection[Connection]:
        """Return the connections of a bucket."""
        return self._buckets.get(bucket, _NO_BUCKET).connections.values()

    def any_of(self, bucket: str | None) -> Connection | None:
        """Return a connection of a bucket, a ready one if there is any; None where there is none at all."""
        found = self._buckets.get(bucket, _NO_BUCKET)
        return next(iter(found.ready), None) or next(iter(found.connections.values()), None)

    def ready_count(self, bucket: str | None) -> int:
        """Return how many connections of a bucket are ready."""
        return len(self._buckets.get(bucket, _NO_BUCKET).ready)

    def is_cut_off(self, bucket: str | None) -> bool:
        """Whether a bucket has connections, and none of them can be used, or was opened again since it was lost."""
        found = self._buckets.get(bucket, _NO_BUCKET)
        return bool(found.connections) and not found.hopeful

    def ready_after(self, connection: Connection) -> Connection | None:
        """Return the ready connection of the same bucket whose turn it is to be asked; None where none is ready.

        It is another one than ``connection``, if there is another.
        """
        ready = self._buckets.get(connection.bucket, _NO_BUCKET).ready
        found = next((other for other in ready if other is not connection), connection if connection in ready else None)
        if found is not None:
            del ready[found]
            ready[found] = None
        return found

    def identify(self, connection: Connection, address: Address) -> None:
        """Record that a connection is the one to the node with this address, unless there is another one."""
        bucket = self._buckets[connection.bucket]
        if address not in bucket.connections:
            bucket.connections = {
                known: other for known, other in bucket.connections.items() if other is not connection
            }
            bucket.connections[address] = connection

    @property
    def buckets(self) -> Sequence[str]:
        """The buckets that have connections."""
        return [name for name, bucket in self._buckets.items() if name is not None and bucket.connections]

    def drop(self, bucket: str) -> Collection[Connection]:
        """Forget a bucket, and return the connections that it had."""
        self._destinations.forget(bucket)
        return self._buckets.pop(bucket).connections.values()

    def drop_others(self, bucket: str | None, addresses: Iterable[Address]) -> Sequence[Connection]:
        """Forget a bucket's connections to nodes that have none of these addresses, and return them."""
        kept, found = frozenset(addresses), self._buckets.get(bucket, _NO_BUCKET)
        gone = {address: connection for address, connection in found.connections.items() if address not in kept}
        for address, connection in gone.items():
            del found.connections[address]
            found.ready.pop(connection, None)
            found.hopeful.discard(connection)
        return tuple(gone.values())
