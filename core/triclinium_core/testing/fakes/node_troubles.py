"""Troubles of an entire node, by command line name. They begin immediately and last; they strike no single command."""

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
"""Troubles without arguments."""
TIMED: Mapping[str, Callable[[FakeNodes, int, Duration], None]] = {
    FakeNodes.learn_late.__name__: FakeNodes.learn_late,
    FakeNodes.slow_down.__name__: FakeNodes.slow_down,
}
"""Troubles with a number of seconds as argument."""
NODE_TROUBLES: Sequence[str] = (*TIMED, *LASTING)
"""Names of all troubles, which are methods of ``FakeNodes``."""


@dataclass(frozen=True, slots=True)
class NodeTrouble:
    """A trouble and its node."""

    name: str
    seconds: float | None = None
    """Seconds; None for a trouble without an argument."""
    node: int | None = None
    """Index of the node; None for every node."""

    def place(self, nodes: FakeNodes) -> None:
        """Start the trouble.

        Raises:
            InvalidArgumentException: the node does not exist.
        """
        for index in indexes_of(nodes, self.node):
            if self.seconds is None:
                LASTING[self.name](nodes, index)
            else:
                TIMED[self.name](nodes, index, self.seconds)


def indexes_of(nodes: FakeNodes, node: int | None) -> Sequence[int]:
    """Return the index of the named node, or of all nodes if none is named.

    Raises:
        InvalidArgumentException: the node does not exist.
    """
    if node is None:
        return range(len(nodes))
    if node >= len(nodes):
        raise errors.InvalidArgumentException(
            f"node {node} does not exist; the nodes are numbered from 0 to {len(nodes) - 1}", parameter="fault"
        )
    return [node]


def make_trouble(
    name: str, given: Sequence[object], named: Mapping[str, object], node: int | None = None
) -> NodeTrouble:
    """Return the trouble with these arguments.

    Raises:
        InvalidArgumentException: the arguments do not fit the trouble.
    """
    arguments = [*given, *(value for key, value in named.items() if key == "seconds")]
    if len(arguments) != (name in TIMED) or set(named) - {"seconds"}:
        raise errors.InvalidArgumentException(
            f"{name} has invalid arguments; write {spelled_trouble(name)}", parameter="fault"
        )
    # ``check_duration`` refuses values that are not a number of seconds, so the cast is safe.
    seconds = check_duration(cast("float", arguments[0]), "seconds", most=SECONDS_MAX) if arguments else None
    return NodeTrouble(name, seconds, node)


def spelled_trouble(name: str) -> str:
    """Return the call syntax of a trouble: ``slow_down(seconds)``, or ``kill``."""
    return f"{name}(seconds)" if name in TIMED else name
