"""Functions that build tables from rows with unique keys, and transition tables from transitions.

A duplicate key is a mistake in the source of this library, so importing the module with the table raises ValueError.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
State = TypeVar("State", bound=Hashable)
Input = TypeVar("Input", bound=Hashable)


def table_of(rows: Iterable[tuple[K, V]]) -> dict[K, V]:
    """Return a mapping from the key of each pair to its row.

    Raises:
        ValueError: two rows have the same key.
    """
    table: dict[K, V] = {}
    for key, row in rows:
        if key in table:
            raise ValueError(f"two rows for {key}")
        table[key] = row
    return table


def transition_table(rows: Iterable[tuple[State, Input, State]]) -> Mapping[State, Mapping[Input, State]]:
    """Return a mapping from each state to a mapping from each input to the next state.

    Args:
        rows: state, input and next state of each transition.

    Raises:
        ValueError: a state has two rows for one input.
    """
    table: dict[State, dict[Input, State]] = {}
    for (state, symbol), following in table_of(
        ((state, symbol), following) for state, symbol, following in rows
    ).items():
        table.setdefault(state, {})[symbol] = following
    return table
