"""Stages of an operation: the table of transitions, and its check in all tests."""

from __future__ import annotations

import pytest

from tests.core.runtime.kv.test_live_operation import READ, live
from triclinium_core.runtime.lifecycle.stages import NEXT_STAGES, Stage


def reachable(stage: Stage) -> frozenset[Stage]:
    """Return all stages that can follow ``stage``, directly or after other stages."""
    found, unseen = set[Stage](), [stage]
    while unseen:
        for each in NEXT_STAGES[unseen.pop()] - found:
            found.add(each)
            unseen.append(each)
    return frozenset(found)


def test_each_stage_leads_to_the_end() -> None:
    """An operation can reach each stage from the first, and the last stage from each; no stage follows the last."""
    assert set(Stage) == reachable(Stage.WAITING)
    assert all(Stage.SETTLED in reachable(stage) for stage in set(Stage) - {Stage.SETTLED})
    assert frozenset() == NEXT_STAGES[Stage.SETTLED]


def test_a_wrong_stage_fails_each_test() -> None:
    """While the tests run, giving an operation a stage that the table does not permit raises an error."""
    operation = live(READ)

    with pytest.raises(AssertionError, match="from WAITING to HELD"):
        operation.stage = Stage.HELD
