"""NaN and the infinities in a value that was encoded as JSON, which has no form for them.

msgspec writes ``null`` in their place, so JSON without that word has none, and only the rest is looked at more closely.
MessagePack has a form for them: it is written as fast as JSON, and what it does not show is not there. Only what it
seems to show is walked through.
"""

from __future__ import annotations

import math
import re

import msgspec

_NULL = b"null"
_NON_FINITE_DOUBLE = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")
"""A double in MessagePack whose exponent has all bits set; other bytes may look the same."""


def find_non_finite(value: object, encoded: bytes) -> tuple[str, float] | None:
    """Return path and number of a float in ``value`` that became null in JSON; None where there is none.

    A number that is a key is not meant: it becomes text, as all keys do.

    Args:
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
        # Integers have no bound in JSON, and 64 bits in MessagePack.
        return True
    return _NON_FINITE_DOUBLE.search(packed) is not None


def _of_raw(value: object) -> None:
    """Stand for ``msgspec.Raw``, which is JSON that somebody else has encoded; any other value was encoded before."""
