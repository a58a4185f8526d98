"""Idioms of tenacity and stamina, each with its equivalent in triclinium."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager

import stamina
import tenacity
import trio
import trio.testing

from triclinium import SimpleRetryStrategy, StandardRetryStrategy, attempts, retried, retry, watching_retries
from triclinium.retries import attempts_of
from triclinium_core.retry.smithy.backoff import ExponentialRetryBackoffStrategy, Jitter

quota = StandardRetryStrategy(rng=random.Random(0))
"""Strategy whose quota all calls to one service share; the other libraries have no quotas."""


class Service:
    """A service that fails a given number of times."""

    def __init__(self, failures: int) -> None:
        self.failures, self.calls = failures, 0

    async def ask(self) -> str:
        """Return a response, or raise ConnectionError."""
        await trio.lowlevel.checkpoint()
        self.calls += 1
        if self.calls <= self.failures:
            raise ConnectionError("no answer")
        return f"answer to call {self.calls}"


async def decorated_tenacity(service: Service) -> str:
    """Make at most three attempts, with random delays whose upper limit doubles."""

    @tenacity.retry(
        stop=tenacity.stop_after_attempt(3),
        wait=tenacity.wait_random_exponential(0.05, max=20),
        retry=tenacity.retry_if_exception_type(OSError),
        reraise=True,
    )
    async def ask() -> str:
        return await service.ask()

    return await ask()


async def decorated_stamina(service: Service) -> str:
    """Make at most three attempts, with the library's delays."""

    @stamina.retry(on=ConnectionError, attempts=3)
    async def ask() -> str:
        return await service.ask()

    return await ask()


async def decorated(service: Service) -> str:
    """Make at most three attempts, with the delays of the strategy."""

    @retried(strategy=quota, on=ConnectionError)
    async def ask() -> str:
        return await service.ask()

    return await ask()


async def block_tenacity(service: Service) -> str:
    """Retry a block while it raises, up to three attempts."""
    answer = "none"
    retrying = tenacity.AsyncRetrying(
        stop=tenacity.stop_after_attempt(3),
        wait=tenacity.wait_fixed(1),
        reraise=True,
    )
    async for attempt in retrying:
        with attempt:
            answer = await service.ask()
    return answer


async def block_stamina(service: Service) -> str:
    """Retry a block for one kind of error."""
    answer = "none"
    retrying = stamina.retry_context(
        on=ConnectionError,
        attempts=3,
    )
    async for attempt in retrying:
        with attempt:
            answer = await service.ask()
    return answer


async def block(service: Service) -> str:
    """Retry a block with the quota."""
    answer = "none"
    async for attempt in attempts(quota, on=ConnectionError):
        with attempt:
            answer = await service.ask()
    return answer


async def call_stamina(service: Service) -> str:
    """Retry one call of an undecorated function."""
    caller = stamina.AsyncRetryingCaller(attempts=3)
    return await caller.on(ConnectionError)(service.ask)


async def call(service: Service) -> str:
    """Retry one call of an undecorated function."""
    return await retry(
        service.ask,
        strategy=quota,
        on=ConnectionError,
    )


async def waits_tenacity(service: Service) -> str:
    """Retry after delays with full jitter, up to five seconds."""
    retrying = tenacity.AsyncRetrying(
        stop=tenacity.stop_after_attempt(5),
        wait=tenacity.wait_random_exponential(0.1, max=5),
    )
    return await retrying(service.ask)


async def waits(service: Service) -> str:
    """Retry after delays with full jitter, up to five seconds, with a strategy that has no quota."""
    backoff = ExponentialRetryBackoffStrategy(
        base=0.1,
        max=5.0,
        jitter=Jitter.FULL,
        rng=random.Random(0),
    )
    return await retry(
        service.ask,
        strategy=SimpleRetryStrategy(
            max_attempts=5,
            backoff=backoff,
        ),
        on=ConnectionError,
    )


class Fixed:
    """A custom backoff: one method."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        """Return the delay before a retry, in seconds."""
        return self._seconds if retry_attempt else 0.0


async def limit_tenacity(service: Service) -> str:
    """Stop retrying after ten seconds; an attempt that hangs continues."""
    retrying = tenacity.AsyncRetrying(
        stop=tenacity.stop_after_delay(10),
        wait=tenacity.wait_fixed(1),
    )
    return await retrying(service.ask)


async def limit(service: Service) -> str:
    """Limit all attempts together to ten seconds with a scope, which also ends an attempt that hangs."""
    strategy = SimpleRetryStrategy(
        max_attempts=1000,
        backoff=Fixed(1),
    )
    with trio.fail_after(10):
        return await retry(
            service.ask,
            strategy=strategy,
            on=ConnectionError,
        )


def is_first(answer: str) -> bool:
    """Return whether the response is that of the first call, which is not good enough."""
    return answer.endswith("1")


async def result_tenacity(service: Service) -> str:
    """Retry while the result is not good enough."""
    retrying = tenacity.AsyncRetrying(
        stop=tenacity.stop_after_attempt(3),
        retry=tenacity.retry_if_result(is_first),
    )
    return await retrying(service.ask)


async def result(service: Service) -> str:
    """Retry while the result is not good enough."""
    return await retry(
        service.ask,
        strategy=quota,
        retry_result=is_first,
    )


PAIRS: list[tuple[int, list[Callable[[Service], Coroutine[object, object, str]]]]] = [
    (2, [decorated_tenacity, decorated_stamina, decorated]),
    (1, [block_tenacity, block_stamina, block]),
    (2, [call_stamina, call]),
    (3, [waits_tenacity, waits]),
    (2, [limit_tenacity, limit]),
    (0, [result_tenacity, result]),
]
"""Groups of equivalent functions, each with the number of times that the service fails first."""


@contextmanager
def counting() -> Iterator[list[object]]:
    """Yield a list that collects the retry reports of a block."""
    reports: list[object] = []
    with watching_retries(reports.append):
        yield reports


async def main() -> None:
    """Run each group without stamina's log, then call a service that never recovers."""
    stamina.instrumentation.set_on_retry_hooks(())
    for failures, alike in PAIRS:
        for ask in alike:
            print(f"{ask.__name__}: {await ask(Service(failures))}")
    stamina.instrumentation.set_on_retry_hooks(None)
    with counting() as reports:
        try:
            await call(Service(failures=99))
        except ConnectionError as error:
            print(f"in the end: {error!r}, after {len(attempts_of(error))} attempts")
    print([type(report).__name__ for report in reports])


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
