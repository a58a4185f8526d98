"""Durable writes: no acknowledged write is lost with a node, and no durable write is applied only in part."""

from __future__ import annotations

import pytest

from tests.properties.durable_clusters import DurableHour
from triclinium_core.testing.fakes.cluster import nodes as fake_nodes
from triclinium_core.testing.fakes.store import sync_writes as fake_sync_writes
from triclinium_core.testing.fakes.store.cluster_map import FakeMap, failed_over
from triclinium_core.testing.oracle.submissions import Violation

SEEDS_TO_FIND = 40
"""Number of seeds among which a history must reveal the fault of a cluster."""


@pytest.mark.parametrize("seed", [*range(20), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(20, 60))])
def test_a_durable_hour(seed: int) -> None:
    """For any seed, every result fits a history, and all operations complete at the end."""
    DurableHour(seed).run()


def find_a_liar(first: int) -> None:
    """Run histories with seeds from ``first`` until one raises a Violation. Smaller seeds do not reveal the fault."""
    for seed in range(first, SEEDS_TO_FIND):
        DurableHour(seed).run()


def test_a_cluster_that_acknowledges_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a cluster acknowledges writes that only one node has, a history reveals this."""
    monkeypatch.setattr(fake_sync_writes, "majority_of", lambda chain: 1)

    with pytest.raises(Violation):
        find_a_liar(2)


def test_a_cluster_that_promotes_any_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a cluster promotes a replica that lacks acknowledged writes, a history reveals this."""

    def first_come(known: FakeMap, index: int, progress: object) -> tuple[list[int], list[list[int]]]:
        return failed_over(known, index)

    monkeypatch.setattr(fake_nodes, "failed_over", first_come)

    with pytest.raises(Violation):
        find_a_liar(12)
