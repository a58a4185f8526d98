"""No durable write that was acknowledged is lost with a node, and none is half applied."""

from __future__ import annotations

import pytest

from tests.properties.durable_clusters import DurableHour
from triclinium_core.testing.fakes.cluster import nodes as fake_nodes
from triclinium_core.testing.fakes.store import sync_writes as fake_sync_writes
from triclinium_core.testing.fakes.store.cluster_map import FakeMap, failed_over
from triclinium_core.testing.oracle.submissions import Violation

SEEDS_TO_FIND = 40
"""Before this one each lie of a cluster has to come to light."""


@pytest.mark.parametrize("seed", [*range(20), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(20, 60))])
def test_a_durable_hour(seed: int) -> None:
    """Every law holds in each history, and in the end everything is served."""
    DurableHour(seed).run()


def find_a_liar(first: int) -> None:
    """Play histories until one breaks a law, and raise what it says; those before ``first`` do not show the lie."""
    for seed in range(first, SEEDS_TO_FIND):
        DurableHour(seed).run()


def test_a_cluster_that_acknowledges_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found out when the only node that has the write is lost."""
    monkeypatch.setattr(fake_sync_writes, "majority_of", lambda chain: 1)

    with pytest.raises(Violation):
        find_a_liar(2)


def test_a_cluster_that_promotes_any_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found out when the replica that takes over is the one that was behind."""

    def first_come(known: FakeMap, index: int, progress: object) -> tuple[list[int], list[list[int]]]:
        return failed_over(known, index)

    monkeypatch.setattr(fake_nodes, "failed_over", first_come)

    with pytest.raises(Violation):
        find_a_liar(12)
