"""Published simulations, repeated with the core's machines, whose figures must agree with the reference."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from tests.rows import rows
from triclinium_core.retry import smithy
from triclinium_core.retry.backoff import ExponentialBackoff, Random
from triclinium_core.retry.calls import CallMachine, Decision, Sleep
from triclinium_core.retry.smithy.base import BaseRetryStrategy
from triclinium_core.tools.fleet.references import REFERENCES, Row
from triclinium_core.tools.fleet.references.collapse import AT_ONCE, COLLAPSE

EXPERIMENTS = {experiment.name: experiment for experiment in REFERENCES}
RUNS = 3

Plant = Callable[[pytest.MonkeyPatch], None]


def compare(name: str, runs: int = RUNS) -> Sequence[Row]:
    """Return the rows of ``runs`` runs of an experiment."""
    experiment = EXPERIMENTS[name]
    return experiment.judge([experiment.play(random.Random(f"{name} {run}")) for run in range(runs)])


def miscounted_attempts(patch: pytest.MonkeyPatch, by: int) -> None:
    refusal = BaseRetryStrategy._refusal

    def miscounted(strategy: BaseRetryStrategy, info: smithy.ErrorInfo, count: int, scope: str | None) -> str | None:
        return refusal(strategy, info, count + by, scope)

    patch.setattr(BaseRetryStrategy, "_refusal", miscounted)


def one_attempt_too_many(patch: pytest.MonkeyPatch) -> None:
    miscounted_attempts(patch, by=-1)


def one_attempt_too_few(patch: pytest.MonkeyPatch) -> None:
    miscounted_attempts(patch, by=1)


def half_of_smithys_backoff(patch: pytest.MonkeyPatch) -> None:
    compute = smithy.ExponentialRetryBackoffStrategy.compute_next_backoff_delay
    patch.setattr(
        smithy.ExponentialRetryBackoffStrategy,
        "compute_next_backoff_delay",
        lambda backoff, retry_attempt: 0.5 * compute(backoff, retry_attempt),
    )


def half_of_couchbases_backoff(patch: pytest.MonkeyPatch) -> None:
    compute = ExponentialBackoff.__call__

    def halved(backoff: ExponentialBackoff, retry_attempts: int, rng: Random, /) -> float:
        return 0.5 * compute(backoff, retry_attempts, rng)

    patch.setattr(ExponentialBackoff, "__call__", halved)


def a_walk_that_forgets(patch: pytest.MonkeyPatch) -> None:
    compute = smithy.DecorrelatedRetryBackoffStrategy.compute_following_backoff_delay
    patch.setattr(
        smithy.DecorrelatedRetryBackoffStrategy,
        "compute_following_backoff_delay",
        lambda backoff, previous_delay: compute(backoff, 0.0),
    )


def a_budget_without_limit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(smithy.BudgetRetryStrategy, "available_budget", lambda strategy, token_scope=None: 5.0)


def a_breaker_that_never_trips(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(smithy.BreakerRetryStrategy, "failure_share", lambda strategy, token_scope=None: 0.0)


def a_machine_that_does_not_wait(patch: pytest.MonkeyPatch) -> None:
    fail = CallMachine.fail

    def hasty(machine: CallMachine, error: Exception, *, now: float, deadline: float) -> Decision:
        decision = fail(machine, error, now=now, deadline=deadline)
        return Sleep(0.0) if isinstance(decision, Sleep) else decision

    patch.setattr(CallMachine, "fail", hasty)


PLANTS: Sequence[tuple[Plant, str]] = (
    (one_attempt_too_many, "retries under failures: p=0.5 three"),
    (one_attempt_too_few, "retries under failures: p=0.5 three"),
    (half_of_smithys_backoff, "backoff and jitter: N=50 full"),
    (half_of_couchbases_backoff, "backoff and jitter, Couchbase: N=50 full"),
    (a_walk_that_forgets, "closed forms: decorrelated, 3 delays"),
    (a_budget_without_limit, "retries under failures: N=1000 adaptive"),
    (a_breaker_that_never_trips, "retries under failures: N=1000 breaker"),
    (a_machine_that_does_not_wait, "closed forms: full, 8 delays"),
)


@pytest.mark.history
@rows("name", list(dict.fromkeys(name for _, name in PLANTS)))
def test_published_figures_are_reproduced(name: str) -> None:
    """With the unchanged machines, every figure of an experiment agrees with its reference."""
    assert [] == [row for row in compare(name) if not row.ok]


@pytest.mark.history
@pytest.mark.parametrize(("plant", "name"), PLANTS)
def test_bug_in_a_machine_is_found(plant: Plant, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a planted bug in a machine, at least one figure of the experiment differs from its reference."""
    plant(monkeypatch)

    assert any(not row.ok for row in compare(name, runs=1))


@pytest.mark.history
def test_spike_has_two_stable_states() -> None:
    """Without backoff a run recovers completely or not at all, and both happen; with backoff all runs recover."""
    alone, backed_off = COLLAPSE[0], COLLAPSE[1]
    goodput = [alone.play(random.Random(seed))[1] for seed in range(12)]

    assert alone.strategy == AT_ONCE.name
    assert all(value == 0.0 or value > 30.0 for value in goodput)
    assert 0 < sum(value == 0.0 for value in goodput) < len(goodput)
    assert all(backed_off.play(random.Random(seed))[1] > 30.0 for seed in range(4))


def test_every_published_figure_is_compared() -> None:
    """Each cell of each published table is compared once, under a unique name."""
    quantities = [(each.reference, each.subject, each.unit) for one in REFERENCES for each in one.quantities]
    counts = {name: sum(reference == name for reference, _, _ in quantities) for name, _, _ in quantities}

    assert len(quantities) == len(set(quantities))
    assert len(EXPERIMENTS) == len(REFERENCES)
    assert {"backoff and jitter": 30, "retries under failures": 44, "collapse by retries": 6}.items() <= counts.items()


def test_tolerances_have_a_reason() -> None:
    """Tolerances do not grow with more runs and are at most 40 % of the figure, or 3; formulas have no error."""
    for experiment in REFERENCES:
        for quantity in experiment.quantities:
            assert quantity.tolerance(4 * experiment.runs) <= quantity.tolerance(experiment.runs)
            assert 0.0 <= quantity.tolerance(experiment.runs) <= max(0.4 * quantity.expected, 3.0)
            assert quantity.reference != "closed forms" or quantity.error == 0.0
