"""Benchmarks are named ``bench_*.py``, so that a run of the tests does not find them; ask for one by its path."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", "bench: measures; looks at a clock and runs alone.")
