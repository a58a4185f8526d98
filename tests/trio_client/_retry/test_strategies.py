"""Built-in, asynchronous and custom strategies in trio programs."""

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
from tests.trio_client.retried_calls import WAYS, Flaky, Way
from tests.trio_client.retry_doubles import AsyncStrategy, ScriptedStrategy, Token
from triclinium import retry
from triclinium.errors import ArgumentError
from triclinium_core.retry.smithy import AnyRetryStrategy, RetryError, RetryToken, as_async


@pytest.mark.parametrize(
    "kind", [triclinium.StandardRetryStrategy, triclinium.SimpleRetryStrategy, triclinium.AdaptiveRetryStrategy]
)
async def test_strategies_need_no_arguments(
    kind: type[triclinium.StandardRetryStrategy | triclinium.SimpleRetryStrategy], autojump_clock: MockClock
) -> None:
    """Built-in strategies have default randomness and clock."""
    flaky = Flaky(OSError())
    await retry(flaky, strategy=kind(), on=OSError)

    assert 2 == len(flaky.began)


async def test_random_numbers_may_be_seeded(autojump_clock: MockClock) -> None:
    """With a seeded ``rng``, the delays are reproducible; another seed gives different ones."""
    delays = []
    for seed in (1, 1, 2):
        flaky, strategy = Flaky(OSError(), OSError()), triclinium.StandardRetryStrategy(rng=random.Random(seed))
        await retry(flaky, strategy=strategy, on=OSError)
        delays.append([began - flaky.began[0] for began in flaky.began])

    assert delays[0] == pytest.approx(delays[1])
    assert delays[0] != pytest.approx(delays[2])


@pytest.mark.parametrize("way", WAYS)
async def test_an_asynchronous_strategy(autojump_clock: MockClock, way: Way) -> None:
    """Each call of an asynchronous strategy is awaited; after a refusal, the caller gets the error of the attempt."""
    strategy, flaky, error = AsyncStrategy(Token(1.0), Token(2.0)), Flaky(OSError()), OSError()
    await way(flaky, strategy, on=OSError)
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the object itself is checked
        await way(Flaky(error), AsyncStrategy(Token(), RetryError("no")), on=OSError)

    assert [1.0, 3.0] == flaky.began
    assert ["acquire", "refresh", "success"] == strategy.reported
    assert error is caught.value


@rows("kind", [ScriptedStrategy, AsyncStrategy])
async def test_no_token_for_the_first_attempt(kind: type[ScriptedStrategy | AsyncStrategy]) -> None:
    """If the strategy grants no first token, the call has one attempt, and the strategy is not called again."""
    strategy, flaky = kind(RetryError(), RetryError()), Flaky(OSError())
    with pytest.raises(OSError) as caught:  # noqa: PT011 - it has no message
        await retry(flaky, strategy=strategy, on=OSError)
    await retry(flaky, strategy=strategy, on=OSError)

    assert triclinium.retries.RetryEnding.NO_TOKEN is triclinium.retries.attempts_of(caught.value)[-1].ending
    assert ["acquire", "acquire"] == strategy.reported


@rows("kind", [ScriptedStrategy, AsyncStrategy])
@rows("answer", [Token(math.nan), Token(-1.0), Token("soon"), None, "token"])
async def test_an_invalid_first_token(kind: type[ScriptedStrategy | AsyncStrategy], answer: object) -> None:
    """An invalid first token raises ArgumentError with the name of the strategy, and nothing is called."""
    flaky = Flaky()

    with pytest.raises(ArgumentError, match="strategy (Async|Scripted)Strategy "):
        await retry(flaky, strategy=kind(answer))
    with pytest.raises(ArgumentError, match="strategy (Async|Scripted)Strategy "):
        await anext(aiter(triclinium.attempts(kind(answer))))
    assert [] == flaky.began


@rows("kind", [ScriptedStrategy, AsyncStrategy])
async def test_an_invalid_retry_token(kind: type[ScriptedStrategy | AsyncStrategy]) -> None:
    """An invalid token for a retry raises ArgumentError with the attempt's error as its cause."""
    error = OSError()

    with pytest.raises(ArgumentError, match="retry_delay=nan") as caught:
        await retry(Flaky(error), strategy=kind(Token(), Token(math.nan)), on=OSError)

    assert error is caught.value.__cause__


