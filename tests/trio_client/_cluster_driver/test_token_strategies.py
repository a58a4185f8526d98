"""Token strategies in a client: the client handles their exceptions, and waits for them or cancels them at its end."""

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
    """Strategy that never finishes recording a success, and raises when it is cancelled."""

    async def record_success(self, *, token: RetryToken) -> None:
        """Wait forever."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            try:
                await trio.sleep_forever()
            finally:
                raise BROKEN


class BreaksFirst(AwaitedBook):
    """Strategy that raises before the first attempt."""

    async def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:  # type: ignore[override]
        """Raise an exception, so that the call has no token."""
        raise BROKEN


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_failing_success_record_is_logged(
    is_async: bool, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """An exception while recording a success is logged at ERROR, and the caller gets its result."""
    book = TokenBook(raises=BROKEN)
    strategy = AwaitedBook(book, trio.lowlevel.checkpoint) if is_async else book
    async with open_fake_cluster() as fake, fake.open_client(retry_strategy=strategy) as cluster:
        result = await cluster.bucket("default").default_collection().upsert("ada", {})
        await trio.sleep(0.1)

    (record,) = [each for each in caplog.records if each.levelno >= logging.ERROR]

    assert result.cas
    assert ("triclinium.retry", BROKEN) == (record.name, record.exc_info and record.exc_info[1])


async def test_a_failing_acquisition_fails_the_call(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """An exception before the first attempt fails the call with RequestCanceledException and becomes its cause."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        people = cluster.bucket("default").default_collection()
        with (
            retrying(BreaksFirst(TokenBook(), trio.lowlevel.checkpoint)),
            pytest.raises(errors.RequestCanceledException) as caught,
        ):
            await people.upsert("ada", {})

    assert BROKEN is caught.value.__cause__


class Slow(AwaitedBook):
    """Strategy that takes two seconds to record a success."""

    async def record_success(self, *, token: RetryToken) -> None:
        """Wait, and then record the success."""
        await trio.sleep(2.0)
        await super().record_success(token=token)


@pytest.mark.parametrize("pause", [0.0, 0.5])
async def test_closing_waits_for_pending_records(pause: float, autojump_clock: trio.testing.MockClock) -> None:
    """The client waits at its end until the strategy has recorded the success."""
    book = TokenBook()
    async with open_fake_cluster() as fake:
        async with fake.open_client() as cluster:
            with retrying(Slow(book, trio.lowlevel.checkpoint)):
                await cluster.bucket("default").default_collection().upsert("ada", {})
            await trio.sleep(pause)
        left_at = trio.current_time()

    assert ["recorded"] == book.ends
    assert 2.0 == pytest.approx(left_at)


async def test_an_outer_scope_cancels_pending_records(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """If a scope around the client cancels the wait, the success is not recorded, and no error is logged."""
    book = TokenBook()
    with trio.move_on_after(5.0) as scope:
        async with open_fake_cluster() as fake, fake.open_client() as cluster:
            with retrying(Stubborn(book, trio.lowlevel.checkpoint)):
                await cluster.bucket("default").default_collection().upsert("ada", {})

    assert (True, 5.0) == (scope.cancelled_caught, trio.current_time())
    assert [None] == book.ends
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("error", [ZeroDivisionError(), KeyboardInterrupt(), SystemExit()])
async def test_a_failing_block_skips_pending_records(
    error: BaseException, autojump_clock: trio.testing.MockClock
) -> None:
    """A block that raises ends immediately, with the same exception, without waiting for records."""

    async def fail() -> None:
        async with open_fake_cluster() as fake, fake.open_client() as cluster:
            with retrying(Stubborn(TokenBook(), trio.lowlevel.checkpoint)):
                await cluster.bucket("default").default_collection().upsert("ada", {})
            raise error

    with pytest.raises(type(error)) as caught:
        await fail()

    assert error is caught.value
    assert 0.0 == pytest.approx(trio.current_time())


async def test_records_continue_during_cleanup(autojump_clock: trio.testing.MockClock) -> None:
    """While a cancelled block cleans up in a shielded scope, successes are still recorded."""
    book = TokenBook()
    with trio.move_on_after(1.0):
        async with open_fake_cluster() as fake, fake.open_client() as cluster:
            with retrying(Slow(book, trio.lowlevel.checkpoint)):
                await cluster.bucket("default").default_collection().upsert("ada", {})
            with trio.CancelScope(shield=True):
                await trio.sleep(3.0)

    assert ["recorded"] == book.ends
    assert 3.0 == pytest.approx(trio.current_time())
