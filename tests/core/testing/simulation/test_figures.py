"""Statistics of histories."""

from __future__ import annotations

from collections import Counter

from triclinium_core.testing.simulation.figures import Figures


def test_figures_are_added_up() -> None:
    """The sum of histories adds up each number by its name and leaves the histories unchanged."""
    total = Figures()
    histories = [
        Figures(operations, Counter({"done": operations}), Counter({"delay": 2}), Counter({"moves": 1}), 1_800.0)
        for operations in (1_000, 234)
    ]
    for history in histories:
        total.add(history)

    assert Figures(1_234, Counter({"done": 1_234}), Counter({"delay": 4}), Counter({"moves": 2}), 3_600.0) == total
    assert [Counter({"delay": 2})] * 2 == [history.faults for history in histories]


def test_figures_are_aligned_in_columns() -> None:
    """The columns are as wide as their content, sorted by number and then by name, without zeros."""
    troubles = Counter({"b": 1, "a": 1, "hang up": 7, "delay": 1_000, "never": 0})
    figures = Figures(12_345, Counter({"done": 12_345}), troubles, virtual_seconds=90.0)
    figures.add(Figures(requests=13, request_outcomes=Counter({"done": 13}), rows=210))

    assert [
        "operations  12,345    troubles   1,009",
        "  done      12,345      delay    1,000",
        "requests        13      hang up      7",
        "  done          13      a            1",
        "rows           210      b            1",
        "changes          0",
        "1.5 minutes in virtual time",
    ] == figures.lines()
    assert "1.5 hours in virtual time" == Figures(virtual_seconds=5_400.0).lines()[-1]
