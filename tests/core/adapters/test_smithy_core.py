"""Our strategies inside smithy-core itself: its resolver takes them, and its pipeline retries as they say.

smithy-core needs Python 3.12; ``conftest.py`` says where these tests run.
"""

from __future__ import annotations

import asyncio
import copy
import random
from itertools import pairwise

import pytest
from smithy_core.aio.interfaces.retries import RetryStrategy
from smithy_core.aio.retries import RetryStrategyResolver
from smithy_core.exceptions import CallError, ClientTimeoutError, RetryError, SmithyError

from tests.core.adapters.smithy_service import Service, call, fault
from tests.core.adapters.virtual_loop import run
from triclinium_core.adapters.smithy_core import SmithyCoreRetryStrategy
from triclinium_core.retry import smithy
from triclinium_core.retry.smithy import protocols

CAPACITY = 500


def standard(*, max_attempts: int = 3, quota_capacity: int = CAPACITY) -> smithy.StandardRetryStrategy:
    """Return a strategy without jitter: it waits for 0.05 s, 0.1 s, 0.2 s …"""
    rng = random.Random(7)
    return smithy.StandardRetryStrategy(
        rng=rng,
        max_attempts=max_attempts,
        quota_capacity=quota_capacity,
        backoff=smithy.ExponentialRetryBackoffStrategy(rng=rng, base=0.05, jitter=smithy.Jitter.NONE),
        throttling_backoff=smithy.ExponentialRetryBackoffStrategy(rng=rng, base=1.0, jitter=smithy.Jitter.NONE),
    )


async def failure(service: Service, strategy: object, *, long_poll: bool = False) -> SmithyError:
    """Make a call that fails, and return its error."""
    with pytest.raises(SmithyError) as caught:
        await call(service, strategy, long_poll=long_poll)
    return caught.value


def test_the_resolver_of_a_client_takes_it() -> None:
    """It is returned as it is, whatever mode and number of attempts the environment names."""
    strategy = SmithyCoreRetryStrategy(standard())
    resolved, _ = run(
        RetryStrategyResolver().resolve_retry_strategy(retry_strategy=strategy, retry_mode="simple", max_attempts=9)
    )

    assert isinstance(strategy, RetryStrategy)
    assert strategy is resolved


@pytest.mark.parametrize("bare", [standard(), smithy.SimpleRetryStrategy(rng=random.Random(7))])
def test_both_shipped_strategies_fit(bare: smithy.StandardRetryStrategy | smithy.SimpleRetryStrategy) -> None:
    """What smithy-core looks for besides the methods is the strategy's own."""
    strategy = SmithyCoreRetryStrategy(bare)

    assert bare.max_attempts == strategy.max_attempts
    assert bare.backoff_strategy is strategy.backoff_strategy
    assert 0.0 == strategy.backoff_strategy.compute_next_backoff_delay(0)


def test_retried_until_it_works() -> None:
    """The pipeline waits for our delays, and sends again."""
    service = Service([fault(), fault(), "answer"])
    answer, seconds = run(call(service, SmithyCoreRetryStrategy(standard())))

    assert ("answer", 3) == (answer, service.sent)
    assert pytest.approx(0.05 + 0.1) == seconds


def test_throttling_and_what_the_service_asks_for() -> None:
    """Their errors have four attributes, and all that decide something are read."""
    service = Service([fault(throttling=True), fault(throttling=True, retry_after=30.0), "answer"])
    bare = standard()
    answer, seconds = run(call(service, SmithyCoreRetryStrategy(bare)))

    assert "answer" == answer
    assert pytest.approx(1.0 + 30.0) == seconds
    # Each retry cost 5, and the success gave the last one back.
    assert CAPACITY - 5 == bare.available_quota()


def test_a_timeout_of_the_transport() -> None:
    """The pipeline makes an error of its own of it, which is safe to retry."""
    service = Service([TimeoutError(), "answer"])
    answer, _ = run(call(service, SmithyCoreRetryStrategy(standard())))

    assert ("answer", 2) == (answer, service.sent)


@pytest.mark.parametrize("safe", [None, False])
def test_what_is_not_safe_is_sent_once(safe: bool | None) -> None:
    """The caller gets the service's error, and the quota has not changed."""
    error = fault(safe=safe)
    service, bare = Service([error]), standard()
    raised, seconds = run(failure(service, SmithyCoreRetryStrategy(bare)))

    assert error is raised
    assert (1, 0.0, CAPACITY) == (service.sent, seconds, bare.available_quota())


def test_an_error_that_says_nothing_of_retries() -> None:
    """A connection that broke has none of the attributes; the pipeline wraps it, once."""
    error = ConnectionResetError("gone")
    service = Service([error])
    raised, _ = run(failure(service, SmithyCoreRetryStrategy(standard())))

    assert error is raised.__cause__
    assert 1 == service.sent


