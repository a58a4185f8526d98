"""The nodes to try, in order: one queue for all executions of a request."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable

from triclinium_core.argument_error import ArgumentError
from triclinium_core.shown import shown


class QueryPlan:
    """Hands out each node of a plan once.

    Args:
        nodes: whatever names a node to the driver, in the order to try; a generator is advanced only as far as nodes
            are needed. One that is pinned is a plan of one; an empty plan is one too.

    Raises:
        ArgumentError: ``nodes`` cannot be iterated, is text, or has a node that is None or not hashable;
            nodes that are yet to be made are looked at when they are taken.
    """

    def __init__(self, nodes: Iterable[Hashable]) -> None:
        if isinstance(nodes, str | bytes) or not isinstance(nodes, Iterable):
            raise ArgumentError(
                f"plan={shown(nodes)} must be a sequence of nodes; a lone node goes into a list", parameter="plan"
            )
        if isinstance(nodes, Collection):
            nodes = tuple(nodes)
            for node in nodes:
                _require_node(node)
        self._nodes = iter(nodes)
        self._is_empty = False

    def take(self) -> Hashable | None:
        """Return the next node; None when there is none, and from then on.

        Raises:
            ArgumentError: the next one is None or not hashable.
            Exception: whatever the generator raised.
        """
        if self._is_empty:
            return None
        self._is_empty = True  # so it stays where the generator raises: that one is over
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
        raise ArgumentError("None is not a node; leave it out of the plan", parameter="plan")
