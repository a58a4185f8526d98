"""Plans that are remembered, within bounds."""

from __future__ import annotations

from triclinium_core.runtime.services.prepared_plans import PreparedPlans
from triclinium_core.services.query.request import PlanKey, PreparedPlan


def key(statement: str, context: str = "", *, flex_index: bool = False) -> PlanKey:
    """Return the key of a statement."""
    return PlanKey(statement, context, flex_index)


def test_remembering() -> None:
    """By statement, scope and whether search indexes serve it; a newer plan replaces an older one."""
    plans = PreparedPlans()
    keys = [key("SELECT 1"), key("SELECT 2"), key("SELECT 1", "default:`b`.`s`"), key("SELECT 1", flex_index=True)]
    for number, each in enumerate(keys):
        plans.remember(each, PreparedPlan(f"p{number}"))
    plans.remember(keys[0], PreparedPlan("newer"))
    plans.forget(keys[1])
    plans.forget(keys[1])

    assert [PreparedPlan("newer"), None, PreparedPlan("p2"), PreparedPlan("p3")] == [
        plans.recall(each) for each in keys
    ]
    assert 3 == len(plans)


def test_count() -> None:
    """The plan that was used longest ago goes first."""
    plans = PreparedPlans(count_max=2)
    plans.remember(key("a"), PreparedPlan("a"))
    plans.remember(key("b"), PreparedPlan("b"))
    plans.recall(key("a"))
    plans.remember(key("c"), PreparedPlan("c"))

    assert [PreparedPlan("a"), None, PreparedPlan("c")] == [plans.recall(key(name)) for name in "abc"]


def test_size() -> None:
    """Memory is bounded, but for the newest plan, without which its statement would be prepared for ever."""
    plans = PreparedPlans(size_max=100)
    plans.remember(key("a"), PreparedPlan("a", "x" * 60))
    plans.remember(key("a"), PreparedPlan("a", "y" * 60))
    plans.remember(key("b"), PreparedPlan("b", "x" * 30))
    kept = [plans.recall(key(name)) is not None for name in "ab"]
    plans.remember(key("c"), PreparedPlan("c", "x" * 1000))

    assert [True, True] == kept
    assert 1 == len(plans)
    assert plans.recall(key("c")) is not None


def test_what_is_shown() -> None:
    """A name, and not the thousands of characters of the plan."""
    assert "PreparedPlan('p1')" == repr(PreparedPlan("p1", "x" * 5000))
