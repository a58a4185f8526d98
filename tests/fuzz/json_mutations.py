"""Changes to JSON documents at any path: other numbers, words, strings and containers.

A document is a value as ``json.loads`` returns it. ``Text`` in it holds encoded JSON, even in a form that
``json.dumps`` cannot write.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""Keys and indexes from the root to a value."""

DEPTH = 2_000
"""Levels of a deep value: more than recursive parsers support."""
WIDTH = 1_500
"""Members of a wide value: more than a cluster has nodes."""


@dataclass(frozen=True, slots=True)
class Text:
    """Encoded piece of JSON."""

    json: str


@dataclass(frozen=True, slots=True)
class Members:
    """Object whose keys may occur several times."""

    pairs: tuple[tuple[str, object], ...]


NUMBERS = (
    *("0", "-0", "-1", "1", "2", "3", "5", "1.5", "-1.5", "1.0", "1e5", "1E2", "1e-400", "1e400", "-1e400"),
    *("65535", "65536", "-65536", "2147483648", "4294967295", "4294967296", "-2147483649"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551616"),
    *("9" * 4_000, "9" * 4_301, "9" * 5_000, "-" + "9" * 5_000, "0." + "9" * 5_000, "1e" + "9" * 30),
)
WORDS = ("null", "true", "false", "NaN", "Infinity", "-Infinity")
STRINGS = (
    *('""', '"a"', '"-1"', '"+1"', '" 1"', '"1_1"', '"0x"', '"0x1f"', '"zz"', '"1.5"', '"\u0661"', '".."', '"$HOST"'),
    *(f'"{digits}"' for digits in ("100000000", "ffffffff", "8000000000000000", "f" * 16, "1" * 17, "9" * 5_000)),
    *(f'"h:{port}"' for port in ("", "0", "-1", "65536", "\u0661", "9" * 5_000, "000080" + "0" * 5_000)),
    *('"\\ud800"', '"\\udfff\\ud800"', '"\\u0000"', '"\\n\\u001b[31m"', '"\\u202e\\u2028"', '"`\\\\\\""'),
    *('"2030-13-40T99:99:99Z"', '"0000-01-01T00:00:00Z"', '"9999-12-31T23:59:60+99:99"', '"-9h9999999999m.5s"'),
    '"' + "x" * 70_000 + '"',
)
CONTAINERS = (
    *("[]", "{}", "[[]]", "[null]", "[{}]", "[1,2]", '[""]', '{"":null}', '{"a":{}}', '{"a":[1]}'),
    "[" * DEPTH + "]" * DEPTH,
    '{"a":' * DEPTH + "1" + "}" * DEPTH,
    "[" + ",".join(["1"] * WIDTH) + "]",
    "{" + ",".join(f'"k{number}":{number}' for number in range(WIDTH)) + "}",
)
REPLACEMENTS = tuple(map(Text, (*NUMBERS, *WORDS, *STRINGS, *CONTAINERS)))
"""Every value that replaces another at a path."""
DELETE, REPEAT, RENAME = "delete", "repeat", "rename"
Change: TypeAlias = Text | str | object
"""A replacement, one of the three changes to the surrounding container, or another part of the document."""
CHANGES: Sequence[Change] = (*REPLACEMENTS, DELETE, REPEAT, RENAME)


def encoded(value: object) -> bytes:
    """Return a document, encoded."""
    return _text(value).encode("utf-8", "surrogatepass")


def _text(value: object) -> str:
    match value:
        case Text(text):
            return text
        case Members(pairs):
            return "{" + ",".join(f"{json.dumps(key)}:{_text(member)}" for key, member in pairs) + "}"
        case Mapping():
            return _text(Members(tuple(value.items())))
        case list():
            return "[" + ",".join(map(_text, value)) + "]"
        case _:
            return json.dumps(value)


def paths(value: object) -> Iterator[Path]:
    """Yield the path of every value of a document, the root first."""
    yield ()
    if isinstance(value, Mapping):
        steps: Sequence[tuple[str | int, object]] = list(value.items())
    else:
        steps = list(enumerate(value)) if isinstance(value, list) else []
    for step, inner in steps:
        for path in paths(inner):
            yield (step, *path)


def changed(value: object, path: Path, change: Change) -> object:
    """Return a document with one change at a path."""
    if not path:
        return Text("") if change in (DELETE, REPEAT, RENAME) else change
    step, rest = path[0], path[1:]
    if isinstance(value, Mapping) and step in value:
        members = list(value.items())
        at = list(value).index(step)
        if rest or change not in (DELETE, REPEAT, RENAME):
            members[at] = str(step), changed(value[step], rest, change)
        elif change == DELETE:
            del members[at]
        elif change == RENAME:
            members[at] = str(step).swapcase(), value[step]
        else:
            members += [(str(step), value[step]), (str(step), Text("null"))]
        keys = [key for key, _ in members]
        return dict(members) if len(set(keys)) == len(keys) else Members(tuple(members))
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        if rest or change not in (DELETE, REPEAT, RENAME):
            return [*value[:step], changed(value[step], rest, change), *value[step + 1 :]]
        return [*value[:step], *([] if change == DELETE else [value[step]] * WIDTH), *value[step + 1 :]]
    # The path no longer exists, because an earlier change has removed, renamed or replaced a part of it.
    return value


def part(value: object, path: Path) -> object:
    """Return the part of a document at a path."""
    for step in path:
        value = value[step]  # type: ignore[index]  # a path of the document
    return value


def of_its_kind(value: object) -> Sequence[Change]:
    """Return the replacements that have the same kind as a value, so that they pass checks of the type."""
    if isinstance(value, str):
        return tuple(map(Text, STRINGS))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return tuple(map(Text, NUMBERS))
    return tuple(map(Text, CONTAINERS if isinstance(value, list | Mapping) else WORDS))


def draw(rng: random.Random, document: object) -> bytes:
    """Return a document with one to three changes, most of the same kind as the value that they replace."""
    known = list(paths(document))
    bent = document
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        path, choice = rng.choice(known), rng.random()
        if choice < 0.6:
            change = rng.choice(of_its_kind(part(document, path)))
        elif choice < 0.95:
            change = rng.choice(CHANGES)
        else:
            change = part(document, rng.choice(known))
        bent = changed(bent, path, change)
    return encoded(bent)


def single_changes(document: object) -> Iterator[object]:
    """Yield unencoded documents: for each path, each replacement of the same kind and each change to its container."""
    for path in paths(document):
        for change in (*of_its_kind(part(document, path)), DELETE, REPEAT, RENAME):
            yield changed(document, path, change)
