"""A strategy that is watched: it answers as it would unwatched, and what it answered is known afterwards."""

from __future__ import annotations

import pytest

from tests.core.retry.couchbase.request_cases import Raises, Says, retry_request
from triclinium_core.explain.couchbase.recording_strategy import StrategyWitness
from triclinium_core.retry.couchbase.request import RetryRequest
from triclinium_core.retry.couchbase.strategy import (
    BestEffortRetryStrategy,
    ErrorMapRetryStrategy,
    FailFastRetryStrategy,
    FastFailOnTerminalErrorRetryStrategy,
    RetryAction,
    RetryStrategy,
)
from triclinium_core.retry.couchbase.tables.error_map import parse_entry
from triclinium_core.retry.couchbase.tables.reasons import RetryReason

R = RetryReason
LOST = R.SOCKET_CLOSED_WHILE_IN_FLIGHT
MAPPED = parse_entry(
    {"attrs": ["auto-retry"], "retry": {"strategy": "constant", "interval": 10, "after": 10, "max-duration": 100}}
)
LATE = retry_request(idempotent=True, since_first_failure=0.1, entry=MAPPED)
REFUSES = "refuses"


class Tired(BestEffortRetryStrategy):
    """Refuses all but its first question."""

    def __init__(self) -> None:
        super().__init__()
        self.questions = 0

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return a refusal, and count."""
        self.questions += 1
        return RetryAction.no_retry()


def test_questions_and_answers_pass_through() -> None:
    """The strategy sees the very request, and its very answer comes back."""
    answer, request = RetryAction.after(0.25), retry_request()
    strategy = Says(answer)
    witness = StrategyWitness(strategy)

    assert answer is witness.retry_after(request, R.KV_LOCKED)
    assert [(request, R.KV_LOCKED)] == strategy.asked
    assert (True, True, "wants a retry in 250 ms") == (witness.was_asked, witness.would_retry, witness.words())


def test_what_is_raised_passes_through() -> None:
    """And is remembered."""
    error = LookupError("mine")
    witness = StrategyWitness(Raises(error))

    with pytest.raises(LookupError) as caught:
        witness.retry_after(retry_request(), R.KV_LOCKED)

    assert error is caught.value
    assert (True, False, "raises LookupError") == (witness.was_asked, witness.would_retry, witness.words())


@pytest.mark.parametrize(
    ("strategy", "request_", "reason", "expected"),
    [
        (BestEffortRetryStrategy(), retry_request(), LOST, "refuses, since the request is not idempotent"),
        (FastFailOnTerminalErrorRetryStrategy(), retry_request(), LOST, "refuses, since the request is not idempotent"),
        (ErrorMapRetryStrategy(), retry_request(), LOST, "refuses, since the request is not idempotent"),
        (
            ErrorMapRetryStrategy(),
            LATE,
            R.KV_ERROR_MAP_RETRY_INDICATED,
            "refuses, since the time of the error map's schedule is up",
        ),
        (FailFastRetryStrategy(), retry_request(), LOST, REFUSES),
        (ErrorMapRetryStrategy(FailFastRetryStrategy()), retry_request(), LOST, REFUSES),
        (Says(RetryAction.no_retry()), retry_request(), LOST, REFUSES),
    ],
)
def test_what_a_strategy_minds(
    strategy: RetryStrategy, request_: RetryRequest, reason: RetryReason, expected: str
) -> None:
    """What would have to be different is found out by asking, and only where that is sure."""
    witness = StrategyWitness(strategy)
    witness.retry_after(request_, reason)

    assert expected == witness.words()


def test_nobody_elses_strategy_is_asked_twice() -> None:
    """It may keep count."""
    strategy = Tired()
    witness = StrategyWitness(strategy)
    witness.retry_after(retry_request(), LOST)

    assert (REFUSES, 1) == (witness.words(), strategy.questions)
