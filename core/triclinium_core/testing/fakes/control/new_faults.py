"""The command that adds a fault of requests or connections: its fields, their allowed values, and their checks.

A fault is an object with its ``kind``, the name of the function that creates it, and the arguments of that function:
``{"command": "add_fault", "fault": {"kind": "delay", "seconds": 0.4}, "target": "get", "node": 1, "times": 2}``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

from triclinium_core import errors
from triclinium_core.checks import check_integer
from triclinium_core.kv.operation.catalogue import OPERATIONS
from triclinium_core.kv.operation.document_operations import DocumentOperation
from triclinium_core.kv.operation.validation import UINT32_MAX
from triclinium_core.kv.wire.constants import VALUE_SIZE_MAX, Opcode
from triclinium_core.options import SECONDS_MAX
from triclinium_core.shown import shown
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.control import fields
from triclinium_core.testing.fakes.control.fields import Field
from triclinium_core.testing.fakes.control.invalid_command import InvalidCommand
from triclinium_core.testing.fakes.fault_names import COMMAND_FAULTS, FAULTS, REFUSAL, SERVICE_FAULTS, make_fault
from triclinium_core.testing.fakes.fault_table import Target
from triclinium_core.testing.fakes.faults import Fault
from triclinium_core.testing.fakes.options import HTTP_SERVICES
from triclinium_core.testing.fakes.services.faults import BYTES_MAX, ZEROS_MAX

ANY = "any"
TARGETS: Mapping[str, Target] = {
    ANY: None,
    **{operation.name: operation.opcode for operation in OPERATIONS if issubclass(operation, DocumentOperation)},
    **{opcode.name.lower(): opcode for opcode in Opcode},
    **{service.value: service for service in sorted(HTTP_SERVICES)},
}
"""Named targets of faults; a KV command can also be given by its number."""

ALWAYS = "always"
"""Value of ``times`` for a fault that strikes without a limit."""

_NUMBER = re.compile(r"0x[0-9a-f]{1,2}|\d{1,3}")
_BYTES_SENT = f"a whole number from 0 to {UINT32_MAX}"

FAULT_ARGUMENTS: Mapping[str, str] = {
    "seconds": f"a number from 0 to {SECONDS_MAX:g}",
    "status.code": "a whole number from 0 to 65535",
    "http_status.code": "a whole number from 200 to 599",
    "proxy_page.code": "a whole number from 200 to 599",
    "redirect.code": "301, 302, 303, 307 or 308",
    "body": f"text of at most {VALUE_SIZE_MAX} bytes",
    "datatype": "a whole number from 0 to 255",
    "with_config": "true or false",
    "bytes_sent": _BYTES_SENT,
    "bytes_read": f"a whole number from 1 to {UINT32_MAX}",
    "wrong_length.announced": _BYTES_SENT,
    "wrong_content_length.announced": f"a whole number from 0 to {BYTES_MAX}",
    "wrong_chunk_size.announced": f"a whole number from 1 to {BYTES_MAX}",
    "content_type": "printable ASCII without spaces around it",
    "location": "printable ASCII without spaces around it",
    "headers": "an object of header names and values",
    "data": "text",
    "zeros": f"a whole number from 0 to {ZEROS_MAX}",
    "closes": "true or false",
}
"""Allowed values of the arguments of faults, by argument, or by fault and argument."""


def _check_times(value: object, name: str) -> int | None:
    return None if value == ALWAYS else check_integer(value, name, 1, UINT32_MAX)


_CONDITIONS = (*fields.SPAN, fields.PROBABILITY)

FAULT_FIELDS: Sequence[Field] = (
    Field(
        "fault", "The fault: an object with its kind and its arguments.", tuple(FAULTS), lambda value, _: value, True
    ),
    Field(
        "target",
        "The command, operation or service that the fault strikes. Default: any, for every command on a document.",
        tuple(TARGETS),
        lambda value, _: read_target(value),
    ),
    fields.NODE,
    Field(
        "times",
        "Number of requests that the fault strikes. Default: 1, and always with for_seconds or probability.",
        (f"a whole number from 1 to {UINT32_MAX}", ALWAYS),
        _check_times,
    ),
    *_CONDITIONS,
)
"""Fields of the command."""


@dataclass(frozen=True, slots=True)
class AddFault:
    """A fault, its target, its node, its number of times and its conditions."""

    fault: Fault
    target: Target = None
    node: int | None = None
    """Index of the node; None for every node, each of which counts separately."""
    times: int | None = 1
    """Number of times; None for always."""
    conditions: Mapping[str, Any] = field(default_factory=dict)
    """Values of ``FaultConditions``, by name."""

    def apply(self, nodes: FakeNodes) -> None:
        """Add the fault to its node, or to all nodes.

        Raises:
            InvalidCommand: the node does not exist, or has too many faults; or a probability needs randomness.
        """
        for node in [nodes[index] for index in fields.indexes_of(len(nodes), self.node)]:
            try:
                if self.times is None:
                    node.faults.always(self.target, self.fault, **self.conditions)
                else:
                    node.faults.next(self.target, self.fault, self.times, **self.conditions)
            except errors.InvalidArgumentException as error:
                raise InvalidCommand(error.message, field=error.parameter) from error


def read_fault(given: Mapping[object, object]) -> AddFault:
    """Return the fault that the fields of a JSON object describe.

    Raises:
        InvalidCommand: a field is invalid.
    """
    fields.check_names(given, FAULT_FIELDS, "add_fault")
    read: dict[str, Any] = {each.name: each.read(given[each.name]) for each in FAULT_FIELDS if each.name in given}
    target: Target = read.get("target")
    conditions = {each.name: read[each.name] for each in _CONDITIONS if each.name in read}
    lasts = fields.FOR_SECONDS.name in read or fields.PROBABILITY.name in read
    times = read.get("times", None if lasts else 1)
    return AddFault(_fault(read["fault"], target), target, read.get("node"), times, conditions)


def read_target(word: object) -> Target:
    """Return the opcode or service with a name, or the opcode with a number; None for ``any``.

    Raises:
        InvalidCommand: no target has this name.
    """
    known = str(word).strip().casefold().replace("-", "_")
    if isinstance(word, str) and known in TARGETS:
        return TARGETS[known]
    if isinstance(word, str) and _NUMBER.fullmatch(known):
        number = int(known, 0) if known.startswith("0x") else int(known)
        if number <= 0xFF:
            return number
    raise InvalidCommand(
        f"{shown(word)} is neither a command nor a service{fields.hint(known, TARGETS)}",
        field="target",
        allowed=TARGETS,
    )


def _fault(given: object, target: Target) -> Fault:
    possible = faults_of(target)
    if not isinstance(given, Mapping) or not isinstance(given.get("kind"), str):
        raise InvalidCommand('a fault is a JSON object with the field "kind"', field="fault.kind", allowed=possible)
    kind = given["kind"]
    if kind not in FAULTS:
        raise InvalidCommand(
            f"unknown fault: {shown(kind)}{fields.hint(kind, possible)}", field="fault.kind", allowed=possible
        )
    if kind == REFUSAL and target is not None:
        raise InvalidCommand(
            f"{REFUSAL} applies to connections, not to requests: omit the target, or write {ANY}",
            field="target",
            allowed=[ANY],
        )
    if kind not in possible:
        struck = f"a request to {target}" if isinstance(target, str) else "a KV command"
        further = f"; name a service: {', '.join(sorted(HTTP_SERVICES))}" if kind in SERVICE_FAULTS else ""
        raise InvalidCommand(
            f"{kind} does not apply to {struck}{further or fields.hint(kind, possible)}",
            field="fault.kind",
            allowed=possible,
        )
    return _made(kind, {str(name): value for name, value in given.items() if name != "kind"})


def _made(kind: str, arguments: Mapping[str, object]) -> Fault:
    known = {
        each: Field(
            each, "", (allowed_argument(kind, each),), lambda value, _: value, parameter.default is parameter.empty
        )
        for each, parameter in signature(FAULTS[kind]).parameters.items()
    }
    try:
        fields.check_names(arguments, known.values(), kind)
    except InvalidCommand as error:
        raise InvalidCommand(error.message, field=f"fault.{error.field}", allowed=error.allowed) from error
    try:
        return make_fault(kind, **arguments)
    except errors.InvalidArgumentException as error:
        allowed = known[error.parameter].allowed if error.parameter in known else ()
        raise InvalidCommand(error.message, field=f"fault.{error.parameter}", allowed=allowed) from error


def allowed_argument(kind: str, argument: str) -> str:
    """Return a description of the allowed values of an argument of a fault."""
    return FAULT_ARGUMENTS.get(f"{kind}.{argument}") or FAULT_ARGUMENTS[argument]


def faults_of(target: Target) -> Sequence[str]:
    """Return the names of the faults that can strike a target; for None, including the fault of connections."""
    if isinstance(target, str):
        return SERVICE_FAULTS
    return COMMAND_FAULTS if target is not None else (*COMMAND_FAULTS, REFUSAL)
