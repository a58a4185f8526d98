"""Excuses that concern some nodes and not all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.options import FakeNodeOptions
from triclinium_core.testing.oracle.outages import Outages


def three_nodes() -> FakeNodes:
    """Return a small cluster, whose first node has the document of the tests."""
    nodes = FakeNodes(FakeNodeOptions(vbuckets=128), nodes=3)
    nodes.move(range(128), to=0)
    return nodes


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (lambda nodes: nodes.kill(1), lambda nodes: nodes.revive(1)),
        (lambda nodes: nodes.partition(1), lambda nodes: nodes.heal(1)),
        (lambda nodes: nodes.partition(1, [7]), lambda nodes: nodes.heal(1)),
        (lambda nodes: nodes.slow_down(1, 0.1), lambda nodes: nodes.slow_down(1, 0)),
        (lambda nodes: (nodes.hold_config(1), nodes.rebalance()), lambda nodes: nodes.release_config(1)),
    ],
    ids=["dead", "cut off", "cut off from one", "slow", "stale"],
)
def test_out_of_order(begin: Callable[[FakeNodes], object], end: Callable[[FakeNodes], object]) -> None:
    """A node is from one look to the next, and at the first look after it was."""
    nodes = three_nodes()
    outages = Outages(nodes)
    before = outages.look(), outages.is_out_of_order(1)
    begin(nodes)
    while_it_lasts = outages.look(), outages.is_out_of_order(1)
    end(nodes)
    afterwards = outages.look(), outages.is_out_of_order(1)

    assert (set(), False) == before
    assert ({1}, True) == while_it_lasts
    assert ({1}, False) == afterwards
    assert set() == outages.look()


def test_whom_a_client_may_ask() -> None:
    """All who had the document since the config that it knew, whatever became of them."""
    nodes = three_nodes()
    outages = Outages(nodes)
    known = nodes.map.version
    nodes.move(range(128), to=1)
    outages.look()
    later = nodes.map.version
    nodes.move(range(128), to=2)
    outages.look()

    assert {0, 1, 2} == outages.nodes_of("ada", known)
    assert {1, 2} == outages.nodes_of("ada", later)
    assert {2} == outages.nodes_of("ada", nodes.map.version)


def test_a_document_without_a_node() -> None:
    """Is an excuse for those who may have known that map, and names no node."""
    nodes = three_nodes()
    outages = Outages(nodes)
    nodes.move(range(128), to=None)
    outages.look()
    without = nodes.map.version
    nodes.rebalance()
    outages.look()

    assert outages.had_no_node("ada", without)
    assert not outages.had_no_node("ada", nodes.map.version)
    assert -1 not in outages.nodes_of("ada", without)


def test_the_oldest_config_that_is_told() -> None:
    """Is that of a node that keeps to an old map; else there is one alone."""
    nodes = three_nodes()
    outages = Outages(nodes)
    old = nodes.map.version
    nodes.hold_config(1)
    nodes.rebalance()

    assert old == outages.oldest_told()
    nodes.release_config(1)
    assert nodes.map.version == outages.oldest_told()
