"""Scripted transport and a strategy without jitter, with which tests retry inside httpx clients without a network."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Self

import httpx
import trio

from triclinium_core.retry.smithy import ExponentialRetryBackoffStrategy, Jitter, StandardRetryStrategy

TransportStep = int | httpx.Response | Exception
"""Status, response or exception with which the transport handles one request."""


def standard(*, max_attempts: int = 3, quota_capacity: int = 500) -> StandardRetryStrategy:
    """Return a strategy without jitter, which waits 0.05 s, 0.1 s …, and after status 429 1 s, 2 s …."""
    rng = random.Random(7)
    return StandardRetryStrategy(
        rng=rng,
        max_attempts=max_attempts,
        quota_capacity=quota_capacity,
        backoff=ExponentialRetryBackoffStrategy(rng=rng, base=0.05, jitter=Jitter.NONE),
        throttling_backoff=ExponentialRetryBackoffStrategy(rng=rng, base=1.0, jitter=Jitter.NONE),
    )


class ScriptedTransport(httpx.AsyncBaseTransport):
    """Transport that responds from a script, and records times and bodies of requests, and bodies of responses."""

    def __init__(self, *steps: TransportStep) -> None:
        self.steps = iter(steps)
        self.asked_at: list[float] = []
        self.bodies: list[bytes] = []
        self.answered: list[Body] = []
        self.seconds_to_answer = 0.0
        self.seconds_to_close = 0.0
        self.fails_to_close: Exception | None = None
        self.is_entered = self.is_closed = False

    async def __aenter__(self) -> Self:
        self.is_entered = True
        return self

    async def aclose(self) -> None:
        self.is_closed = True

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked_at.append(trio.current_time())
        await trio.sleep(self.seconds_to_answer)
        step = next(self.steps)
        if isinstance(step, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
            raise step
        assert isinstance(request.stream, httpx.AsyncByteStream)
        self.bodies.append(b"".join([part async for part in request.stream]))
        if isinstance(step, Exception):
            raise step
        given = step if isinstance(step, httpx.Response) else httpx.Response(step)
        body = Body(self.seconds_to_close, self.fails_to_close)
        self.answered.append(body)
        return httpx.Response(given.status_code, headers=given.headers, stream=body)


class Body(httpx.AsyncByteStream):
    """Body of a response, which records whether it was read and closed."""

    def __init__(self, seconds_to_close: float, fails_to_close: Exception | None) -> None:
        self.seconds_to_close = seconds_to_close
        self.fails_to_close = fails_to_close
        self.is_read = self.is_closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self.is_read = True
        yield b"body"

    async def aclose(self) -> None:
        self.is_closed = True
        if self.seconds_to_close:
            await trio.sleep(self.seconds_to_close)
        if self.fails_to_close is not None:
            raise self.fails_to_close