@rows("kind", [ScriptedStrategy, AsyncStrategy])
async def test_defects_of_a_strategy_are_raised(kind: type[ScriptedStrategy | AsyncStrategy]) -> None:
    """An exception of a strategy is raised unchanged, with the attempt's error as its context."""
    error = OSError()

    with pytest.raises(ZeroDivisionError):
        await retry(Flaky(), strategy=kind(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        await anext(aiter(triclinium.attempts(kind(ZeroDivisionError()))))
    with pytest.raises(ZeroDivisionError) as caught:
        await retry(Flaky(error), strategy=kind(Token(), ZeroDivisionError()), on=OSError)

    assert error is caught.value.__context__


class SlowStrategy(AsyncStrategy):
    """Asynchronous strategy that takes a second to permit the first attempt."""

    async def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:
        """Return or raise the next answer after a second."""
        await trio.sleep(1.0)
        return await super().acquire_initial_retry_token(token_scope=token_scope)


@rows(("kind", "delay"), [(ScriptedStrategy, 1.0), (SlowStrategy, 0.0)])
@rows("way", WAYS)
async def test_a_first_delay_is_not_measured(
    autojump_clock: MockClock, way: Way, kind: type[ScriptedStrategy | AsyncStrategy], delay: float
) -> None:
    """The duration of a first attempt excludes the delay before it, and the time the strategy takes to permit it."""
    with pytest.raises(OSError) as caught:  # noqa: PT011 - it has no message
        await way(Flaky(OSError(), seconds=2.0), kind(Token(delay), RetryError()), on=OSError)

    (record,) = triclinium.retries.attempts_of(caught.value)
    assert pytest.approx(2.0) == record.elapsed


async def test_cancelled_before_the_first_attempt(autojump_clock: MockClock) -> None:
    """A call that is cancelled during the delay of its first attempt calls nothing."""
    flaky = Flaky()
    with trio.move_on_after(1) as scope:
        await retry(flaky, strategy=ScriptedStrategy(Token(2.0)))

    assert (True, []) == (scope.cancelled_caught, flaky.began)


def test_under_anyio() -> None:
    """Cancel scopes of anyio count as trio's do, for deadlines and cancellation."""
    strategy = triclinium.StandardRetryStrategy()

    def wait_long(_: Exception) -> triclinium.retries.ErrorInfo:
        return triclinium.retries.ErrorInfo(is_retry_safe=True, retry_after=5.0)

    async def main() -> tuple[float, bool, int]:
        error = OSError()
        with pytest.raises(OSError) as caught, anyio.fail_after(5):  # noqa: PT011 - the object itself is checked
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
    """Fail with an error that is retried."""
    raise OSError


def in_a_second(_: Exception) -> triclinium.retries.ErrorInfo:
    """Retry after a second."""
    return triclinium.retries.ErrorInfo(is_retry_safe=True, retry_after=1.0)


@pytest.mark.parametrize("shape", [None, as_async])
async def test_a_retry_not_made_costs_nothing(
    shape: Callable[[AnyRetryStrategy], AnyRetryStrategy] | None, autojump_clock: MockClock
) -> None:
    """If the deadline or a cancellation prevents a retry, it takes no tokens, even from an asynchronous strategy."""
    quota = triclinium.StandardRetryStrategy()
    strategy = quota if shape is None else shape(quota)
    with pytest.raises(OSError), trio.move_on_after(1.0):  # noqa: PT011 - it has no message
        await retry(fail, strategy=strategy, on=in_a_second)
    at_the_deadline = quota.available_quota()
    with trio.CancelScope() as scope:
        await retry(fail, strategy=strategy, on=in_a_second, hooks=[lambda _: scope.cancel()])

    assert scope.cancelled_caught
    assert (quota.quota_capacity, quota.quota_capacity) == (at_the_deadline, quota.available_quota())


async def test_a_hook_that_ends_the_program() -> None:
    """If a hook raises KeyboardInterrupt, the retry is not made and its tokens are returned."""
    quota = triclinium.StandardRetryStrategy()

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        await retry(fail, strategy=quota, on=OSError, hooks=[stop])

    assert isinstance(caught.value.__context__, OSError)
    assert quota.quota_capacity == quota.available_quota()


class Talkative(ScriptedStrategy):
    """Strategy that returns a value from ``record_success``."""

    def record_success(self, *, token: RetryToken) -> None:
        """Return a meaningless value."""
        super().record_success(token=token)
        return "thanks"  # type: ignore[return-value]


async def test_the_value_of_record_success_is_ignored() -> None:
    """A value that ``record_success`` of a synchronous strategy returns is ignored and not awaited."""
    called, looped = Talkative(Token()), Talkative(Token())
    await retry(Flaky(), strategy=called)
    async for attempt in triclinium.attempts(looped):
        async with attempt:
            pass

    assert ["acquire", "success"] == called.reported == looped.reported


async def test_a_cancelled_first_attempt_frees_its_slot(autojump_clock: MockClock) -> None:
    """After a throttling error, an adaptive strategy delays a first attempt; a cancelled one delays no other."""
    waits = []
    for cancelled in (False, True):
        strategy = triclinium.AdaptiveRetryStrategy(max_attempts=1)
        with pytest.raises(OSError):  # noqa: PT011 - it has no message
            await retry(
                Flaky(OSError()),
                strategy=strategy,
                on=lambda _: triclinium.retries.ErrorInfo(is_retry_safe=True, is_throttling_error=True),
            )
        throttled_at = trio.current_time()
        if cancelled:
            with trio.move_on_after(0):
                await retry(Flaky(), strategy=strategy)
        await retry(flaky := Flaky(), strategy=strategy)
        waits.append(flaky.began[0] - throttled_at)

    assert waits[0] == pytest.approx(waits[1])
    assert waits[0] > 0
