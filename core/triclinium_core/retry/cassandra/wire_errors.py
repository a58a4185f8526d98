"""Exceptions for ERROR frames, from their code, message and fields.

Nothing of what a node says is lost. What it says beyond the protocol, such as a level or a kind of write that nobody knows,
makes a plain CoordinatorError, which no policy is asked about and no retry follows.

Source: CQL binary protocol v4 and v5 §9.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel, WriteType
from triclinium_core.retry.cassandra.errors import CODES, CoordinatorError
from triclinium_core.retry.checks import check_integer, check_type
from triclinium_core.retry.tables import table_of
from triclinium_core.shown import shown

CODE_MAX = 0xFFFF_FFFF
"""A code has 32 bit."""


class Nonsense(ValueError):
    """A field says what the protocol does not know; it never leaves this module."""


class WireField(NamedTuple):
    """What follows the message of an ERROR."""

    name: str
    """Under which a driver gives it, and the attribute of the error."""
    read: Callable[[object], object]
    """Returns the attribute, or raises Nonsense."""
    is_optional: bool = False
    """Whether not every version of the protocol has it."""


_LEVELS = {level.value: level for level in ConsistencyLevel}
_WRITE_TYPES = {kind.value: kind for kind in WriteType}


def _level(value: object) -> ConsistencyLevel:
    if isinstance(value, int) and not isinstance(value, bool) and value in _LEVELS:
        return _LEVELS[value]
    raise Nonsense


def _write_type(value: object) -> WriteType:
    if isinstance(value, str) and value in _WRITE_TYPES:
        return _WRITE_TYPES[value]
    raise Nonsense


def _count(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise Nonsense


def _flag(value: object) -> bool:
    if isinstance(value, int):
        return value != 0
    raise Nonsense


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    raise Nonsense


def _texts(value: object) -> Sequence[str]:
    if isinstance(value, list | tuple):
        return tuple(_text(part) for part in value)
    raise Nonsense


def _id(value: object) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise Nonsense


def _reasons(value: object) -> Mapping[str, int]:
    if isinstance(value, Mapping):
        return {str(node): _count(reason) for node, reason in value.items()}
    raise Nonsense


_LEVEL, _WRITE_TYPE = WireField("consistency", _level), WireField("write_type", _write_type)
_RECEIVED, _BLOCK_FOR = WireField("received", _count), WireField("block_for", _count)
_DATA_PRESENT, _KEYSPACE = WireField("data_present", _flag), WireField("keyspace", _text)
# v4 has a count of replicas, v5 a code for each in its place.
_FAILURES, _REASONS = WireField("failures", _count, is_optional=True), WireField("reasons", _reasons, is_optional=True)

# fmt: off
FIELDS: Mapping[int, Sequence[WireField]] = table_of((
    (0x1000, (_LEVEL, WireField("required", _count), WireField("alive", _count))),
    # v5 counts what a lightweight transaction met of others.
    (0x1100, (_LEVEL, _RECEIVED, _BLOCK_FOR, _WRITE_TYPE, WireField("contentions", _count, is_optional=True))),
    (0x1200, (_LEVEL, _RECEIVED, _BLOCK_FOR, _DATA_PRESENT)),
    (0x1300, (_LEVEL, _RECEIVED, _BLOCK_FOR, _FAILURES, _REASONS, _DATA_PRESENT)),
    (0x1400, (_KEYSPACE, WireField("function", _text), WireField("arg_types", _texts))),
    (0x1500, (_LEVEL, _RECEIVED, _BLOCK_FOR, _FAILURES, _REASONS, _WRITE_TYPE)),
    (0x1700, (_LEVEL, _RECEIVED, _BLOCK_FOR)),
    (0x2400, (_KEYSPACE, WireField("table", _text))),
    (0x2500, (WireField("statement_id", _id),)),
))
"""What follows the message, by code, in the order of the wire; nothing follows that of a code without a row."""
# fmt: on


def from_wire(code: int, message: str, fields: Mapping[str, object] | None = None) -> CoordinatorError:
    """Return the error that an ERROR frame stands for.

    ``message`` of the error is the node's, its ``code`` and ``fields`` are what is given here. A code, or a value of a field,
    that the protocol does not know makes a plain CoordinatorError.

    Args:
        code: 32 bit.
        message: as the node wrote it.
        fields: what follows, by the names of ``FIELDS``: levels as numbers, kinds of write as text, ``reasons`` as codes by
            address. What has no name there is kept in ``fields`` of the error.

    Raises:
        ArgumentError: an argument is of the wrong type, or the fields lack one that every ERROR of that code has.
    """
    check_integer(code, "code", 0, CODE_MAX)
    check_type(message, "message", str)
    check_type({} if fields is None else fields, "fields", Mapping)
    given = {} if fields is None else dict(fields)
    error = _known(code, message, given)
    if error is None:
        error = CoordinatorError(message)
        error.code = code
    error.fields = given
    return error


def _known(code: int, message: str, given: Mapping[str, object]) -> CoordinatorError | None:
    kind = CODES.get(code)
    if kind is None:
        return None
    row = FIELDS.get(code, ())
    missing = [field.name for field in row if field.name not in given and not field.is_optional]
    if missing:
        raise ArgumentError(
            f"fields={shown(given)} lack {', '.join(missing)}, which every {kind.__name__} (code {code:#06x}) has",
            parameter="fields",
        )
    try:
        read = {field.name: field.read(given[field.name]) for field in row if field.name in given}
    except Nonsense:
        return None
    make: Callable[..., CoordinatorError] = kind
    return make(message, **read)
