"""Scenario file of a user: TOML whose keys are those of ``Scenario`` and of the values in it.

Tables are values: ``[fleet]`` is a ``Fleet``. The reader refuses an unknown key and a value of the wrong type, with an
error that names the key.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from triclinium._cli._input import WrongInput, suggestion
from triclinium._cli.simulate.conversion import convert
from triclinium_core import errors
from triclinium_core.shown import shown
from triclinium_core.tools.fleet import Scenario

TABLES_WITH_DEFAULTS = ("fleet",)
"""Tables that are empty if the file omits them."""

Place = tuple[str | int, ...]
"""Keys and indices from the top of the file to a value."""


def read_scenario(path: Path) -> Scenario:
    """Return the scenario in a file.

    Raises:
        WrongInput: the file cannot be read, is not TOML, or has a wrong key or value; the line names the
            file, and the key and the value if there are any.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WrongInput(f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WrongInput(f"{path} is not TOML: {error}") from error
    for name in TABLES_WITH_DEFAULTS:
        table.setdefault(name, {})
    for place, kinds, value in _tables(msgspec.inspect.type_info(Scenario), table, ()):
        problem = _problem_of_keys(place, kinds, value)
        if problem is not None:
            raise WrongInput(f"{path}: {problem}")
    try:
        return convert(table, Scenario)
    except (msgspec.ValidationError, OverflowError) as error:
        raise WrongInput(f"{path}: {_explained(str(error), table)}") from error
    except errors.InvalidArgumentException as error:
        raise WrongInput(f"{path}: {_placed(error, table)}") from error


def _tables(kind: Any, value: object, place: Place) -> Iterator[tuple[Place, Sequence[Any], Mapping[str, object]]]:
    """Yield the tables in ``value``, inner tables first, with the place and the possible classes of each."""
    if isinstance(value, list):
        element = getattr(kind, "item_type", None)
        for index, each in enumerate(value):
            yield from _tables(element, each, (*place, index))
        return
    kinds = [each for each in getattr(kind, "types", (kind,)) if hasattr(each, "fields")]
    if not isinstance(value, dict) or not kinds:
        return
    chosen = _chosen(kinds, value)
    if chosen is not None:
        for field in chosen.fields:
            if field.encode_name in value:
                yield from _tables(field.type, value[field.encode_name], (*place, field.encode_name))
    yield place, kinds, value


def _chosen(kinds: Sequence[Any], table: Mapping[str, object]) -> Any:
    """Return the class of a table; None if the table does not name one of several classes."""
    if len(kinds) == 1:
        return kinds[0]
    return next((kind for kind in kinds if table.get(kind.tag_field) == kind.tag), None)


def _problem_of_keys(place: Place, kinds: Sequence[Any], table: Mapping[str, object]) -> str | None:
    """Return the problem of a table: an unknown or missing key, or a name that is not permitted; None without one."""
    chosen = _chosen(kinds, table)
    if chosen is None:
        key, tags = kinds[0].tag_field, ", ".join(str(kind.tag) for kind in kinds)
        fault = f"{key} = {shown(table[key])} is unknown" if key in table else f"{key} is missing"
        return f"{fault} in {_name(place)}; write one of {tags}"
    known = [field.encode_name for field in chosen.fields]
    for key, value in table.items():
        if key not in known and key != getattr(chosen, "tag_field", None):
            return f"{key} = {shown(value)} in {_name(place)} is unknown{suggestion(key, known)}"
    for field in chosen.fields:
        if field.required and field.encode_name not in table:
            return f"{field.encode_name} is missing in {_name(place)} and has no default"
        if isinstance(field.type, msgspec.inspect.EnumType):
            value, choices = table.get(field.encode_name), [each.value for each in field.type.cls]
            if isinstance(value, str) and value not in choices:
                return f"{field.encode_name} = {value!r} in {_name(place)}: write one of {', '.join(choices)}"
    return None


def _explained(message: str, table: Mapping[str, object]) -> str:
    """Return msgspec's message with the wrong value. Find the value by its path in the message: ``$.fleet.clients``."""
    words, _, path = message.partition(" - at ")
    value: Any = table
    keys = re.findall(r"\.(\w+)|\[(\d+)\]", path)
    for name, index in keys:
        value = value[int(index) if index else name]
    return f"{path.strip('`').removeprefix('$.')} = {shown(value)}: {words[:1].lower()}{words[1:]}"


def _placed(error: errors.InvalidArgumentException, table: Mapping[str, object]) -> str:
    """Return the message about a value that is out of range, with the innermost table that contains the value."""
    for place, kinds, value in _tables(msgspec.inspect.type_info(Scenario), table, ()):
        try:
            convert(value, _chosen(kinds, value).cls)
        except errors.InvalidArgumentException as found:
            return f"in {_name(place)}, {found.message}"
    return error.message


def _name(place: Place) -> str:
    path = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in place)
    return f"[{path.removeprefix('.')}]" if place else "the file"
