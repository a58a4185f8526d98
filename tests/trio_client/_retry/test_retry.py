"""Cases of ``retry`` and ``retried`` that tests/properties/test_retry.py does not draw."""

from __future__ import annotations

import asyncio
import functools
import gc
import weakref
from collections.abc import Awaitable, Callable, Generator
from typing import cast

import pytest
import trio
from trio.testing import MockClock, assert_checkpoints, assert_no_checkpoints

import triclinium
import triclinium.testing
from tests.rows import rows
from triclinium import StandardRetryStrategy, retried, retry
from triclinium.errors import ArgumentError
from triclinium.retries import RetryEnding, attempts_of

COST = 14
"""Units that a retry takes from the quota."""
CAPACITY = 500


class Flaky:
    """Callable that raises its errors one by one and then returns its arguments; each call sleeps for a second."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def __call__(self, *args: object, **kwargs: object) -> tuple[object, ...]:
        """Return the arguments, or raise."""
        self.calls += 1
        await trio.sleep(1)
        if self.errors:
            raise self.errors.pop(0)
        return (*args, *kwargs.items())


@pytest.fixture
def strategy() -> StandardRetryStrategy:
    """Return a strategy with a full quota."""
    return StandardRetryStrategy()


async def test_the_last_error_is_raised(strategy: StandardRetryStrategy, autojump_clock: MockClock) -> None:
    """The last error is raised as the same object with records of all attempts, neither wrapped nor chained."""
    errors = [OSError("1"), OSError("2"), OSError("3")]

    with pytest.raises(OSError, match="3") as caught:
        await retry(Flaky(*errors), strategy=strategy, on=OSError)

    assert errors[2] is caught.value
    assert (None, None) == (caught.value.__cause__, caught.value.__context__)
    assert errors == [record.error for record in attempts_of(caught.value)]
    assert [1.0, 1.0, 1.0] == pytest.approx([record.elapsed for record in attempts_of(caught.value)])
    assert RetryEnding.EXHAUSTED is attempts_of(caught.value)[-1].ending
    assert 3 == len(caught.value.__notes__)
    assert CAPACITY - 2 * COST == strategy.available_quota()


@rows("end", [KeyboardInterrupt, SystemExit, BaseException])
async def test_program_exits_are_not_judged(end: type[BaseException], strategy: StandardRetryStrategy) -> None:
    """KeyboardInterrupt, SystemExit and other BaseExceptions are raised without calling ``on``."""
    asked: list[Exception] = []

    def judge(error: Exception) -> bool:
        asked.append(error)
        return True

    calls = 0

    async def work() -> None:
        nonlocal calls
        calls += 1
        await trio.lowlevel.checkpoint()
        raise end

    with pytest.raises(end):
        await retry(work, strategy=strategy, on=judge)

    assert (1, []) == (calls, asked)
    assert CAPACITY == strategy.available_quota()


async def test_cancelled_during_a_failing_attempt(strategy: StandardRetryStrategy) -> None:
    """If the scope is cancelled during a failing attempt, the error is raised and no tokens are taken."""
    with trio.CancelScope() as scope:

        async def fail() -> None:
            await trio.lowlevel.checkpoint()
            scope.cancel()
            raise OSError

        with pytest.raises(OSError) as caught:  # noqa: PT011 - it has no message
            await retry(fail, strategy=strategy, on=OSError)

    assert RetryEnding.DEADLINE is attempts_of(caught.value)[-1].ending
    assert CAPACITY == strategy.available_quota()


@pytest.mark.parametrize(("is_welcome", "expected"), [(lambda result: result == 2, 2), (lambda _: False, 3)])
async def test_results_are_retried_until_accepted(
    is_welcome: Callable[[int], bool], expected: int, strategy: StandardRetryStrategy
) -> None:
    """A result is retried until ``retry_result`` accepts it; the result of the last attempt is returned as it is."""
    results = [1, 2, 3]

    async def draw() -> int:
        await trio.lowlevel.checkpoint()
        return results.pop(0)

    with triclinium.testing.retries():
        assert expected == await retry(draw, strategy=strategy, retry_result=lambda result: not is_welcome(result))


async def test_functions_and_methods(strategy: StandardRetryStrategy, autojump_clock: MockClock) -> None:
    """Functions and methods get their arguments, called or decorated, and a decorated function keeps its name."""
    flaky = Flaky()

    @retried(strategy=strategy, on=OSError)
    async def fetch(url: str, *, size: int) -> tuple[object, ...]:
        """Fetch."""
        return await flaky(url, size=size)

    class Client:
        @retried(strategy=strategy, on=OSError)
        async def fetch(self) -> tuple[object, ...]:
            return await flaky(self)

    client = Client()
    for expected, call in (
        (("u", ("size", 1)), lambda: fetch("u", size=1)),
        ((client,), client.fetch),
        (("a", ("b", 1)), lambda: retry(functools.partial(flaky, b=1), "a", strategy=strategy, on=OSError)),
    ):
        flaky.errors.append(OSError())
        assert expected == await call()
    assert 6 == flaky.calls
    assert ("fetch", "Fetch.") == (fetch.__name__, fetch.__doc__)


def test_plain_functions_cannot_be_decorated(strategy: StandardRetryStrategy) -> None:
    """Plain functions, generators and classes raise TypeError with the reason."""
    decorate = retried(strategy=strategy, on=OSError)

    def plain() -> None:
        pass

    async def generator() -> object:
        yield 1

    with pytest.raises(TypeError, match="plain.*must be an async function to be retried: it is not async"):
        decorate(plain)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="it is an async generator"):
        decorate(generator)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="it is not async"):
        decorate(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Flaky.* it is a class"):
        decorate(Flaky)  # type: ignore[arg-type]


async def test_a_coroutine_is_not_a_function(strategy: StandardRetryStrategy) -> None:
    """A coroutine in place of its function raises TypeError with the correct form."""
    with pytest.raises(TypeError, match="write retry\\(function, arguments\\)"):
        await retry(Flaky()(), strategy=strategy)  # type: ignore[arg-type]


async def test_wrong_calls_are_not_retried(strategy: StandardRetryStrategy) -> None:
    """A call with wrong arguments and a call of a plain function raise TypeError, even with ``on=Exception``."""

    async def fetch(url: str) -> None:
        await trio.lowlevel.checkpoint()

    def plain() -> int:
        return 1

    with pytest.raises(TypeError, match="missing 1 required"):
        await retry(fetch, strategy=strategy, on=Exception)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="can't be used in 'await'"):
        await retry(plain, strategy=strategy, on=Exception)  # type: ignore[arg-type]
    assert CAPACITY == strategy.available_quota()


async def test_type_errors_of_the_function_are_retried(
    strategy: StandardRetryStrategy, autojump_clock: MockClock
) -> None:
    """A TypeError from within the function is retried, even if it comes from an awaitable written in C."""
    made = iter([map(abs, cast("list[int]", ["a"])), iter(())])

    class Chewed:
        def __await__(self) -> Generator[None, None, None]:
            return cast("Generator[None, None, None]", next(made))

    def chew() -> Awaitable[None]:
        return Chewed()

    assert () == await retry(Flaky(TypeError()), strategy=strategy, on=TypeError)
    await retry(chew, strategy=strategy, on=TypeError)
    assert [] == list(made)


async def test_a_success_adds_no_checkpoint(strategy: StandardRetryStrategy) -> None:
    """A successful call executes no checkpoint besides its own."""

    async def nothing() -> None:
        pass

    with assert_no_checkpoints():
        await retry(nothing, strategy=strategy)


async def test_every_retry_is_a_checkpoint(strategy: StandardRetryStrategy) -> None:
    """A retry is a checkpoint even without a delay."""
    errors = [OSError()]

    async def fail() -> None:
        if errors:
            raise errors.pop()

    with triclinium.testing.retries(), assert_checkpoints():
        await retry(fail, strategy=strategy, on=OSError)


async def test_nested_retries(autojump_clock: MockClock) -> None:
    """If an inner call gives up, the outer one retries it; the error records the attempts of both."""
    inner, outer = StandardRetryStrategy(max_attempts=2), StandardRetryStrategy(max_attempts=2)
    flaky = Flaky(*[OSError(str(number)) for number in range(9)])

    async def both() -> None:
        await retry(flaky, strategy=inner, on=OSError)

    with pytest.raises(OSError, match="3") as caught:
        await retry(both, strategy=outer, on=OSError, name="outer")

    assert (4, CAPACITY - 2 * COST, CAPACITY - COST) == (
        flaky.calls,
        inner.available_quota(),
        outer.available_quota(),
    )
    assert 2 == len(attempts_of(caught.value))
    assert 4 == len(caught.value.__notes__)


@rows(
    "on", [BaseException, trio.Cancelled, KeyboardInterrupt, (OSError, SystemExit), [OSError], (), "OSError", OSError()]
)
async def test_invalid_exception_types(strategy: StandardRetryStrategy, on: object) -> None:
    """An ``on`` that is not a set of subclasses of Exception raises ArgumentError, and nothing is called."""
    flaky = Flaky()

    with pytest.raises(ArgumentError) as caught:
        await retry(flaky, strategy=strategy, on=on)  # type: ignore[arg-type]

    assert ("on", 0) == (caught.value.parameter, flaky.calls)


@rows("given", [None, 3, StandardRetryStrategy, triclinium.retries.TokenScope(StandardRetryStrategy(), "orders")])
async def test_invalid_strategies(given: object) -> None:
    """A strategy class and a TokenScope, which is for operations, raise ArgumentError."""
    with pytest.raises(ArgumentError, match="must be an object such as StandardRetryStrategy"):
        await retry(Flaky(), strategy=given)  # type: ignore[arg-type]


async def test_groups_match_as_groups_only(strategy: StandardRetryStrategy, autojump_clock: MockClock) -> None:
    """A nursery's exception group matches only the type of a group."""

    async def both() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(flaky)

    flaky = Flaky(OSError())
    with pytest.raises(ExceptionGroup):
        await retry(both, strategy=strategy, on=Exception)
    flaky = Flaky(OSError())
    await retry(both, strategy=strategy, on=ExceptionGroup)

    assert 2 == flaky.calls


