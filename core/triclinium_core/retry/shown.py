"""Values in messages: short, on one line, and without fail."""

from __future__ import annotations

import reprlib

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxlong = 60
_SHORT.maxother = 200


def shown(value: object) -> str:
    """Return ``repr(value)``, shortened where it is long or deeply nested.

    Where it cannot be had, it is the name of the type: Python refuses to write out a very long integer, and a value of
    the caller's may raise whatever it likes. A message must not fail for what it is about.
    """
    try:
        return _SHORT.repr(value)
    except Exception:
        return f"<{type(value).__name__}>"
