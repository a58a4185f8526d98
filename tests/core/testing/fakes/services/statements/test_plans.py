"""Prepared statements of a fake cluster."""

from __future__ import annotations

from triclinium_core.testing.fakes.services.statements.plans import PLANS_SIZE_MAX, FakePlans


def test_plans_have_a_bound() -> None:
    """Above the bound, the oldest plans are dropped and give code 4040; the newest one can be used."""
    plans = FakePlans()
    statement = "SELECT " + "x" * (PLANS_SIZE_MAX // 8)
    names = [plans.prepare(f"{statement}{number}").name for number in range(20)]

    assert len(plans) < 8
    assert 4040 == plans.stale_code(names[0])
    assert plans.stale_code(names[-1]) is None


def test_a_plan_that_is_prepared_again_counts_once() -> None:
    """A statement that is prepared many times leaves all other plans in place."""
    plans = FakePlans()
    first = plans.prepare("SELECT 1").name
    for _ in range(20):
        plans.prepare("SELECT " + "x" * (PLANS_SIZE_MAX // 8))

    assert plans.stale_code(first) is None


def test_one_large_plan() -> None:
    """A statement above the bound can be used until another one is prepared."""
    plans = FakePlans()
    name = plans.prepare("SELECT " + "x" * PLANS_SIZE_MAX).name

    assert plans.stale_code(name) is None
    plans.prepare("SELECT 1")
    assert 4040 == plans.stale_code(name)
