"""Token strategies in a client: who is told of what they raise, and what the end of the client calls off."""

from __future__ import annotations

import logging

import pytest
import trio
import trio.testing

from tests.core.retry.combined.token_book import AwaitedBook, TokenBook
from triclinium import retrying
from triclinium.errors import RequestCanceledException
from triclinium.testing import open_fake_cluster
from triclinium_core.retry.smithy.protocols import RetryToken

BROKEN = ZeroDivisionError("a strategy with a defect")


class Stubborn(AwaitedBook):
    """Never ends to take a token back, and breaks when it is called off."""

    async def record_success(self, *, token: RetryToken) -> None:
        """Wait for ever."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            try:
                await trio.sleep_forever()
            finally:
                raise BROKEN


class BreaksFirst(AwaitedBook):
    """Breaks before the first attempt."""

    async def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:  # type: ignore[override]
        """Break."""
        raise BROKEN


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_strategy_that_breaks_at_a_success_is_logged(
    is_async: bool, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """At ERROR, with what it raised; the caller has its result."""
    book = TokenBook(raises=BROKEN)
    strategy = AwaitedBook(book, trio.lowlevel.checkpoint) if is_async else book
    async with open_fake_cluster() as fake, fake.open_client(retry_strategy=strategy) as cluster:
        result = await cluster.bucket("default").default_collection().upsert("ada", {})
        await trio.sleep(0.1)

    (record,) = [each for each in caplog.records if each.levelno >= logging.ERROR]

    assert result.cas
    assert ("triclinium.retry", BROKEN) == (record.name, record.exc_info and record.exc_info[1])


async def test_a_strategy_that_breaks_before_the_first_attempt_fails_the_call(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """With what it raised as the cause."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        people = cluster.bucket("default").default_collection()
        with (
            retrying(BreaksFirst(TokenBook(), trio.lowlevel.checkpoint)),
            pytest.raises(RequestCanceledException) as caught,
        ):
            await people.upsert("ada", {})

    assert BROKEN is caught.value.__cause__


async def test_leaving_the_client_calls_off_what_a_strategy_has_not_done(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Also where it breaks then: nobody waits for it."""
    book = TokenBook()
    with trio.fail_after(5.0):
        async with open_fake_cluster() as fake, fake.open_client() as cluster:
            with retrying(Stubborn(book, trio.lowlevel.checkpoint)):
                await cluster.bucket("default").default_collection().upsert("ada", {})
            await trio.sleep(0.1)

    assert [None] == book.ends
