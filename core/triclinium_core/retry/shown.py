"""Values in messages: short, and without fail."""

from __future__ import annotations

import reprlib

_BITS_MAX = 10_000
"""Python refuses to write out integers that are a little longer, in time that grows by the square of their length."""


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