class Watched(Exception):
    """Exception that can be weakly referenced."""


@pytest.mark.parametrize("failures", [2, 3])
async def test_errors_are_in_no_reference_cycle(strategy: StandardRetryStrategy, failures: int) -> None:
    """Errors are freed with their last reference, whether or not the call succeeded."""
    left = failures
    seen: list[weakref.ref[Watched]] = []

    async def fail() -> None:
        nonlocal left
        if left:
            left -= 1
            error = Watched()
            seen.append(weakref.ref(error))
            try:
                raise error
            finally:
                del error

    gc.collect()
    gc.disable()
    try:
        with triclinium.testing.retries():
            try:
                await retry(fail, strategy=strategy, on=Watched)
            except Watched:
                pass
            async for attempt in triclinium.attempts(strategy, on=Watched):
                with attempt:
                    left = 1 if attempt.number < 3 else 0
                    await fail()
        alive = [found() for found in seen]
    finally:
        gc.enable()

    assert [None] * len(seen) == alive
    assert failures + 2 == len(seen)


def test_retry_on_another_event_loop() -> None:
    """On another event loop, RuntimeError is raised before anything is called."""
    strategy, flaky = StandardRetryStrategy(), Flaky()

    async def in_a_loop() -> None:
        async for attempt in triclinium.attempts(strategy):
            with attempt:
                flaky.calls += 1

    for call in (retry(flaky, strategy=strategy), retried(strategy=strategy)(flaky)(), in_a_loop()):
        with pytest.raises(RuntimeError, match=r"make the call in trio.run, or in anyio.run\(backend='trio'\)"):
            asyncio.run(call)

    assert 0 == flaky.calls
