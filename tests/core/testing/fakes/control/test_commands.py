"""The table of commands for nodes, and its reader."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from inspect import signature
from typing import Any

import pytest

from tests.rows import rows
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import FakeNodes, InvalidCommand, apply_command, delay, hang_up, http_status
from triclinium_core.testing.fakes.control.command_text import read_command_text
from triclinium_core.testing.fakes.control.commands import (
    COMMAND_KINDS,
    COMMAND_NAMES,
    NodeCommand,
    Reach,
    fields_of,
    read_command,
)
from triclinium_core.testing.fakes.control.new_faults import AddFault, allowed_argument
from triclinium_core.testing.fakes.fault_names import FAULTS

HANG_UP = {"kind": "hang_up"}


def adding(fault: object, **fields: object) -> dict[str, object]:
    """Return a command that adds a fault, as an object."""
    return {"command": "add_fault", "fault": fault, **fields}


def test_table_has_methods_of_the_nodes() -> None:
    """Each command has the name of a method of FakeNodes, whose parameters are its fields."""
    conditions = {"after_requests", "at_seconds", "for_seconds"}
    for name, kind in COMMAND_KINDS.items():
        own = [parameter for parameter in signature(getattr(FakeNodes, name)).parameters if parameter != "self"]
        named = {field.name for field in kind.fields} - conditions

        assert named == set(own) - {"index", "when", "connections"}
        assert (kind.reach is Reach.CLUSTER) == ("index" not in own)


def test_each_argument_of_a_fault_has_allowed_values() -> None:
    """Every argument of every fault has a description of its allowed values."""
    described = {
        (kind, argument): allowed_argument(kind, argument)
        for kind, make in FAULTS.items()
        for argument in signature(make).parameters
    }

    assert len(described) > 15
    assert all(described.values())


@rows(
    ("text", "given", "expected"),
    [
        ("@1: kill", {"command": "kill", "node": 1}, NodeCommand("kill", 1)),
        ("kill", {"command": "kill"}, NodeCommand("kill")),
        (
            "@1: restart(keep_data=False) after 5 requests",
            {"command": "restart", "node": 1, "keep_data": False, "after_requests": 5},
            NodeCommand("restart", 1, {"keep_data": False, "after_requests": 5}),
        ),
        (
            "@0: restart(True) for 2 s at 1.5 seconds",
            {"command": "restart", "node": 0, "keep_data": True, "at_seconds": 1.5, "for_seconds": 2},
            NodeCommand("restart", 0, {"keep_data": True, "at_seconds": 1.5, "for_seconds": 2}),
        ),
        (
            "slow_down(0.5) for 1 second",
            {"command": "slow_down", "seconds": 0.5, "for_seconds": 1},
            NodeCommand("slow_down", None, {"seconds": 0.5, "for_seconds": 1}),
        ),
        (
            "rebalance after 1 request",
            {"command": "rebalance", "after_requests": 1},
            NodeCommand("rebalance", None, {"after_requests": 1}),
        ),
        ("@2: clear_faults", {"command": "clear_faults", "node": 2}, NodeCommand("clear_faults", 2)),
        (
            "get@1: delay(0.4) x2 at 5 seconds",
            adding({"kind": "delay", "seconds": 0.4}, target="get", node=1, times=2, at_seconds=5),
            AddFault(delay(0.4), Opcode.GET, 1, 2, {"at_seconds": 5}),
        ),
        # A fault with a duration or a probability may strike any number of times, unless the command sets a limit.
        (
            "query: http_status(503, 'busy') for 2 seconds",
            adding({"kind": "http_status", "code": 503, "body": "busy"}, target="query", for_seconds=2),
            AddFault(http_status(503, b"busy"), Service.QUERY, None, None, {"for_seconds": 2}),
        ),
        (
            "hang_up with probability 1e-1",
            adding(HANG_UP, probability=0.1),
            AddFault(hang_up(), times=None, conditions={"probability": 0.1}),
        ),
        (
            "hang_up x1 with probability 0.1 after 10 requests",
            adding(HANG_UP, times=1, probability=0.1, after_requests=10),
            AddFault(hang_up(), conditions={"probability": 0.1, "after_requests": 10}),
        ),
        (
            "any: hang_up always after 10 requests",
            adding(HANG_UP, target="any", times="always", after_requests=10),
            AddFault(hang_up(), times=None, conditions={"after_requests": 10}),
        ),
    ],
)
def test_text_and_object_give_one_command(text: str, given: object, expected: object) -> None:
    """A text and an object with the same meaning give equal commands."""
    assert expected == read_command_text(text) == read_command(given)


@rows(
    ("given", "field", "allowed"),
    [
        ([], "command", [*COMMAND_NAMES]),
        (5, "command", [*COMMAND_NAMES]),
        ({}, "command", [*COMMAND_NAMES]),
        ({"command": "kil"}, "command", [*COMMAND_NAMES]),
        ({"command": ["kill"]}, "command", [*COMMAND_NAMES]),
        ({"command": "kill", "nod": 1}, "nod", ["node", "after_requests", "at_seconds", "for_seconds"]),
        ({"command": "revive", "for_seconds": 1}, "for_seconds", ["node", "after_requests", "at_seconds"]),
        ({"command": "rebalance", "node": 1}, "node", ["after_requests", "at_seconds"]),
        ({"command": "kill", "node": True}, "node", ["0 to the number of nodes - 1, at most 127"]),
        ({"command": "kill", "node": 3}, "node", ["0", "1", "2"]),
        ({"command": "kill", "for_seconds": 0}, "for_seconds", ["a number above 0, at most 1e+09"]),
        ({"command": "restart", "keep_data": "yes"}, "keep_data", ["true", "false"]),
        ({"command": "slow_down"}, "seconds", ["a number from 0 to 1e+09"]),
        ({"command": "slow_down", "seconds": None}, "seconds", ["a number from 0 to 1e+09"]),
        ({"command": "fail_over"}, "node", ["0 to the number of nodes - 1, at most 127"]),
        ({"command": "add_node", "node": 1}, "node", []),
        ({"command": "add_fault"}, "fault", [*FAULTS]),
        (adding("hang_up"), "fault.kind", None),
        (adding({"kind": "hang_upp"}), "fault.kind", None),
        (adding({"kind": "delay"}), "fault.seconds", ["a number from 0 to 1e+09"]),
        (adding({"kind": "delay", "second": 1}), "fault.second", ["seconds"]),
        (adding({"kind": "delay", "seconds": -1}), "fault.seconds", ["a number from 0 to 1e+09"]),
        (adding({"kind": "locked"}, target="query"), "fault.kind", None),
        (adding({"kind": "refuse_connection"}, target="get"), "target", ["any"]),
        (adding(HANG_UP, target=5), "target", None),
        (adding(HANG_UP, target="gett"), "target", None),
        (adding(HANG_UP, times=0), "times", ["a whole number from 1 to 4294967295", "always"]),
        (adding(HANG_UP, node=3), "node", ["0", "1", "2"]),
        (adding(HANG_UP, probability=2), "probability", ["a number from 0 to 1"]),
        # These nodes have no source of randomness.
        (adding(HANG_UP, probability=0.5), "probability", []),
    ],
)
def test_invalid_object_names_field_and_allowed_values(given: Any, field: str, allowed: list[str] | None) -> None:
    """The error of an invalid object has the field and its allowed values, and nothing changes."""
    nodes = FakeNodes(nodes=3)
    with pytest.raises(InvalidCommand) as caught:
        apply_command(nodes, given)

    assert field == caught.value.field
    assert [*caught.value.allowed] == allowed if allowed is not None else len(caught.value.allowed) > 3
    assert () == nodes.changes
    assert not any(node.faults.entries for node in nodes)


def test_possible_nodes_depend_on_the_cluster() -> None:
    """The allowed nodes of a failover are the members, those of an addition the other nodes."""
    nodes = FakeNodes(nodes=3)
    apply_command(nodes, "@1: fail_over")
    allowed = []
    for text in ("@1: fail_over", "@0: add_node"):
        with pytest.raises(InvalidCommand) as caught:
            apply_command(nodes, text)
        allowed.append(caught.value.allowed)

    assert [("0", "2"), ("1",)] == allowed


@pytest.mark.parametrize("name", COMMAND_NAMES)
def test_each_command_has_described_fields(name: str) -> None:
    """Each field of a command has a meaning and allowed values."""
    for field in fields_of(name):
        assert field.meaning.endswith(".")
        assert all(field.allowed)


@rows(
    ("text", "is_changed"),
    [
        ("@1: kill", lambda nodes: [node.is_alive for node in nodes] == [True, False, True]),
        ("kill", lambda nodes: not any(node.is_alive for node in nodes)),
        ("@1: cut_off", lambda nodes: [node.network.cuts_all for node in nodes] == [False, True, False]),
        ("slow_down(0.4)", lambda nodes: {node.network.slowness for node in nodes} == {0.4}),
        ("@1: hold_replication", lambda nodes: set(nodes[0].cluster.held_replicas) == {1}),
        ("@1: learn_late(3)", lambda nodes: nodes[0].cluster.buckets.lateness.learned_until(1) == -3.0),
        ("@1: fail_over", lambda nodes: nodes.map.members == (0, 2)),
        ("@1: restart", lambda nodes: nodes[1].is_alive and nodes.changes[-1].name == "restart"),
    ],
)
def test_command_changes_one_node_or_all(text: str, is_changed: Callable[[FakeNodes], bool]) -> None:
    """A command changes the named node, or all nodes if none is named."""
    nodes = FakeNodes(nodes=3)
    apply_command(nodes, text)

    assert is_changed(nodes)


def test_clearing_all_nodes_forgets_plans_of_the_cluster() -> None:
    """Clearing without a node removes the faults of all nodes, and the planned commands for nodes and the cluster."""
    nodes = FakeNodes(nodes=2)
    for text in ("hang_up", "@1: kill at 5 seconds", "rebalance at 5 seconds", "clear_faults"):
        apply_command(nodes, text)

    assert [] == nodes.schedule.planned
    assert not any(node.faults.entries for node in nodes)


@rows(
    ("undo", "is_undone"),
    [
        ("revive", lambda nodes: all(node.is_alive for node in nodes)),
        ("rejoin", lambda nodes: not any(node.network.cuts_all for node in nodes)),
        ("slow_down(0)", lambda nodes: not any(node.network.slowness for node in nodes)),
        ("release_replication", lambda nodes: not nodes[0].cluster.held_replicas),
        ("release_config", lambda nodes: all(node.config_version == nodes.map.version for node in nodes)),
        ("learn_late(0)", lambda nodes: nodes[0].cluster.buckets.lateness.learned_until(1) == 0),
    ],
)
def test_opposites_undo(undo: str, is_undone: Callable[[FakeNodes], bool]) -> None:
    """Each change of a node can be undone by a command."""
    nodes = FakeNodes(nodes=2)
    for text in ("kill", "cut_off", "slow_down(1)", "hold_replication", "hold_config", "learn_late(1)", "rebalance"):
        apply_command(nodes, text)
    before = is_undone(nodes)
    apply_command(nodes, undo)

    assert (False, True) == (before, is_undone(nodes))


def test_error_survives_pickling() -> None:
    """The error has its text, its field and its allowed values in another process too."""
    error = InvalidCommand("wrong", field="node", allowed=["0", "1"])
    copied = pickle.loads(pickle.dumps(error))  # noqa: S301

    assert ("wrong", "node", "node", ("0", "1")) == (copied.message, copied.field, copied.parameter, copied.allowed)
