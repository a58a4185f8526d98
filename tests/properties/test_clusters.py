"""Whatever becomes of the nodes and their map, no acknowledged write is lost, none is applied twice, and calm heals."""

from __future__ import annotations

import pytest

from tests.properties.clusters import EventfulHour


@pytest.mark.parametrize("seed", range(100))
def test_an_eventful_hour(seed: int) -> None:
    """Every law holds in each history, and in the end everything is served by all nodes."""
    EventfulHour(seed).run()
