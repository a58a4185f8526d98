"""Properties that all parts of a search share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

import pytest

from tests.refusals import refused
from triclinium_core import errors, json_depth
from triclinium_core.services.search import parts
from triclinium_core.services.search.search_request import SearchOptions


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
