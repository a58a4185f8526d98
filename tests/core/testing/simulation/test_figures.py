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
        "operations  5    troubles  0",
        "  c         3",
        "  a         1",
        "  b         1",
        "changes     0",
        "1.5 hours in virtual time",
    ] == figures.lines()


def test_numbers_stand_under_each_other() -> None:
    """The columns are as wide as what stands in them; less than an hour is told in minutes."""
    figures = Figures(12_345, Counter({"done": 12_345}), Counter({"hang up": 7, "delay": 1_000}), virtual_seconds=90.0)

    assert [
        "operations  12,345    troubles   1,007",
        "  done      12,345      delay    1,000",
        "changes          0      hang up      7",
        "1.5 minutes in virtual time",
    ] == figures.lines()


def test_the_columns_may_differ_in_length() -> None:
    """The right one stays where it is when the left one has ended."""
    figures = Figures(0, Counter(), Counter({"delay": 3, "garble": 2, "hang up": 1}))

    assert [
        "operations  0    troubles   6",
        "changes     0      delay    3",
        "                   garble   2",
        "                   hang up  1",
        "0.0 minutes in virtual time",
    ] == figures.lines()
