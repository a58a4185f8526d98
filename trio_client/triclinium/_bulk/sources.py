"""Types of the sources of a bulk block, and checks of a source and its items."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

Item: TypeAlias = tuple[object, ...]
"""Arguments of one operation: a key, or a key and a value."""

Keys: TypeAlias = Iterable[str] | AsyncIterable[str]
"""Source of keys."""

Pairs: TypeAlias = Mapping[str, object] | Iterable[tuple[str, object]] | AsyncIterable[tuple[str, object]]
"""Source of keys with their values."""


def pair_of(given: object, number: int) -> Item:
    """Return the key and the value of one item from a source of pairs.

    Args:
        number: number of the item in its source, from 1.

    Raises:
        TypeError: the item is not a pair.
    """
    # Neither a set nor a mapping is a pair: they would give their elements in any order, or their keys.
    if isinstance(given, Sequence) and not isinstance(given, str | bytes | bytearray) and len(given) == 2:
        return given[0], given[1]
    raise TypeError(
        f"item {number} of the source is of type {type(given).__name__} and not a pair; make each item (key, value)"
    )


def iterated(items: Keys | Pairs, *, has_values: bool) -> Iterator[object] | AsyncIterator[object]:
    """Return the iterator of a source.

    Args:
        has_values: whether each item is a pair, so that a mapping gives its items.

    Raises:
        TypeError: ``items`` cannot be iterated, or is a string or bytes.
    """
    if isinstance(items, AsyncIterable):
        return aiter(items)
    if isinstance(items, Iterable) and not isinstance(items, str | bytes | bytearray):
        return iter(items.items() if has_values and isinstance(items, Mapping) else items)
    wanted = "pairs of a key and a value, or a mapping" if has_values else "keys"
    raise TypeError(f"the source is of type {type(items).__name__}; pass an iterable, such as a list, of {wanted}")
