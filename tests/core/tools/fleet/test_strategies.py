"""Retries of a fleet's operations, which the client's own machine decides, or a token strategy that they share."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.rows import rows
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.cassandra import DefaultRetryPolicy
from triclinium_core.retry.couchbase import BestEffortRetryStrategy, RetryAction, RetryReason, RetryRequest
from triclinium_core.retry.smithy import AdaptiveRetryStrategy, AwsRetryNumbers, StandardRetryStrategy
from triclinium_core.tools.fleet.scenario import Fleet
from triclinium_core.tools.fleet.service import AttemptOutcome
from triclinium_core.tools.fleet.strategies import Process, SmithyCall, SmithyProcess, couchbase_clients

best_effort = couchbase_clients(BestEffortRetryStrategy)


def attempts_at(process: Process, outcome: AttemptOutcome, timeout: float = 2.5) -> tuple[list[float], float]:
    """Return the send times and the end of an operation whose attempts all end immediately with ``outcome``."""
    call = process(0.0, timeout)
    now, sent = 0.0, [0.0]
    while True:
        call.dispatch(outcome, now)
        resume_at = call.fail(outcome, now)
        if resume_at is None:
            return sent, now
        now = resume_at
        if not call.resume(now):
            return sent, now
        sent.append(now)


class AsyncStrategy:
    """Couchbase strategy that a fleet cannot await."""

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Permit no retry."""
        return RetryAction.no_retry()


@pytest.mark.parametrize(
    "strategy", [None, AsyncStrategy(), StandardRetryStrategy(rng=random.Random(1)), DefaultRetryPolicy()]
)
def test_foreign_strategies_are_refused(strategy: Any) -> None:
    """An object that is no Couchbase strategy, or an asynchronous one, is refused before the first operation."""
    with pytest.raises(InvalidArgumentException) as caught:
        couchbase_clients(lambda: strategy)(Fleet(), random.Random(1))

    assert "strategy" == caught.value.parameter


def test_delays_of_best_effort() -> None:
    """The delays are 1, 2, 4 … 256, 500 ms; a delay that would pass the deadline is cut and ends the operation."""
    for outcome in (AttemptOutcome.REFUSED, AttemptOutcome.THROTTLED, AttemptOutcome.CLOSED, AttemptOutcome.DENIED):
        sent, ended = attempts_at(best_effort(Fleet(), random.Random(1)), outcome)
        delays = [round((later - earlier) * 1000) for earlier, later in pairwise(sent)]

        assert [1, 2, 4, 8, 16, 32, 64, 128, 256, 500, 500, 500] == delays
        assert 2.5 == pytest.approx(ended)


def test_write_ends_when_its_connection_closes() -> None:
    """A write whose connection closed may have been applied and fails; a throttled or refused one is retried."""
    process = best_effort(Fleet(idempotent=False), random.Random(1))

    assert ([0.0], 0.0) == attempts_at(process, AttemptOutcome.CLOSED)
    assert len(attempts_at(process, AttemptOutcome.THROTTLED)[0]) > 9
    assert len(attempts_at(process, AttemptOutcome.REFUSED)[0]) > 9


def test_silence_ends_at_the_deadline() -> None:
    """An operation without a response ends at its deadline, before or after a retry; attempts have no timeout."""
    process = best_effort(Fleet(), random.Random(1))
    first, second = process(0.0, 2.5), process(0.0, 2.5)
    first.expire(2.5)
    resume_at = second.fail(AttemptOutcome.REFUSED, 0.0)
    assert resume_at is not None
    assert second.resume(resume_at)
    second.dispatch(AttemptOutcome.ANSWERED, resume_at)
    second.expire(2.5)

    assert not second.resume(2.5)
    assert float("inf") == first.attempt_timeout


NOT_APPLIED = {
    AttemptOutcome.THROTTLED,
    AttemptOutcome.FAILED,
    AttemptOutcome.CONFLICT,
    AttemptOutcome.REFUSED,
}
"""Outcomes after which a retry is safe even if the operation is not idempotent."""
RETRIED = {*NOT_APPLIED, AttemptOutcome.CLOSED, AttemptOutcome.TIMED_OUT}


def standard(rng: Random, clock: Callable[[], float]) -> StandardRetryStrategy:
    """Return a strategy whose quota pays for three retries."""
    return StandardRetryStrategy(rng=rng, quota_capacity=42)


def adaptive(rng: Random, clock: Callable[[], float]) -> AdaptiveRetryStrategy:
    """Return a strategy that adapts its rate."""
    return AdaptiveRetryStrategy(rng=rng, clock=clock)


