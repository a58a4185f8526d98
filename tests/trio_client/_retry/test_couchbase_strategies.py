"""Calls of any function under Couchbase's strategies: the requests that strategies get, and the effect of decisions."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.lowlevel
import trio.testing

import triclinium
from triclinium import BestEffortRetryStrategy, attempts, errors, retry
from triclinium.retries import RetryAction, RetryReason, RetryRequest
from triclinium_core.argument_error import ArgumentError
from triclinium_core.error_context import ErrorContext


class Recording(BestEffortRetryStrategy):
    """Best effort strategy that records its arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[RetryRequest, RetryReason]] = []

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Record the arguments and decide."""
        self.asked.append((request, reason))
        return super().retry_after(request, reason)


class Awaited(Recording):
    """Variant of ``Recording`` with an asynchronous method."""

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:  # type: ignore[override]
        """Sleep, then decide."""
        await trio.sleep(0.5)
        return super().retry_after(request, reason)


class Flaky:
    """Callable that fails a number of times and then succeeds."""

    def __init__(self, failures: int, error: Exception | None = None) -> None:
        self.left = failures
        self.error = error if error is not None else ConnectionError("no")

    async def __call__(self) -> str:
        """Fail or succeed."""
        await trio.lowlevel.checkpoint()
        self.left -= 1
        if self.left >= 0:
            raise self.error
        return "done"


async def by_loop(flaky: Flaky, strategy: triclinium.retries.AnyRetryStrategy) -> str:
    """Retry in a loop."""
    async for attempt in attempts(strategy, on=ConnectionError):  # type: ignore[arg-type]
        async with attempt:
            return await flaky()
    raise AssertionError("the last error leaves the loop")


FORMS: dict[str, Callable[[Flaky, Recording], Awaitable[str]]] = {
    "Flaky": lambda flaky, strategy: retry(flaky, strategy=strategy, on=ConnectionError),
    "retried": lambda flaky, strategy: triclinium.retried(strategy=strategy, on=ConnectionError)(flaky)(),
    "attempts": by_loop,
}


@pytest.mark.parametrize("kind", [Recording, Awaited])
@pytest.mark.parametrize("form", FORMS)
async def test_the_strategy_decides_about_calls(
    form: str, kind: type[Recording], autojump_clock: trio.testing.MockClock
) -> None:
    """The strategy gets each failure as a request without a service, with the call's age and remaining time."""
    strategy = kind()
    with trio.fail_after(60.0), triclinium.client_context(robot=True):
        result = await FORMS[form](Flaky(3), strategy)
    requests = [request for request, _ in strategy.asked]

    assert "done" == result
    assert [RetryReason.SERVICE_RESPONSE_CODE_INDICATED] * 3 == [reason for _, reason in strategy.asked]
    assert [0, 1, 2] == [request.retry_attempts for request in requests]
    assert {(None, form, True)} == {(each.service, each.operation, each.idempotent) for each in requests}
    assert {True} == {each.client_context["robot"] for each in requests}
    assert all(each.retry_strategy is strategy for each in requests)
    assert all(each.age + each.remaining == pytest.approx(60.0) for each in requests)


async def test_the_delays_are_those_of_the_strategy(autojump_clock: trio.testing.MockClock) -> None:
    """Retries wait 1, 2 and 4 ms, or the longer delay that the server requested."""
    began = trio.current_time()
    await retry(Flaky(3), strategy=BestEffortRetryStrategy(), on=ConnectionError)

    assert 0.007 == pytest.approx(trio.current_time() - began)

    began = trio.current_time()
    wish = triclinium.retries.ErrorInfo(is_retry_safe=True, retry_after=7.0)
    await retry(Flaky(1), strategy=BestEffortRetryStrategy(), on=lambda error: wish)

    assert 7.0 == trio.current_time() - began


async def test_no_retry_after_deadline_or_if_unsafe(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The last error records the reason against a retry: the deadline, or a call that is not safe to retry."""
    with pytest.raises(ConnectionError) as caught, trio.fail_after(1.0):
        await retry(Flaky(1000), strategy=BestEffortRetryStrategy(), on=ConnectionError)

    assert triclinium.retries.RetryEnding.DEADLINE is triclinium.retries.attempts_of(caught.value)[-1].ending

    strategy = Recording()
    with pytest.raises(ConnectionError) as caught:
        await retry(Flaky(1000), strategy=strategy)

    assert triclinium.retries.RetryEnding.NOT_RETRY_SAFE is triclinium.retries.attempts_of(caught.value)[-1].ending
    assert [] == strategy.asked


async def test_an_operations_error_has_its_reason(autojump_clock: trio.testing.MockClock) -> None:
    """An operation's error carries its retry reason: a terminal one is not retried, a temporary failure is."""
    refused = errors.AuthenticationFailureException("no", ErrorContext(refused_reason="AUTHENTICATION_ERROR"))
    with pytest.raises(errors.AuthenticationFailureException) as caught:
        await retry(
            Flaky(1, refused),
            strategy=triclinium.FastFailOnTerminalErrorRetryStrategy(),
            on=errors.AuthenticationFailureException,
        )

    assert triclinium.retries.RetryEnding.REFUSED is triclinium.retries.attempts_of(caught.value)[-1].ending

    busy = errors.TemporaryFailureException("no", ErrorContext(refused_reason="KV_TEMPORARY_FAILURE"))
    strategy = Recording()

    assert "done" == await retry(Flaky(1, busy), strategy=strategy, on=errors.TemporaryFailureException)
    assert [RetryReason.KV_TEMPORARY_FAILURE] == [reason for _, reason in strategy.asked]


class Saying:
    """Strategy that always returns the same value."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return the value."""
        return self._answer  # type: ignore[return-value]


async def test_invalid_decisions_of_a_strategy(autojump_clock: trio.testing.MockClock) -> None:
    """A decision of the wrong type raises TypeError; a delay above its own limit refuses the retry."""
    with pytest.raises(TypeError):
        await retry(Flaky(1), strategy=Saying(None), on=ConnectionError)
    with pytest.raises(ConnectionError):
        await retry(Flaky(1), strategy=Saying(RetryAction.after(2.0, within=1.0)), on=ConnectionError)


async def test_a_class_is_not_a_strategy() -> None:
    """A strategy class in place of an instance raises ArgumentError before anything is called."""
    with pytest.raises(ArgumentError) as caught:
        await retry(Flaky(0), strategy=BestEffortRetryStrategy, on=ConnectionError)  # type: ignore[arg-type]

    assert type(caught.value) is ArgumentError
    assert math.isinf(trio.current_effective_deadline())
