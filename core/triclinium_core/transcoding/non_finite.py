"""Search for NaN and infinities in a value that was encoded as JSON, which cannot represent them.

msgspec writes ``null`` for them, so a value whose JSON lacks that word has none. Any other value is encoded as
MessagePack, which can represent them and is as fast. Only if its bytes may contain one is the value searched.
"""

from __future__ import annotations

import math
import re

import msgspec

_NULL = b"null"
_NON_FINITE_DOUBLE = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")
"""Pattern of a double in MessagePack whose exponent has all bits set. Other bytes may match it as well."""


def find_non_finite(value: object, encoded: bytes) -> tuple[str, float] | None:
    """Return path and number of a float in ``value`` that became null in JSON, or None.

    Ignore numbers that are keys: like all keys, they become strings.

    Args:
        value: value to search.
        encoded: ``value`` as JSON.
    """
    if _NULL not in encoded or not _may_hold_one(value):
        return None
    pending: list[tuple[str, object]] = [("", msgspec.to_builtins(value, enc_hook=_of_raw))]
    while pending:
        path, item = pending.pop()
        if isinstance(item, float) and not math.isfinite(item):
            return path.removeprefix("."), item
        if isinstance(item, dict):
            pending += ((f"{path}.{key}", each) for key, each in item.items())
        elif isinstance(item, list | tuple):
            pending += ((f"{path}[{position}]", each) for position, each in enumerate(item))
    return None


def _may_hold_one(value: object) -> bool:
    try:
        packed = msgspec.msgpack.encode(value)
    except OverflowError:
        # Integers are unbounded in JSON, but have 64 bits in MessagePack.
        return True
    return _NON_FINITE_DOUBLE.search(packed) is not None


def _of_raw(value: object) -> None:
    """Return None for ``msgspec.Raw``, which is JSON already. All other types were encodable before."""
