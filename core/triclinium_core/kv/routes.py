"""The connections of a client, by bucket and node."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from triclinium_core.kv.address import Address
from triclinium_core.kv.node.node_machine import NodeMachine
from triclinium_core.kv.node.states import NodeState

Route = tuple[str | None, Address | None]
"""A bucket, and a node's address in its map; the address is None until a map has told it."""


class Routes:
    """Which connection leads where."""

    def __init__(self) -> None:
        self._nodes: dict[Route, NodeMachine] = {}

    @property
    def nodes(self) -> Iterable[NodeMachine]:
        """All connections, in the order in which they were first needed."""
        return self._nodes.values()

    def get(self, route: Route) -> NodeMachine | None:
        """Return the connection of a route, or None where there is none."""
        return self._nodes.get(route)

    def add(self, route: Route, node: NodeMachine) -> None:
        """Take note of a new connection."""
        self._nodes[route] = node

    def all_of(self, bucket: str | None) -> Sequence[NodeMachine]:
        """Return the connections of a bucket."""
        return [node for (name, _), node in self._nodes.items() if name == bucket]

    def any_of(self, bucket: str | None) -> NodeMachine | None:
        """Return a connection of a bucket, a ready one if there is any; None where there is none at all."""
        found = self.all_of(bucket)
        return next((node for node in found if node.state is NodeState.READY), found[0] if found else None)

    def identify(self, node: NodeMachine, address: Address) -> None:
        """Take note that a connection is the one to the node with this address, unless there is another one."""
        if (node.bucket, address) not in self._nodes:
            self._nodes = {route: other for route, other in self._nodes.items() if other is not node}
            self._nodes[node.bucket, address] = node

    def drop_others(self, bucket: str | None, addresses: Collection[Address]) -> Sequence[NodeMachine]:
        """Forget a bucket's connections to nodes that have none of these addresses, and return them."""
        gone = [
            (route, node) for route, node in self._nodes.items() if route[0] == bucket and route[1] not in addresses
        ]
        for route, _ in gone:
            del self._nodes[route]
        return [node for _, node in gone]


def ready_after(node: NodeMachine, nodes: Iterable[NodeMachine]) -> NodeMachine | None:
    """Return the next ready connection of the same bucket, after the last the first; None where none is ready."""
    known = [other for other in nodes if other.bucket == node.bucket]
    position = known.index(node) + 1 if node in known else 0
    return next((other for other in known[position:] + known[:position] if other.state is NodeState.READY), None)
