"""State of fake nodes in JSON terms: nodes, faults and planned commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from triclinium_core.kv.address import Address
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.control.new_faults import ALWAYS, TARGETS
from triclinium_core.testing.fakes.fault_conditions import IMMEDIATELY, Conditions
from triclinium_core.testing.fakes.fault_names import described
from triclinium_core.testing.fakes.fault_table import PendingFault, Target


def state_of(nodes: FakeNodes, seed: int) -> dict[str, object]:
    """Return the state of all nodes.

    Shape: ``seconds`` since the address was printed, ``seed``, ``nodes`` by number, and ``planned``, the commands that
    wait for their start or their end.
    """
    return {
        "seconds": nodes.seconds,
        "seed": seed,
        "nodes": [_node(nodes, index, node) for index, node in enumerate(nodes)],
        "planned": [
            {
                "command": change.name,
                "node": change.node,
                **_conditions(conditions),
                "has_started": has_started,
            }
            for change, conditions, has_started in nodes.schedule.planned
        ],
    }


def _node(nodes: FakeNodes, index: int, node: FakeNode) -> dict[str, object]:
    return {
        "node": index,
        "address": str(Address(node.options.host, node.options.port)),
        "is_alive": node.is_alive,
        "is_member": index in nodes.map.members,
        "is_cut_off": node.network.cuts_all,
        "slow_by_seconds": node.network.slowness,
        "vbuckets": len(nodes.vbuckets_of(index)),
        "connections": node.connections,
        "faults": [_fault(entry) for entry in node.faults.entries],
    }


def _fault(entry: PendingFault) -> dict[str, object]:
    return {
        "fault": described(entry.fault),
        "target": _target(entry.target),
        "times": ALWAYS if entry.left is None else entry.left,
        **_conditions(entry.progress.conditions),
    }


def _target(target: Target | str) -> str:
    """Return a target by its name, or by its number if it has no name."""
    names = [name for name, known in TARGETS.items() if known == target]
    return names[0] if names else str(target)


def _conditions(conditions: Conditions) -> Mapping[str, object]:
    """Return the conditions that differ from the defaults."""
    usual = asdict(IMMEDIATELY)
    return {name: value for name, value in asdict(conditions).items() if value != usual[name]}
