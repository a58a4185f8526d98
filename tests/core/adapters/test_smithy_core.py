"""Our strategies in smithy-core, whose resolver accepts them and whose pipeline retries as they decide.

smithy-core needs Python 3.12; ``tests/environment.py`` leaves these tests out on an older one.
"""

from __future__ import annotations

import asyncio
import random
from itertools import pairwise

import pytest
from smithy_core.aio.interfaces.retries import RetryStrategy
from smithy_core.aio.retries import RetryStrategyResolver
from smithy_core.exceptions import CallError, ClientTimeoutError, SmithyError

from tests.core.adapters.smithy_service import Service, call, fault
from tests.core.adapters.virtual_loop import run
from triclinium_core.adapters.smithy_core import SmithyCoreRetryStrategy
from triclinium_core.retry import smithy
from triclinium_core.retry.smithy import protocols

CAPACITY = 500


def standard(*, max_attempts: int = 3, quota_capacity: int = CAPACITY) -> smithy.StandardRetryStrategy:
    """Return a strategy without jitter, with delays of 0.05 s, 0.1 s …, or of 1 s, 2 s … after throttling."""
    rng = random.Random(7)
    return smithy.StandardRetryStrategy(
        rng=rng,
        max_attempts=max_attempts,
        quota_capacity=quota_capacity,
        backoff=smithy.ExponentialRetryBackoffStrategy(rng=rng, base=0.05, jitter=smithy.Jitter.NONE),
        throttling_backoff=smithy.ExponentialRetryBackoffStrategy(rng=rng, base=1.0, jitter=smithy.Jitter.NONE),
    )


async def failure(service: Service, strategy: object, *, long_poll: bool = False) -> SmithyError:
    """Make a call that fails and return its error."""
    with pytest.raises(SmithyError) as caught:
        await call(service, strategy, long_poll=long_poll)
    return caught.value


def test_client_resolver_accepts_the_adapter() -> None:
    """The resolver returns the adapter unchanged, even if the mode and the number of attempts are different."""
    strategy = SmithyCoreRetryStrategy(standard())
    resolved, _ = run(
        RetryStrategyResolver().resolve_retry_strategy(retry_strategy=strategy, retry_mode="simple", max_attempts=9)
    )

    assert isinstance(strategy, RetryStrategy)
    assert strategy is resolved


@pytest.mark.parametrize("bare", [standard(), smithy.SimpleRetryStrategy(rng=random.Random(7))])
def test_both_strategies_fit(bare: smithy.StandardRetryStrategy | smithy.SimpleRetryStrategy) -> None:
    """The adapter exposes the strategy's own ``max_attempts`` and backoff strategy to smithy-core."""
    strategy = SmithyCoreRetryStrategy(bare)

    assert bare.max_attempts == strategy.max_attempts
    assert bare.backoff_strategy is strategy.backoff_strategy
    assert 0.0 == strategy.backoff_strategy.compute_next_backoff_delay(0)


@pytest.mark.parametrize("failures", [[fault(), fault()], [TimeoutError()]], ids=["errors", "timeout"])
def test_retried_until_success(failures: list[Exception]) -> None:
    """The pipeline waits for our delays and repeats the request, also after a transport's timeout, until it succeeds."""
    service = Service([*failures, "answer"])
    answer, seconds = run(call(service, SmithyCoreRetryStrategy(standard())))

    assert ("answer", len(failures) + 1) == (answer, service.sent)
    assert pytest.approx(sum([0.05, 0.1][: len(failures)])) == seconds


def test_throttling_and_retry_after() -> None:
    """The adapter reads throttling and ``retry_after`` from smithy-core's errors."""
    service = Service([fault(throttling=True), fault(throttling=True, retry_after=30.0), "answer"])
    bare = standard()
    answer, seconds = run(call(service, SmithyCoreRetryStrategy(bare)))

    assert "answer" == answer
    assert pytest.approx(1.0 + 30.0) == seconds
    # Each of the two retries cost 5 tokens, and the success refunded those of the last retry.
    assert CAPACITY - 5 == bare.available_quota()


@pytest.mark.parametrize("safe", [None, False])
def test_unsafe_error_is_sent_once(safe: bool | None) -> None:
    """An error that is not safe to retry reaches the caller after one attempt and leaves the quota unchanged."""
    error = fault(safe=safe)
    service, bare = Service([error]), standard()
    raised, seconds = run(failure(service, SmithyCoreRetryStrategy(bare)))

    assert error is raised
    assert (1, 0.0, CAPACITY) == (service.sent, seconds, bare.available_quota())


def test_error_without_retry_attributes() -> None:
    """A request that fails with an error without retry attributes is not repeated; the error is the cause."""
    error = ConnectionResetError("gone")
    service = Service([error])
    raised, _ = run(failure(service, SmithyCoreRetryStrategy(standard())))

    assert error is raised.__cause__
    assert 1 == service.sent


def test_the_last_error_is_raised() -> None:
    """A call whose attempts are used up raises the error of its last attempt, not a RetryError."""
    errors = [fault(), fault(), fault()]
    service = Service(errors)
    raised, _ = run(failure(service, SmithyCoreRetryStrategy(standard())))

    assert errors[-1] is raised
    assert 3 == service.sent


