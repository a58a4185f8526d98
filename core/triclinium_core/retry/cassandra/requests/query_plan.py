"""Query plan: the nodes to which a request is sent, in order. All executions of a request share one plan."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable

from triclinium_core.argument_error import ArgumentError
from triclinium_core.shown import shown


class QueryPlan:
    """Queue of nodes, from which each node is taken once.

    Args:
        nodes: identifiers of nodes, in order. The queue advances a generator only when a node is taken. To pin a
            request to one node, pass a plan with only that node. A plan may be empty.

    Raises:
        ArgumentError: ``nodes`` is not iterable, is a string or bytes, or contains None or an unhashable node. A node
            from a generator is checked when it is taken.
    """

    def __init__(self, nodes: Iterable[Hashable]) -> None:
        if isinstance(nodes, str | bytes) or not isinstance(nodes, Iterable):
            raise ArgumentError(
                f"plan={shown(nodes)} must be an iterable of nodes; put a single node into a list",
                parameter="plan",
            )
        if isinstance(nodes, Collection):
            nodes = tuple(nodes)
            for node in nodes:
                _require_node(node)
        self._nodes = iter(nodes)
        self._is_empty = False

    def take(self) -> Hashable | None:
        """Return the next node. At the end of the plan, return None for this and all later calls.

        Raises:
            ArgumentError: the next node is unhashable or None.
            Exception: any exception that the generator raised.
        """
        if self._is_empty:
            return None
        self._is_empty = True  # It remains True if the plan ends, the generator raises or the node is invalid.
        for node in self._nodes:
            _require_node(node)
            self._is_empty = False
            return node
        return None


def _require_node(node: Hashable) -> None:
    try:
        hash(node)
    except TypeError:
        raise ArgumentError(
            f"node {shown(node)} of the plan is not hashable; use its address or its host id", parameter="plan"
        ) from None
    if node is None:
        raise ArgumentError("plan contains None, which is not a node; remove it", parameter="plan")
