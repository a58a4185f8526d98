"""Says which tests of the core count for its coverage: those that somebody has written for some lines.

A property takes hundreds of examples, a history thousands of steps. Measured they take two or three times as long, and
of the lines that they happen upon nobody can tell whether a test is about them.
"""

from __future__ import annotations

import pytest
from hypothesis import is_hypothesis_test


def pytest_itemcollected(item: pytest.Item) -> None:
    """Leave properties and histories out of what pytest-cov measures."""
    function = getattr(item, "obj", None)
    if is_hypothesis_test(function) or item.get_closest_marker("history") is not None:
        item.add_marker(pytest.mark.no_cover)
