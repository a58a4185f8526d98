"""Values in messages: short, and without fail."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping

_BITS_MAX = 10_000
"""Python refuses to write out integers that are a little longer, in time that grows by the square of their length."""


SERVER_TEXT_MAX = 300
"""Characters of any text of a server that errors and logs show: longer than those that servers are known to write."""

_TEXT_READ_MAX = 2_000
"""Characters that are looked at: the beginning of a page in HTML is mostly white space."""


def one_line(text: str) -> str:
    """Return how a text of a server begins, on one line: at most ``SERVER_TEXT_MAX`` characters that can be printed.

    One space stands for each run of others and of white space: a line break would forge a line of the log.
    """
    begun = text[:_TEXT_READ_MAX]
    if not begun.isprintable():
        begun = "".join(sign if sign.isprintable() else " " for sign in begun)
    line = " ".join(begun.split())
    return line if len(line) <= SERVER_TEXT_MAX else f"{line[: SERVER_TEXT_MAX - 3]}..."


class _Short(reprlib.Repr):
    def repr_int(self, x: int, level: int) -> str:
        return "<int>" if x.bit_length() > _BITS_MAX else super().repr_int(x, level)


_SHORT = _Short()
_SHORT.maxstring = _SHORT.maxlong = 60
_SHORT.maxother = 200


def shown(value: object) -> str:
    """Return ``repr(value)``, shortened where it is long or deeply nested.

    Where it cannot be had, it is the name of the type: a value of the caller's may raise whatever it likes. A message
    must not fail for what it is about.
    """
    try:
        return _SHORT.repr(value)
    except Exception:
        return f"<{type(value).__name__}>"


JSON_KINDS: Mapping[type, str] = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}


def in_json(value: object) -> str:
    """Return the kind of ``value`` in JSON's words."""
    return JSON_KINDS.get(type(value), type(value).__name__)
