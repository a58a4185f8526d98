"""Complete histories, with the events that they contain and their results."""

from __future__ import annotations

from typing import Unpack

import pytest

from tests.core.testing.simulation.played import played
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.fault_conditions import StartConditions
from triclinium_core.testing.operation_templates import UNDERSTOOD
from triclinium_core.testing.oracle.submissions import Violation
from triclinium_core.testing.simulation.figures import Figures
from triclinium_core.testing.simulation.history import ClusterHistory, play

SEEDS = (10, 8, 6)
"""Seeds of histories with three clients, two and one."""


@pytest.fixture(scope="module")
def histories() -> list[ClusterHistory]:
    """Return some complete histories."""
    return [played(seed) for seed in SEEDS]


def test_every_kind_of_operation_is_submitted(histories: list[ClusterHistory]) -> None:
    """One to three clients submit all kinds of operations to three to five nodes, in both collections."""
    asked = [submission for history in histories for submission in history.simulation.model.submissions.values()]

    assert set(UNDERSTOOD) == {type(submission.operation) for submission in asked}
    assert len({submission.place.keyspace for submission in asked}) == 2
    assert len(asked) > 300 * len(SEEDS)
    assert {len(history.nodes) for history in histories} <= {3, 4, 5}
    assert {1, 2, 3} == {len(history.simulation.clients) for history in histories}


def test_everything_happens(histories: list[ClusterHistory]) -> None:
    """Six kinds of problems and six kinds of changes happen, and all operations end."""
    total = Figures()
    for history in histories:
        total.add(history.figures())

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


def test_seed_is_one_history(histories: list[ClusterHistory]) -> None:
    """A seed always gives the same history, line by line, and another seed gives another history."""
    again = play(SEEDS[0])

    assert again.law is None
    assert [*histories[0].simulation.timeline] == [*again.timeline] != [*histories[1].simulation.timeline]


class Dead(FakeNodes):
    """A cluster whose killed nodes cannot be revived."""

    def revive(self, index: int, **when: Unpack[StartConditions]) -> None:
        """Do nothing."""


@pytest.mark.history
def test_missing_recovery_is_found() -> None:
    """A client that has not recovered 60 virtual seconds after the last fault violates a law; the message states why."""
    outcome = next(outcome for seed in range(9) if (outcome := play(seed, Dead)).law is not None)

    assert outcome.law is not None
    assert "60 s after the last fault: " in outcome.law
    assert len(outcome.timeline) > 9


class Crashing(FakeNodes):
    """Cluster with a defect: the search for a node raises."""

    def find(self, host: str, port: int, *, tls: bool = False) -> None:
        """Raise ZeroDivisionError."""
        raise ZeroDivisionError("a defect")


def test_crash_breaks_a_law() -> None:
    """An exception of a client or a node breaks a law."""
    assert "client or node crashed: ZeroDivisionError: a defect" == play(0, Crashing).law


def test_operations_must_not_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operation that is open at the end of a history violates a law."""
    history = ClusterHistory(0)
    history.simulation.tick()
    history.simulation.flow()
    monkeypatch.setattr(type(history.simulation), "open_operations", 1)

    with pytest.raises(Violation, match="the number of operations open after their deadlines is 1"):
        history._live_in_peace()
