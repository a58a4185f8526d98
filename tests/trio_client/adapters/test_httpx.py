"""Retries inside an httpx client in virtual time, without sockets, in cases that test_httpx_properties.py lacks."""

from __future__ import annotations

import asyncio
import importlib
import random
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import httpx2
import pytest
import trio
from trio.testing import MockClock

import triclinium
from tests.rows import rows
from tests.trio_client.adapters.scripted_transport import ScriptedTransport, TransportStep, standard
from triclinium.adapters.httpx import ATTEMPTS, FailedAnswer, HttpRetryRules, RetryTransport
from triclinium.adapters.httpx2 import RetryTransport as Httpx2RetryTransport
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.smithy import AnyRetryStrategy, RetryToken, StandardRetryStrategy

URL = "http://service.test/orders"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def after(seconds: object) -> httpx.Response:
    """Return a response with a Retry-After header."""
    return httpx.Response(503, headers={"retry-after": str(seconds)})


async def ask(
    script: ScriptedTransport,
    method: str = "GET",
    *,
    strategy: AnyRetryStrategy | None = None,
    rules: HttpRetryRules | None = None,
    hooks: Sequence[Callable[[triclinium.retries.RetryReport], object]] = (),
    content: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> httpx.Response:
    """Send one request through a client, and return the response."""
    transport = RetryTransport(
        script,
        strategy=standard() if strategy is None else strategy,
        rules=rules,
        hooks=hooks,
        wall_clock=NOON.timestamp,
    )
    async with httpx.AsyncClient(transport=transport) as client:
        return await client.request(method, URL, content=content, headers=headers)


def statuses(records: Sequence[triclinium.retries.AttemptRecord]) -> list[object]:
    """Return the result of each attempt: a status, or a type of exception."""
    return [
        record.error.status_code if isinstance(record.error, FailedAnswer) else type(record.error) for record in records
    ]


async def test_a_request_is_retried_until_it_succeeds(autojump_clock: MockClock) -> None:
    """A request is retried after the strategy's delays until it succeeds; the response records earlier attempts."""
    await trio.sleep(5)
    script = ScriptedTransport(503, httpx.ReadError("gone"), 200)
    script.seconds_to_answer = 2.0
    response = await ask(script)
    records: tuple[triclinium.retries.AttemptRecord, ...] = response.extensions[ATTEMPTS]

    assert 200 == response.status_code
    assert pytest.approx([5.0, 7.05, 9.15]) == script.asked_at
    assert [503, httpx.ReadError] == statuses(records)
    assert [(1, 0.0, None), (2, 0.05, None)] == [(record.number, record.delay, record.ending) for record in records]
    assert pytest.approx([2.0, 2.0]) == [record.elapsed for record in records]


async def test_the_last_answer_is_returned(autojump_clock: MockClock) -> None:
    """If retries end with a response, the caller gets it unread and no exception; its records give the reason."""
    script = ScriptedTransport(503, 429, 504)
    response = await ask(script)
    records: tuple[triclinium.retries.AttemptRecord, ...] = response.extensions[ATTEMPTS]

    assert (504, b"body") == (response.status_code, response.content)
    assert [503, 429, 504] == statuses(records)
    assert triclinium.retries.RetryEnding.EXHAUSTED is records[-1].ending
    assert pytest.approx([0.0, 0.05, 2.05]) == script.asked_at


async def test_the_last_error_is_raised(autojump_clock: MockClock) -> None:
    """If retries end with an error, the same object is raised with its attempts, like in ``triclinium.retry``."""
    last = httpx.ReadTimeout("too slow")
    with pytest.raises(httpx.ReadTimeout) as caught:
        await ask(ScriptedTransport(503, httpx.ConnectError("refused"), last))

    assert last is caught.value
    assert [503, httpx.ConnectError, httpx.ReadTimeout] == statuses(triclinium.retries.attempts_of(last))
    assert "attempt 1: took 0.000 s: FailedAnswer: 503 Service Unavailable" in last.__notes__


async def test_a_retried_response_is_closed_before_the_delay(autojump_clock: MockClock) -> None:
    """A response that is retried is closed unread before the delay."""
    script = ScriptedTransport(after(60), 200)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, script)
        await trio.sleep(1)
        seen = [(body.is_read, body.is_closed) for body in script.answered]

    assert [(False, True)] == seen


