"""Selection of the tests that count towards the core's coverage: those that were written for particular lines.

A property runs hundreds of examples, and a history thousands of steps. Measuring coverage makes them two or three times
slower, and the lines that they reach by chance do not show what a test checks.
"""

from __future__ import annotations

import pytest
from hypothesis import is_hypothesis_test


def pytest_itemcollected(item: pytest.Item) -> None:
    """Exclude properties and histories from the measurement of pytest-cov."""
    function = getattr(item, "obj", None)
    if is_hypothesis_test(function) or item.get_closest_marker("history") is not None:
        item.add_marker(pytest.mark.no_cover)
