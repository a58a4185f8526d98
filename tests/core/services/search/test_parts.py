"""Properties that all parts of a search share, tested with two example parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import ClassVar

import pytest

from tests.core.runtime.services.refusals import refused
from tests.rows import rows
from triclinium_core import errors, json_depth
from triclinium_core.services.search import parts
from triclinium_core.services.search.queries import MatchOperator
from triclinium_core.services.search.search_request import SearchOptions


@dataclass(frozen=True, slots=True)
class Inner(parts.SearchPart):
    """A part with fields of ``READERS``."""

    min: float | None = None
    max: float | None = None


@dataclass(frozen=True, slots=True)
class Outer(parts.SearchPart):
    """A part with other parts in it."""

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {
        "inner": parts.read_part(Inner),
        "more": parts.read_several(parts.read_part(Inner), "parts", least=0),
        "min": parts.read_positive,
        "operator": parts.read_choice(MatchOperator),
        "word": parts.read_word("a", "b"),
    }
    _JSON_NAMES: ClassVar[Mapping[str, str]] = {"inner": "in"}
    _JSON_CONSTANTS: ClassVar[Mapping[str, object]] = {"kind": None}

    inner: Inner
    more: tuple[Inner, ...] | None = None
    min: int | None = None
    operator: MatchOperator | None = None
    word: str | None = None


def kinds_of(kind: type[parts.SearchPart]) -> Iterator[type[parts.SearchPart]]:
    """Yield a class and all its subclasses."""
    yield kind
    for below in kind.__subclasses__():
        yield from kinds_of(below)


def test_every_field_has_a_reader() -> None:
    """Every field of every part has a reader, so nothing unchecked is sent."""
    unread = {
        f"{kind.__name__}.{spec.name}"
        for kind in kinds_of(parts.SearchPart)
        for spec in fields(kind)
        if spec.name not in kind._OWN_READERS and spec.name not in parts.READERS
    }

    assert set() == unread
    assert SearchOptions in kinds_of(parts.SearchPart)


def test_members() -> None:
    """Parts are sent as objects, enums as their values, fields under their JSON names; only a constant may be null."""
    outer = Outer(Inner(1), (Inner(2), Inner(max=3)), 4, MatchOperator.AND, "a")

    assert outer.members() == {
        "kind": None,
        "in": {"min": 1},
        "more": [{"min": 2}, {"max": 3}],
        "min": 4,
        "operator": "and",
        "word": "a",
    }
    assert {"kind": None, "in": {}} == Outer(Inner()).members()


def test_fill() -> None:
    """``fill`` also checks the arguments of a part whose constructor does not take the fields."""
    part = Inner()
    parts.fill(part, min=1, max=2)

    assert Inner(1, 2) == part
    refused("min", parts.fill, part, min="1")


@rows(("parameter", "options"), [
        ("inner", {"inner": None}),
        ("inner", {"inner": Outer(Inner())}),
        ("more", {"inner": Inner(), "more": [1]}),
        ("more", {"inner": Inner(), "more": "ab"}),
        ("min", {"inner": Inner(), "min": 0}),
        ("operator", {"inner": Inner(), "operator": "and"}),
        ("word", {"inner": Inner(), "word": "c"}),
    ])  # fmt: skip
def test_own_readers_take_precedence(parameter: str, options: Mapping[str, object]) -> None:
    """A class that has a reader for a field uses that reader, and not the shared reader for fields of that name."""
    refused(parameter, Outer, **options)


def test_require_one() -> None:
    """``require_one`` accepts a part with one of the fields; otherwise its error names all of them."""
    parts.require_one(Inner(max=1), "min", "max")
    with pytest.raises(errors.InvalidArgumentException, match="min or max"):
        parts.require_one(Inner(), "min", "max")


def test_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """A JSON object is copied and consists of JSON types only; another value, or one too deep, is refused."""
    given = {"a": (1, 2), "b": {"c": None}}

    assert {"a": [1, 2], "b": {"c": None}} == parts.read_json_object(given, "raw")
    with pytest.raises(errors.EncodingFailureException):
        parts.read_json_object({"a": object()}, "raw")
    monkeypatch.setattr(json_depth, "IS_GUARDED", False)
    deep: object = "x" * 2 * json_depth.LEVELS_MAX
    for _ in range(json_depth.LEVELS_REFUSED):
        deep = [deep]
    with pytest.raises(errors.EncodingFailureException, match="raw"):
        parts.read_json_object({"a": deep}, "raw")
    refused("raw", parts.read_json_object, [1], "raw")
