"""Retries inside an httpx client: what is sent again, what is waited for, and what one gets in the end."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import httpx
import trio
import trio.testing

import triclinium
from triclinium import StandardRetryStrategy
from triclinium.adapters.httpx import HttpRetryRules, RetryTransport

quota = StandardRetryStrategy(rng=random.Random(0))


class Shop:
    """A service that fails as its script says; in earnest, ``httpx`` connects to one."""

    def __init__(self, *script: int | Exception) -> None:
        self.script = list(script)

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer a request."""
        await trio.lowlevel.checkpoint()
        step = self.script.pop(0) if self.script else 200
        print(f"  {trio.current_time():7.3f} s: {request.method}, {step!r}")
        if isinstance(step, Exception):
            raise step
        return httpx.Response(step, headers={"Retry-After": "30"} if step == 429 else {})


def client_of(shop: Shop, rules: HttpRetryRules | None = None) -> httpx.AsyncClient:
    """Return a client; without ``shop``, the transport would be ``RetryTransport(strategy=quota)``."""
    return httpx.AsyncClient(
        transport=RetryTransport(httpx.MockTransport(shop), strategy=quota, rules=rules), base_url="http://shop.test"
    )


async def reads() -> None:
    """Idempotent requests are sent again after what passes by itself."""
    async with client_of(Shop(503, httpx.ReadError("connection lost"), 200)) as client:
        response = await client.get("/orders/7")
        print("got", response.status_code, "after", len(response.extensions["triclinium_attempts"]), "failed attempts")


async def busy() -> None:
    """A service that says how long to wait is taken at its word."""
    async with client_of(Shop(429, 200)) as client:
        print("got", (await client.get("/orders/7")).status_code)


async def no_time() -> None:
    """Where that would be too long, its answer comes at once."""
    async with client_of(Shop(429)) as client:
        with trio.fail_after(10):
            response = await client.get("/orders/7")
    print("got", response.status_code, "since", response.extensions["triclinium_attempts"][-1].ending)


async def writes() -> None:
    """A POST that may have arrived is not repeated; one that was never sent is."""
    async with client_of(Shop(503)) as client:
        print("got", (await client.post("/orders", json={"total": 42})).status_code)
    async with client_of(Shop(httpx.ConnectError("refused"), 201)) as client:
        print("got", (await client.post("/orders", json={"total": 42})).status_code)


async def writes_with_a_key() -> None:
    """Where the service tells repetitions by a key, it may be asked twice."""
    rules = HttpRetryRules(idempotency_key=True)
    async with client_of(Shop(503, 201), rules) as client:
        response = await client.post("/orders", json={"total": 42}, headers={"Idempotency-Key": "8e03978e"})
        print("got", response.status_code)


async def rows() -> AsyncIterator[bytes]:
    """Yield a body that can be sent once."""
    yield b"1;apples\n"
    yield b"2;pears\n"


async def streams() -> None:
    """A stream can be read into memory first; then it can be sent again."""
    async with client_of(Shop(503, 503, 204)) as client:
        print("got", (await client.put("/stock", content=rows())).status_code)
        request = client.build_request("PUT", "/stock", content=rows())
        await request.aread()
        print("got", (await client.send(request)).status_code)


async def in_vain() -> None:
    """The last error is raised as httpx made it; its notes tell of the attempts."""
    async with client_of(Shop(503, httpx.ConnectError("refused"), httpx.ConnectError("refused"))) as client:
        try:
            await client.get("/orders/7")
        except httpx.ConnectError as error:
            for record in triclinium.attempts_of(error):
                print(f"attempt {record.number} waited {record.delay:.3f} s, then {record.error!r}")


async def main() -> None:
    """Show them all."""
    for show in (reads, busy, no_time, writes, writes_with_a_key, streams, in_vain):
        print(f"{show.__name__}:")
        await show()
    print(f"quota: {quota.available_quota('shop.test')} of {quota.quota_capacity}")


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
