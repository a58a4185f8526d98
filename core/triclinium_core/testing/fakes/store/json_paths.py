"""Paths into JSON, as a fake node reads them.

Source: kv_engine docs/SubDocument.md, "Path"; couchbase/subjson ``path.cc``, ``limits.h``.
"""

from __future__ import annotations

import msgspec

from triclinium_core.retry.couchbase.tables.kv_status import Status

LEVELS_MAX = 32
"""Of objects and arrays inside of one another; the document itself is one, so a path has one component less."""

JsonPath = tuple[str | int, ...]
"""Keys of objects and indexes of arrays, from the outside; -1 is the last element. Empty for the whole document."""


class PathFailed(Exception):
    """One path of a command that cannot be followed or changed; ``status`` is its own."""

    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self.status = status


def parse_path(path: str) -> JsonPath:
    """Return the components of a path.

    Raises:
        PathFailed: it is not well-formed, or has too many components.
    """
    components: list[str | int] = []
    start = 0
    while start < len(path):
        end = _end_of_index(path, start) if path[start] == "[" else _end_of_key(path, start)
        components.append(_index(path[start + 1 : end - 1]) if path[start] == "[" else _key(path[start:end]))
        if len(components) >= LEVELS_MAX:
            raise PathFailed(Status.SUBDOC_PATH_TOO_BIG)
        start = _next_component(path, end)
    return tuple(components)


def _next_component(path: str, end: int) -> int:
    if end < len(path) and path[end] == ".":
        return end + 1
    if end < len(path) and path[end] != "[":
        raise PathFailed(Status.SUBDOC_PATH_INVALID)
    return end


def _end_of_index(path: str, start: int) -> int:
    end = path.find("]", start)
    if end < 0:
        raise PathFailed(Status.SUBDOC_PATH_INVALID)
    return end + 1


def _index(digits: str) -> int:
    if digits == "-1":
        return -1
    if not digits.isascii() or not digits.isdigit() or len(digits) > 18:
        raise PathFailed(Status.SUBDOC_PATH_INVALID)
    return int(digits)


def _end_of_key(path: str, start: int) -> int:
    """Return where a key ends: at a dot or a bracket that stands outside of backticks."""
    is_quoted = False
    for place in range(start, len(path)):
        character = path[place]
        if character == "`":
            is_quoted = not is_quoted
        elif not is_quoted and character == "]":
            raise PathFailed(Status.SUBDOC_PATH_INVALID)
        elif not is_quoted and character in ".[":
            return place
    if is_quoted:
        raise PathFailed(Status.SUBDOC_PATH_INVALID)
    return len(path)


def _key(text: str) -> str:
    """Return a key without its backticks; two of them in a row are one of the key's own."""
    if len(text) > 1 and text.startswith("`") and text.endswith("`"):
        text = text[1:-1]
    text = "`".join(part.replace("`", "") for part in text.split("``"))
    # What has a meaning in JSON is escaped as in JSON, but not by its number.
    if not text or "\\u" in text:
        raise PathFailed(Status.SUBDOC_PATH_INVALID)
    try:
        return msgspec.json.decode(f'"{text}"', type=str)
    except (msgspec.MsgspecError, ValueError) as error:
        raise PathFailed(Status.SUBDOC_PATH_INVALID) from error
