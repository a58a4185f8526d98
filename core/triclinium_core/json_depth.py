"""Limit of the nesting of JSON, for all of the core's decoders.

A decoder descends into nested arrays and objects by recursion. Natively it raises RecursionError at a limit of Python.
Inside WebAssembly it overflows the stack, which ends Python: on the default stack of V8, at 3,000 levels. So all text
passes ``shallow`` before a decoder reads it, and a text that is nested too deeply ends like any other invalid JSON on
every platform. Natively, ``shallow`` leaves the refusal to the decoder: a scan would double the time of splitting rows,
and add a third to that of decoding a megabyte.
"""

from __future__ import annotations

import sys
from typing import TypeVar

Encoded = TypeVar("Encoded", bound="bytes | bytearray | str")

LEVELS_MAX = 512
"""Nesting depth that is always accepted, far more levels than documents have."""
_BLOCK_SIZE = 512
"""Number of brackets after each of which the depth is compared. Comparing it after every bracket would let a node stall
the program, with rows of 32 MiB whose depth stays near the limit."""
LEVELS_REFUSED = LEVELS_MAX + _BLOCK_SIZE // 2 + 1
"""Nesting depth from which a text is always refused inside WebAssembly: a quarter of the levels that end Python on the
default stack of V8, which other hosts may make smaller. Between two blocks, the depth can rise and fall by half a block.
"""

IS_GUARDED = sys.platform not in {"emscripten", "wasi"}
"""Whether the decoders themselves refuse deep nesting, by RecursionError."""

_EVERY = bytes(range(256))
_AS_ARRAYS = bytes.maketrans(b"{}", b"[]")
_NO_OPENINGS = _EVERY.translate(None, b"[{")
_NO_SIGNS = _EVERY.translate(None, b'[]{}"')


class TooDeep(ValueError):
    """Exception for JSON that is nested deeper than ``LEVELS_MAX``."""


def shallow(encoded: Encoded) -> Encoded:
    """Return JSON text unchanged, if a decoder survives its nesting. Ignore brackets in strings.

    The text need not be valid. Bytes must be UTF-8: ``json.loads`` detects other encodings, in which brackets can be
    hidden, so pass it ``shallow_text``.

    Raises:
        TooDeep: ``IS_GUARDED`` is False, and the text is nested deeper than ``LEVELS_MAX``. Up to ``LEVELS_REFUSED``
            levels, some texts are accepted. A text of at most ``2 * LEVELS_MAX`` bytes or characters never raises: it
            has fewer levels if it is valid, and few enough for the decoder if it is not.
    """
    return encoded if IS_GUARDED else bounded(encoded)


def bounded(encoded: Encoded) -> Encoded:
    """Return JSON text unchanged, like ``shallow``, but bound its nesting on every platform.

    Use it for values that are encoded again: at the limit of Python, the encoder may refuse them.

    Raises:
        TooDeep: the text is nested deeper than ``LEVELS_MAX``, as in ``shallow`` without ``IS_GUARDED``.
    """
    if len(encoded) <= 2 * LEVELS_MAX:
        return encoded
    data = encoded.encode("utf-8", "surrogatepass") if isinstance(encoded, str) else encoded
    # One pass of ``translate`` takes a third of the time of two calls of ``count``.
    if len(data.translate(None, _NO_OPENINGS)) > LEVELS_MAX and _is_deep(_brackets(data)):
        raise TooDeep(f"it is nested too deeply to be decoded; the maximum is {LEVELS_MAX} levels")
    return encoded


def shallow_text(encoded: bytes | str) -> str:
    """Return JSON as text for ``json.loads``, if a decoder survives its nesting.

    Raises:
        TooDeep: as ``shallow``.
        UnicodeDecodeError: the text is not UTF-8.
    """
    checked = shallow(encoded)
    return checked if isinstance(checked, str) else checked.decode("utf-8-sig", "surrogatepass")


def _brackets(data: bytes | bytearray) -> bytes | bytearray:
    """Return the brackets outside of strings, all of them square."""
    if b"\\" in data:
        # Within a run of backslashes, each pair is one escaped backslash. A single one may escape a quote.
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Strings without brackets leave pairs of quotes. Without these, each quote begins or ends a string with brackets.
    signs = data.translate(_AS_ARRAYS, _NO_SIGNS).replace(b'""', b"")
    return b"".join(signs.split(b'"')[::2])


def _is_deep(brackets: bytes | bytearray) -> bool:
    """Return whether the depth exceeds ``LEVELS_MAX`` after any of the blocks into which square brackets are cut."""
    depth = 0
    for start in range(0, len(brackets), _BLOCK_SIZE):
        block = brackets[start : start + _BLOCK_SIZE]
        depth += 2 * block.count(b"[") - len(block)
        if depth > LEVELS_MAX:
            return True
    return False
