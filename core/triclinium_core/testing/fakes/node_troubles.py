"""Troubles of whole nodes, by name, as command lines have them: they strike no command, begin at once, and last."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from triclinium_core import errors
from triclinium_core.checks import Duration, check_duration
from triclinium_core.options import SECONDS_MAX
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes

LASTING: Mapping[str, Callable[[FakeNodes, int], None]] = {
    FakeNodes.hold_replication.__name__: FakeNodes.hold_replication,
    FakeNodes.partition.__name__: FakeNodes.partition,
    FakeNodes.kill.__name__: FakeNodes.kill,
}
"""What a node is simply told."""
TIMED: Mapping[str, Callable[[FakeNodes, int, Duration], None]] = {
    FakeNodes.learn_late.__name__: FakeNodes.learn_late,
    FakeNodes.slow_down.__name__: FakeNodes.slow_down,
}
"""What it is told with a number of seconds."""
NODE_TROUBLES: Sequence[str] = (*TIMED, *LASTING)
"""Their names, which are those of the methods of ``FakeNodes``."""


@dataclass(frozen=True, slots=True)
class NodeTrouble:
    """A trouble, and where."""

    name: str
    seconds: float | None = None
    """None where it has no seconds."""
    node: int | None = None
    """None for every node."""

    def place(self, nodes: FakeNodes) -> None:
        """Have the trouble begin.

        Raises:
            InvalidArgumentException: there is no such node.
        """
        for index in indexes_of(nodes, self.node):
            if self.seconds is None:
                LASTING[self.name](nodes, index)
            else:
                TIMED[self.name](nodes, index, self.seconds)


def indexes_of(nodes: FakeNodes, node: int | None) -> Sequence[int]:
    """Return the node that is meant, or all of them where none is named.

    Raises:
        InvalidArgumentException: there is no such node.
    """
    if node is None:
        return range(len(nodes))
    if node >= len(nodes):
        raise errors.InvalidArgumentException(
            f"there is no node {node}; they are numbered from 0 to {len(nodes) - 1}", parameter="fault"
        )
    return [node]


def make_trouble(
    name: str, given: Sequence[object], named: Mapping[str, object], node: int | None = None
) -> NodeTrouble:
    """Return a trouble out of its arguments.

    Raises:
        InvalidArgumentException: they are not the ones that it has.
    """
    arguments = [*given, *(value for key, value in named.items() if key == "seconds")]
    if len(arguments) != (name in TIMED) or set(named) - {"seconds"}:
        raise errors.InvalidArgumentException(f"{name} is called so: {spelled_trouble(name)}", parameter="fault")
    # What is no number of seconds is refused there.
    seconds = check_duration(cast("float", arguments[0]), "seconds", most=SECONDS_MAX) if arguments else None
    return NodeTrouble(name, seconds, node)


def spelled_trouble(name: str) -> str:
    """Return how a trouble is called: ``slow_down(seconds)``, or ``kill``."""
    return f"{name}(seconds)" if name in TIMED else name