def test_the_last_error_is_raised() -> None:
    """When the attempts are used up, the caller gets the last one's error and never hears of RetryError."""
    errors = [fault(), fault(), fault()]
    service = Service(errors)
    raised, _ = run(failure(service, SmithyCoreRetryStrategy(standard())))

    assert errors[-1] is raised
    assert 3 == service.sent


def test_a_last_timeout_is_raised() -> None:
    """The same where the last error is the pipeline's own."""
    raised, _ = run(failure(Service([TimeoutError()]), SmithyCoreRetryStrategy(standard(max_attempts=1))))

    assert isinstance(raised, ClientTimeoutError)


def test_two_clients_share_a_quota() -> None:
    """What one client's retries cost is missed by the other, and what its successes give back helps it."""
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

    # 20 - 14 = 6 pays for no second retry, nor for any of the other client's; 6 + 8 = 14 does.
    assert (2, 1, 2) == (first.sent, second.sent, third.sent)
    assert 14 == bare.available_quota()


def test_many_calls_at_once() -> None:
    """A hundred calls of a service that is down send little more than first attempts."""
    bare = standard(quota_capacity=140)
    strategy = SmithyCoreRetryStrategy(bare)
    services = [Service([fault()] * 3) for _ in range(100)]

    async def main() -> None:
        await asyncio.gather(*(failure(service, strategy) for service in services))

    run(main())

    assert 100 + 140 // 14 == sum(service.sent for service in services)
    assert 0 == bare.available_quota()


def test_scopes_have_quotas_of_their_own() -> None:
    """The pipeline passes the scope of a call on, and here it separates."""
    bare = standard(quota_capacity=14)
    strategy = SmithyCoreRetryStrategy(bare)

    async def main() -> None:
        with pytest.raises(CallError):
            await call(Service([fault()] * 3), strategy, scope="orders")
        await call(Service([fault(), "answer"]), strategy, scope="stock")

    run(main())

    assert (0, 14, 14) == (bare.available_quota("orders"), bare.available_quota("stock"), bare.available_quota())


def test_the_adaptive_strategy() -> None:
    """Once the service has throttled, first attempts wait for their turn too: the pipeline heeds the first token's delay."""
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


def test_a_long_poll_waits_although_the_quota_is_empty() -> None:
    """Their RetryError carries the delay that there would have been, and the pipeline waits for it before it fails."""
    strategy = SmithyCoreRetryStrategy(standard(quota_capacity=0))
    _, seconds = run(failure(Service([fault(throttling=True, retry_after=3.0)]), strategy, long_poll=True))
    _, at_once = run(failure(Service([fault(throttling=True, retry_after=3.0)]), strategy))

    assert (3.0, 0.0) == (seconds, at_once)


def test_a_refusal_is_their_error() -> None:
    """It is of the class that their pipeline catches, and its cause is what the attempt failed with."""
    strategy, error = SmithyCoreRetryStrategy(standard(max_attempts=1)), fault()

    async def refusal() -> RetryError:
        token = await strategy.acquire_initial_retry_token()
        with pytest.raises(RetryError, match="max_attempts=1") as caught:
            await strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)
        return caught.value

    refused, _ = run(refusal())

    assert error is refused.__cause__
    assert refused.retry_after is None


class Refusing(smithy.StandardRetryStrategy):
    """Has no token for anybody, as the page permits."""

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> protocols.RetryToken:  # type: ignore[override]
        """Refuse."""
        raise protocols.RetryError("nobody may retry", retry_after=2.0)


@pytest.mark.parametrize(("expected", "long_poll"), [(0.0, False), (2.0, True)])
def test_a_request_without_a_token_is_sent_once(expected: float, long_poll: bool) -> None:
    """The pipeline would let the refusal through; here the request goes out, and just once."""
    strategy = SmithyCoreRetryStrategy(Refusing(rng=random.Random(7)))
    lucky, unlucky = Service(["answer"]), Service([fault()])
    (answer, _), (raised, seconds) = run(call(lucky, strategy)), run(failure(unlucky, strategy, long_poll=long_poll))

    assert ("answer", 1, 1) == (answer, lucky.sent, unlucky.sent)
    assert isinstance(raised, CallError)
    assert expected == seconds


def test_a_copy_is_the_same_object() -> None:
    """Clients copy their configuration deeply for every call; the quota must not go along."""
    strategy = SmithyCoreRetryStrategy(standard())

    assert strategy is copy.deepcopy({"retry_strategy": strategy})["retry_strategy"]
    assert strategy is copy.copy(strategy)


def test_a_call_that_is_cancelled() -> None:
    """Nobody swallows the cancellation while the pipeline waits for our delay, and the next call is served."""
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
