"""Text of values that depends on their contents only, not on addresses, the order of sets or a custom ``repr``."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence, Set as AbstractSet
from dataclasses import fields, is_dataclass
from enum import Enum

import msgspec

BYTES_SHOWN_MAX = 32
"""Maximum number of bytes that are written in full; for longer values, the size and a digest are written."""


def described(value: object) -> str:
    """Return the type and all fields of a value as text.

    An exception is written with its text, its context and its cause. An object of another kind, such as a retry
    strategy or a function, is written as the name of its type.
    """
    match value:
        case Enum():
            return f"{type(value).__name__}.{value.name}"
        case None | bool() | int() | float() | str():
            return repr(value)
        case bytes() | bytearray() | memoryview():
            data = bytes(value)
            if len(data) <= BYTES_SHOWN_MAX:
                return repr(data)
            return f"<{len(data)} bytes {hashlib.sha256(data).hexdigest()[:16]}>"
        case BaseException():
            parts = [repr(str(value)), described(getattr(value, "context", None)), described(value.__cause__)]
            return f"{type(value).__name__}({', '.join(parts)})"
        case Mapping():
            return "{" + ", ".join(f"{described(key)}: {described(each)}" for key, each in value.items()) + "}"
        case AbstractSet():
            return "{" + ", ".join(sorted(map(described, value))) + "}"
        case Sequence():
            return "[" + ", ".join(map(described, value)) + "]"
    names = _field_names(value)
    return f"{type(value).__name__}({', '.join(f'{name}={described(getattr(value, name))}' for name in names)})"


def _field_names(value: object) -> Sequence[str]:
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    if is_dataclass(value):
        return [field.name for field in fields(value)]
    return ()
