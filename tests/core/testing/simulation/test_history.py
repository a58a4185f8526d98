"""Whole histories: what is in them, and what becomes of them."""

from __future__ import annotations

from typing import get_args

import pytest

from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.faults import CommandFault, Fault, RefuseConnection
from triclinium_core.testing.operation_templates import UNDERSTOOD
from triclinium_core.testing.oracle.submissions import Violation
from triclinium_core.testing.simulation.chaos import DATA_FAULTS
from triclinium_core.testing.simulation.figures import Figures
from triclinium_core.testing.simulation.history import ClusterHistory, play

SEEDS = (0, 3, 4)
"""Of three clients, of one and of two."""


@pytest.fixture(scope="module")
def hours() -> list[ClusterHistory]:
    """Return some histories that are over."""
    played = [ClusterHistory(seed) for seed in SEEDS]
    for hour in played:
        hour.run()
    return played


def test_every_kind_of_operation_is_asked_for(hours: list[ClusterHistory]) -> None:
    """By several clients of several nodes, and in both collections."""
    asked = [submission for hour in hours for submission in hour.simulation.model.submissions.values()]

    assert set(UNDERSTOOD) == {type(submission.operation) for submission in asked}
    assert len({submission.place.keyspace for submission in asked}) == 2
    assert len(asked) > 300 * len(SEEDS)
    assert {len(hour.nodes) for hour in hours} <= {3, 4, 5}
    assert {1, 2, 3} == {len(hour.simulation.clients) for hour in hours}


def test_everything_happens(hours: list[ClusterHistory]) -> None:
    """Faults of most kinds, every trouble of nodes and every change of the map: and all operations end."""
    total = Figures()
    for hour in hours:
        total.add(hour.figures())

    assert {
        "deaths of nodes",
        "partitions",
        "slow nodes",
        "stale maps",
        "broken streams",
        "refused connections",
    } <= set(total.faults)
    assert {
        "rebalances",
        "failovers",
        "nodes added",
        "nodes removed",
        "collections dropped",
        "collections created",
    } <= set(total.changes)
    assert total.operations == sum(total.outcomes.values())
    assert total.virtual_seconds > 60 * len(SEEDS)


def test_all_faults_may_strike() -> None:
    """Every kind that there is, but for the one that has its own event."""
    assert set(get_args(CommandFault)) == {type(fault) for fault in DATA_FAULTS}
    assert {RefuseConnection} == set(get_args(Fault)) - set(get_args(CommandFault))


def test_a_seed_is_one_history(hours: list[ClusterHistory]) -> None:
    """Line by line."""
    again = play(SEEDS[0])

    assert again.law is None
    assert [*hours[0].simulation.timeline] == [*again.timeline] != [*hours[1].simulation.timeline]


class Dead(FakeNodes):
    """A cluster whose nodes stay dead, whoever revives them."""

    def revive(self, index: int) -> None:
        """Do nothing."""


def test_who_does_not_recover_is_found_out() -> None:
    """Sixty virtual seconds after the last trouble, with what is wrong."""
    outcome = next(outcome for seed in range(9) if (outcome := play(seed, Dead)).law is not None)

    assert outcome.law is not None
    assert outcome.law.startswith("not serving 60 s after the last trouble: ")
    assert len(outcome.timeline) > 9


class Crashing(FakeNodes):
    """A cluster with a defect."""

    def find(self, host: str, port: int, *, tls: bool = False) -> None:
        """Fail."""
        raise ZeroDivisionError("a defect")


def test_a_crash_breaks_a_law() -> None:
    """Whatever raised it."""
    assert "client or node crashed: ZeroDivisionError: a defect" == play(0, Crashing).law


def test_operations_must_not_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the end nobody waits."""
    hour = ClusterHistory(0)
    hour.simulation.tick()
    hour.simulation.flow()
    monkeypatch.setattr(type(hour.simulation), "open_operations", 1)

    with pytest.raises(Violation, match="1 operations are open after their deadlines"):
        hour._live_in_peace()
