"""A strategy that is watched: it answers as it would unwatched, and what it answered is known afterwards."""

from __future__ import annotations

import pytest

from tests.core.retry.couchbase.request_cases import Raises, Says, retry_request
from tests.rows import rows
from triclinium_core.errors import DocumentLockedException
from triclinium_core.explain.couchbase.recording_strategy import RecordingStrategy, words_of_answer
from triclinium_core.retry.couchbase.strategy import (
    TERMINAL_ERRORS,
    BestEffortRetryStrategy,
    ErrorMapRetryStrategy,
    FailFastRetryStrategy,
    FastFailOnTerminalErrorRetryStrategy,
    RetryAction,
    RetryRequest,
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
        (RetryAction.after(0.25), ["250 ms"]),
        (RetryAction.after(0), ["0 ms"]),
        (RetryAction.after(0.25, within=0.1), ["250 ms", "100 ms"]),
        (RetryAction.no_retry(), ["refuses"]),
        (RetryAction.no_retry(DocumentLockedException), ["refuses"]),
        (RetryAction.no_retry(TERMINAL_ERRORS[RetryReason.TLS_ERROR]), ["refuses", "TLS_ERROR", "five terminal"]),
        (ZeroDivisionError("mine"), ["raises ZeroDivisionError"]),
        (None, ["not answer a RetryAction"]),
    ],
)
def test_words_of_answers(answer: object, facts: list[str]) -> None:
    """Whatever a strategy answers has its words, and what it raises; a terminal reason is named where it decides."""
    words = words_of_answer(answer, RetryReason.TLS_ERROR)

    assert [] == [fact for fact in facts if fact not in words]
    assert ("TLS_ERROR" in words) is ("TLS_ERROR" in facts)


def test_a_reason_is_terminal_by_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is counted, too."""
    refusal = RetryAction.no_retry(DocumentLockedException)
    monkeypatch.setitem(TERMINAL_ERRORS, RetryReason.KV_LOCKED, DocumentLockedException)

    assert "KV_LOCKED is one of the six" in words_of_answer(refusal, RetryReason.KV_LOCKED)
