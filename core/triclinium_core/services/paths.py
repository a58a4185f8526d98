"""Paths of requests over HTTP, built from names.

Each name is one segment, even if it contains a slash, a percent sign or non-ASCII characters. ``.`` and ``..`` are
refused: URL parsers remove these segments, even if they are percent-encoded, and the path would name something else. An
empty name is also refused.

Source: RFC 3986 "Path", "Remove Dot Segments"; WHATWG URL Standard, "double-dot URL path segment".
"""

from __future__ import annotations

from urllib.parse import quote

from triclinium_core import errors
from triclinium_core.checks import check_text
from triclinium_core.shown import shown

NAME_BYTES_MAX = 1024
"""Maximum length of a name in bytes: far more than servers accept. It keeps the first line of a request short."""

DOT_SEGMENTS = frozenset({".", ".."})


def path(*segments: str) -> str:
    """Return an absolute path of these segments, each percent-encoded as a whole.

    Raises:
        InvalidArgumentException: a segment is empty, ``.`` or ``..``. Requests check their names earlier.
    """
    for segment in segments:
        if not segment or segment in DOT_SEGMENTS:
            raise errors.InvalidArgumentException(f"{shown(segment)} cannot be a segment of a path", parameter="path")
    return "".join(f"/{quote(segment, safe='')}" for segment in segments)


def check_segment(value: object, parameter: str, *, printable: bool = True) -> str:
    """Return ``value`` if it is a name that can be a segment of a path.

    Args:
        printable: whether the name must be printable and short, like names of a cluster's resources.

    Raises:
        InvalidArgumentException: the name is not text, is empty, ``.`` or ``..``, or breaks the rule of ``printable``.
    """
    name = check_text(value, parameter)
    if name in DOT_SEGMENTS:
        raise errors.InvalidArgumentException(
            f"{parameter}={shown(name)} must be neither '.' nor '..'", parameter=parameter
        )
    if printable and (not name.isprintable() or len(name.encode()) > NAME_BYTES_MAX):
        rule = f"printable, and at most {NAME_BYTES_MAX} bytes"
        raise errors.InvalidArgumentException(f"{parameter}={shown(name)} must be {rule}", parameter=parameter)
    return name
