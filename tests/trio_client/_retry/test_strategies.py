"""Strategies for trio programs, and those that answer later, wait first, or come from elsewhere."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import anyio
import pytest
import trio
from trio.testing import MockClock

import triclinium
from tests.rows import rows
from tests.trio_client.retry_doubles import AsyncStrategy, ScriptedStrategy, Token
from triclinium import retry
from triclinium.errors import ArgumentError
from triclinium_core.retry.smithy import AnyRetryStrategy, RetryError, RetryToken, as_async


class Flaky:
    """Raises one error after the other, then returns when it was called."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.began: list[float] = []

    async def __call__(self) -> list[float]:
        self.began.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        if self.errors:
            raise self.errors.pop(0)
        return self.began


@pytest.mark.parametrize(
    "kind", [triclinium.StandardRetryStrategy, triclinium.SimpleRetryStrategy, triclinium.AdaptiveRetryStrategy]
)
async def test_strategies_need_no_arguments(
    kind: type[triclinium.StandardRetryStrategy | triclinium.SimpleRetryStrategy], autojump_clock: MockClock
) -> None:
    """Randomness and clock are a program's own."""
    assert 2 == len(await retry(Flaky(OSError()), strategy=kind(), on=OSError))


async def test_randomness_may_be_given(autojump_clock: MockClock) -> None:
    """Then delays are the same every time."""
    found = [
        await retry(Flaky(OSError(), OSError()), strategy=kind(rng=random.Random(1)), on=OSError)
        for kind in (triclinium.StandardRetryStrategy, triclinium.StandardRetryStrategy)
    ]
    delays = [[began - times[0] for began in times] for times in found]

    assert delays[0] == pytest.approx(delays[1])


async def test_an_adaptive_strategy_holds_first_attempts_back(autojump_clock: MockClock) -> None:
    """Once the service has throttled, by trio's clock."""
    strategy = triclinium.AdaptiveRetryStrategy(max_attempts=1)
    with pytest.raises(OSError):  # noqa: PT011 - it has nothing to say
        await retry(
            Flaky(OSError()),
            strategy=strategy,
            on=lambda _: triclinium.ErrorInfo(is_retry_safe=True, is_throttling_error=True),
        )
    began = trio.current_time()
    await retry(Flaky(), strategy=strategy)
    await retry(Flaky(), strategy=strategy)

    assert trio.current_time() > began


async def test_a_strategy_that_answers_later(autojump_clock: MockClock) -> None:
    """Every answer is awaited."""
    strategy = AsyncStrategy(Token(1.0), Token(2.0))

    assert [1.0, 3.0] == await retry(Flaky(OSError()), strategy=strategy, on=OSError)
    assert ["acquire", "refresh", "success"] == strategy.told


async def test_a_strategy_that_refuses_later(autojump_clock: MockClock) -> None:
    """The error of the call is raised, and never the refusal."""
    error = OSError()

    with pytest.raises(OSError) as caught:  # noqa: PT011 - it is that very object
        await retry(Flaky(error), strategy=AsyncStrategy(Token(), RetryError("no")), on=OSError)

    assert error is caught.value


@rows("kind", [ScriptedStrategy, AsyncStrategy])
async def test_no_token_to_begin_with(kind: type[ScriptedStrategy | AsyncStrategy]) -> None:
    """There is one attempt, of which the strategy hears nothing."""
    strategy, flaky = kind(RetryError(), RetryError()), Flaky(OSError())
    with pytest.raises(OSError) as caught:  # noqa: PT011 - it has nothing to say
        await retry(flaky, strategy=strategy, on=OSError)
    await retry(flaky, strategy=strategy, on=OSError)

    assert triclinium.RetryEnding.NO_TOKEN is triclinium.attempts_of(caught.value)[-1].ending
    assert ["acquire", "acquire"] == strategy.told


@rows("kind", [ScriptedStrategy, AsyncStrategy])
@rows("answer", [Token(math.nan), Token(-1.0), Token("soon"), None, "token"])
async def test_nonsense_to_begin_with(kind: type[ScriptedStrategy | AsyncStrategy], answer: object) -> None:
    """It is named, and nothing is called."""
    flaky = Flaky()

    with pytest.raises(ArgumentError, match="strategy (Async|Scripted)Strategy answered"):
        await retry(flaky, strategy=kind(answer))
    with pytest.raises(ArgumentError, match="strategy (Async|Scripted)Strategy answered"):
        await anext(aiter(triclinium.attempts(kind(answer))))
    assert [] == flaky.began


@rows("kind", [ScriptedStrategy, AsyncStrategy])
async def test_nonsense_later(kind: type[ScriptedStrategy | AsyncStrategy]) -> None:
    """It is named, and the error of the attempt is its cause."""
    error = OSError()

    with pytest.raises(ArgumentError, match="retry_delay=nan") as caught:
        await retry(Flaky(error), strategy=kind(Token(), Token(math.nan)), on=OSError)

    assert error is caught.value.__cause__


