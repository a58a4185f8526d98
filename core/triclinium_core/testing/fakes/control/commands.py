"""Commands for the nodes of a fake cluster, as data: names, fields, and the methods of ``FakeNodes`` that they call.

The command line, standard input, the HTTP API and Python use the same names. ``read_command`` checks the fields of
JSON objects; ``command_text`` turns text into such fields, so that each rule exists once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto, unique
from typing import Any, Protocol

from triclinium_core import errors
from triclinium_core.shown import shown
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.control import fields
from triclinium_core.testing.fakes.control.fields import Field
from triclinium_core.testing.fakes.control.invalid_command import InvalidCommand
from triclinium_core.testing.fakes.control.new_faults import FAULT_FIELDS, read_fault


class Command(Protocol):
    """A checked command."""

    def apply(self, nodes: FakeNodes) -> None:
        """Carry the command out, now or when its conditions are met.

        Raises:
            InvalidCommand: the node does not exist, or the command is impossible.
        """
        ...


def _all_nodes(nodes: FakeNodes) -> Sequence[int]:
    return range(len(nodes))


def _members(nodes: FakeNodes) -> Sequence[int]:
    return nodes.map.members if len(nodes.map.members) > 1 else ()


def _outsiders(nodes: FakeNodes) -> Sequence[int]:
    return [index for index in range(len(nodes)) if index not in nodes.map.members]


@unique
class Reach(Enum):
    """Nodes to which a command applies."""

    NODE = auto()
    """The named node; a command without one is invalid."""
    EACH_NODE = auto()
    """The named node, or each node separately."""
    NODE_OR_CLUSTER = auto()
    """The named node, or the whole cluster."""
    CLUSTER = auto()
    """The whole cluster; a command with a node is invalid."""


@dataclass(frozen=True, slots=True)
class CommandKind:
    """One row of the table of commands."""

    method: Callable[..., None]
    """Method of ``FakeNodes``; its first parameter is the node, if the command has one."""
    fields: Sequence[Field]
    possible: Callable[[FakeNodes], Sequence[int]] = _all_nodes
    """Function that returns the nodes to which the command can apply now."""
    reach: Reach = Reach.EACH_NODE

    @property
    def name(self) -> str:
        """Name of the command, which is that of the method."""
        return self.method.__name__

    @property
    def all_fields(self) -> Sequence[Field]:
        """All fields, with that of the node if the command may have one."""
        return self.fields if self.reach is Reach.CLUSTER else (fields.NODE, *self.fields)


COMMAND_KINDS: Mapping[str, CommandKind] = {
    kind.name: kind
    for kind in (
        CommandKind(FakeNodes.kill, fields.SPAN),
        CommandKind(FakeNodes.revive, fields.START),
        CommandKind(FakeNodes.restart, (fields.KEEP_DATA, *fields.SPAN)),
        CommandKind(FakeNodes.slow_down, (fields.SECONDS, *fields.SPAN)),
        CommandKind(FakeNodes.cut_off, fields.SPAN),
        CommandKind(FakeNodes.rejoin, fields.START),
        CommandKind(FakeNodes.fail_over, fields.START, _members, Reach.NODE),
        CommandKind(FakeNodes.add_node, fields.START, _outsiders, Reach.NODE),
        CommandKind(FakeNodes.remove_node, fields.START, _members, Reach.NODE),
        CommandKind(FakeNodes.rebalance, fields.START, reach=Reach.CLUSTER),
        CommandKind(FakeNodes.learn_late, (fields.SECONDS, *fields.SPAN)),
        CommandKind(FakeNodes.hold_replication, fields.SPAN),
        CommandKind(FakeNodes.release_replication, fields.START),
        CommandKind(FakeNodes.hold_config, fields.SPAN),
        CommandKind(FakeNodes.release_config, fields.START),
        CommandKind(FakeNodes.clear_faults, (), reach=Reach.NODE_OR_CLUSTER),
    )
}
"""Commands for nodes and the cluster, by name."""

ADD_FAULT = "add_fault"
"""Name of the command that adds a fault of requests or connections."""

COMMAND_NAMES: Sequence[str] = (*COMMAND_KINDS, ADD_FAULT)
"""Names of all commands."""


@dataclass(frozen=True, slots=True)
class NodeCommand:
    """A command for nodes or for the cluster."""

    name: str
    node: int | None = None
    """Index of the node; None for each node or the whole cluster, depending on the ``Reach`` of the command."""
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def apply(self, nodes: FakeNodes) -> None:
        """Carry the command out, now or when its conditions are met.

        Raises:
            InvalidCommand: the node does not exist, or the command is impossible.
        """
        kind = COMMAND_KINDS[self.name]
        if self.node is None and kind.reach is not Reach.EACH_NODE:
            targets: Sequence[Sequence[int]] = [()]
        else:
            targets = [(index,) for index in fields.indexes_of(len(nodes), self.node)]
        try:
            for target in targets:
                kind.method(nodes, *target, **self.arguments)
        except errors.InvalidArgumentException as error:
            if error.parameter != "index":
                raise InvalidCommand(error.message, field=error.parameter) from error
            allowed = map(str, kind.possible(nodes))
            raise InvalidCommand(error.message, field=fields.NODE.name, allowed=allowed) from error


def read_command(given: object) -> Command:
    """Return the command that a JSON object describes: ``{"command": "restart", "node": 1, "keep_data": true}``.

    Raises:
        InvalidCommand: the object or a field is invalid.
    """
    if not isinstance(given, Mapping) or "command" not in given:
        raise InvalidCommand(
            'a command is a JSON object with the field "command"', field="command", allowed=COMMAND_NAMES
        )
    name, values = given["command"], {key: value for key, value in given.items() if key != "command"}
    if name == ADD_FAULT:
        return read_fault(values)
    kind = COMMAND_KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InvalidCommand(
            f"unknown command: {shown(name)}{fields.hint(str(name), COMMAND_NAMES)}",
            field="command",
            allowed=COMMAND_NAMES,
        )
    known = {each.name: each for each in kind.all_fields}
    fields.check_names(values, known.values(), kind.name)
    read: dict[str, Any] = {key: known[key].read(value) for key, value in values.items()}
    node = read.pop(fields.NODE.name, None)
    if kind.reach is Reach.NODE and node is None:
        raise InvalidCommand(
            f"{kind.name} requires a node; begin with @0:, or set the field node",
            field=fields.NODE.name,
            allowed=fields.NODE.allowed,
        )
    return NodeCommand(kind.name, node, read)


def fields_of(name: str) -> Sequence[Field]:
    """Return the fields of a command."""
    return FAULT_FIELDS if name == ADD_FAULT else COMMAND_KINDS[name].all_fields
