"""Token strategies in a client: who is told of what they raise, and what the end of the client calls off."""

from __future__ import annotations

import logging

import pytest
import trio
import trio.testing

from tests.core.retry.combined.token_book import AwaitedBook, TokenBook
from triclinium import errors, retrying
from triclinium.testing import open_fake_cluster
from triclinium_core.retry.smithy import RetryToken

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
            pytest.raises(errors.RequestCanceledException) as caught,
        ):
            await people.upsert("ada", {})

    assert BROKEN is caught.value.__cause__


class Slow(AwaitedBook):
    """Takes two seconds to take a token back."""

    async def record_success(self, *, token: RetryToken) -> None:
        """Wait, and write it down."""
        await trio.sleep(2.0)
        await super().record_success(token=token)


@pytest.mark.parametrize("pause", [0.0, 0.5])
async def test_leaving_the_client_waits_for_what_a_strategy_records(
    pause: float, autojump_clock: trio.testing.MockClock
) -> None:
    """The connections are closed at once; the success is recorded, though nothing else of the client goes on."""
    book = TokenBook()
    async with open_fake_cluster() as fake:
        async with fake.open_client() as cluster:
            with retrying(Slow(book, trio.lowlevel.checkpoint)):
                await cluster.bucket("default").default_collection().upsert("ada", {})
            await trio.sleep(pause)
        left_at = trio.current_time()

    assert ["recorded"] == book.ends
    assert 2.0 == pytest.approx(left_at)


async def test_a_scope_around_the_client_ends_that_wait(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where the strategy breaks then: its success is not recorded, and the scope alone hears of the end."""
    book = TokenBook()
    with trio.move_on_after(5.0) as scope:
        async with open_fake_cluster() as fake, fake.open_client() as cluster:
            with retrying(Stubborn(book, trio.lowlevel.checkpoint)):
                await cluster.bucket("default").default_collection().upsert("ada", {})

    assert (True, 5.0) == (scope.cancelled_caught, trio.current_time())
    assert [None] == book.ends
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("error", [ZeroDivisionError(), KeyboardInterrupt(), SystemExit()])
async def test_a_block_that_fails_waits_for_no_record(
    error: BaseException, autojump_clock: trio.testing.MockClock
) -> None:
    """What it raises leaves at once, as the very same object; so a block that is cancelled is left at once as well."""

    async def fail() -> None:
        async with open_fake_cluster() as fake, fake.open_client() as cluster:
            with retrying(Stubborn(TokenBook(), trio.lowlevel.checkpoint)):
                await cluster.bucket("default").default_collection().upsert("ada", {})
            raise error

    with pytest.raises(type(error)) as caught:
        await fail()

    assert error is caught.value
    assert 0.0 == pytest.approx(trio.current_time())


async def test_records_go_on_in_a_block_that_is_cancelled(autojump_clock: trio.testing.MockClock) -> None:
    """For as long as it cleans up; then it is left."""
    book = TokenBook()
    with trio.move_on_after(1.0):
        async with open_fake_cluster() as fake, fake.open_client() as cluster:
            with retrying(Slow(book, trio.lowlevel.checkpoint)):
                await cluster.bucket("default").default_collection().upsert("ada", {})
            with trio.CancelScope(shield=True):
                await trio.sleep(3.0)

    assert ["recorded"] == book.ends
    assert 3.0 == pytest.approx(trio.current_time())
