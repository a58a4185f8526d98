"""Nodes to try, in order: one queue for all executions of a request."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable

from triclinium_core.argument_error import ArgumentError
from triclinium_core.shown import shown


class QueryPlan:
    """Queue that yields each node of a plan once.

    Args:
        nodes: identifiers of nodes, in the order to try. A generator is advanced only as far as nodes are needed. A
            pinned node is a plan with one node; a plan may be empty.

    Raises:
        ArgumentError: ``nodes`` is not iterable or is text, or contains None or an unhashable node. Nodes from a
            generator are checked when they are taken.
    """

    def __init__(self, nodes: Iterable[Hashable]) -> None:
        if isinstance(nodes, str | bytes) or not isinstance(nodes, Iterable):
            raise ArgumentError(
                f"plan={shown(nodes)} must be a sequence of nodes; put a single node into a list", parameter="plan"
            )
        if isinstance(nodes, Collection):
            nodes = tuple(nodes)
            for node in nodes:
                _require_node(node)
        self._nodes = iter(nodes)
        self._is_empty = False

    def take(self) -> Hashable | None:
        """Return the next node; None at the end of the plan and on all later calls.

        Raises:
            ArgumentError: the next node is unhashable or None.
            Exception: any exception of the generator.
        """
        if self._is_empty:
            return None
        self._is_empty = True  # remains True if the generator raises: it has then ended
        for node in self._nodes:
            _require_node(node)
            self._is_empty = False
            return node
        return None


def _require_node(node: Hashable) -> None:
    try:
        hash(node)
    except TypeError:
        raise ArgumentError(f"node {shown(node)} of the plan is not hashable", parameter="plan") from None
    if node is None:
        raise ArgumentError("plan contains None, which is not a node; remove it", parameter="plan")
