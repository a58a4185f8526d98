"""A strategy that is watched: it answers as it would unwatched, and what it answered is known afterwards."""

from __future__ import annotations

import pytest

from tests.core.retry.couchbase.request_cases import Raises, Says, retry_request
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.explain.couchbase.recording_strategy import RecordingStrategy, words_of_answer
from triclinium_core.retry import couchbase

R = couchbase.RetryReason
LOST = R.SOCKET_CLOSED_WHILE_IN_FLIGHT
MAPPED = couchbase.parse_entry(
    {"attrs": ["auto-retry"], "retry": {"strategy": "constant", "interval": 10, "after": 10, "max-duration": 100}}
)
LATE = retry_request(idempotent=True, since_first_failure=0.1, entry=MAPPED)
REFUSES = "refuses"


class Tired(couchbase.BestEffortRetryStrategy):
    """Refuses all but its first question."""

    def __init__(self) -> None:
        super().__init__()
        self.questions = 0

    def retry_after(self, request: couchbase.RetryRequest, reason: couchbase.RetryReason, /) -> couchbase.RetryAction:
        """Return a refusal, and count."""
        self.questions += 1
        return couchbase.RetryAction.no_retry()


def test_questions_and_answers_pass_through() -> None:
    """The strategy sees the very request, and its very answer comes back."""
    answer, request = couchbase.RetryAction.after(0.25), retry_request()
    strategy = Says(answer)
    recorded = RecordingStrategy(strategy)

    assert answer is recorded.retry_after(request, R.KV_LOCKED)
    assert [(request, R.KV_LOCKED)] == strategy.asked
    assert (True, True, "wants a retry in 250 ms") == (recorded.was_asked, recorded.would_retry, recorded.words())


def test_what_is_raised_passes_through() -> None:
    """And is remembered."""
    error = LookupError("mine")
    recorded = RecordingStrategy(Raises(error))

    with pytest.raises(LookupError) as caught:
        recorded.retry_after(retry_request(), R.KV_LOCKED)

    assert error is caught.value
    assert (True, False, "raises LookupError") == (recorded.was_asked, recorded.would_retry, recorded.words())


@pytest.mark.parametrize(
    ("strategy", "request_", "reason", "expected"),
    [
        (couchbase.BestEffortRetryStrategy(), retry_request(), LOST, "refuses, since the request is not idempotent"),
        (
            couchbase.FastFailOnTerminalErrorRetryStrategy(),
            retry_request(),
            LOST,
            "refuses, since the request is not idempotent",
        ),
        (couchbase.ErrorMapRetryStrategy(), retry_request(), LOST, "refuses, since the request is not idempotent"),
        (
            couchbase.ErrorMapRetryStrategy(),
            LATE,
            R.KV_ERROR_MAP_RETRY_INDICATED,
            "refuses, since the time of the error map's schedule is up",
        ),
        (couchbase.FailFastRetryStrategy(), retry_request(), LOST, REFUSES),
        (couchbase.ErrorMapRetryStrategy(couchbase.FailFastRetryStrategy()), retry_request(), LOST, REFUSES),
        (Says(couchbase.RetryAction.no_retry()), retry_request(), LOST, REFUSES),
    ],
)
def test_what_a_strategy_minds(
    strategy: couchbase.RetryStrategy, request_: couchbase.RetryRequest, reason: couchbase.RetryReason, expected: str
) -> None:
    """What would have to be different is found out by asking, and only where that is sure."""
    recorded = RecordingStrategy(strategy)
    recorded.retry_after(request_, reason)

    assert expected == recorded.words()


def test_nobody_elses_strategy_is_asked_twice() -> None:
    """It may keep count."""
    strategy = Tired()
    recorded = RecordingStrategy(strategy)
    recorded.retry_after(retry_request(), LOST)

    assert (REFUSES, 1) == (recorded.words(), strategy.questions)


@rows(
    ("answer", "facts"),
    [
        (couchbase.RetryAction.after(0.25), ["250 ms"]),
        (couchbase.RetryAction.after(0), ["0 ms"]),
        (couchbase.RetryAction.after(0.25, within=0.1), ["250 ms", "100 ms"]),
        (couchbase.RetryAction.no_retry(), ["refuses"]),
        (couchbase.RetryAction.no_retry(errors.DocumentLockedException), ["refuses"]),
        (
            couchbase.RetryAction.no_retry(couchbase.TERMINAL_ERRORS[couchbase.RetryReason.TLS_ERROR]),
            ["refuses", "TLS_ERROR", "five terminal"],
        ),
        (ZeroDivisionError("mine"), ["raises ZeroDivisionError"]),
        (None, ["not answer a RetryAction"]),
    ],
)
def test_words_of_answers(answer: object, facts: list[str]) -> None:
    """Whatever a strategy answers has its words, and what it raises; a terminal reason is named where it decides."""
    words = words_of_answer(answer, couchbase.RetryReason.TLS_ERROR)

    assert [] == [fact for fact in facts if fact not in words]
    assert ("TLS_ERROR" in words) is ("TLS_ERROR" in facts)


def test_a_reason_is_terminal_by_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is counted, too."""
    refusal = couchbase.RetryAction.no_retry(errors.DocumentLockedException)
    monkeypatch.setitem(couchbase.TERMINAL_ERRORS, couchbase.RetryReason.KV_LOCKED, errors.DocumentLockedException)

    assert "KV_LOCKED is one of the six" in words_of_answer(refusal, couchbase.RetryReason.KV_LOCKED)
