"""Background work for the length of a block, in a nursery that nobody sees."""

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
    """Works until it is closed, or crashes when it is told to."""

    def __init__(self) -> None:
        self.started = trio.Event()
        self.ended = False
        self._crash = trio.Event()
        self._error: BaseException | None = None
        self._scope = trio.CancelScope(shield=True)

    async def run(self) -> None:
        """Work."""
        try:
            with self._scope:
                self.started.set()
                await self._crash.wait()
                assert self._error is not None
                raise self._error
        finally:
            self.ended = True

    def close(self) -> None:
        """End."""
        self._scope.cancel()

    def crash(self, error: BaseException) -> None:
        """Have ``run`` raise."""
        self._error = error
        self._crash.set()


async def test_it_works_for_the_length_of_the_block() -> None:
    """It has started when the block begins, and has ended when the block has."""
    work = Work()
    async with in_background(work, None):
        assert work.started.is_set()
        assert not work.ended

    assert work.ended


@rows(
    "error",
    [
        ValueError("mine"),
        ExceptionGroup("mine", [ValueError(), ExceptionGroup("inner", [KeyError()])]),
        BaseExceptionGroup("mine", [KeyboardInterrupt()]),
        KeyboardInterrupt(),
        SystemExit(3),
        GeneratorExit(),
        StopAsyncIteration(),
        trio.ClosedResourceError(),
    ],
)
async def test_an_exception_leaves_the_block_as_the_very_same_object(error: BaseException) -> None:
    """Neither wrapped nor copied, without a note or a context that it did not have."""
    caught: BaseException | None = None
    try:
        async with in_background(Work(), None):
            raise error
    except BaseException as leaving:
        caught = leaving

    assert caught is error
    assert caught.__cause__ is None
    assert caught.__context__ is None
    assert not hasattr(error, "__notes__")


async def test_a_cancelled_block_ends_the_work() -> None:
    """The cancellation reaches its scope, as if there were nothing in between."""
    work = Work()
    with trio.CancelScope() as scope:
        async with in_background(work, None):
            scope.cancel()
            await trio.lowlevel.checkpoint()

    assert scope.cancelled_caught
    assert work.ended


async def test_entering_under_a_cancelled_scope_leaves_nothing_behind() -> None:
    """The work is ended before the block has begun."""
    work = Work()
    with trio.CancelScope() as scope:
        scope.cancel()
        async with in_background(work, None):
            raise AssertionError

    assert scope.cancelled_caught


async def crash(error: BaseException, body: Callable[[], Awaitable[object]] = trio.sleep_forever) -> None:
    """Let the background crash while the block does ``body``."""
    work = Work()
    async with in_background(work, None):
        work.crash(error)
        await body()


async def test_a_crash_cancels_the_block() -> None:
    """The caller gets one exception that tells where it came from."""
    defect = KeyError("a defect")
    with pytest.raises(errors.InternalError) as caught:
        await crash(defect)

    assert isinstance(caught.value.__cause__, ExceptionGroup)
    assert (defect,) == caught.value.__cause__.exceptions


async def sleep_in_a_nursery() -> None:
    """Be cancelled in a way that gives a group."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        await trio.sleep_forever()


async def notice_nothing() -> None:
    """Go on until everybody else waits."""
    with trio.CancelScope(shield=True):
        await trio.testing.wait_all_tasks_blocked()


@rows("body", [sleep_in_a_nursery, notice_nothing])
async def test_a_crash_is_told_however_the_block_ends(body: Callable[[], Awaitable[object]]) -> None:
    """In a group of cancellations, or by itself."""
    with pytest.raises(errors.InternalError):
        await crash(KeyError(), body)


async def fail() -> None:
    """Raise on the way out."""
    try:
        await trio.sleep_forever()
    finally:
        raise ValueError("mine")


async def test_the_blocks_own_exception_wins() -> None:
    """A crash meanwhile becomes a note on it."""
    with pytest.raises(ValueError, match="mine") as caught:
        await crash(KeyError("a defect"), fail)

    assert "a defect" in "".join(caught.value.__notes__)


async def test_of_a_group_only_what_is_the_callers_own_survives_a_crash() -> None:
    """Cancelled was for the nursery that has ended, and would end the whole program if it got any further."""

    async def body() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)
            nursery.start_soon(trio.sleep_forever)

    with pytest.RaisesGroup(pytest.RaisesExc(ValueError, match="mine")) as caught:
        await crash(KeyError(), body)

    assert "crashed" in caught.value.__notes__[0]


@rows("ending", [KeyboardInterrupt(), SystemExit(3)])
@rows("body", [trio.sleep_forever, sleep_in_a_nursery, notice_nothing, fail])
async def test_what_ends_the_program_arrives_as_itself(
    ending: BaseException, body: Callable[[], Awaitable[object]]
) -> None:
    """It is no crash, and whoever waits for Control-C catches no groups."""
    caught: BaseException | None = None
    try:
        await crash(ending, body)
    except (KeyboardInterrupt, SystemExit) as leaving:
        caught = leaving

    assert caught is ending


async def test_what_does_not_come_alone_stays_in_its_group() -> None:
    """A crash beside Control-C is not lost."""
    with pytest.RaisesGroup(KeyboardInterrupt, KeyError, flatten_subgroups=True):
        await crash(BaseExceptionGroup("both", [KeyboardInterrupt(), KeyError("a defect")]))


def interrupt() -> None:
    """Press Control-C."""
    signal.raise_signal(signal.SIGINT)


class Interrupted(Work):
    """Work that is interrupted when it begins or when it is closed, wherever the main task is."""

    def __init__(self, moment: str) -> None:
        super().__init__()
        self._moment = moment

    async def run(self) -> None:
        """Work, in a task that is protected, as the driver is."""
        if self._moment == "begin":
            trio.lowlevel.enable_ki_protection(interrupt)()
        await super().run()

    def close(self) -> None:
        """End."""
        super().close()
        if self._moment == "end":
            interrupt()


@pytest.mark.native
@pytest.mark.parametrize("moment", ["begin", "body", "end"])
def test_control_c_arrives_as_itself(moment: str) -> None:
    """Whether the block is being entered, at work or being left; the work has ended when it arrives."""
    work = Interrupted(moment)

    async def main() -> None:
        async with in_background(work, None):
            if moment == "body":
                interrupt()

    with pytest.raises(KeyboardInterrupt):
        trio.run(main)

    assert work.ended


async def test_an_exit_stack_takes_it() -> None:
    """It enters and leaves the work in the name of its own block."""
    work = Work()
    async with AsyncExitStack() as stack:
        assert "given" == await stack.enter_async_context(in_background(work, "given"))
        assert not work.ended

    assert work.ended


async def test_a_block_is_entered_once() -> None:
    """What has ended cannot begin again."""
    block = in_background(Work(), None)
    async with block:
        pass

    with pytest.raises(RuntimeError, match="entered before"):
        async with block:
            pass
