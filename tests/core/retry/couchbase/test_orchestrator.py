"""Rules for decisions about retries, which apply to every strategy."""

from __future__ import annotations

import inspect
import math
import warnings

import pytest
from hypothesis import given, strategies as st

from tests.core.retry.couchbase.request_cases import Raises, Refusal, Says, retry_request
from tests.rows import rows
from triclinium_core.retry.backoff import RESOLUTION
from triclinium_core.retry.couchbase import Retry, RetryAction, RetryReason, RetryRequest, RetryStrategy, judge
from triclinium_core.retry.couchbase.orchestrator import Refuse, TimeOut, Verdict, decide_without_strategy
from triclinium_core.shown import shown

R = RetryReason

ALWAYS = [reason for reason in RetryReason if reason.always_retry]
SOMETIMES = [reason for reason in RetryReason if not reason.always_retry]
UNSAFE = [reason for reason in RetryReason if not reason.allows_non_idempotent_retry]

each_kind = rows("idempotent", [True, False])


def decide(request: RetryRequest, reason: RetryReason, strategy: RetryStrategy) -> Verdict:
    """Return the verdict. The strategy is called only if the rules leave the decision to it."""
    verdict = decide_without_strategy(request, reason)
    return verdict if verdict is not None else judge(request, reason, strategy.retry_after(request, reason))


@rows("reason", ALWAYS)
@each_kind
@rows(("retry_attempts", "delay"), [(0, 0.001), (3, 0.1), (99, 1.0)])
def test_always_retried(reason: RetryReason, idempotent: bool, retry_attempts: int, delay: float) -> None:
    """If a reason is always retried, the controlled backoff sets the delay, and the strategy is not called."""
    request = retry_request(idempotent=idempotent, retry_attempts=retry_attempts)
    strategy = Raises(AssertionError("asked"))

    assert Retry(delay, dispatches=True) == decide(request, reason, strategy)
    assert Retry(delay, dispatches=True) == decide_without_strategy(request, reason)


@rows("reason", SOMETIMES)
def test_the_strategy_decides_on_other_reasons(reason: RetryReason) -> None:
    """For a reason that is not always retried, the strategy gets the request and the reason, and decides."""
    request = retry_request(idempotent=True)
    strategy = Says(RetryAction.after(0.3))

    assert decide_without_strategy(request, reason) is None
    assert Retry(0.3, dispatches=True) == decide(request, reason, strategy)
    assert [(request, reason)] == strategy.asked


@rows("reason", RetryReason)
@rows("remaining", [0.0, -1.0, RESOLUTION, RESOLUTION / 2, -math.inf])
def test_the_deadline_has_passed(reason: RetryReason, remaining: float) -> None:
    """At or after the deadline the request times out for every reason, and the strategy is not called."""
    request = retry_request(idempotent=True, remaining=remaining)

    assert TimeOut() == decide(request, reason, Raises(AssertionError("asked")))
    assert TimeOut() == decide_without_strategy(request, reason)


@rows("answer", [RetryAction.after(0.0), RetryAction.no_retry(Refusal)])
def test_a_decision_after_the_deadline(answer: RetryAction) -> None:
    """If the strategy decides after the deadline, its decision is ignored and the request times out (decision C23)."""
    assert TimeOut() != judge(retry_request(remaining=2 * RESOLUTION), R.KV_LOCKED, answer)
    assert TimeOut() == judge(retry_request(remaining=RESOLUTION), R.KV_LOCKED, answer)
    assert TimeOut() == judge(retry_request(remaining=-1.0), R.UNKNOWN, answer)


@rows("reason", RetryReason)
@each_kind
def test_no_write_is_repeated_blindly(reason: RetryReason, idempotent: bool) -> None:
    """If a non-idempotent request may have been applied, a retry is refused even if the strategy permits the retry."""
    request = retry_request(idempotent=idempotent)
    safe = idempotent or reason not in UNSAFE
    expected = Retry(0.0, dispatches=True) if safe else Refuse()

    assert expected == judge(request, reason, RetryAction.after(0.0))
    assert {R.UNKNOWN, R.SOCKET_CLOSED_WHILE_IN_FLIGHT} == set(UNSAFE)