class Reset(httpx.ReadError):
    """Exception of a custom transport."""


@pytest.mark.parametrize(
    ("expected", "method", "step", "headers", "rules"),
    [
        (2, "GET", Reset("gone"), {}, None),
        (1, "POST", 503, {}, None),
        (1, "POST", httpx.WriteTimeout("gone"), {}, None),
        (2, "POST", httpx.ConnectTimeout("silent"), {}, None),
        (2, "POST", 503, {"Idempotency-Key": "7"}, HttpRetryRules(idempotency_key=True)),
        (1, "POST", 503, {}, HttpRetryRules(idempotency_key=True)),
        (2, "GET", 500, {}, HttpRetryRules(statuses={500})),
    ],
)
async def test_only_safe_requests_are_retried(  # noqa: PLR0917  # columns of a table
    autojump_clock: MockClock,
    expected: int,
    method: str,
    step: TransportStep,
    headers: dict[str, str],
    rules: HttpRetryRules | None,
) -> None:
    """Requests idempotent by method or key are retried after temporary failures; others only if nothing was sent."""
    script = ScriptedTransport(step, 200)
    try:
        await ask(script, method, content=b"order", headers=headers, rules=rules)
    except httpx.TransportError as error:
        assert step is error

    assert expected == len(script.asked_at)


@pytest.mark.parametrize(
    ("expected", "header"),
    [(30.0, "30"), (30.0, format_datetime(NOON + timedelta(seconds=30), usegmt=True)), (0.05, "soon")],
)
async def test_retry_after(autojump_clock: MockClock, expected: float, header: str) -> None:
    """Only a valid Retry-After header sets the delay, which is the backoff otherwise."""
    script = ScriptedTransport(after(header), 200)
    await ask(script)

    assert pytest.approx([0.0, expected]) == script.asked_at


@pytest.mark.parametrize(
    ("response", "to_answer", "to_close"),
    [(200, 30, 0), (503, 0, 30), (after(30), 0, 0)],
    ids=["for the response", "for its end", "for a retry"],
)
async def test_a_cancelled_request_costs_nothing(
    autojump_clock: MockClock, response: TransportStep, to_answer: float, to_close: float
) -> None:
    """If the request is cancelled during any of its waits, nothing more is sent and no tokens are taken."""
    script, strategy, left = ScriptedTransport(response, 200), standard(), []
    script.seconds_to_answer, script.seconds_to_close = to_answer, to_close

    async def work() -> None:
        try:
            await ask(script, strategy=strategy)
        except trio.Cancelled:
            # The call is still alive, because the exception references it; when freed, it would return its tokens.
            left.append(strategy.available_quota("service.test"))
            raise

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work)
        await trio.sleep(10)
        # Cancel without a deadline: with a deadline, the response would be returned before its delay.
        nursery.cancel_scope.cancel()

    assert ([0.0], [500]) == (script.asked_at, left)


@pytest.mark.parametrize("failure", [httpx.ReadError("reset"), trio.BrokenResourceError("reset")])
async def test_a_response_that_fails_to_close(autojump_clock: MockClock, failure: Exception) -> None:
    """If closing a retried response fails, the next attempt follows, and its record has the failure as a note."""
    script = ScriptedTransport(503, 503)
    script.fails_to_close = failure
    transport = RetryTransport(script, strategy=standard(max_attempts=2))
    response = await transport.handle_async_request(httpx.Request("GET", URL))
    first, last = response.extensions[ATTEMPTS]

    assert (503, [503, 503], 2) == (response.status_code, statuses([first, last]), len(script.asked_at))
    assert [True, False] == [body.is_closed for body in script.answered]
    assert any("reset" in note for note in first.error.__notes__)


async def test_a_quota_for_each_host(autojump_clock: MockClock) -> None:
    """A host that is down uses up only its own quota of a strategy that transports share."""
    strategy = standard(quota_capacity=14)
    for _ in range(3):
        response = await ask(ScriptedTransport(503, 503, 503), strategy=strategy)
        assert triclinium.retries.RetryEnding.QUOTA is response.extensions[ATTEMPTS][-1].ending

    assert (0, 14) == (strategy.available_quota("service.test"), strategy.available_quota("up.test"))


