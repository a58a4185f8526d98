"""Scripts of errors, results and cancellations for each form of retry, compared with a model.

Safety: a call has no more attempts than permitted, no attempt after an error that is not retry-safe or after a
cancellation, and none that would start at or after the deadline; its quota is that of the model. Liveness: if the
strategy permits an attempt that would succeed, the caller gets the result.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

import trio
from hypothesis import given, strategies as st
from trio.testing import MockClock

from triclinium import StandardRetryStrategy, attempts, retried, retry
from triclinium.retries import ErrorInfo, RetryEnding, RetryHook, attempts_of

Form = Literal["call", "decorator", "loop", "async loop"]
Step = Literal["ok", "safe", "throttled", "unsafe", "rejected"]

COSTS = {"safe": 14, "rejected": 14, "throttled": 5}
DELAY = 2.0
"""Delay of each retry in seconds."""
ATTEMPT_LASTS = 1.0


class ScriptedError(Exception):
    """Error that a script raises."""

    def __init__(self, step: Step) -> None:
        super().__init__(step)
        self.is_retry_safe = step != "unsafe"
        self.is_throttling_error = step == "throttled"


class Constant:
    """Backoff whose delay is constant."""

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        """Return the delay."""
        return DELAY


@dataclass(frozen=True)
class CallScript:
    """One call: its form, the results of its attempts, and the times of its cancellation and its deadline."""

    form: Form
    steps: tuple[Step, ...]
    cancelled_at: float
    deadline: float


@dataclass
class RunOutcome:
    """Result of one call: its number of attempts, its ending, the remaining quota, and its duration."""

    attempts: int
    ended: str
    quota: int
    seconds: float


def expect(play: CallScript, quota: int, capacity: int, max_attempts: int) -> RunOutcome:
    """Return the result that the rules require. This function is the model."""
    now, acquired, limit = 0.0, 0, min(play.cancelled_at, play.deadline)
    for number, step in enumerate(play.steps, 1):
        now += ATTEMPT_LASTS
        if now > limit:
            return RunOutcome(number, "cancelled", quota, limit)
        if step == "ok":
            return RunOutcome(number, "ok", min(quota + (acquired or 1), capacity), now)
        if step == "unsafe":
            return RunOutcome(number, RetryEnding.NOT_RETRY_SAFE.name, quota, now)
        if number >= max(max_attempts, 1):
            return RunOutcome(number, RetryEnding.EXHAUSTED.name, quota, now)
        if COSTS[step] > quota:
            return RunOutcome(number, RetryEnding.QUOTA.name, quota, now)
        if now + DELAY >= play.deadline:
            return RunOutcome(number, RetryEnding.DEADLINE.name, quota, now)
        if now + DELAY > play.cancelled_at:
            return RunOutcome(number, "cancelled", quota, play.cancelled_at)
        acquired = COSTS[step]
        quota -= acquired
        now += DELAY
    raise AssertionError("the script does not end with a final step")


async def carry_out(play: CallScript, strategy: StandardRetryStrategy) -> RunOutcome:
    """Run the call with the real client code. Return its result."""
    steps, began, calls = iter(play.steps), trio.current_time(), 0

    async def work() -> Step:
        nonlocal calls
        calls += 1
        await trio.sleep(ATTEMPT_LASTS)
        step = next(steps)
        if step in {"ok", "rejected"}:
            return step
        raise ScriptedError(step)

    ended = "cancelled"
    endings: list[RetryEnding] = []

    def hook(report: object) -> None:
        ending = getattr(report, "ending", None)
        if ending is not None:
            endings.append(ending)

    with trio.CancelScope() as outer, trio.CancelScope(deadline=began + play.deadline):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_at, began + play.cancelled_at, outer)
            try:
                result = await _in_form(play.form, work, strategy, hook)
                ended = "ok" if result == "ok" else endings[-1].name
            except ScriptedError as error:
                record = attempts_of(error)[-1]
                assert record.ending is endings[-1]
                assert record.error is error
                assert record.number == calls == len(attempts_of(error))
                ended = endings[-1].name
            nursery.cancel_scope.cancel()
    return RunOutcome(calls, ended, strategy.available_quota(), trio.current_time() - began)


async def _cancel_at(moment: float, scope: trio.CancelScope) -> None:
    """Cancel the scope at ``moment`` from another task, without a deadline of the scope."""
    await trio.sleep_until(moment)
    scope.cancel()


def _is_rejected(result: Step) -> bool:
    return result == "rejected"


async def _in_form(
    form: Form, work: Callable[[], Awaitable[Step]], strategy: StandardRetryStrategy, hook: RetryHook
) -> Step:
    if form == "call":
        return await retry(work, strategy=strategy, retry_result=_is_rejected, hooks=[hook])
    if form == "decorator":
        return await retried(strategy=strategy, retry_result=_is_rejected, hooks=[hook])(work)()
    result: Step = "rejected"
    async for attempt in attempts(strategy, hooks=[hook]):
        if form == "loop":
            with attempt:
                result = await work()
                if _is_rejected(result):
                    attempt.retry(ErrorInfo(is_retry_safe=True))
        else:
            async with attempt:
                result = await work()
                if _is_rejected(result):
                    attempt.retry(ErrorInfo(is_retry_safe=True))
    return result


# Times at which no attempt starts or ends, so that a cancellation or a deadline never coincides with one.
MOMENTS = st.one_of(st.just(math.inf), st.integers(0, 30).map(lambda third: third / 2 + 0.25))
FINAL: st.SearchStrategy[Step] = st.sampled_from(["ok", "unsafe"])
FAILED: st.SearchStrategy[Step] = st.sampled_from(["safe", "throttled", "rejected"])
PLAYS = st.builds(
    CallScript,
    st.sampled_from(["call", "decorator", "loop", "async loop"]),
    st.builds(lambda failed, final: (*failed, final), st.lists(FAILED, max_size=6), FINAL),
    MOMENTS,
    MOMENTS,
)


@given(plays=st.lists(PLAYS, min_size=1, max_size=6), capacity=st.integers(0, 60), max_attempts=st.integers(0, 6))
def test_every_form_follows_the_rules(plays: list[CallScript], capacity: int, max_attempts: int) -> None:
    """If calls share a strategy, each has the attempts, ending, quota and duration of the model."""
    found, expected = [], []

    async def main() -> None:
        strategy = StandardRetryStrategy(
            quota_capacity=capacity, max_attempts=max_attempts, backoff=Constant(), throttling_backoff=Constant()
        )
        for play in plays:
            expected.append(expect(play, strategy.available_quota(), capacity, max_attempts))
            found.append(await carry_out(play, strategy))

    trio.run(main, clock=MockClock(autojump_threshold=0))

    for outcome, wanted in zip(found, expected, strict=True):
        assert (wanted.attempts, wanted.ended, wanted.quota) == (outcome.attempts, outcome.ended, outcome.quota)
        assert math.isclose(wanted.seconds, outcome.seconds, abs_tol=1e-6)
