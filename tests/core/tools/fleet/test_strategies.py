"""An operation of a fleet retries as one of a real client: with the same machine, or tokens of a shared strategy."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import pairwise

import pytest

from tests.rows import rows
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.couchbase import BestEffortRetryStrategy
from triclinium_core.retry.smithy import AdaptiveRetryStrategy, AwsRetryNumbers, StandardRetryStrategy
from triclinium_core.tools.fleet.scenario import Fleet
from triclinium_core.tools.fleet.service import AttemptOutcome
from triclinium_core.tools.fleet.strategies import Process, SmithyCall, SmithyProcess, couchbase_clients

best_effort = couchbase_clients(BestEffortRetryStrategy)


def attempts_at(process: Process, outcome: AttemptOutcome, timeout: float = 2.5) -> tuple[list[float], float]:
    """Return when an operation is sent whose attempts all end at once in the same way, and when it is over."""
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


def test_the_delays_of_best_effort() -> None:
    """1, 2, 4 … 256, 500 ms, until one would reach the deadline: it waits for that, and is over."""
    for outcome in (AttemptOutcome.REFUSED, AttemptOutcome.THROTTLED, AttemptOutcome.CLOSED, AttemptOutcome.DENIED):
        sent, ended = attempts_at(best_effort(Fleet(), random.Random(1)), outcome)
        delays = [round((later - earlier) * 1000) for earlier, later in pairwise(sent)]

        assert [1, 2, 4, 8, 16, 32, 64, 128, 256, 500, 500, 500] == delays
        assert 2.5 == pytest.approx(ended)


def test_a_write_whose_connection_closed_is_over() -> None:
    """It may have been applied; one that was turned away was not."""
    process = best_effort(Fleet(idempotent=False), random.Random(1))

    assert ([0.0], 0.0) == attempts_at(process, AttemptOutcome.CLOSED)
    assert len(attempts_at(process, AttemptOutcome.THROTTLED)[0]) > 9
    assert len(attempts_at(process, AttemptOutcome.REFUSED)[0]) > 9


def test_silence_is_over_with_the_deadline() -> None:
    """Whether there is a machine by then or not; a Couchbase client has no timeout for one attempt."""
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
"""What an operation may be tried again after even where it must not be applied twice."""
RETRIED = {*NOT_APPLIED, AttemptOutcome.CLOSED, AttemptOutcome.TIMED_OUT}


def standard(rng: Random, clock: Callable[[], float]) -> StandardRetryStrategy:
    """Return a strategy whose quota is enough for three retries."""
    return StandardRetryStrategy(rng=rng, quota_capacity=42)


def adaptive(rng: Random, clock: Callable[[], float]) -> AdaptiveRetryStrategy:
    """Return one that learns a rate."""
    return AdaptiveRetryStrategy(rng=rng, clock=clock)


def quota(process: SmithyProcess) -> int:
    """Return what is left of a process's quota."""
    assert isinstance(process.strategy, StandardRetryStrategy)
    return process.strategy.available_quota()


@rows("outcome", [outcome for outcome in AttemptOutcome if outcome is not AttemptOutcome.ANSWERED])
@rows("idempotent", [True, False])
def test_what_is_retried(outcome: AttemptOutcome, idempotent: bool) -> None:
    """What a retry can help; and of writes only what was certainly not applied."""
    process = SmithyProcess(standard, Fleet(idempotent=idempotent), random.Random(1))
    expected = outcome in (RETRIED if idempotent else NOT_APPLIED)

    assert expected is (SmithyCall(process, 0.0, 9.0).fail(outcome, 0.0) is not None)


def test_a_success_gives_back() -> None:
    """What the last attempt took from the quota that the process shares."""
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
def test_a_timeout_is_told_as_one(outcome: AttemptOutcome, cost: int) -> None:
    """By the numbers of 2020 its retry costs twice as much."""
    process = SmithyProcess(
        lambda rng, clock: StandardRetryStrategy(rng=rng, numbers=AwsRetryNumbers.OF_2020, quota_capacity=100),
        Fleet(timeout=99.0),
        random.Random(1),
    )
    SmithyCall(process, 0.0, 99.0).fail(outcome, 0.0)

    assert 100 - cost == quota(process)


def test_a_delay_beyond_the_deadline_is_no_retry() -> None:
    """The operation is over at once, and what it took goes back."""
    process = SmithyProcess(standard, Fleet(), random.Random(1))

    assert SmithyCall(process, 0.0, 0.001).fail(AttemptOutcome.THROTTLED, 0.0) is None
    assert 42 == quota(process)


def test_first_attempts_wait_for_the_rate() -> None:
    """Of an adaptive strategy that was throttled; who has no time for that long sends nothing."""
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


def test_who_leaves_unsent_gives_the_place_back() -> None:
    """So that the next operation waits as long as the last before it, and not for one that is gone."""
    process = SmithyProcess(adaptive, Fleet(), random.Random(1))
    SmithyCall(process, 0.0, 9.0).fail(AttemptOutcome.THROTTLED, 1.0)
    hasty, before = SmithyCall(process, 1.0, 1.1), SmithyCall(process, 1.0, 99.0).begin(1.0)
    hasty.resume(1.1)
    after = SmithyCall(process, 1.1, 99.0).begin(1.1)

    assert before is not None
    assert before == pytest.approx(after)


def test_attempts_have_the_timeout_of_the_fleet() -> None:
    """Or none of their own."""
    limited = SmithyCall(SmithyProcess(standard, Fleet(attempt_timeout=0.25), random.Random(1)), 0.0, 9.0)
    unlimited = SmithyCall(SmithyProcess(standard, Fleet(), random.Random(1)), 0.0, 9.0)

    assert (0.25, math.inf) == (limited.attempt_timeout, unlimited.attempt_timeout)