def quota(process: SmithyProcess) -> int:
    """Return the remaining quota of a process."""
    assert isinstance(process.strategy, StandardRetryStrategy)
    return process.strategy.available_quota()


@rows("outcome", [outcome for outcome in AttemptOutcome if outcome is not AttemptOutcome.ANSWERED])
@rows("idempotent", [True, False])
def test_retried_outcomes(outcome: AttemptOutcome, idempotent: bool) -> None:
    """Each failure that a retry may fix is retried; for a write, only if it was certainly not applied."""
    process = SmithyProcess(standard, Fleet(idempotent=idempotent), random.Random(1))
    expected = outcome in (RETRIED if idempotent else NOT_APPLIED)

    assert expected is (SmithyCall(process, 0.0, 9.0).fail(outcome, 0.0) is not None)


def test_success_refunds_the_last_attempt() -> None:
    """A success returns what its last attempt took from the quota of the process."""
    process = SmithyProcess(standard, Fleet(), random.Random(1))
    first, second = SmithyCall(process, 0.0, 9.0), SmithyCall(process, 0.0, 9.0)
    resume_at = first.fail(AttemptOutcome.REFUSED, 0.0)
    assert resume_at is not None
    assert first.resume(resume_at)
    taken = quota(process)
    first.succeed(resume_at)
    second.succeed(resume_at)

    assert (28, 42) == (taken, quota(process))


@pytest.mark.parametrize(("outcome", "cost"), [(AttemptOutcome.REFUSED, 5), (AttemptOutcome.TIMED_OUT, 10)])
def test_timeout_costs_twice_as_much(outcome: AttemptOutcome, cost: int) -> None:
    """With the numbers of 2020, a retry after a timeout costs twice as much."""
    process = SmithyProcess(
        lambda rng, clock: StandardRetryStrategy(rng=rng, numbers=AwsRetryNumbers.OF_2020, quota_capacity=100),
        Fleet(timeout=99.0),
        random.Random(1),
    )
    SmithyCall(process, 0.0, 99.0).fail(outcome, 0.0)

    assert 100 - cost == quota(process)


def test_delay_after_the_deadline_is_no_retry() -> None:
    """An operation whose next delay would pass the deadline ends immediately, and the quota gets its cost back."""
    process = SmithyProcess(standard, Fleet(), random.Random(1))

    assert SmithyCall(process, 0.0, 0.001).fail(AttemptOutcome.THROTTLED, 0.0) is None
    assert 42 == quota(process)


def test_first_attempts_wait_for_the_rate() -> None:
    """After throttling, first attempts wait for the adaptive rate; one whose deadline is earlier is never sent."""
    process = SmithyProcess(adaptive, Fleet(timeout=0.5), random.Random(1))
    throttled = SmithyCall(process, 0.0, 9.0)
    at_once = throttled.begin(0.0)
    throttled.fail(AttemptOutcome.THROTTLED, 1.0)
    patient, hasty = SmithyCall(process, 1.0, 99.0), SmithyCall(process, 1.0, 1.1)
    patient_at, hasty_at = patient.begin(1.0), hasty.begin(1.0)

    assert at_once is None
    assert patient_at is not None
    assert patient_at > 1.5
    assert patient.resume(patient_at)
    assert 1.1 == hasty_at
    assert not hasty.resume(1.1)


def test_unsent_operation_releases_its_slot() -> None:
    """An operation that ends unsent releases its slot, so the next one waits no longer than the one before."""
    process = SmithyProcess(adaptive, Fleet(), random.Random(1))
    SmithyCall(process, 0.0, 9.0).fail(AttemptOutcome.THROTTLED, 1.0)
    hasty, before = SmithyCall(process, 1.0, 1.1), SmithyCall(process, 1.0, 99.0).begin(1.0)
    hasty.resume(1.1)
    after = SmithyCall(process, 1.1, 99.0).begin(1.1)

    assert before is not None
    assert before == pytest.approx(after)


def test_attempts_have_the_timeout_of_the_fleet() -> None:
    """An attempt has the fleet's attempt timeout, or none if the fleet has none."""
    limited = SmithyCall(SmithyProcess(standard, Fleet(attempt_timeout=0.25), random.Random(1)), 0.0, 9.0)
    unlimited = SmithyCall(SmithyProcess(standard, Fleet(), random.Random(1)), 0.0, 9.0)

    assert (0.25, math.inf) == (limited.attempt_timeout, unlimited.attempt_timeout)
