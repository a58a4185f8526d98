"""Reports of retries: in the log, and to the hooks of a call or a block."""

from __future__ import annotations

import contextlib
import logging

import pytest
import trio
from trio.testing import MockClock

import triclinium.testing
from tests.rows import rows
from tests.trio_client.retried_calls import Flaky
from tests.trio_client.retry_doubles import ScriptedStrategy, Token
from triclinium._retry.attempts import attempts
from triclinium._retry.retry import retry
from triclinium._retry.strategies import StandardRetryStrategy
from triclinium._retry.watching import watching_retries
from triclinium.errors import ArgumentError
from triclinium.retries import RetryEnding, RetryGivenUp, RetryReport, RetryScheduled, RetrySucceeded
from triclinium_core.retry.smithy import RetryError

ERROR = OSError()


@rows(
    ("answers", "errors", "expected"),
    [
        ([Token()], [], []),
        (
            [Token(), Token(0.5)],
            [ERROR],
            [RetryScheduled("Flaky.__call__", 1, 0.5, ERROR, "eu"), RetrySucceeded("Flaky.__call__", 2, "eu")],
        ),
        ([Token(), RetryError()], [ERROR], [RetryGivenUp("Flaky.__call__", 1, RetryEnding.REFUSED, ERROR, "eu")]),
    ],
)
async def test_reports_of_a_call(
    autojump_clock: MockClock, answers: list[object], errors: list[Exception], expected: list[RetryReport]
) -> None:
    """The hook gets a report of each retry, and of the success or failure after one; an immediate success has none."""
    reported: list[RetryReport] = []
    call, strategy = Flaky(*errors).__call__, ScriptedStrategy(*answers)
    with contextlib.suppress(OSError):  # Compare only the reports, including those of calls that fail.
        await retry(call, strategy=strategy, on=OSError, token_scope="eu", hooks=(reported.append,))

    assert expected == reported


async def test_a_block_reports_all_calls_inside() -> None:
    """Hooks of a block also get the reports of its child tasks, and run before the hooks that an inner block adds."""
    received: list[str] = []

    def hook(name: str) -> triclinium.retries.RetryHook:
        return lambda report: received.append(f"{name} {report.name}")

    async def work(name: str) -> None:
        async for attempt in attempts(
            ScriptedStrategy(Token(), RetryError()), on=OSError, name=name, hooks=[hook("own")]
        ):
            with attempt:
                attempt.retry()

    with watching_retries(hook("outer")):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work, "a")
        with watching_retries(hook("inner")):
            await work("b")
    await work("c")

    assert ["outer a", "own a", "outer b", "inner b", "own b", "own c"] == received


async def test_a_hook_that_raises(caplog: pytest.LogCaptureFixture, autojump_clock: MockClock) -> None:
    """An exception of a hook is logged, the other hooks run, and the call continues."""
    reported: list[RetryReport] = []

    def broken(report: RetryReport) -> None:
        raise ZeroDivisionError

    await retry(Flaky(OSError()), strategy=StandardRetryStrategy(), on=OSError, hooks=[broken, reported.append])
    records = [record for record in caplog.records if record.levelno == logging.ERROR]

    assert 2 == len(reported) == len(records)
    assert "broken" in records[0].getMessage()
    assert records[0].exc_info is not None


async def test_the_log(caplog: pytest.LogCaptureFixture, autojump_clock: MockClock) -> None:
    """Retries are logged at DEBUG and failures at INFO, with their fields as attributes of the record."""
    caplog.set_level(logging.DEBUG, logger="triclinium.retry")
    strategy = ScriptedStrategy(Token(), Token(0.25), Token(), RetryError())
    await retry(Flaky(OSError("1")), strategy=strategy, on=OSError, name="get", token_scope="eu")
    with pytest.raises(OSError, match="2"):
        await retry(Flaky(OSError("2")), strategy=strategy, on=OSError, name="get")

    assert [
        (logging.DEBUG, "get is retried in 0.250 s (attempt 1: OSError: 1)"),
        (logging.DEBUG, "get succeeded at attempt 2"),
        (
            logging.INFO,
            f"get is not retried: {RetryEnding.REFUSED} (attempt 1: OSError: 2)",
        ),
    ] == [(record.levelno, record.getMessage()) for record in caplog.records]
    assert ("get", 1, "eu", 0.25) == tuple(
        vars(caplog.records[0])[name] for name in ("call", "attempt", "token_scope", "delay")
    )
    assert "REFUSED" == vars(caplog.records[2])["ending"]


async def slow(report: RetryReport) -> None:
    """Stand in for an asynchronous hook, which is not allowed."""


@pytest.mark.parametrize("hook", [3, slow])
def test_an_invalid_hook_is_refused(hook: object) -> None:
    """A hook that is not callable, or is asynchronous, raises before the block begins."""
    with pytest.raises(ArgumentError) as caught, watching_retries(hook):  # type: ignore[arg-type]
        pass

    assert "hooks" == caught.value.parameter
