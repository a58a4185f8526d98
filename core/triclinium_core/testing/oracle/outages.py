"""Which nodes of a cluster are not as they should be, and which documents nobody serves: excuses that concern some, not all.

Who changes nodes or map calls ``look`` afterwards, so that nothing passes unseen.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.store.cluster_map import NO_NODE, FakeMap
from triclinium_core.testing.fakes.store.documents import vbucket_of

Revision = tuple[int, int]
"""Epoch and revision of a cluster config."""


class Outages:
    """What became of nodes and map, in one cluster."""

    def __init__(self, nodes: FakeNodes) -> None:
        self._nodes = nodes
        self._maps: list[FakeMap] = [nodes.map]
        """All there were, oldest first."""
        self._out_of_order: frozenset[int] = frozenset()

    def look(self) -> AbstractSet[int]:
        """Return the nodes that are not as they should be now, or were not the last time."""
        if self._nodes.map is not self._maps[-1]:
            self._maps.append(self._nodes.map)
        before = self._out_of_order
        self._out_of_order = frozenset(index for index, node in enumerate(self._nodes) if self._is_out_of_order(node))
        return before | self._out_of_order

    def is_out_of_order(self, index: int) -> bool:
        """Tell whether a node is dead, cut off, slow, or knows an old map, as of the last look."""
        return index in self._out_of_order

    def oldest_told(self) -> Revision:
        """Return the oldest config that a node tells now: where a client that knows none begins."""
        return min(node.config_version for node in self._nodes)

    def nodes_of(self, key: str, known: Revision) -> AbstractSet[int]:
        """Return the nodes that may be asked for a document by a client that knew this config, or learnt a newer one."""
        return {owner for owner in self._owners(key, known) if owner != NO_NODE}

    def had_no_node(self, key: str, known: Revision) -> bool:
        """Tell whether such a client may have been told that a document has no node."""
        return NO_NODE in self._owners(key, known)

    def _owners(self, key: str, known: Revision) -> list[int]:
        vbucket = vbucket_of(key.encode(), len(self._maps[0].owners))
        return [each.owners[vbucket] for each in self._maps if each.version >= known]

    def _is_out_of_order(self, node: FakeNode) -> bool:
        is_stale = node.config_version != self._nodes.map.version
        return not node.is_alive or node.network.cuts_some or node.network.slowness > 0 or is_stale
