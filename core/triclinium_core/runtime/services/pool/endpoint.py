"""One service of one node: its connections, who waits for one, and whether it is worth asking."""

from __future__ import annotations

from collections.abc import Iterable

from triclinium_core.contract.neutral import StreamId, TimerId
from triclinium_core.kv.address import Address
from triclinium_core.retry.couchbase.circuit_breaker import CircuitBreaker, CircuitBreakerOptions
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.runtime.services.connection.connection import HttpConnection
from triclinium_core.shown import total_repr

WAITING_MAX = 16_384
"""Requests that wait for a connection of one endpoint at most; the next one fails, and was not sent."""


class Endpoint:
    """The pool of connections to one service of one node.

    ``repr`` and errors call it by ``node``: host and port.
    """

    def __init__(
        self, service: Service, address: Address, *, connections_max: int, circuit_breaker: CircuitBreakerOptions
    ) -> None:
        self.service: Service = service
        self.address: Address = address
        self.node: str = str(address)
        self.is_loopback: bool = address.is_loopback
        self.breaker: CircuitBreaker = CircuitBreaker(circuit_breaker)
        self.waiting: dict[int, None] = {}
        """Tokens of the requests that wait for a connection, in order."""
        self.opening: dict[StreamId, TimerId] = {}
        """Streams that are not open yet; when each is given up."""
        self.connections: dict[StreamId, HttpConnection] = {}
        """Those that are open."""
        self.idle: dict[StreamId, TimerId] = {}
        """Of them, those that wait for a request, the one that was used last at the end; when each is closed."""
        self.newest_stream: StreamId | None = None
        """The one that was to be opened last, whatever became of it."""
        self.last_error: str | None = None
        """Reason why the newest stream could not be opened or was lost, or the defect that an answer revealed."""
        self.breaker_timer: TimerId | None = None
        """When an open breaker has slept long enough."""
        self._connections_max = connections_max

    @total_repr
    def __repr__(self) -> str:
        return (
            f"<Endpoint {self.service} {self.node}: {len(self.connections)} connections, {len(self.waiting)} waiting>"
        )

    @property
    def needs_stream(self) -> bool:
        """Whether one more stream should be opened: more requests wait than streams are on their way, and there is room."""
        count = len(self.opening) + len(self.connections)
        has_room = not self._connections_max or count < self._connections_max
        return len(self.waiting) > len(self.opening) + len(self.idle) and has_room

    @property
    def load(self) -> int:
        """How many requests it has, or keeps waiting."""
        return len(self.connections) - len(self.idle) + len(self.waiting)

    @property
    def is_used(self) -> bool:
        """Whether it has a stream, or anybody waits for one."""
        return bool(self.waiting or self.opening or self.connections)


def choose(endpoints: Iterable[Endpoint], *, avoided: Address | None) -> Endpoint | None:
    """Return the endpoint that has the least to do, of those whose breakers are closed; None where there is none.

    Args:
        avoided: where the attempt before failed; it is taken only where there is no other.
    """
    usable = [endpoint for endpoint in endpoints if endpoint.breaker.allows_operations]
    return min(usable, key=lambda endpoint: (endpoint.address == avoided, endpoint.load), default=None)
