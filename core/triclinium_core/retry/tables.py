"""Tables of rows with a key each. A key that stands twice is a mistake in our own source, and fails at import."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def table_of(rows: Iterable[tuple[K, V]]) -> dict[K, V]:
    """Return the rows by key.

    Raises:
        ValueError: a key stands twice.
    """
    table: dict[K, V] = {}
    for key, row in rows:
        if key in table:
            raise ValueError(f"two rows for {key}")
        table[key] = row
    return table
