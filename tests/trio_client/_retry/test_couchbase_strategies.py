"""Calls of any function under Couchbase's strategies: the requests that strategies get, and the effect of decisions."""

from __future__ import annotations

import pytest
import trio
import trio.testing

import triclinium
from tests.trio_client.retried_calls import Flaky, Way, by_call, by_loop
from triclinium import BestEffortRetryStrategy, errors, retry
from triclinium.retries import RetryAction, RetryReason, RetryRequest
from triclinium_core.error_context import ErrorContext


class Recording(BestEffortRetryStrategy):
    """Best effort strategy that records its requests and reasons."""

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


FORMS: dict[str, Way] = {
    "Flaky": by_call,
    "retried": lambda flaky, strategy, **options: triclinium.retried(strategy=strategy, **options)(flaky)(),  # type: ignore[no-untyped-call]
    "attempts": by_loop,
}


@pytest.mark.parametrize("kind", [Recording, Awaited])
@pytest.mark.parametrize("form", FORMS)
async def test_the_strategy_decides_about_calls(
    form: str, kind: type[Recording], autojump_clock: trio.testing.MockClock
) -> None:
    """The strategy gets each failure as a request without a service, with the call's age and remaining time."""
    strategy, flaky = kind(), Flaky(*[ConnectionError()] * 3)
    with trio.fail_after(60.0), triclinium.client_context(robot=True):
        result = await FORMS[form](flaky, strategy, on=ConnectionError)
    requests = [request for request, _ in strategy.asked]

    assert ((), 4) == (result, len(flaky.began))
    assert [RetryReason.SERVICE_RESPONSE_CODE_INDICATED] * 3 == [reason for _, reason in strategy.asked]
    assert [0, 1, 2] == [request.retry_attempts for request in requests]
    assert {(None, form, True)} == {(each.service, each.operation, each.idempotent) for each in requests}
    assert {True} == {each.client_context["robot"] for each in requests}
    assert all(each.retry_strategy is strategy for each in requests)
    assert all(each.age + each.remaining == pytest.approx(60.0) for each in requests)


async def test_the_delays_are_those_of_the_strategy(autojump_clock: trio.testing.MockClock) -> None:
    """Retries wait 1, 2 and 4 ms, or the longer delay that the server requested."""
    began = trio.current_time()
    await retry(Flaky(*[ConnectionError()] * 3), strategy=BestEffortRetryStrategy(), on=ConnectionError)

    assert 0.007 == pytest.approx(trio.current_time() - began)

    began = trio.current_time()
    wish = triclinium.retries.ErrorInfo(is_retry_safe=True, retry_after=7.0)
    await retry(Flaky(ConnectionError()), strategy=BestEffortRetryStrategy(), on=lambda error: wish)

    assert 7.0 == trio.current_time() - began


async def test_no_retry_after_deadline_or_if_unsafe(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The last error records the reason against a retry: the deadline, or a call that is not safe to retry."""
    with pytest.raises(ConnectionError) as caught, trio.fail_after(1.0):
        await retry(Flaky(*[ConnectionError()] * 1000), strategy=BestEffortRetryStrategy(), on=ConnectionError)

    assert triclinium.retries.RetryEnding.DEADLINE is triclinium.retries.attempts_of(caught.value)[-1].ending

    strategy = Recording()
    with pytest.raises(ConnectionError) as caught:
        await retry(Flaky(*[ConnectionError()] * 1000), strategy=strategy)

    assert triclinium.retries.RetryEnding.NOT_RETRY_SAFE is triclinium.retries.attempts_of(caught.value)[-1].ending
    assert [] == strategy.asked


async def test_an_operations_error_has_its_reason(autojump_clock: trio.testing.MockClock) -> None:
    """An operation's error carries its retry reason: a terminal one is not retried, a temporary failure is."""
    refused = errors.AuthenticationFailureException("no", ErrorContext(refused_reason="AUTHENTICATION_ERROR"))
    with pytest.raises(errors.AuthenticationFailureException) as caught:
        await retry(
            Flaky(refused),
            strategy=triclinium.FastFailOnTerminalErrorRetryStrategy(),
            on=errors.AuthenticationFailureException,
        )

    assert triclinium.retries.RetryEnding.REFUSED is triclinium.retries.attempts_of(caught.value)[-1].ending

    busy = errors.TemporaryFailureException("no", ErrorContext(refused_reason="KV_TEMPORARY_FAILURE"))
    strategy = Recording()

    assert () == await retry(Flaky(busy), strategy=strategy, on=errors.TemporaryFailureException)
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
        await retry(Flaky(ConnectionError()), strategy=Saying(None), on=ConnectionError)
    with pytest.raises(ConnectionError):
        await retry(Flaky(ConnectionError()), strategy=Saying(RetryAction.after(2.0, within=1.0)), on=ConnectionError)