@rows("kind", [ScriptedStrategy, AsyncStrategy])
async def test_defects_of_a_strategy(kind: type[ScriptedStrategy | AsyncStrategy]) -> None:
    """They leave as they are, with the error of the attempt as their context."""
    error = OSError()

    with pytest.raises(ZeroDivisionError):
        await retry(Flaky(), strategy=kind(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        await anext(aiter(triclinium.attempts(kind(ZeroDivisionError()))))
    with pytest.raises(ZeroDivisionError) as caught:
        await retry(Flaky(error), strategy=kind(Token(), ZeroDivisionError()), on=OSError)

    assert error is caught.value.__context__


async def test_cancelled_before_the_first_attempt(autojump_clock: MockClock) -> None:
    """While its delay is slept; nothing is called."""
    flaky = Flaky()
    with trio.move_on_after(1) as scope:
        await retry(flaky, strategy=ScriptedStrategy(Token(2.0)))

    assert (True, []) == (scope.cancelled_caught, flaky.began)


def test_under_anyio() -> None:
    """Its cancel scopes count as trio's do, for the deadline and for the cancellation."""
    strategy = triclinium.StandardRetryStrategy()

    def wait_long(_: Exception) -> triclinium.ErrorInfo:
        return triclinium.ErrorInfo(is_retry_safe=True, retry_after=5.0)

    async def main() -> tuple[float, bool, int]:
        error = OSError()
        with pytest.raises(OSError) as caught, anyio.fail_after(5):  # noqa: PT011 - it is that very object
            await retry(Flaky(error), strategy=strategy, on=wait_long)
        assert error is caught.value
        flaky = Flaky(OSError())
        async with anyio.create_task_group() as group:

            async def work() -> None:
                async for attempt in triclinium.attempts(strategy, on=wait_long):
                    with attempt:
                        await flaky()

            group.start_soon(work)
            await anyio.sleep(1)
            group.cancel_scope.cancel()
        with anyio.move_on_after(1) as scope:
            await retry(anyio.sleep_forever, strategy=strategy, on=Exception)
        return anyio.current_time(), scope.cancelled_caught, len(flaky.began)

    found = anyio.run(main, backend="trio", backend_options={"clock": MockClock(autojump_threshold=0)})

    assert (2.0, True, 1) == found
    assert 500 == strategy.available_quota()


async def fail() -> None:
    """What is tried again in vain."""
    raise OSError


def in_a_second(_: Exception) -> triclinium.ErrorInfo:
    """Wait for the server."""
    return triclinium.ErrorInfo(is_retry_safe=True, retry_after=1.0)


@pytest.mark.parametrize("shape", [None, as_async])
async def test_a_retry_that_is_not_made_costs_nothing(
    shape: Callable[[AnyRetryStrategy], AnyRetryStrategy] | None, autojump_clock: MockClock
) -> None:
    """Not at the deadline, and not where the sleep is cancelled; nor where the strategy is awaited."""
    quota = triclinium.StandardRetryStrategy()
    strategy = quota if shape is None else shape(quota)
    with pytest.raises(OSError), trio.move_on_after(1.0):  # noqa: PT011 - it has nothing to say
        await retry(fail, strategy=strategy, on=in_a_second)
    at_the_deadline = quota.available_quota()
    with trio.CancelScope() as scope:
        await retry(fail, strategy=strategy, on=in_a_second, hooks=[lambda _: scope.cancel()])

    assert scope.cancelled_caught
    assert (quota.quota_capacity, quota.quota_capacity) == (at_the_deadline, quota.available_quota())


async def test_a_hook_that_ends_the_program() -> None:
    """The retry that was promised to it is not made, and costs nothing."""
    quota = triclinium.StandardRetryStrategy()

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        await retry(fail, strategy=quota, on=OSError, hooks=[stop])

    assert isinstance(caught.value.__context__, OSError)
    assert quota.quota_capacity == quota.available_quota()


class Talkative(ScriptedStrategy):
    """Answers where nobody asked."""

    def record_success(self, *, token: RetryToken) -> None:
        """Return what means nothing."""
        super().record_success(token=token)
        return "thanks"  # type: ignore[return-value]


async def test_what_a_success_is_answered_with_means_nothing() -> None:
    """It is awaited only where the strategy is one to be awaited."""
    called, looped = Talkative(Token()), Talkative(Token())
    await retry(Flaky(), strategy=called)
    async for attempt in triclinium.attempts(looped):
        async with attempt:
            pass

    assert ["acquire", "success"] == called.told == looped.told


async def test_a_first_attempt_that_is_not_made_gives_its_place_back(autojump_clock: MockClock) -> None:
    """Whoever is cancelled while an adaptive strategy holds a call back does not hold back the next one."""
    waits = []
    for cancelled in (False, True):
        strategy = triclinium.AdaptiveRetryStrategy(max_attempts=1)
        with pytest.raises(OSError):  # noqa: PT011 - it has nothing to say
            await retry(
                Flaky(OSError()),
                strategy=strategy,
                on=lambda _: triclinium.ErrorInfo(is_retry_safe=True, is_throttling_error=True),
            )
        throttled_at = trio.current_time()
        if cancelled:
            with trio.move_on_after(0):
                await retry(Flaky(), strategy=strategy)
        waits.append((await retry(Flaky(), strategy=strategy))[0] - throttled_at)

    assert waits[0] == pytest.approx(waits[1])
    assert waits[0] > 0