@pytest.mark.parametrize(("expected", "status"), [(1, 200), (1, 404), (0, 500)])
async def test_a_response_refills_the_quota(autojump_clock: MockClock, expected: int, status: int) -> None:
    """A response other than a server error returns a token to the quota."""
    strategy = standard(quota_capacity=14)
    await ask(ScriptedTransport(503, 503), strategy=strategy)
    await ask(ScriptedTransport(status), strategy=strategy)

    assert expected == strategy.available_quota("service.test")


async def test_a_custom_token_scope(autojump_clock: MockClock) -> None:
    """A function may compute the token scope of each request."""
    strategy = standard(quota_capacity=14)
    transport = RetryTransport(
        ScriptedTransport(503, 503), strategy=strategy, token_scope=lambda request: request.url.path
    )
    async with httpx.AsyncClient(transport=transport) as client:
        await client.get(URL)

    assert (0, 14) == (strategy.available_quota("/orders"), strategy.available_quota("service.test"))


class Asynchronous:
    """Strategy that makes the decisions of a plain one in async methods, as smithy-core does."""

    def __init__(self, strategy: StandardRetryStrategy) -> None:
        self.strategy = strategy

    async def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:
        await trio.sleep(1)
        return self.strategy.acquire_initial_retry_token(token_scope=token_scope)

    async def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> RetryToken:
        await trio.sleep(1)
        return self.strategy.refresh_retry_token_for_retry(token_to_renew=token_to_renew, error=error)

    async def record_success(self, *, token: RetryToken) -> None:
        await trio.sleep(1)
        self.strategy.record_success(token=token)


async def test_an_asynchronous_strategy(autojump_clock: MockClock) -> None:
    """An asynchronous strategy is awaited, and its decisions apply."""
    script, strategy = ScriptedTransport(503, 200), standard()
    response = await ask(script, strategy=Asynchronous(strategy))

    assert 200 == response.status_code
    assert pytest.approx([1.0, 2.05]) == script.asked_at
    assert 500 == strategy.available_quota("service.test")


@pytest.mark.parametrize("failure", [None, httpx.ReadError("reset")])
@pytest.mark.parametrize("step", [200, 503])
async def test_cancelled_during_an_asynchronous_strategy(
    autojump_clock: MockClock, step: TransportStep, failure: Exception | None
) -> None:
    """If the request is cancelled while the strategy is awaited, the response is closed, even if closing it fails."""
    script = ScriptedTransport(step)
    script.fails_to_close = failure
    with trio.move_on_after(1.5) as scope:
        await ask(script, strategy=Asynchronous(standard()))

    assert scope.cancelled_caught
    assert [True] == [body.is_closed for body in script.answered]


class Nonsensical(StandardRetryStrategy):
    """Strategy that returns an object that is not a token."""

    def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> RetryToken:  # type: ignore[override]
        """Return an invalid value."""
        return "token"  # type: ignore[return-value]


async def test_an_invalid_token_of_a_strategy(autojump_clock: MockClock) -> None:
    """An invalid token raises an error with the strategy's name, and the response is closed."""
    script = ScriptedTransport(503)
    with pytest.raises(ArgumentError, match="strategy Nonsensical .*'token'"):
        await ask(script, strategy=Nonsensical(rng=random.Random(7)))

    assert [True] == [body.is_closed for body in script.answered]


async def test_retries_are_reported_to_hooks(autojump_clock: MockClock) -> None:
    """Each retry and its end is reported with method and host."""
    reports: list[triclinium.retries.RetryReport] = []
    await ask(ScriptedTransport(503, 200), hooks=[reports.append])
    await ask(ScriptedTransport(503, 503, 503), hooks=(reports.append,))

    assert [
        triclinium.retries.RetryScheduled,
        triclinium.retries.RetrySucceeded,
        triclinium.retries.RetryScheduled,
        triclinium.retries.RetryScheduled,
        triclinium.retries.RetryGivenUp,
    ] == [type(report) for report in reports]
    assert {("GET service.test", "service.test")} == {(report.name, report.token_scope) for report in reports}


