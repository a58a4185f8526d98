"""Search for NaN and infinities in a value. JSON cannot represent them.

msgspec writes ``null`` for them, so a value whose JSON does not contain ``null`` has none. Otherwise this module
encodes the value as MessagePack, which can represent NaN and infinities and is as fast as JSON. It searches the value
unless the bytes rule them out.
"""

from __future__ import annotations

import math
import re

import msgspec

_NULL = b"null"
_NON_FINITE_DOUBLE = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")
"""Pattern of a double in MessagePack whose exponent has all bits set, as in NaN and infinities. Other bytes may match
too."""


def find_non_finite(value: object, encoded: bytes) -> tuple[str, float] | None:
    """Return the path of a NaN or an infinity in ``value``, and the number itself; None if ``value`` has neither.

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
        # The caller must search the value: it has an integer that MessagePack cannot represent.
        return True
    return _NON_FINITE_DOUBLE.search(packed) is not None


def _of_raw(value: object) -> None:
    """Return None for ``msgspec.Raw``, which is JSON already. msgspec has encoded all other types as JSON before."""
