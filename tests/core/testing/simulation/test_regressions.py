"""The seeds that ever broke a law break none."""

from __future__ import annotations

import pytest

from triclinium_core.testing.simulation.command import REGRESSIONS
from triclinium_core.testing.simulation.history import play


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_regression(seed: int) -> None:
    """Each is played again."""
    assert play(seed).law is None
