"""Smithy's strategies: the loop around them, a quota that requests share, and an adaptive rate."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

import trio
import trio.testing

from triclinium_core.retry.smithy.adaptive import AdaptiveRetryStrategy
from triclinium_core.retry.smithy.numbers import AwsRetryNumbers
from triclinium_core.retry.smithy.protocols import RetryError
from triclinium_core.retry.smithy.standard import StandardRetryStrategy


class Unavailable(Exception):
    """An error with the attributes that a strategy reads."""

    is_retry_safe = True
    retry_after: float | None = None
    is_throttling_error = False


class Throttled(Unavailable):
    """The error of a service that throttles requests."""

    is_throttling_error = True


async def call(send: Callable[[], Awaitable[str]], strategy: StandardRetryStrategy, scope: str | None = None) -> str:
    """Return the final result of ``send``, or raise its last error."""
    token = strategy.acquire_initial_retry_token(token_scope=scope)
    while True:
        try:
            await trio.sleep(token.retry_delay)
        except trio.Cancelled:
            strategy.abandon(token=token)
            raise
        try:
            answer = await send()
        except Unavailable as error:
            try:
                token = strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)
            except RetryError as refusal:
                error.add_note(str(refusal))
                raise error from None
        else:
            strategy.record_success(token=token)
            return answer


async def outage(numbers: AwsRetryNumbers) -> None:
    """Print the number of requests that a thousand calls send to a service that is down."""
    strategy = StandardRetryStrategy(rng=random.Random(0), numbers=numbers)
    sent = 0

    async def send() -> str:
        nonlocal sent
        sent += 1
        await trio.lowlevel.checkpoint()
        raise Unavailable("503")

    for request in range(1000):
        try:
            await call(send, strategy, scope="orders")
        except Unavailable as error:
            if request in {0, 999}:
                print(f"  request {request + 1}: {error.__notes__[0]}")
    print(f"  {sent} attempts for 1000 requests; left: {strategy.available_quota('orders')}")
    print(f"  another scope has {strategy.available_quota('users')}")


async def adapt() -> None:
    """Print the allowed rate after a service has throttled, the time of 200 requests after that, and the new rate."""
    strategy = AdaptiveRetryStrategy(rng=random.Random(0), clock=trio.current_time)

    async def throttle() -> str:
        await trio.lowlevel.checkpoint()
        raise Throttled("429")

    async def succeed() -> str:
        await trio.lowlevel.checkpoint()
        return "200"

    try:
        await call(throttle, strategy)
    except Throttled as error:
        print(f"  {error} at last; allowed: {strategy.allowed_rate:.1f} requests a second")
    start = trio.current_time()
    for _ in range(200):
        await call(succeed, strategy)
    print(f"  200 answers in {trio.current_time() - start:.1f} s; allowed: {strategy.allowed_rate:.1f} a second")


async def main() -> None:
    """Run everything in virtual time."""
    for name, numbers in {"2020": AwsRetryNumbers.OF_2020, "2026": AwsRetryNumbers.OF_2026}.items():
        print(f"numbers of {name}")
        await outage(numbers)
    print("adaptive")
    await adapt()


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
