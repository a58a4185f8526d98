"""Random histories of a request through the transport: every repetition is safe, and every failure has a reason."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import pairwise

import httpx
import trio
from hypothesis import event, given, strategies as st
from trio.testing import MockClock

from tests.trio_client.adapters.scripted_transport import ScriptedTransport, TransportStep, standard
from triclinium.adapters.httpx import ATTEMPTS, HttpRetryRules, RetryTransport
from triclinium.retries import AttemptRecord, RetryEnding, attempts_of
from triclinium_core.retry.calls import IDEMPOTENT_METHODS, RETRIED_STATUSES

CAPACITY = 40
"""Units in the quota: enough for two retries, or for eight after throttling."""
COST = 14
STEPS = 6
"""Number of steps in a script, more than the attempts of any strategy here."""

UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
LOST = (httpx.ReadError, httpx.WriteError, httpx.ReadTimeout, httpx.RemoteProtocolError)
HOPELESS = (httpx.ProxyError, httpx.UnsupportedProtocol, httpx.LocalProtocolError)


def answer_of(status: int, seconds: int | None) -> httpx.Response:
    """Return a response that may have a Retry-After header."""
    return httpx.Response(status, headers={} if seconds is None else {"retry-after": str(seconds)})


ANSWERS = st.builds(
    answer_of,
    # Prefer retried statuses, because a history with a single attempt tests little.
    st.sampled_from([200, 204, 301, 404, 500, 501, *RETRIED_STATUSES, *RETRIED_STATUSES, *RETRIED_STATUSES]),
    st.sampled_from([None, None, None, None, 0, 1, 7, 61, 10**12]),
)
FAILURES = st.sampled_from([*UNSENT, *LOST, *LOST, *HOPELESS]).map(lambda kind: kind("in vain"))


@dataclass(frozen=True)
class HttpHistory:
    """History of one request."""

    method: str
    has_key: bool
    is_stream: bool
    rules: HttpRetryRules
    attempts_max: int
    seconds_max: float
    script: tuple[httpx.Response | httpx.TransportError, ...]

    @property
    def may_be_repeated(self) -> bool:
        """Whether the request is safe to send twice."""
        is_idempotent = self.method in IDEMPOTENT_METHODS or (self.has_key and self.rules.idempotency_key)
        return is_idempotent and not self.is_stream

    def may_follow(self, step: httpx.Response | httpx.TransportError) -> bool:
        """Return whether another attempt may follow an attempt with this result."""
        if isinstance(step, httpx.Response):
            wish, most = wish_of(step), self.rules.retry_after_max
            return step.status_code in self.rules.statuses and self.may_be_repeated and (most is None or wish <= most)
        return isinstance(step, UNSENT) or (isinstance(step, LOST) and self.may_be_repeated)


def wish_of(step: httpx.Response | httpx.TransportError) -> float:
    """Return the delay in seconds that a response requests in its Retry-After header, at most a billion."""
    return min(float(step.headers.get("retry-after", 0)), 1e9) if isinstance(step, httpx.Response) else 0.0


HISTORIES = st.builds(
    HttpHistory,
    method=st.sampled_from(["GET", "PUT", "DELETE", "POST", "PATCH"]),
    has_key=st.booleans(),
    is_stream=st.booleans(),
    rules=st.builds(
        HttpRetryRules, idempotency_key=st.booleans(), retry_after_max=st.none() | st.sampled_from([0.5, 7.0])
    ),
    attempts_max=st.sampled_from([0, 1, 3, 3, 4, STEPS - 1, STEPS - 1]),
    seconds_max=st.sampled_from([math.inf, math.inf, math.inf, 0.01, 2.0, 30.0]),
    script=st.tuples(*[ANSWERS | FAILURES] * STEPS),
)


async def body() -> AsyncIterator[bytes]:
    """Yield a body that can be read once."""
    yield b"order"


@given(HISTORIES)
def test_any_history(history: HttpHistory) -> None:
    """In any history, no attempt is unsafe, superfluous, early or late, and every failure has a correct reason."""
    steps: list[TransportStep] = [*history.script]
    script = ScriptedTransport(*steps)
    strategy = standard(max_attempts=history.attempts_max, quota_capacity=CAPACITY)
    transport = RetryTransport(script, strategy=strategy, rules=history.rules)

    async def main() -> tuple[object, tuple[AttemptRecord, ...], float]:
        async with httpx.AsyncClient(transport=transport, follow_redirects=False) as client:
            with trio.move_on_after(history.seconds_max) as scope:
                try:
                    response = await client.request(
                        history.method,
                        "http://service.test/",
                        content=body() if history.is_stream else b"order",
                        headers={"Idempotency-Key": "7"} if history.has_key else None,
                    )
                except httpx.TransportError as error:
                    return error, attempts_of(error), trio.current_time()
                return response.status_code, response.extensions[ATTEMPTS], trio.current_time()
            raise AssertionError(f"the request was cancelled by its deadline: {scope}")

    ended, records, now = trio.run(main, clock=MockClock(autojump_threshold=0))
    count = len(script.asked_at)
    made, last = history.script[:count], history.script[count - 1]
    event(f"{count} attempts, {records[-1].ending if records else None}")

    # Safety: no attempt was forbidden, and the result is that of the last attempt.
    assert ended == (last.status_code if isinstance(last, httpx.Response) else last)
    assert count <= max(1, history.attempts_max)
    assert all(history.may_follow(step) for step in made[:-1])
    assert all(
        later - earlier >= wish_of(step) - 1e-6
        for step, (earlier, later) in zip(made, pairwise(script.asked_at), strict=False)
    )
    assert all(moment < history.seconds_max for moment in script.asked_at)
    assert all(sent == b"order" for sent in script.bodies)
    given_up = script.answered[:-1] if isinstance(last, httpx.Response) else script.answered
    assert all(answer.is_closed and not answer.is_read for answer in given_up)
    assert 0 <= strategy.available_quota("service.test") <= CAPACITY

    # Liveness: a request that fails has a valid reason, and fails without a further delay.
    assert now == script.asked_at[-1]
    is_success = (
        isinstance(last, httpx.Response) and last.status_code < 500 and last.status_code not in RETRIED_STATUSES
    )
    assert [None] * (count - 1) == [record.ending for record in records[: count - 1]]
    assert count - is_success == len(records)
    if not is_success:
        excuses = {
            RetryEnding.NOT_RETRY_SAFE: not history.may_follow(last),
            RetryEnding.EXHAUSTED: count >= history.attempts_max,
            RetryEnding.QUOTA: strategy.available_quota("service.test") < COST,
            RetryEnding.DEADLINE: history.seconds_max < math.inf,
        }
        ending = records[-1].ending
        assert ending is not None
        assert excuses[ending]