async def test_the_inner_transport_is_entered_and_closed() -> None:
    """The inner transport is entered with the client's block, and closed with the outer transport."""
    in_a_block, closed = ScriptedTransport(200), ScriptedTransport(200)
    async with httpx.AsyncClient(transport=RetryTransport(in_a_block)) as client:
        await client.get(URL)
    await RetryTransport(closed).aclose()

    assert (True, True) == (in_a_block.is_entered, closed.is_closed)


async def test_the_default_strategy(autojump_clock: MockClock) -> None:
    """The default strategy makes three attempts."""
    script = ScriptedTransport(503, 503, 503)
    async with httpx.AsyncClient(transport=RetryTransport(script)) as client:
        response = await client.get(URL)

    assert (503, 3) == (response.status_code, len(script.asked_at))


@rows(
    ("parameter", "value"),
    [
        ("transport", "https"),
        ("transport", httpx.HTTPTransport),
        ("strategy", 3),
        ("strategy", StandardRetryStrategy),
        ("rules", {429}),
        ("token_scope", "host"),
        ("wall_clock", 0.0),
        ("wall_clock", 10**5000),
        ("hooks", print),
        ("hooks", [3]),
    ],
)
def test_wrong_arguments(parameter: str, value: object) -> None:
    """A wrong argument raises immediately, with its name."""
    with pytest.raises(ArgumentError) as caught:
        RetryTransport(**{parameter: value})  # type: ignore[arg-type]

    assert parameter == caught.value.parameter


async def test_an_invalid_token_scope(autojump_clock: MockClock) -> None:
    """An invalid token scope raises before anything is sent."""
    script = ScriptedTransport(200)
    transport = RetryTransport(script, token_scope=lambda request: 7)  # type: ignore[arg-type,return-value]
    async with httpx.AsyncClient(transport=transport) as client:
        with pytest.raises(ArgumentError, match="token_scope=7 must be a string or None"):
            await client.get(URL)

    assert [] == script.asked_at


def test_without_trio() -> None:
    """On another event loop, RuntimeError is raised before anything is sent."""
    script = ScriptedTransport(200)

    async def get() -> None:
        async with httpx.AsyncClient(transport=RetryTransport(script)) as client:
            await client.get(URL)

    with pytest.raises(RuntimeError, match="use its client in trio.run"):
        asyncio.run(get())
    assert [] == script.asked_at


@pytest.mark.parametrize("name", ["httpx", "httpx2"])
def test_a_missing_package(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Without its package, the adapter raises ImportError with the command that installs it."""
    importlib.import_module(f"triclinium.adapters.{name}")
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"triclinium.adapters.{name}")
    with pytest.raises(ImportError, match=rf"pip install 'triclinium\[{name}\]'"):
        importlib.import_module(f"triclinium.adapters.{name}")


def errors_below(kind: type[Exception]) -> set[str]:
    """Return the names of all subclasses of an exception that its own library defines."""
    own = [child for child in kind.__subclasses__() if child.__module__.startswith(kind.__module__.partition(".")[0])]
    return {child.__name__ for child in own}.union(*(errors_below(child) for child in own))


def test_httpx_and_httpx2_have_the_same_errors() -> None:
    """httpx2 has one exception more than httpx, raised while a body is read and thus by no transport."""
    assert {"SSEError"} == errors_below(httpx2.TransportError) ^ errors_below(httpx.TransportError)


@pytest.mark.parametrize(
    ("adapted", "stranger"),
    [(RetryTransport, httpx2.AsyncHTTPTransport()), (Httpx2RetryTransport, ScriptedTransport())],
)
def test_a_transport_of_the_other_library(adapted: Callable[[object], object], stranger: object) -> None:
    """A transport of the other library raises immediately, because its requests and errors have other classes."""
    with pytest.raises(ArgumentError) as caught:
        adapted(stranger)

    assert "transport" == caught.value.parameter


def test_repr_shows_transport_and_strategy() -> None:
    """The repr shows the inner transport, and the strategy with its numbers."""
    shown = repr(RetryTransport(ScriptedTransport(), strategy=standard()))

    assert shown == "<RetryTransport over ScriptedTransport: StandardRetryStrategy(max_attempts=3, quota_capacity=500)>"
