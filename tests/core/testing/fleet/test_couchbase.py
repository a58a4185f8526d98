"""An operation of a fleet retries exactly as one of the client: it has the same machine."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from triclinium_core.retry.couchbase.strategy import BestEffortRetryStrategy
from triclinium_core.testing.fleet.calls import Process
from triclinium_core.testing.fleet.couchbase import couchbase_clients
from triclinium_core.testing.fleet.scenario import Fleet
from triclinium_core.testing.fleet.service import AttemptOutcome

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
