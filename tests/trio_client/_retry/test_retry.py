"""Cases of ``retry`` and ``retried`` that tests/properties/test_retry.py does not draw."""

from __future__ import annotations

import asyncio
import functools
import gc
import weakref
from collections.abc import Awaitable, Generator
from typing import cast

import pytest
import trio
from trio.testing import MockClock, assert_checkpoints, assert_no_checkpoints

import triclinium
import triclinium.testing
from tests.rows import rows
from tests.trio_client.retried_calls import CAPACITY, COST, WAYS, Flaky, Way
from triclinium import BestEffortRetryStrategy, StandardRetryStrategy, retried, retry
from triclinium.errors import ArgumentError
from triclinium.retries import RetryEnding, TokenScope, attempts_of


@pytest.fixture
def strategy() -> StandardRetryStrategy:
    """Return a strategy with a full quota."""
    return StandardRetryStrategy()


@rows("way", WAYS)
async def test_the_last_error_is_raised(way: Way, autojump_clock: MockClock) -> None:
    """The last error is raised as the same object with records of all attempts, neither wrapped nor chained."""
    errors, strategy = [OSError("1"), OSError("2"), OSError("3")], StandardRetryStrategy()

    with pytest.raises(OSError, match="3") as caught:
        await way(Flaky(*errors, seconds=1.0), strategy, on=OSError)

    assert errors[2] is caught.value
    assert (None, None) == (caught.value.__cause__, caught.value.__context__)
    assert errors == [record.error for record in attempts_of(caught.value)]
    assert [1.0, 1.0, 1.0] == pytest.approx([record.elapsed for record in attempts_of(caught.value)])
    assert RetryEnding.EXHAUSTED is attempts_of(caught.value)[-1].ending
    assert 3 == len(caught.value.__notes__)
    assert CAPACITY - 2 * COST == strategy.available_quota()


@rows("way", WAYS)
@rows("end", [KeyboardInterrupt, SystemExit, BaseException])
async def test_program_exits_are_not_judged(
    way: Way, end: type[BaseException], strategy: StandardRetryStrategy
) -> None:
    """A KeyboardInterrupt, SystemExit or other BaseException is raised without a call of ``on`` or the hooks."""
    judged: list[object] = []
    flaky = Flaky(end())

    def judge(error: Exception) -> bool:
        judged.append(error)
        return True

    with pytest.raises(end):
        await way(flaky, strategy, on=judge, hooks=[judged.append])

    assert (1, []) == (len(flaky.began), judged)
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
    assert 6 == len(flaky.began)
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


@rows("way", WAYS)
async def test_only_a_retry_adds_a_checkpoint(way: Way) -> None:
    """A retry is a checkpoint even without a delay; a successful call executes none besides its own."""
    errors, strategy = [OSError()], StandardRetryStrategy()

    async def fail_once() -> None:
        if errors:
            raise errors.pop()

    with triclinium.testing.retries(), assert_checkpoints():
        await way(fail_once, strategy, on=OSError)
    with assert_no_checkpoints():
        await way(fail_once, strategy)


async def test_nested_retries(autojump_clock: MockClock) -> None:
    """If an inner call gives up, the outer one retries it; the error records the attempts of both."""
    inner, outer = StandardRetryStrategy(max_attempts=2), StandardRetryStrategy(max_attempts=2)
    flaky = Flaky(*[OSError(str(number)) for number in range(9)])

    async def both() -> None:
        await retry(flaky, strategy=inner, on=OSError)

    with pytest.raises(OSError, match="3") as caught:
        await retry(both, strategy=outer, on=OSError, name="outer")

    assert (4, CAPACITY - 2 * COST, CAPACITY - COST) == (
        len(flaky.began),
        inner.available_quota(),
        outer.available_quota(),
    )
    assert 2 == len(attempts_of(caught.value))
    assert 4 == len(caught.value.__notes__)


@rows(
    "on", [BaseException, trio.Cancelled, KeyboardInterrupt, (OSError, SystemExit), [OSError], (), "OSError", OSError()]
)
async def test_invalid_exception_types(strategy: StandardRetryStrategy, on: object) -> None:
    """An invalid ``on``, such as Cancelled, a list or an empty tuple, raises ArgumentError before any call."""
    flaky = Flaky()

    with pytest.raises(ArgumentError) as caught:
        await retry(flaky, strategy=strategy, on=on)  # type: ignore[arg-type]

    assert ("on", 0) == (caught.value.parameter, len(flaky.began))


@rows(
    "given",
    [None, 3, StandardRetryStrategy, BestEffortRetryStrategy, TokenScope(StandardRetryStrategy(), "orders")],
)
async def test_invalid_strategies(given: object) -> None:
    """An invalid strategy, such as a class, or a TokenScope of operations, raises ArgumentError before any call."""
    flaky = Flaky()
    with pytest.raises(ArgumentError, match=r"must be an object .*such as \w+RetryStrategy") as caught:
        await retry(flaky, strategy=given)  # type: ignore[arg-type]

    assert (ArgumentError, []) == (type(caught.value), flaky.began)


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

    assert 2 == len(flaky.began)


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
                await flaky()

    for call in (retry(flaky, strategy=strategy), retried(strategy=strategy)(flaky)(), in_a_loop()):
        with pytest.raises(RuntimeError, match=r"make the call in trio.run, or in anyio.run\(backend='trio'\)"):
            asyncio.run(call)

    assert [] == flaky.began
