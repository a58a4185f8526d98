"""Function that creates an exception from the code, the message and the fields of an ERROR frame.

The exception has all values that the node sent. If a value is not defined by the protocol, such as an unknown
consistency level or write type, the exception is a plain CoordinatorError. The request machine then neither consults
the policy nor retries the request.

Source: CQL binary protocol v4 §9 and v5 §8.
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
"""Maximum error code. A code has 32 bits."""


class Nonsense(ValueError):
    """A field has a value that the protocol does not define. This module catches the exception."""


class WireField(NamedTuple):
    """Field that follows the message in an ERROR frame."""

    name: str
    """Name of the field in the ``fields`` that the driver passes, and name of the exception's attribute."""
    read: Callable[[object], object]
    """Function that returns the attribute's value for a field, or raises Nonsense."""
    is_optional: bool = False
    """Whether some versions of the protocol do not have the field."""


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
# Protocol v4 has the number of failed replicas. Protocol v5 has a code for each failed replica instead.
_FAILURES, _REASONS = WireField("failures", _count, is_optional=True), WireField("reasons", _reasons, is_optional=True)

# fmt: off
FIELDS: Mapping[int, Sequence[WireField]] = table_of((
    (0x1000, (_LEVEL, WireField("required", _count), WireField("alive", _count))),
    # Protocol v5 adds the number of contentions of a lightweight transaction.
    (0x1100, (_LEVEL, _RECEIVED, _BLOCK_FOR, _WRITE_TYPE, WireField("contentions", _count, is_optional=True))),
    (0x1200, (_LEVEL, _RECEIVED, _BLOCK_FOR, _DATA_PRESENT)),
    (0x1300, (_LEVEL, _RECEIVED, _BLOCK_FOR, _FAILURES, _REASONS, _DATA_PRESENT)),
    (0x1400, (_KEYSPACE, WireField("function", _text), WireField("arg_types", _texts))),
    (0x1500, (_LEVEL, _RECEIVED, _BLOCK_FOR, _FAILURES, _REASONS, _WRITE_TYPE)),
    (0x1700, (_LEVEL, _RECEIVED, _BLOCK_FOR)),
    (0x2400, (_KEYSPACE, WireField("table", _text))),
    (0x2500, (WireField("statement_id", _id),)),
))
"""Fields that follow the message, in the order on the wire, by code. An ERROR with another code has no fields."""
# fmt: on


def from_wire(code: int, message: str, fields: Mapping[str, object] | None = None) -> CoordinatorError:
    """Return the exception for an ERROR frame.

    The exception has ``code``, ``message`` and ``fields`` as attributes. It is a plain CoordinatorError if the code is
    unknown, or if the protocol does not define the value of a field.

    Args:
        code: error code, 32 bits.
        message: message of the node, unchanged.
        fields: values of the fields that follow the message, by the names in ``FIELDS``. Levels are numbers, write
            types are strings, and ``reasons`` maps addresses to codes. Fields with other names are kept only in the
            attribute ``fields``. None means no fields.

    Raises:
        ArgumentError: an argument is invalid, or a field is missing that every ERROR with this code has.
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
            f"fields={shown(given)} lacks {', '.join(missing)}, which every {kind.__name__} (code {code:#06x}) has",
            parameter="fields",
        )
    try:
        read = {field.name: field.read(given[field.name]) for field in row if field.name in given}
    except Nonsense:
        return None
    make: Callable[..., CoordinatorError] = kind
    return make(message, **read)
