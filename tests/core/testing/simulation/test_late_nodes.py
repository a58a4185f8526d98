"""Histories in which nodes learn late of a new collection."""

from __future__ import annotations

import pytest

from tests.core.testing.simulation.played import played, two_nodes
from triclinium_core import errors
from triclinium_core.kv.operation.document_operations import Get, Upsert
from triclinium_core.retry.couchbase import BestEffortRetryStrategy, FailFastRetryStrategy
from triclinium_core.testing.oracle.submissions import Violation
from triclinium_core.testing.simulation.chaos import late_chance
from triclinium_core.testing.simulation.history import NAMED
from triclinium_core.testing.simulation.logged import LoggedSimulation
from triclinium_core.testing.simulation.simulation_command import REGRESSIONS


def simulation_with_late_nodes(seconds: float) -> LoggedSimulation:
    """Return a simulation of two nodes that learn of a new collection after this many seconds."""
    simulation = two_nodes()
    simulation.drop_collection(NAMED)
    simulation.create_collection(NAMED, {0: seconds, 1: seconds})
    return simulation


def test_late_collection_excuses_a_timeout() -> None:
    """A collection that takes longer than the operation's timeout excuses that timeout, and a refused retry."""
    simulation = simulation_with_late_nodes(10.0)
    token = simulation.submit(
        Upsert(NAMED, "k1", simulation.model.unique_values.fragment(), 0), retry_strategy=BestEffortRetryStrategy()
    )
    hasty = simulation.submit(Get(NAMED, "k1"), retry_strategy=FailFastRetryStrategy())
    simulation.flow_for(5.0)

    assert isinstance(simulation.errors[token], errors.TimeoutException)
    assert hasty in simulation.errors


def test_client_waits_for_a_late_collection() -> None:
    """The client retries until its node knows the collection, within the timeout."""
    simulation = simulation_with_late_nodes(0.6)
    token = simulation.submit(
        Upsert(NAMED, "k1", simulation.model.unique_values.fragment(), 0), retry_strategy=BestEffortRetryStrategy()
    )
    simulation.flow_for(5.0)

    assert token in simulation.results
    assert 0.6 <= simulation.settled_at[token] < 2.5


@pytest.mark.parametrize("learns_at_once", [False, True])
def test_no_excuse_once_all_nodes_know(*, learns_at_once: bool) -> None:
    """Once all nodes know the collection, by time or by ``learn_at_once``, a failure has no excuse."""
    simulation = simulation_with_late_nodes(10.0)
    if learns_at_once:
        simulation.learn_at_once()
    else:
        simulation.flow_for(10.0)
    # Drop the collection without recording it for the laws: a failure now has no excuse.
    simulation.nodes.collections.drop(NAMED.scope, NAMED.collection)
    simulation.submit(Upsert(NAMED, "k1", simulation.model.unique_values.fragment(), 0))

    with pytest.raises(Violation, match="failed without a cause"):
        simulation.flow_for(5.0)


@pytest.mark.history
def test_nodes_learn_late() -> None:
    """In some histories nodes learn late of a collection, but not in histories of known regressions."""
    late = (seed for seed in range(30) if late_chance(seed) is not None)

    assert any(played(seed).figures().faults["nodes that learn late"] for seed in late)
    assert [None] * len(REGRESSIONS) == [late_chance(seed) for seed in REGRESSIONS]
