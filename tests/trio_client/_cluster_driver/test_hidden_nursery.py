"""Background work in a hidden nursery, which lasts as long as a block."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
import trio
import trio.testing

from tests.rows import rows
from triclinium import errors
from triclinium._cluster_driver.hidden_nursery import in_background


class Work:
    """Work that runs until it is closed or made to crash."""

    def __init__(self) -> None:
        self.started = trio.Event()
        self.ended = False
        self._crash = trio.Event()
        self._error: BaseException | None = None
        self._scope = trio.CancelScope(shield=True)

    async def run(self) -> None:
        """Run until ``close`` or ``crash`` is called."""
        try:
            with self._scope:
                self.started.set()
                await self._crash.wait()
                assert self._error is not None
                raise self._error
        finally:
            self.ended = True

    def close(self) -> None:
        """Stop the work."""
        self._scope.cancel()

    def crash(self, error: BaseException) -> None:
        """Make ``run`` raise ``error``."""
        self._error = error
        self._crash.set()


async def test_a_cancelled_block_ends_the_work() -> None:
    """Cancelling the block's scope ends the work, and the scope catches the cancellation."""
    work = Work()
    with trio.CancelScope() as scope:
        async with in_background(work, None):
            scope.cancel()
            await trio.lowlevel.checkpoint()

    assert scope.cancelled_caught
    assert work.ended


async def test_entering_a_cancelled_scope_ends_the_work() -> None:
    """In a cancelled scope, the block does not begin, and the scope catches the cancellation."""
    work = Work()
    with trio.CancelScope() as scope:
        scope.cancel()
        async with in_background(work, None):
            raise AssertionError

    assert scope.cancelled_caught


async def crash(error: BaseException, body: Callable[[], Awaitable[object]] = trio.sleep_forever) -> None:
    """Crash the background work while the block runs ``body``."""
    work = Work()
    async with in_background(work, None):
        work.crash(error)
        await body()


async def sleep_in_a_nursery() -> None:
    """Sleep so that a cancellation arrives as a group."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        await trio.sleep_forever()


async def notice_nothing() -> None:
    """Ignore the cancellation: wait in a shielded scope until all other tasks wait."""
    with trio.CancelScope(shield=True):
        await trio.testing.wait_all_tasks_blocked()


@rows("body", [trio.sleep_forever, sleep_in_a_nursery, notice_nothing])
async def test_a_crash_is_raised_however_the_block_ends(body: Callable[[], Awaitable[object]]) -> None:
    """If the work crashes, the block is cancelled and raises InternalError with the crash as cause, however it ends."""
    defect = KeyError("a defect")
    with pytest.raises(errors.InternalError) as caught:
        await crash(defect, body)

    assert isinstance(caught.value.__cause__, ExceptionGroup)
    assert (defect,) == caught.value.__cause__.exceptions


async def fail() -> None:
    """Raise during the cancellation."""
    try:
        await trio.sleep_forever()
    finally:
        raise ValueError("mine")


async def test_the_blocks_own_exception_wins() -> None:
    """If the block raises its own exception during a crash, that exception is raised with the crash as a note."""
    with pytest.raises(ValueError, match="mine") as caught:
        await crash(KeyError("a defect"), fail)

    assert "a defect" in "".join(caught.value.__notes__)


async def test_cancellations_are_dropped_from_a_group() -> None:
    """If a block raises a group during a crash, Cancelled exceptions are dropped from it and the rest is raised."""

    async def body() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)
            nursery.start_soon(trio.sleep_forever)

    with pytest.RaisesGroup(pytest.RaisesExc(ValueError, match="mine")) as caught:
        await crash(KeyError(), body)

    assert "crashed" in caught.value.__notes__[0]


@rows("ending", [KeyboardInterrupt(), SystemExit(3)])
@rows("body", [trio.sleep_forever, sleep_in_a_nursery, notice_nothing, fail])
async def test_program_exits_are_raised_unwrapped(ending: BaseException, body: Callable[[], Awaitable[object]]) -> None:
    """KeyboardInterrupt and SystemExit of the background work are raised as the same object, not in a group."""
    caught: BaseException | None = None
    try:
        await crash(ending, body)
    except (KeyboardInterrupt, SystemExit) as leaving:
        caught = leaving

    assert caught is ending


async def test_a_crash_next_to_ctrl_c_stays_grouped() -> None:
    """A crash next to a KeyboardInterrupt is raised in a group with it."""
    with pytest.RaisesGroup(KeyboardInterrupt, KeyError, flatten_subgroups=True):
        await crash(BaseExceptionGroup("both", [KeyboardInterrupt(), KeyError("a defect")]))


def interrupt() -> None:
    """Raise SIGINT, as Ctrl-C does."""
    signal.raise_signal(signal.SIGINT)


class Interrupted(Work):
    """Work that raises SIGINT itself when it begins or when it is closed."""

    def __init__(self, moment: str) -> None:
        super().__init__()
        self._moment = moment

    async def run(self) -> None:
        """Raise SIGINT, with protection from KeyboardInterrupt, if the test interrupts the start; then run."""
        if self._moment == "begin":
            trio.lowlevel.enable_ki_protection(interrupt)()
        await super().run()

    def close(self) -> None:
        """Stop the work, and then raise SIGINT if the test interrupts the end."""
        super().close()
        if self._moment == "end":
            interrupt()


@pytest.mark.native
@pytest.mark.parametrize("moment", ["begin", "body", "end"])
def test_control_c_is_raised_unwrapped(moment: str) -> None:
    """Ctrl-C at the start, inside or at the end of the block raises KeyboardInterrupt after the work has ended."""
    work = Interrupted(moment)

    async def main() -> None:
        async with in_background(work, None):
            if moment == "body":
                interrupt()

    with pytest.raises(KeyboardInterrupt):
        trio.run(main)

    assert work.ended


async def test_an_exit_stack_can_enter_it() -> None:
    """The work has started when an AsyncExitStack has entered the block, and has ended when the stack exits."""
    work = Work()
    async with AsyncExitStack() as stack:
        assert "given" == await stack.enter_async_context(in_background(work, "given"))
        assert work.started.is_set()
        assert not work.ended

    assert work.ended


async def test_a_block_is_entered_once() -> None:
    """Entering the same block a second time raises RuntimeError."""
    block = in_background(Work(), None)
    async with block:
        pass

    with pytest.raises(RuntimeError, match="entered"):
        async with block:
            pass
