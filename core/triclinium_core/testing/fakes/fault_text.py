"""Faults in command line syntax: ``get: delay(0.4)``, ``query: http_status(503) x2``, ``set@1: hang_up always``.

The part before the colon is the target: a KV command by its name in ``Opcode``, by its number, or by the operation that
uses it; an HTTP service; or ``any`` for every command on a document, which is the default. ``@`` and a number name one
node. Then comes the fault, with its arguments in parentheses as in Python. The suffix is the number of times: ``x2``
for the next two, ``always``, or nothing for the next one. If no node is named, each node counts separately.

Troubles of a whole node have neither a target nor a number of times: ``@1: learn_late(3)``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from triclinium_core import errors
from triclinium_core.kv.operation.catalogue import OPERATIONS
from triclinium_core.kv.operation.document_operations import DocumentOperation
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.fault_names import COMMAND_FAULTS, FAULTS, REFUSAL, SERVICE_FAULTS, make_fault
from triclinium_core.testing.fakes.fault_table import Target
from triclinium_core.testing.fakes.faults import Fault
from triclinium_core.testing.fakes.node_troubles import NODE_TROUBLES, NodeTrouble, indexes_of, make_trouble
from triclinium_core.testing.fakes.options import HTTP_SERVICES

FAULT_GRAMMAR = "[TARGET[@NODE]:] FAULT [xTIMES | always]"
"""Human-readable syntax of a fault."""

ANY = "any"
TARGETS: Mapping[str, Target] = {
    ANY: None,
    **{operation.name: operation.opcode for operation in OPERATIONS if issubclass(operation, DocumentOperation)},
    **{opcode.name.lower(): opcode for opcode in Opcode},
    **{service.value: service for service in sorted(HTTP_SERVICES)},
}
"""Possible targets of a fault, by name."""

TIMES_MAX = 100_000
"""Maximum number of times. It is limited because each pending strike is stored; ``always`` has no limit."""

_FRONT = re.compile(r"\s*(?P<target>[\w-]*)\s*(?:@\s*(?P<node>\w+))?\s*:(?P<rest>.*)", re.DOTALL)
_TIMES = re.compile(r"(?P<rest>.*)\s+(?:x(?P<times>\d+)|(?P<always>always))\s*", re.DOTALL)
_NUMBER = re.compile(r"0x[0-9a-f]{1,2}|\d{1,3}")


@dataclass(frozen=True, slots=True)
class PlacedFault:
    """A fault, its target, its node and its number of times."""

    fault: Fault
    target: Target = None
    node: int | None = None
    """Index of the node; None for every node."""
    times: int | None = 1
    """Number of times; None for always."""

    def place(self, nodes: FakeNodes) -> None:
        """Add the fault to its node, or to every node.

        Raises:
            InvalidArgumentException: the node does not exist, or the number of times is invalid.
        """
        for node in (nodes[index] for index in indexes_of(nodes, self.node)):
            if self.times is None:
                node.faults.always(self.target, self.fault)
            else:
                node.faults.next(self.target, self.fault, self.times)


def read_fault(text: str) -> PlacedFault | NodeTrouble:
    """Return the fault, or the trouble of a node, that ``text`` describes; the module's docstring has the syntax.

    Raises:
        InvalidArgumentException: the text is invalid; the message names the invalid part and the valid choices.
    """
    front = _FRONT.fullmatch(text)
    word, node_word, rest = ("", None, text) if front is None else front.group("target", "node", "rest")
    target = _target(word or ANY)
    node = None if node_word is None else _node(node_word)
    ending = _TIMES.fullmatch(rest)
    times: int | None = 1
    if ending is not None:
        rest = ending["rest"]
        times = None if ending["always"] else _times(ending["times"])
    name, given, named = _call(rest.strip())
    if name in NODE_TROUBLES:
        if word or ending is not None:
            superfluous = word or text.rsplit(maxsplit=1)[-1]
            raise _wrong(f"{name} applies to a node permanently: omit {superfluous!r}")
        return make_trouble(name, given, named, node)
    if name not in FAULTS:
        raise _wrong(f"unknown fault: {name!r}{_hint(name, _names_for(target))}")
    if word and name == REFUSAL:
        raise _wrong(f"{REFUSAL} applies to connections, not to commands: omit {word!r}")
    if name != REFUSAL and name not in _names_for(target):
        struck = f"a request to {target}" if isinstance(target, str) else "a KV command"
        other = f"; write a service before it: {', '.join(sorted(HTTP_SERVICES))}" if name in SERVICE_FAULTS else ""
        raise _wrong(f"{name} does not apply to {struck}{other or f'; choose from {_listed(_names_for(target))}'}")
    return PlacedFault(make_fault(name, *given, **named), target, node, times)


def _target(word: str) -> Target:
    known = word.casefold().replace("-", "_")
    if known in TARGETS:
        return TARGETS[known]
    if _NUMBER.fullmatch(known):
        number = int(known, 0) if known.startswith("0x") else int(known)
        if number <= 0xFF:
            return number
    raise _wrong(f"{word!r} is neither a command nor a service{_hint(known, TARGETS)}")


def _node(word: str) -> int:
    if not word.isdecimal() or len(word) > 5:
        raise _wrong(f"@{word} is not a node; write a number, @0 for the first")
    return int(word)


def _times(digits: str) -> int:
    if len(digits) > len(str(TIMES_MAX)) or not 1 <= int(digits) <= TIMES_MAX:
        raise _wrong(f"x{digits[:20]} must be from x1 to x{TIMES_MAX}, or always")
    return int(digits)


def _call(text: str) -> tuple[str, Sequence[object], Mapping[str, object]]:
    """Return the name before the parentheses, and the arguments in them."""
    if re.fullmatch(r"\w+", text):
        return text, (), {}
    try:
        call = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        call = None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise _wrong(f"{text[:80]!r} is not a fault; the form is {FAULT_GRAMMAR}, for example get: delay(0.4) x2")
    try:
        given = [ast.literal_eval(value) for value in call.args]
        named = {keyword.arg or "**": ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (ValueError, TypeError, RecursionError, MemoryError) as error:
        raise _wrong(
            f"an argument of {call.func.id} is not a literal; write a number, text in quotes, True or False"
        ) from error
    return call.func.id, given, named


def _names_for(target: Target) -> Sequence[str]:
    if isinstance(target, str):
        return SERVICE_FAULTS
    return (*COMMAND_FAULTS, REFUSAL, *NODE_TROUBLES) if target is None else COMMAND_FAULTS


def _hint(word: str, choices: Sequence[str] | Mapping[str, Target]) -> str:
    meant = get_close_matches(word, choices, n=1)
    return (
        f"; did you mean {meant[0]}? Choose from {_listed(choices)}" if meant else f"; choose from {_listed(choices)}"
    )


def _listed(names: Sequence[str] | Mapping[str, Target]) -> str:
    return ", ".join(names)


def _wrong(text: str) -> errors.InvalidArgumentException:
    return errors.InvalidArgumentException(text, parameter="fault")
