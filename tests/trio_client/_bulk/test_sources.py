"""Readers of the items of a bulk block."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.rows import rows
from triclinium._bulk.sources import iterated, pair_of


class Both:
    """Source that can be iterated in both ways."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError

    async def __aiter__(self) -> AsyncIterator[str]:
        yield "ada"


@rows("given", [["a", 1], ("a", 1), deque(["a", 1]), range(2)])
def test_pairs(given: Any) -> None:
    """A pair is any sequence of two values, except a text or bytes."""
    assert tuple(given) == pair_of(given, 1)


@rows(
    "given", ["ab", b"ab", bytearray(b"ab"), {"a": 1, "b": 2}, {"a", "b"}, {"a": 1, "b": 2}.items(), [1], [], 7, None]
)
def test_other_items_are_refused(given: Any) -> None:
    """A text, bytes, a mapping, a set, or a sequence of another length is no pair; the error has the item's number."""
    with pytest.raises(TypeError, match=f"item 1,000 .*{type(given).__name__}".replace(",", "")):
        pair_of(given, 1000)


def test_a_mapping_has_pairs_or_keys() -> None:
    """A mapping gives its items if pairs are wanted, otherwise its keys."""
    assert [("a", 1)] == list(iterated({"a": 1}, has_values=True))  # type: ignore[arg-type]  # it is not asynchronous
    assert ["a"] == list(iterated({"a": 1}, has_values=False))  # type: ignore[arg-type]


async def test_an_asynchronous_source_takes_precedence() -> None:
    """A source that can be iterated in both ways is read asynchronously."""
    source = iterated(Both(), has_values=False)

    assert isinstance(source, AsyncIterator)
    assert ["ada"] == [each async for each in source]
