"""Troubles of whole nodes, as text on a command line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.testing import FakeNodes
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.fault_text import read_fault
from triclinium_core.testing.fakes.node_troubles import NODE_TROUBLES, spelled_trouble


def lateness(node: FakeNode) -> float:
    """Return the delay with which a node learns of collections."""
    return -node.cluster.buckets.lateness.learned_until(node.cluster.nodes.index(node.options))


@rows(
    ("text", "is_in_trouble"),
    [
        ("learn_late(3)", lambda node: lateness(node) == 3.0),
        ("slow_down(0.4)", lambda node: node.network.slowness == 0.4),
        ("kill", lambda node: not node.is_alive),
        ("partition", lambda node: node.network.cuts_some),
        ("hold_replication", lambda node: node.cluster.nodes.index(node.options) in node.cluster.held_replicas),
    ],
)
def test_trouble_starts_at_one_node_or_all(text: str, is_in_trouble: Callable[[FakeNode], bool]) -> None:
    """A trouble without a node starts at each node."""
    one, all_of_them = FakeNodes(nodes=3), FakeNodes(nodes=3)
    read_fault(f"@1: {text}").place(one)
    read_fault(text).place(all_of_them)

    assert [False, True, False] == [is_in_trouble(node) for node in one]
    assert [True, True, True] == [is_in_trouble(node) for node in all_of_them]


def test_unknown_node_is_refused() -> None:
    """The error gives the range of the node numbers."""
    with pytest.raises(errors.InvalidArgumentException, match="node 3.* from 0 to 2"):
        read_fault("@3: learn_late(1)").place(FakeNodes(nodes=3))


def test_names_are_methods_of_the_nodes() -> None:
    """Each name is the name of a method of FakeNodes."""
    assert all(hasattr(FakeNodes, name) for name in NODE_TROUBLES)
    assert ["learn_late(seconds)", "slow_down(seconds)", "hold_replication", "partition", "kill"] == [
        spelled_trouble(name) for name in NODE_TROUBLES
    ]
