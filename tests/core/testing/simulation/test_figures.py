"""Histories in numbers."""

from __future__ import annotations

from collections import Counter

from triclinium_core.testing.simulation.figures import Figures


def test_numbers_are_added_up() -> None:
    """Of many histories, each number by its name; the other one stays as it is."""
    total = Figures()
    histories = [
        Figures(operations, Counter({"done": operations}), Counter({"delay": 2}), Counter({"moves": 1}), 1_800.0)
        for operations in (1_000, 234)
    ]
    for history in histories:
        total.add(history)

    assert Figures(1_234, Counter({"done": 1_234}), Counter({"delay": 4}), Counter({"moves": 2}), 3_600.0) == total
    assert [Counter({"delay": 2})] * 2 == [history.faults for history in histories]


def test_the_most_frequent_comes_first() -> None:
    """Those that are as frequent by their names, and what never was is left out."""
    figures = Figures(5, Counter({"b": 1, "a": 1, "c": 3, "never": 0}), virtual_seconds=5_400.0)

    assert [
        "operations  5: 3 c, 1 a, 1 b",
        "troubles    0: none",
        "changes     0: none",
        "time        1.50 virtual hours",
    ] == figures.lines()
