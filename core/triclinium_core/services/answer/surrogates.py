r"""Escapes of lone surrogates: ``"\ud800"`` is a string by the grammar of JSON, stands for no character, and no decoder takes it.

Source: RFC 8259, sections 7 and 8.2.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
"""A pair, or half of one, which is the group, or any other escape, of which the second byte begins none."""

_STAND_IN = rb"\ufffd"
"""As long as what it stands for."""


class LoneSurrogate(NamedTuple):
    """The first one in a JSON text."""

    offset: int
    """In bytes."""
    escape: str

    def __str__(self) -> str:
        return f"the escape {self.escape} is half of a surrogate pair and stands for no character"


def first_lone_surrogate(text: bytes | bytearray) -> LoneSurrogate | None:
    """Return the first lone surrogate among the escapes of a JSON text; None where it has none."""
    found = next((escape for escape in _ESCAPE.finditer(text) if escape[1]), None)
    return LoneSurrogate(found.start(), found[0].decode()) if found is not None else None


def without_lone_surrogates(text: bytes | bytearray) -> bytes:
    """Return a JSON text of the same length, in which the replacement character stands for each lone surrogate."""
    return _ESCAPE.sub(lambda escape: _STAND_IN if escape[1] else escape[0], text)
