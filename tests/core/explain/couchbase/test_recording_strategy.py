"""Recording strategy: it passes each call to another strategy and records the result."""

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
WRITE = retry_request()
REFUSES, NOT_IDEMPOTENT = "refuses", "the request is not idempotent"


class Tired(couchbase.BestEffortRetryStrategy):
    """Strategy that counts its calls and refuses every retry."""

    def __init__(self) -> None:
        super().__init__()
        self.questions = 0

    def retry_after(self, request: couchbase.RetryRequest, reason: couchbase.RetryReason, /) -> couchbase.RetryAction:
        """Count the call and return a refusal."""
        self.questions += 1
        return couchbase.RetryAction.no_retry()


def test_calls_and_results_pass_through() -> None:
    """The strategy gets the original request object, and the caller gets the original action object."""
    answer, request = couchbase.RetryAction.after(0.25), retry_request()
    strategy = Says(answer)
    recorded = RecordingStrategy(strategy)

    assert answer is recorded.retry_after(request, R.KV_LOCKED)
    assert [(request, R.KV_LOCKED)] == strategy.asked
    assert (True, True, 0.25) == (recorded.was_asked, recorded.would_retry, recorded.delay)


def test_exception_passes_through() -> None:
    """If the strategy raises, the exception is recorded and reaches the caller unchanged."""
    error = LookupError("mine")
    recorded = RecordingStrategy(Raises(error))

    with pytest.raises(LookupError) as caught:
        recorded.retry_after(retry_request(), R.KV_LOCKED)

    assert error is caught.value
    assert (True, False, "raises LookupError") == (recorded.was_asked, recorded.would_retry, recorded.words())


@pytest.mark.parametrize(
    ("strategy", "request_", "reason", "expected"),
    [
        (couchbase.BestEffortRetryStrategy(), WRITE, LOST, NOT_IDEMPOTENT),
        (couchbase.FastFailOnTerminalErrorRetryStrategy(), WRITE, LOST, NOT_IDEMPOTENT),
        (couchbase.ErrorMapRetryStrategy(), WRITE, LOST, NOT_IDEMPOTENT),
        (couchbase.ErrorMapRetryStrategy(), LATE, R.KV_ERROR_MAP_RETRY_INDICATED, "the error map"),
        (couchbase.FailFastRetryStrategy(), WRITE, LOST, REFUSES),
        (couchbase.ErrorMapRetryStrategy(couchbase.FailFastRetryStrategy()), WRITE, LOST, REFUSES),
        (Says(couchbase.RetryAction.no_retry()), WRITE, LOST, REFUSES),
    ],
)
def test_reason_of_a_refusal(
    strategy: couchbase.RetryStrategy, request_: couchbase.RetryRequest, reason: couchbase.RetryReason, expected: str
) -> None:
    """The words for a refusal name an obstacle if a built-in strategy permits the retry without that obstacle."""
    recorded = RecordingStrategy(strategy)
    recorded.retry_after(request_, reason)

    words = recorded.words() or ""
    assert words.startswith(REFUSES)
    assert expected in words
    assert (expected == REFUSES) is (words == REFUSES)


def test_custom_strategy_is_called_once() -> None:
    """A strategy of an application is called only once, because it may count its calls."""
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
        (None, ["RetryAction"]),
    ],
)
def test_words_of_answers(answer: object, facts: list[str]) -> None:
    """Each action, exception and invalid result has a description, which names a terminal reason only if that reason
    decided.
    """
    words = words_of_answer(answer, couchbase.RetryReason.TLS_ERROR)

    assert [] == [fact for fact in facts if fact not in words]
    assert ("TLS_ERROR" in words) is ("TLS_ERROR" in facts)


def test_a_reason_is_terminal_by_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reason is described as terminal if the table lists it, and the description has the number of rows."""
    refusal = couchbase.RetryAction.no_retry(errors.DocumentLockedException)
    monkeypatch.setitem(couchbase.TERMINAL_ERRORS, couchbase.RetryReason.KV_LOCKED, errors.DocumentLockedException)

    assert "KV_LOCKED is one of the six" in words_of_answer(refusal, couchbase.RetryReason.KV_LOCKED)