def test_last_timeout_is_raised() -> None:
    """A timeout in the last attempt reaches the caller as the pipeline's ClientTimeoutError."""
    raised, _ = run(failure(Service([TimeoutError()]), SmithyCoreRetryStrategy(standard(max_attempts=1))))

    assert isinstance(raised, ClientTimeoutError)


def test_two_clients_share_a_quota() -> None:
    """Two clients with one strategy share its quota: a retry of one leaves less for the other; successes refill it."""
    bare = standard(quota_capacity=20)
    one, other = SmithyCoreRetryStrategy(bare), SmithyCoreRetryStrategy(bare)
    first, second, third = Service([fault(), fault()]), Service([fault()]), Service([fault(), "answer"])

    async def main() -> None:
        await failure(first, one)
        await failure(second, other)
        for _ in range(8):
            await call(Service(["answer"]), one)
        await call(third, other)

    run(main())

    # The first retry leaves 20 - 14 = 6 tokens, too few for another retry of either client; 6 + 8 = 14 pay for one.
    assert (2, 1, 2) == (first.sent, second.sent, third.sent)
    assert 14 == bare.available_quota()


def test_concurrent_calls_share_the_quota() -> None:
    """A hundred concurrent calls to a failing service send only the retries for which the quota pays."""
    bare = standard(quota_capacity=140)
    strategy = SmithyCoreRetryStrategy(bare)
    services = [Service([fault()] * 3) for _ in range(100)]

    async def main() -> None:
        await asyncio.gather(*(failure(service, strategy) for service in services))

    run(main())

    assert 100 + 140 // 14 == sum(service.sent for service in services)
    assert 0 == bare.available_quota()


def test_scopes_have_separate_quotas() -> None:
    """The pipeline passes a call's token scope to the strategy, and each scope has its own quota."""
    bare = standard(quota_capacity=14)
    strategy = SmithyCoreRetryStrategy(bare)

    async def main() -> None:
        with pytest.raises(CallError):
            await call(Service([fault()] * 3), strategy, scope="orders")
        await call(Service([fault(), "answer"]), strategy, scope="stock")

    run(main())

    assert (0, 14, 14) == (bare.available_quota("orders"), bare.available_quota("stock"), bare.available_quota())


def test_adaptive_strategy_delays_first_attempts() -> None:
    """Once the service throttles, first attempts wait too: the pipeline obeys the delay of the first token."""
    services = [Service([fault(throttling=True), "answer"]), *(Service(["answer"]) for _ in range(4))]

    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        strategy = SmithyCoreRetryStrategy(smithy.AdaptiveRetryStrategy(rng=random.Random(7), clock=loop.time))
        began = []
        for service in services:
            began.append(loop.time())
            await call(service, strategy)
        return [later - earlier for earlier, later in pairwise(began)]

    lasted, _ = run(main())

    assert [2, 1, 1, 1, 1] == [service.sent for service in services]
    assert all(seconds > 0 for seconds in lasted)


def test_long_poll_waits_on_an_empty_quota() -> None:
    """With an empty quota, a long poll fails after the delay of the RetryError; another call fails immediately."""
    strategy = SmithyCoreRetryStrategy(standard(quota_capacity=0))
    _, seconds = run(failure(Service([fault(throttling=True, retry_after=3.0)]), strategy, long_poll=True))
    _, at_once = run(failure(Service([fault(throttling=True, retry_after=3.0)]), strategy))

    assert (3.0, 0.0) == (seconds, at_once)


class Refusing(smithy.StandardRetryStrategy):
    """Strategy that issues no first token, as the design page of smithy permits."""

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> protocols.RetryToken:  # type: ignore[override]
        """Raise RetryError."""
        raise protocols.RetryError("no retry is permitted", retry_after=2.0)


@pytest.mark.parametrize(("expected", "long_poll"), [(0.0, False), (2.0, True)])
def test_a_request_without_a_token_is_sent_once(expected: float, long_poll: bool) -> None:
    """If a strategy refuses the first token, the request is sent once; only a failed long poll waits for the delay."""
    strategy = SmithyCoreRetryStrategy(Refusing(rng=random.Random(7)))
    lucky, unlucky = Service(["answer"]), Service([fault()])
    (answer, _), (raised, seconds) = run(call(lucky, strategy)), run(failure(unlucky, strategy, long_poll=long_poll))

    assert ("answer", 1, 1) == (answer, lucky.sent, unlucky.sent)
    assert isinstance(raised, CallError)
    assert expected == seconds


def test_cancelled_call() -> None:
    """If a call is cancelled during a delay of the pipeline, the cancellation is raised and the next call succeeds."""
    bare = standard()
    strategy, service = SmithyCoreRetryStrategy(bare), Service([fault(throttling=True), "never sent"])

    async def main() -> object:
        task = asyncio.get_running_loop().create_task(call(service, strategy))
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await call(Service(["answer"]), strategy)

    answer, seconds = run(main())

    assert ("answer", 1, 0.5) == (answer, service.sent, seconds)