def test_refusals_have_the_strategys_error() -> None:
    """A refusal has the error class that the strategy returned, or none, even if the strategy permitted a retry."""
    assert Refuse(Refusal) == judge(retry_request(), R.KV_LOCKED, RetryAction.no_retry(Refusal))
    assert Refuse(None) == judge(retry_request(), R.KV_LOCKED, RetryAction.no_retry())
    assert Refuse(Refusal) == judge(retry_request(), R.UNKNOWN, RetryAction(0.1, Refusal))


@rows(
    ("delay", "within", "remaining", "expected"),
    [
        (0.1, None, 2.5, Retry(0.1, dispatches=True)),
        (1.0, None, 0.5, Retry(0.5, dispatches=False, times_out=True)),
        (0.5, None, 0.5, Retry(0.5, dispatches=False, times_out=True)),
        (0.1, 1.0, 2.5, Retry(0.1, dispatches=True)),
        (0.1, 0.1, 2.5, Retry(0.1, dispatches=False)),
        (0.2, 0.1, 2.5, Retry(0.1, dispatches=False)),
        (0.2, 0.0, 2.5, Retry(0.0, dispatches=False)),
        (9.0, 3.0, 2.5, Retry(2.5, dispatches=False, times_out=True)),
        (9.0, 2.5, 2.5, Retry(2.5, dispatches=False, times_out=True)),
        (9.0, 2.4, 2.5, Retry(2.4, dispatches=False)),
        (0.0, None, 2.5, Retry(0.0, dispatches=True)),
        (9.0, None, math.inf, Retry(9.0, dispatches=True)),
        (9.0, 3.0, math.inf, Retry(3.0, dispatches=False)),
    ],
)
def test_the_smaller_limit_cuts(delay: float, within: float | None, remaining: float, expected: Retry) -> None:
    """A delay cut to the deadline ends in a timeout; one cut to the strategy's limit ends in the error (C15, C23)."""
    action = RetryAction.after(delay, within=within)

    assert expected == judge(retry_request(remaining=remaining), R.KV_LOCKED, action)


requests = st.builds(
    retry_request, idempotent=st.booleans(), retry_attempts=st.integers(0, 100), remaining=st.floats(1e-6, 1e6)
)
retries = st.builds(RetryAction.after, st.floats(0, 1e6), within=st.none() | st.floats(0, 1e6))


@given(requests, st.sampled_from(RetryReason), retries)
def test_no_verdict_outlives_a_limit(request: RetryRequest, reason: RetryReason, answer: RetryAction) -> None:
    """For any decision of a strategy, no delay ends after the deadline, and no retry is sent at the deadline."""
    verdict = decide(request, reason, Says(answer))

    if isinstance(verdict, Retry):
        assert 0.0 <= verdict.delay <= request.remaining
        assert not verdict.dispatches or verdict.delay < request.remaining
        assert not (verdict.dispatches and verdict.times_out)
        assert request.idempotent or reason.allows_non_idempotent_retry
    else:
        assert Refuse() == verdict
        assert (False, True) == (request.idempotent, reason in UNSAFE)


@rows("answer", [None, 0.1, True, "retry", (0.1, None), RetryAction, object, 10**5000])
def test_results_of_the_wrong_type(answer: object) -> None:
    """If a strategy does not return a RetryAction, TypeError has the value and the expected type."""
    with pytest.raises(TypeError, match="RetryAction") as asked:
        decide(retry_request(), R.KV_LOCKED, Says(answer))
    with pytest.raises(TypeError, match="RetryAction") as judged:
        judge(retry_request(), R.KV_LOCKED, answer)

    assert shown(answer) in str(asked.value)
    assert shown(answer) in str(judged.value)


async def answer_later() -> RetryAction:
    """Return a retry, asynchronously."""
    return RetryAction.after(0.1)


def test_a_coroutine_from_a_plain_method() -> None:
    """If a plain method returns a coroutine, TypeError has the next step, and the coroutine is closed silently."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = answer_later()
        with pytest.raises(TypeError) as caught:
            decide(retry_request(), R.KV_LOCKED, Says(answer))

    assert "make retry_after itself an `async def`" in str(caught.value)
    assert inspect.CORO_CLOSED == inspect.getcoroutinestate(answer)
