"""What all parts of a search have in common, seen at two of a test's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import ClassVar

import pytest

from tests.core.runtime.services.refusals import refused
from tests.rows import rows
from triclinium_core.errors import EncodingFailureException, InvalidArgumentException
from triclinium_core.services.search.parts import (
    READERS,
    Reader,
    SearchPart,
    fill,
    read_choice,
    read_json_object,
    read_part,
    read_positive,
    read_several,
    read_word,
    require_one,
)
from triclinium_core.services.search.queries import MatchOperator
from triclinium_core.services.search.search_request import SearchOptions


@dataclass(frozen=True, slots=True)
class Inner(SearchPart):
    """A part with fields that ``READERS`` knows."""

    min: float | None = None
    max: float | None = None


@dataclass(frozen=True, slots=True)
class Outer(SearchPart):
    """A part with others in it."""

    _OWN_READERS: ClassVar[Mapping[str, Reader]] = {
        "inner": read_part(Inner),
        "more": read_several(read_part(Inner), "parts", least=0),
        "min": read_positive,
        "operator": read_choice(MatchOperator),
        "word": read_word("a", "b"),
    }
    _JSON_NAMES: ClassVar[Mapping[str, str]] = {"inner": "in"}
    _JSON_CONSTANTS: ClassVar[Mapping[str, object]] = {"kind": None}

    inner: Inner
    more: tuple[Inner, ...] | None = None
    min: int | None = None
    operator: MatchOperator | None = None
    word: str | None = None


def kinds_of(kind: type[SearchPart]) -> Iterator[type[SearchPart]]:
    """Return a class and all below it."""
    yield kind
    for below in kind.__subclasses__():
        yield from kinds_of(below)


def test_every_field_is_read() -> None:
    """No field of any part is without a rule, so that nothing unchecked travels."""
    unread = {
        f"{kind.__name__}.{spec.name}"
        for kind in kinds_of(SearchPart)
        for spec in fields(kind)
        if spec.name not in kind._OWN_READERS and spec.name not in READERS
    }

    assert set() == unread
    assert SearchOptions in kinds_of(SearchPart)


def test_members() -> None:
    """Parts become objects, enums their values, names those of JSON; what is None is not there, but for constants."""
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
    """A part whose arguments are no list of its fields is checked as well."""
    part = Inner()
    fill(part, min=1, max=2)

    assert Inner(1, 2) == part
    refused("min", fill, part, min="1")


@rows(("parameter", "options"), [
        ("inner", {"inner": None}),
        ("inner", {"inner": Outer(Inner())}),
        ("more", {"inner": Inner(), "more": [1]}),
        ("more", {"inner": Inner(), "more": "ab"}),
        ("min", {"inner": Inner(), "min": 0}),
        ("operator", {"inner": Inner(), "operator": "and"}),
        ("word", {"inner": Inner(), "word": "c"}),
    ])  # fmt: skip
def test_own_readers(parameter: str, options: Mapping[str, object]) -> None:
    """What a class says of its fields goes before what is said of their names."""
    refused(parameter, Outer, **options)


def test_require_one() -> None:
    """Any of them will do; the error names all."""
    require_one(Inner(max=1), "min", "max")
    with pytest.raises(InvalidArgumentException, match="min or max"):
        require_one(Inner(), "min", "max")


def test_objects() -> None:
    """They are of JSON's own kinds afterwards, and belong to nobody else."""
    given = {"a": (1, 2), "b": {"c": None}}

    assert {"a": [1, 2], "b": {"c": None}} == read_json_object(given, "raw")
    with pytest.raises(EncodingFailureException):
        read_json_object({"a": object()}, "raw")
    refused("raw", read_json_object, [1], "raw")
