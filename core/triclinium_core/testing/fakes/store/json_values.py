"""Paths into JSON documents, and the sub-document operations of a fake node on them.

A document is decoded JSON, and is changed in place; numbers and keys may be written differently afterwards, with the
same meaning.

Source: kv_engine docs/SubDocument.md, "Path", "Command Listings"; couchbase/subjson ``path.cc``, ``limits.h``,
``operations.cc``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence
from typing import NamedTuple

import msgspec

from triclinium_core.json_depth import shallow
from triclinium_core.kv.operation.subdocument.specs import MutationMacro
from triclinium_core.kv.wire.subdocument import PathOpcode
from triclinium_core.retry.couchbase import Status

LEVELS_MAX = 32
"""Maximum nesting of objects and arrays. The document is the first level, so a path has at most 31 components."""

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
_DELTA = re.compile(rb"-?[1-9][0-9]{0,18}")

JsonPath = tuple[str | int, ...]
"""Keys of objects and indexes of arrays, outermost first; -1 is the last element. Empty for the whole document."""


class PathFailed(Exception):
    """Exception for a path that cannot be followed or changed; ``status`` is the status of this path."""

    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self.status = status


class Change(NamedTuple):
    """Arguments of a mutation at its path. ``values`` is the JSON of the mutation, or a macro."""

    path: JsonPath
    values: bytes | MutationMacro
    creates_parents: bool


def parse_path(path: str) -> JsonPath:
    """Return the components of a path; raise PathFailed if the path is malformed or too long."""
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
    """Return the end of a key: the next dot or bracket outside of backticks."""
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
    """Return a key without its backticks; a double backtick means one backtick in the key."""
    if len(text) > 1 and text.startswith("`") and text.endswith("`"):
        text = text[1:-1]
    text = "`".join(part.replace("`", "") for part in text.split("``"))
    # Special characters are escaped as in JSON, but \u escapes are invalid.
    if not text or "\\u" in text:
        raise PathFailed(Status.SUBDOC_PATH_INVALID)
    try:
        return msgspec.json.decode(shallow(f'"{text}"'), type=str)
    except (msgspec.MsgspecError, ValueError) as error:
        raise PathFailed(Status.SUBDOC_PATH_INVALID) from error


def decode_json(data: bytes) -> object:
    """Return a JSON value; raise ValueError if the data is not JSON."""
    try:
        return msgspec.json.decode(shallow(data))
    except (ValueError, RecursionError) as error:
        raise ValueError(str(error)) from error


def depth(value: object) -> int:
    """Return the nesting depth of objects and arrays."""
    levels, stack = 0, [(value, 1)]
    while stack:
        container, level = stack.pop()
        children: list[object] = []
        if isinstance(container, dict):
            children = [*container.values()]
        elif isinstance(container, list):
            children = container
        else:
            continue
        levels = max(levels, level)
        stack += [(child, level + 1) for child in children]
    return levels


def look_up(opcode: PathOpcode, document: object, path: JsonPath) -> bytes:
    """Return the value that one spec reads; raise PathFailed if it cannot be read."""
    _check_depth(document, Status.SUBDOC_DOCUMENT_TOO_DEEP)
    found = _follow(document, path)
    if opcode is PathOpcode.EXISTS:
        return b""
    if opcode is PathOpcode.GET:
        return msgspec.json.encode(found)
    if not isinstance(found, dict | list):
        raise PathFailed(Status.SUBDOC_PATH_MISMATCH)
    return b"%d" % len(found)


def change(opcode: PathOpcode, document: object, step: Change) -> bytes:
    """Change a document at one path, and return the result of the spec, which may be empty.

    After PathFailed the document may be partly changed and must be discarded.
    """
    _check_depth(document, Status.SUBDOC_DOCUMENT_TOO_DEEP)
    returned = _CHANGES[opcode](document, step) or b""
    _check_depth(document, Status.SUBDOC_VALUE_TOO_DEEP)
    return returned


def _check_depth(document: object, status: Status) -> None:
    if depth(document) > LEVELS_MAX:
        raise PathFailed(status)


def _follow(value: object, path: JsonPath) -> object:
    for component in path:
        value = _child(value, component)
    return value


def _child(value: object, component: str | int) -> object:
    if isinstance(component, str):
        if not isinstance(value, dict):
            raise PathFailed(Status.SUBDOC_PATH_MISMATCH)
        if component not in value:
            raise PathFailed(Status.SUBDOC_PATH_NOT_FOUND)
        return value[component]
    if not isinstance(value, list):
        raise PathFailed(Status.SUBDOC_PATH_MISMATCH)
    if not -1 <= component < len(value) or not value:
        raise PathFailed(Status.SUBDOC_PATH_NOT_FOUND)
    return value[component]


def _parent(document: object, step: Change) -> object:
    """Return the container of the last component; create it and all its parents if requested."""
    value = document
    for place, component in enumerate(step.path[:-1]):
        try:
            value = _child(value, component)
        except PathFailed as missing:
            is_missing = missing.status is Status.SUBDOC_PATH_NOT_FOUND
            # Create only objects: an array would lack the elements before the index.
            creates = step.creates_parents and all(isinstance(each, str) for each in step.path[place:])
            if not (is_missing and creates and isinstance(value, dict)):
                raise
            for key in step.path[place:-1]:
                created: dict[str | int, object] = {}
                value[key] = created
                value = created
            return value
    return value


def _single(values: bytes | MutationMacro) -> object:
    if isinstance(values, MutationMacro):
        return values
    try:
        return decode_json(values)
    except ValueError as error:
        raise PathFailed(Status.SUBDOC_VALUE_CANNOT_INSERT) from error


def _several(values: bytes | MutationMacro) -> list[object]:
    if isinstance(values, MutationMacro):
        return [values]
    elements = _single(b"[" + values + b"]")
    if not isinstance(elements, list) or not elements:
        raise PathFailed(Status.SUBDOC_VALUE_CANNOT_INSERT)
    return elements


def _key_in(document: object, step: Change) -> tuple[MutableMapping[str, object], str]:
    """Return the object that contains the last component of a path, and that component, which must be a key."""
    key = step.path[-1]
    if isinstance(key, int):
        # If a value on the path has the wrong type, raise the error for that, which takes precedence.
        _is_there(document, step.path)
        raise PathFailed(Status.SUBDOC_PATH_INVALID)
    parent = _parent(document, step)
    if not isinstance(parent, dict):
        raise PathFailed(Status.SUBDOC_PATH_MISMATCH)
    return parent, key


def _is_there(document: object, path: JsonPath) -> bool:
    try:
        _follow(document, path)
    except PathFailed as failed:
        if failed.status is not Status.SUBDOC_PATH_NOT_FOUND:
            raise
        return False
    return True


def _insert(document: object, step: Change) -> None:
    value = _single(step.values)
    parent, key = _key_in(document, step)
    if key in parent:
        raise PathFailed(Status.SUBDOC_PATH_EXISTS)
    parent[key] = value


def _upsert(document: object, step: Change) -> None:
    value = _single(step.values)
    parent, key = _key_in(document, step)
    parent[key] = value


def _replace(document: object, step: Change) -> None:
    value = _single(step.values)
    _holder(document, step.path)[step.path[-1]] = value


def _remove(document: object, step: Change) -> None:
    del _holder(document, step.path)[step.path[-1]]


def _holder(document: object, path: JsonPath) -> MutableMapping[str | int, object]:
    """Return the object or array that holds the existing value at a path."""
    _follow(document, path)
    return _follow(document, path[:-1])  # type: ignore[return-value]


def _array(document: object, step: Change) -> MutableSequence[object]:
    """Return the array at a path; create it if requested."""
    if step.path and step.creates_parents and not _is_there(document, step.path) and isinstance(step.path[-1], str):
        parent, key = _key_in(document, step)
        parent[key] = []
    array = _follow(document, step.path)
    if not isinstance(array, list):
        raise PathFailed(Status.SUBDOC_PATH_MISMATCH)
    return array


def _array_append(document: object, step: Change) -> None:
    values = _several(step.values)
    _array(document, step).extend(values)


def _array_prepend(document: object, step: Change) -> None:
    values = _several(step.values)
    _array(document, step)[:0] = values


def _array_insert(document: object, step: Change) -> None:
    values = _several(step.values)
    index = step.path[-1]
    if not isinstance(index, int) or index < 0:
        raise PathFailed(Status.SUBDOC_PATH_INVALID)
    array = _follow(document, step.path[:-1])
    if not isinstance(array, list):
        raise PathFailed(Status.SUBDOC_PATH_MISMATCH)
    if index > len(array):
        raise PathFailed(Status.SUBDOC_PATH_NOT_FOUND)
    array[index:index] = values


def _array_add_unique(document: object, step: Change) -> None:
    value = _single(step.values)
    if isinstance(value, dict | list):
        raise PathFailed(Status.SUBDOC_VALUE_CANNOT_INSERT)
    array = _array(document, step)
    if any(isinstance(element, dict | list) for element in array):
        raise PathFailed(Status.SUBDOC_PATH_MISMATCH)
    # Compare as JSON text: Python considers 1 and 1.0 equal.
    if msgspec.json.encode(value) in map(msgspec.json.encode, array):
        raise PathFailed(Status.SUBDOC_PATH_EXISTS)
    array.append(value)


def _count_by(document: object, step: Change) -> bytes:
    delta = _delta(step.values)
    if not _is_there(document, step.path):
        if isinstance(step.path[-1], int):
            raise PathFailed(Status.SUBDOC_PATH_NOT_FOUND)
        parent, key = _key_in(document, step)
        parent[key] = delta
        return b"%d" % delta
    number = _follow(document, step.path)
    if not isinstance(number, int) or isinstance(number, bool):
        raise PathFailed(Status.SUBDOC_PATH_MISMATCH)
    if not INT64_MIN <= number <= INT64_MAX:
        raise PathFailed(Status.SUBDOC_NUMBER_OUT_OF_RANGE)
    if not INT64_MIN <= number + delta <= INT64_MAX:
        raise PathFailed(Status.SUBDOC_VALUE_CANNOT_INSERT)
    _replace(document, step._replace(values=b"%d" % (number + delta)))
    return b"%d" % (number + delta)


def _delta(values: bytes | MutationMacro) -> int:
    if isinstance(values, MutationMacro) or not _DELTA.fullmatch(values):
        raise PathFailed(Status.SUBDOC_DELTA_INVALID)
    delta = int(values)
    if not INT64_MIN <= delta <= INT64_MAX:
        raise PathFailed(Status.SUBDOC_DELTA_INVALID)
    return delta


_CHANGES: Mapping[PathOpcode, Callable[[object, Change], bytes | None]] = {
    PathOpcode.INSERT: _insert,
    PathOpcode.UPSERT: _upsert,
    PathOpcode.REPLACE: _replace,
    PathOpcode.REMOVE: _remove,
    PathOpcode.ARRAY_APPEND: _array_append,
    PathOpcode.ARRAY_PREPEND: _array_prepend,
    PathOpcode.ARRAY_INSERT: _array_insert,
    PathOpcode.ARRAY_ADD_UNIQUE: _array_add_unique,
    PathOpcode.COUNT_BY: _count_by,
}
