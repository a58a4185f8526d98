"""Retries inside an httpx client: the requests that it sends again, their delays, and the final result."""

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
    """A scripted service; in production, ``httpx`` connects to a real one."""

    def __init__(self, *script: int | Exception) -> None:
        self.script = list(script)

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        """Return the next response of the script, or raise its next error; after its end, succeed."""
        await trio.lowlevel.checkpoint()
        step = self.script.pop(0) if self.script else 200
        print(f"  {trio.current_time():7.3f} s: {request.method}, {step!r}")
        if isinstance(step, Exception):
            raise step
        return httpx.Response(step, headers={"Retry-After": "30"} if step == 429 else {})


def client_of(shop: Shop, rules: HttpRetryRules | None = None) -> httpx.AsyncClient:
    """Return a client of the scripted shop. For a real service, use ``RetryTransport(strategy=quota)``."""
    return httpx.AsyncClient(
        transport=RetryTransport(httpx.MockTransport(shop), strategy=quota, rules=rules), base_url="http://shop.test"
    )


async def reads() -> None:
    """Retry idempotent requests after temporary failures."""
    async with client_of(Shop(503, httpx.ReadError("connection lost"), 200)) as client:
        response = await client.get("/orders/7")
        print("got", response.status_code, "after", len(response.extensions["triclinium_attempts"]), "failed attempts")


async def busy() -> None:
    """Wait for the delay that the service requests."""
    async with client_of(Shop(429, 200)) as client:
        print("got", (await client.get("/orders/7")).status_code)


async def no_time() -> None:
    """Get the response immediately, because the requested delay exceeds the deadline."""
    async with client_of(Shop(429)) as client:
        with trio.fail_after(10):
            response = await client.get("/orders/7")
    print("got", response.status_code, "since", response.extensions["triclinium_attempts"][-1].ending)


async def writes() -> None:
    """Show that the client repeats a POST without a key only if it was not sent."""
    async with client_of(Shop(503)) as client:
        print("got", (await client.post("/orders", json={"total": 42})).status_code)
    async with client_of(Shop(httpx.ConnectError("refused"), 201)) as client:
        print("got", (await client.post("/orders", json={"total": 42})).status_code)


async def writes_with_a_key() -> None:
    """Repeat a POST with a key by which the service recognizes repetitions."""
    rules = HttpRetryRules(idempotency_key=True)
    async with client_of(Shop(503, 201), rules) as client:
        response = await client.post("/orders", json={"total": 42}, headers={"Idempotency-Key": "8e03978e"})
        print("got", response.status_code)


async def rows() -> AsyncIterator[bytes]:
    """Yield a body that can be sent only once."""
    yield b"1;apples\n"
    yield b"2;pears\n"


async def streams() -> None:
    """Send a stream, which cannot be sent again, and one that was read into memory first, which can."""
    async with client_of(Shop(503, 503, 204)) as client:
        print("got", (await client.put("/stock", content=rows())).status_code)
        request = client.build_request("PUT", "/stock", content=rows())
        await request.aread()
        print("got", (await client.send(request)).status_code)


async def in_vain() -> None:
    """Show the attempts that the last error of httpx records."""
    async with client_of(Shop(503, httpx.ConnectError("refused"), httpx.ConnectError("refused"))) as client:
        try:
            await client.get("/orders/7")
        except httpx.ConnectError as error:
            for record in triclinium.retries.attempts_of(error):
                print(f"attempt {record.number} waited {record.delay:.3f} s, then {record.error!r}")


async def main() -> None:
    """Run all examples."""
    for show in (reads, busy, no_time, writes, writes_with_a_key, streams, in_vain):
        print(f"{show.__name__}:")
        await show()
    print(f"quota: {quota.available_quota('shop.test')} of {quota.quota_capacity}")


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
