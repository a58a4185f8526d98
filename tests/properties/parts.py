"""Model of sub-document operations, which works on immutable values.

A path is a tuple of keys and indexes; ``PathStep.text`` is the path as text. Each failure raises the exception that the
caller of the client gets.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from triclinium import errors
from triclinium.subdocument import LookupInSpec, MutateInSpec

Path = tuple[str | int, ...]
PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz")


@dataclass(frozen=True)
class PathStep:
    """One spec of a lookup or a mutation: its operation, path and values."""

    do: str
    path: Path
    values: tuple[Any, ...] = (1,)
    xattr: bool = False
    creates: bool = False

    @property
    def text(self) -> str:
        """Path in the text form that a spec takes."""
        text = ""
        for component in self.path:
            if isinstance(component, int):
                text += f"[{component}]"
            else:
                plain = set(component) <= PLAIN
                escaped = json.dumps(component, ensure_ascii=False)[1:-1].replace("`", "``")
                text += ("." if text else "") + (component if plain else f"`{escaped}`")
        return text

    def lookup(self) -> LookupInSpec:
        """Return the ``LookupInSpec`` for this spec."""
        make: Callable[..., LookupInSpec] = getattr(LookupInSpec, self.do)
        return make(self.text, xattr=self.xattr)

    def mutation(self) -> MutateInSpec:
        """Return the ``MutateInSpec`` for this spec."""
        make: Callable[..., MutateInSpec] = getattr(MutateInSpec, self.do)
        options = {"create_parents": True} if self.creates else {}
        return make(self.text, *self.values, xattr=self.xattr, **options)


CREATING = ("insert", "upsert", "array_append", "array_prepend", "array_add_unique", "increment", "decrement")
"""Operations that can create the missing parents of their path."""


def entry(value: Any, component: str | int) -> Any:
    """Return the value under one key or index of a container."""
    if isinstance(component, str):
        if not isinstance(value, dict):
            raise errors.PathMismatchException
        if component not in value:
            raise errors.PathNotFoundException
    else:
        if not isinstance(value, list):
            raise errors.PathMismatchException
        if component >= len(value) or not value:
            raise errors.PathNotFoundException
    return value[component]


def found(value: Any, path: Path) -> Any:
    """Return the value at the path."""
    return found(entry(value, path[0]), path[1:]) if path else value


def with_entry(value: Any, component: str | int, new: Any) -> Any:
    """Return a copy of a container in which one entry is replaced."""
    if isinstance(value, dict):
        return {**value, component: new}
    place = component if component != -1 else len(value) - 1
    return [new if index == place else each for index, each in enumerate(value)]


def without_entry(value: Any, component: str | int) -> Any:
    """Return a copy of a container that lacks one entry."""
    if isinstance(value, dict):
        return {key: each for key, each in value.items() if key != component}
    place = component if component != -1 else len(value) - 1
    return [each for index, each in enumerate(value) if index != place]


def replaced(value: Any, path: Path, change: Callable[[Any], Any]) -> Any:
    """Return a copy of a document in which ``change`` has replaced the value at the path."""
    if not path:
        return change(value)
    return with_entry(value, path[0], replaced(entry(value, path[0]), path[1:], change))


def nested(path: Path, new: Any) -> Any:
    """Return objects that are nested along the path and have the value in the innermost object."""
    return {path[0]: nested(path[1:], new)} if path else new


def placed(value: Any, path: Path, new: Callable[[], Any], *, creates: bool) -> Any:
    """Return a copy of a document that has a new value at a missing path. Raise if the path cannot be created."""
    head, rest = path[0], path[1:]
    try:
        inner = entry(value, head)
    except errors.PathNotFoundException:
        if not all(isinstance(each, str) for each in path) or (rest and not creates):
            raise
        return {**value, head: nested(rest, new())}
    return with_entry(value, head, placed(inner, rest, new, creates=creates))


def is_missing(value: Any, path: Path) -> bool:
    """Return whether the path is missing. Raise an exception if the path does not fit the document."""
    try:
        found(value, path)
    except errors.PathNotFoundException:
        return True
    return False


def look_up(step: PathStep, document: Any) -> Any:
    """Return the result of a lookup with one spec."""
    if step.do == "exists":
        return not is_missing(document, step.path)
    value = found(document, step.path)
    if step.do == "get":
        return value
    if not isinstance(value, dict | list):
        raise errors.PathMismatchException
    return len(value)


def changed(step: PathStep, document: Any) -> Any:
    """Return ``document`` as one mutation spec changes it."""
    match step.do:
        case "insert" | "upsert":
            return stored(step, document)
        case "replace":
            return replaced(document, step.path, lambda _: step.values[0])
        case "remove":
            found(document, step.path)
            return replaced(document, step.path[:-1], lambda value: without_entry(value, step.path[-1]))
        case "array_insert":
            return inserted(step, document)
        case "increment" | "decrement":
            return counted(step, document)
        case _:
            return grown(step, document)


def stored(step: PathStep, document: Any) -> Any:
    """Return a copy of a document in which a key has a new value."""
    missing = is_missing(document, step.path)
    if isinstance(step.path[-1], int):
        raise errors.PathInvalidException
    if missing:
        return placed(document, step.path, lambda: step.values[0], creates=step.creates)
    if step.do == "insert":
        raise errors.PathExistsException
    return replaced(document, step.path, lambda _: step.values[0])


def inserted(step: PathStep, document: Any) -> Any:
    """Return a copy of a document in which an array has the values before one of its elements."""
    index, values = step.path[-1], list(step.values)
    if not isinstance(index, int) or index < 0:
        raise errors.PathInvalidException
    array = found(document, step.path[:-1])
    if not isinstance(array, list):
        raise errors.PathMismatchException
    if index > len(array):
        raise errors.PathNotFoundException
    return replaced(document, step.path[:-1], lambda array: [*array[:index], *values, *array[index:]])


def grown(step: PathStep, document: Any) -> Any:
    """Return a copy of a document in which an array has the values at its beginning or end."""
    values = list(step.values)
    if step.path and is_missing(document, step.path) and step.creates:
        return placed(document, step.path, lambda: values, creates=True)
    array = found(document, step.path)
    if not isinstance(array, list):
        raise errors.PathMismatchException
    if step.do == "array_add_unique":
        if any(isinstance(each, dict | list) for each in array):
            raise errors.PathMismatchException
        if json.dumps(values[0]) in [json.dumps(each) for each in array]:
            raise errors.PathExistsException
    after = [*values, *array] if step.do == "array_prepend" else [*array, *values]
    return replaced(document, step.path, lambda _: after)


def counted(step: PathStep, document: Any) -> Any:
    """Return a copy of a document in which a number has increased or decreased."""
    delta = step.values[0] if step.do == "increment" else -step.values[0]
    if is_missing(document, step.path):
        return placed(document, step.path, lambda: delta, creates=step.creates)
    number = found(document, step.path)
    if type(number) is not int:
        raise errors.PathMismatchException
    if not -(2**63) <= number + delta < 2**63:
        raise errors.ValueInvalidException
    return replaced(document, step.path, lambda _: number + delta)


@dataclass
class SpecsOutcome:
    """Result of all specs of a mutation: body, attributes and returned numbers, or the first failure."""

    body: Any
    attributes: Any
    returned: dict[int, int] = field(default_factory=dict)
    failed: tuple[int, type[Exception]] | None = None


def mutated(steps: Sequence[PathStep], body: Any, attributes: Any) -> SpecsOutcome:
    """Return the result of a mutation. Specs on attributes are applied before specs on the body."""
    outcome = SpecsOutcome(body, attributes)
    for index, step in sorted(enumerate(steps), key=lambda numbered: not numbered[1].xattr):
        try:
            after = changed(step, outcome.attributes if step.xattr else outcome.body)
        except Exception as error:
            return SpecsOutcome(body, attributes, failed=(index, type(error)))
        if step.xattr:
            outcome.attributes = after
        else:
            outcome.body = after
        if step.do in ("increment", "decrement"):
            outcome.returned[index] = found(after, step.path)
    return outcome
