"""Tables that are indexed by a part of each row."""

from __future__ import annotations

import pytest

from triclinium_core.retry.tables import table_of, transition_table


def test_rows_by_their_keys() -> None:
    """``table_of`` stores each row under its key, in the order of the rows."""
    assert {"b": 1, "a": 2} == table_of([("b", 1), ("a", 2)])


def test_a_second_row_fails() -> None:
    """If two rows have the same key, ``table_of`` raises an error."""
    with pytest.raises(ValueError, match=r"^two rows for \('kv', 'get'\)$"):
        table_of([(("kv", "get"), 1), (("kv", "set"), 2), (("kv", "get"), 1)])


def test_transitions_by_state_and_input() -> None:
    """Each row gives the next state; two rows for the same state and input raise an error even if they agree."""
    rows = [("closed", "push", "open"), ("open", "pull", "closed"), ("open", "push", "open")]

    assert {"closed": {"push": "open"}, "open": {"pull": "closed", "push": "open"}} == transition_table(rows)
    with pytest.raises(ValueError, match=r"^two rows for \('closed', 'push'\)$"):
        transition_table([*rows, rows[0]])
